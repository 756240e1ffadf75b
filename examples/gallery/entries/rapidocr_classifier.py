"""Is a line of text upside down?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from PIL import Image, ImageDraw, ImageFont

from gallery.entry import Array, Case, Entry

HEIGHT, WIDTH = 48, 192
TESTS, CALIBRATION = 4, 120
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


def lines(count: int, seed: int) -> Array:
    """Images (count, 3, 48, 192) in [-1, 1] of letters at random; every second one is upside down."""
    rng = np.random.default_rng(seed)
    images = np.empty((count, 3, HEIGHT, WIDTH))
    for number in range(count):
        text = "".join(rng.choice(list(LETTERS), rng.integers(5, 10)))
        paper, ink = (tuple(int(c) for c in rng.integers(*span, 3)) for span in ((200, 256), (0, 80)))
        image = Image.new("RGB", (WIDTH, HEIGHT), paper)
        font = ImageFont.load_default(int(rng.integers(26, 38)))
        place = float(rng.integers(2, 12)), float(rng.integers(0, 8))
        ImageDraw.Draw(image).text(place, text, fill=ink, font=font)
        if number % 2:
            image = image.rotate(180)
        images[number] = np.asarray(image).transpose(2, 0, 1) / 127.5 - 1
    return images


def load(folder: Path) -> Case:
    """The network of PP-OCR for lines of 48 x 192 pixels."""
    path = folder / "rapidocr_onnxruntime" / "models" / "ch_ppocr_mobile_v2.0_cls_infer.onnx"
    model = onnx.load(path)
    dims = model.graph.input[0].type.tensor_type.shape.dim
    dims[2].dim_value, dims[3].dim_value = HEIGHT, WIDTH
    return Case(
        model,
        lines(CALIBRATION, 1),
        lines(TESTS, 2),
        options={"samples": 1},
        truth=np.arange(TESTS) % 2,
    )


ENTRY = Entry(
    title="is a line of text upside down; MobileNetV3, 53 convolutions",
    licence="Apache-2.0",
    data="drawn lines of letters, every second one upside down",
    load=load,
    changes="the size of images is fixed",
)
