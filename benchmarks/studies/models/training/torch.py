"""PyTorch's models: `python -m studies.models.training.torch NAME FOLDER [--data MNIST]`."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import torch
from torch import nn

from studies.models.training.data import Data, mnist, table
from studies.models.training.files import Trained, main

OPSET = 18


def fitted(module: nn.Module, data: Data, loss: Any, epochs: int, *, dynamo: bool) -> Trained:
    """Adam over batches of 64, then one of the two exporters."""
    samples, tests = torch.as_tensor(data.train), torch.as_tensor(data.tests)
    known = torch.as_tensor(data.known)
    known = known.long() if isinstance(loss, nn.CrossEntropyLoss) else known.float()[:, None]
    optimizer = torch.optim.Adam(module.parameters(), 3e-3, weight_decay=1e-4)
    for _ in range(epochs):
        for places in torch.randperm(len(samples)).split(64):
            optimizer.zero_grad()
            loss(module(samples[places]), known[places]).backward()
            optimizer.step()
    module.eval()
    file = io.BytesIO()
    if dynamo:
        torch.onnx.export(module, (samples[:1],), dynamo=True, opset_version=OPSET, verbose=False).save(file)
    else:
        axes = {"x": {0: "n"}}
        torch.onnx.export(
            module, (samples[:1],), file, dynamo=False, opset_version=17, input_names=["x"], dynamic_axes=axes
        )
    with torch.no_grad():
        return Trained(file.getvalue(), data, module(tests).numpy())


def convolutional(_: Path | None) -> Trained:
    """Two convolutions with ReLU and average pools on 8 x 8 pixels."""
    module = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.AvgPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1),
        nn.ReLU(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(64, 10),
    )
    return fitted(module, table("digits").shaped(1, 8, 8), nn.CrossEntropyLoss(), 40, dynamo=True)


def dense(folder: Path | None) -> Trained:
    """784-64-10 with SiLU."""
    if folder is None:
        raise SystemExit("torch-mnist needs --data, the folder of MNIST's files")
    module = nn.Sequential(nn.Flatten(), nn.Linear(784, 64), nn.SiLU(), nn.Linear(64, 10))
    return fitted(module, mnist(folder), nn.CrossEntropyLoss(), 5, dynamo=False)


class LastState(nn.Module):  # type: ignore[misc]
    """A recurrent network over four pairs of rows, and a layer on its last state."""

    def __init__(self) -> None:
        super().__init__()
        self.steps, self.last = nn.RNN(16, 24, batch_first=True), nn.Linear(24, 10)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """(count, 4, 16) to scores."""
        states, _ = self.steps(rows)
        scores: torch.Tensor = self.last(states[:, -1])
        return scores


def recurrent(_: Path | None) -> Trained:
    """tanh, unrolled over four steps."""
    return fitted(LastState(), table("digits").shaped(4, 16), nn.CrossEntropyLoss(), 40, dynamo=True)


MODELS = {"torch-convolutional": convolutional, "torch-mnist": dense, "torch-recurrent": recurrent}

if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    main(MODELS)
