"""`keywright[plot]`: the demonstration draws its keys."""

import tempfile
from pathlib import Path

from keywright.cli import main

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "keys.svg"
    assert main(["demo", "--samples", "1", "--picture", str(path)]) == 0
    assert "<svg" in path.read_text(encoding="utf-8")
print("the demonstration drew a picture")
