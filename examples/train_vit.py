"""Train a small vision transformer on MNIST: 16 patches, two layers of two heads, softmax, GELU and
LayerNormalization from the data.

    python examples/train_vit.py FOLDER

FOLDER has the four idx.gz files of MNIST. The patches are 7 x 7 pixels; their states are averaged instead of
read from a token of its own (Beyer, Zhai and Kolesnikov, arXiv 2205.01580), which leaves 16 tokens. Writes
examples/models/vit_mnist.onnx. Needs numpy, onnx, onnxscript and torch.
"""

import argparse
from pathlib import Path

import numpy as np
import onnx
import torch
from keywright import compiler
from torch import nn
from torch.nn import functional
from train_mnist import load

OUTPUT = Path(__file__).parent / "models" / "vit_mnist.onnx"
SIDE, PATCH = 28, 7


class VisionTransformer(nn.Module):  # type: ignore[misc]
    """Patches and positions, encoder layers, the mean state, a dense layer."""

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.patches = nn.Conv2d(1, width, PATCH, PATCH)
        self.positions = nn.Parameter(torch.randn(1, (SIDE // PATCH) ** 2, width) / 10)
        layer = nn.TransformerEncoderLayer(
            width, 2, 2 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, 10)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """Scores of images, (count, 1, 28, 28)."""
        tokens = self.patches(image).flatten(2).transpose(1, 2) + self.positions
        return self.head(self.encoder(tokens).mean(1))


def moved(images: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
    """A batch, moved by up to two pixels."""
    down, right = rng.integers(-2, 3, 2)
    return torch.roll(images, (int(down), int(right)), (2, 3))


def without_sources(model: onnx.ModelProto) -> onnx.ModelProto:
    """A model without the places in its sources that the exporter writes for its nodes."""
    graph = model.graph
    for part in (
        model,
        graph,
        *graph.node,
        *graph.value_info,
        *graph.input,
        *graph.output,
        *graph.initializer,
    ):
        part.doc_string = ""
        del part.metadata_props[:]
    return model


def main() -> None:
    """Train, print the test accuracy, write the model."""
    parser = argparse.ArgumentParser(description="Train a small vision transformer on MNIST.")
    parser.add_argument("folder", type=Path, help="folder of MNIST's files")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    rng = np.random.default_rng(options.seed)
    parts = {part: load(options.folder, part) for part in ("train", "t10k")}
    images, tests = (torch.from_numpy(parts[part][0]) for part in parts)
    labels, test_labels = (torch.from_numpy(parts[part][1]) for part in parts)
    model = VisionTransformer(options.width, options.layers)
    optimiser = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
    batches = len(images) // 128
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 4e-3, total_steps=options.epochs * batches)
    loss = torch.zeros(())
    for epoch in range(options.epochs):
        model.train()
        for chosen in np.array_split(rng.permutation(len(images))[: batches * 128], batches):
            loss = functional.cross_entropy(model(moved(images[chosen], rng)), labels[chosen])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
        model.eval()
        with torch.no_grad():
            right = sum(
                int((model(part).argmax(1) == truth).sum())
                for part, truth in zip(tests.split(1000), test_labels.split(1000), strict=True)
            )
        print(
            f"epoch {epoch + 1}: loss {loss.item():.4f}, test accuracy {right / len(tests):.4f}", flush=True
        )
    onnx.save(without_sources(compiler.to_onnx(model, parts["t10k"][0][:2])), options.output)
    print(f"{options.output}: {options.output.stat().st_size} bytes")


if __name__ == "__main__":
    main()
