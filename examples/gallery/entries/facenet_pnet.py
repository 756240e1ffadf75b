"""Where in an image could a face be?"""

from __future__ import annotations

from pathlib import Path

from cifar import OnnxWriter
from torch_files import read_tensors

from gallery.entries.facenet_rnet import pictures
from gallery.entry import Case, Entry

SIZE = 12
TESTS, CALIBRATION = 16, 300


def load(folder: Path) -> Case:
    """The network as `facenet_pytorch.PNet` has it, at one place: two scores, then corrections of the box."""
    tensors = read_tensors(folder / "facenet_pytorch" / "data" / "pnet.pt")
    writer = OnnxWriter()

    def convolution(value: str, name: str) -> str:
        operands = [writer.constant(tensors[f"{name}.{part}"]) for part in ("weight", "bias")]
        return writer.node("Conv", value, *operands, name=name)

    value = "image"
    for layer in (1, 2, 3):
        slopes = writer.constant(tensors[f"prelu{layer}.weight"].reshape(-1, 1, 1))
        value = writer.node("PRelu", convolution(value, f"conv{layer}"), slopes, name=f"prelu{layer}")
        if layer == 1:
            value = writer.node(
                "MaxPool", value, name="pool1", kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1
            )
    heads = [convolution(value, f"conv4_{head}") for head in (1, 2)]
    result = writer.node("Flatten", writer.node("Concat", *heads, axis=1), name="face")
    return Case(
        writer.model("image", (3, SIZE, SIZE), result, 6),
        pictures(CALIBRATION, SIZE, 1),
        pictures(TESTS, SIZE, 2),
        decide=lambda outputs: outputs[:, 1] > outputs[:, 0],
    )


ENTRY = Entry(
    title="P-Net of MTCNN: could a part of an image be a face; three convolutions with PReLU, MaxPool",
    licence="MIT",
    data="drawn faces and empty backgrounds of 12 x 12 pixels",
    load=load,
    changes="both heads are one output, before the softmax",
)
