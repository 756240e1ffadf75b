"""`keywright[images]`: a PNG file is what a command reads as its input."""

import tempfile
from pathlib import Path

import numpy as np
from keywright.commands.helpers.inputs import load_inputs
from PIL import Image

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "grey.png"
    Image.fromarray(np.full((8, 8), 51, np.uint8)).save(path)
    assert np.allclose(load_inputs(path), 0.2, rtol=0, atol=1e-6)
print("a PNG file was read")
