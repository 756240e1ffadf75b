"""Is a part of an image a face?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from cifar import OnnxWriter
from torch_files import read_tensors

from gallery.entry import Array, Case, Entry

SIZE = 24
TESTS, CALIBRATION = 4, 200


def pictures(count: int, size: int, seed: int) -> Array:
    """Images (count, 3, size, size) in [-1, 1] as MTCNN scales them: a face of ellipses before noise, of
    random place, size and colours; every second image without a face."""
    rng = np.random.default_rng(seed)
    rows, columns = np.mgrid[:size, :size] / (size - 1)
    images = np.empty((count, 3, size, size))
    for image in images:
        low, high = np.sort(rng.uniform(0, 1, (2, 3, 1, 1)), axis=0)
        across = rng.uniform(0, 2 * np.pi)
        image[:] = low + (high - low) * (np.cos(across) * rows + np.sin(across) * columns)
    for image in images[::2]:
        row, column, width = rng.uniform(0.45, 0.55, 3) * np.array([1, 1, 0.8])
        skin, dark = rng.uniform([0.6, 0.4, 0.3], [1, 0.8, 0.7])[:, None], rng.uniform(0, 0.25, (3, 1))
        for up, left, tall, wide, colour in (
            (0, 0, 1.25, 1, skin),
            (-0.25, -0.4, 0.12, 0.2, dark),
            (-0.25, 0.4, 0.12, 0.2, dark),
            (0.15, 0, 0.25, 0.1, skin * 0.85),
            (0.6, 0, 0.1, 0.4, dark),
        ):
            place = ((rows - row) / width - up) / tall, ((columns - column) / width - left) / wide
            image[:, place[0] ** 2 + place[1] ** 2 < 1] = colour
    return np.clip(2 * images - 1 + 0.05 * rng.normal(size=images.shape), -1, 1)


def load(folder: Path) -> Case:
    """The network as `facenet_pytorch.RNet` has it: two scores, then four corrections of the box."""
    tensors = read_tensors(folder / "facenet_pytorch" / "data" / "rnet.pt")
    writer = OnnxWriter()

    def constants(name: str) -> list[str]:
        return [writer.constant(tensors[f"{name}.{part}"]) for part in ("weight", "bias")]

    def slopes(name: str, *shape: int) -> str:
        return writer.constant(tensors[f"{name}.weight"].reshape(shape))

    value = "image"
    for layer in (1, 2, 3):
        value = writer.node("Conv", value, *constants(f"conv{layer}"), name=f"conv{layer}")
        value = writer.node("PRelu", value, slopes(f"prelu{layer}", -1, 1, 1), name=f"prelu{layer}")
        if layer < 3:
            pool = {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}
            value = writer.node("MaxPool", value, name=f"pool{layer}", **pool)
    value = writer.node("Flatten", writer.node("Transpose", value, perm=[0, 3, 2, 1]))
    value = writer.node("Gemm", value, *constants("dense4"), name="dense4", transB=1)
    value = writer.node("PRelu", value, slopes("prelu4", -1), name="prelu4")
    heads = [writer.node("Gemm", value, *constants(f"dense5_{head}"), transB=1) for head in (1, 2)]
    result = writer.node("Concat", *heads, name="face", axis=1)
    return Case(
        writer.model("image", (3, SIZE, SIZE), result, 6),
        pictures(CALIBRATION, SIZE, 1),
        pictures(TESTS, SIZE, 2),
        decide=lambda outputs: outputs[:, 1] > outputs[:, 0],
        options={"samples": 1},
        truth=np.arange(TESTS) % 2 == 0,
    )


ENTRY = Entry(
    title="R-Net of MTCNN: is a part of an image a face; three convolutions with PReLU, MaxPool, two layers",
    licence="MIT",
    data="drawn faces and empty backgrounds of 24 x 24 pixels",
    load=load,
    changes="both heads are one output, before the softmax",
)
