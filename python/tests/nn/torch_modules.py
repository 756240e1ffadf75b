"""Small modules of PyTorch; imported where that is installed."""

from typing import Any

import torch
from torch import nn
from torch.nn import functional


class Recurrent(nn.Module):  # type: ignore[misc]
    """Scores of the last state of a sequence."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.cell = getattr(nn, kind)(6, 8, batch_first=True)
        self.scores = nn.Linear(8, 3)

    def forward(self, x: Any) -> Any:
        states, _ = self.cell(x)
        return self.scores(states[:, -1]).softmax(-1)


class Shapes(nn.Module):  # type: ignore[misc]
    """Parts of the input, joined, turned, padded and cut."""

    def __init__(self) -> None:
        super().__init__()
        self.dense, self.slopes = nn.Linear(12, 5), nn.PReLU(5)

    def forward(self, x: Any) -> Any:
        left, right = x.chunk(2, 1)
        joined = torch.cat([left - right, right], 1).permute(0, 2, 1)
        padded = functional.pad(joined, (1, 0))[:, :, 1:]
        return self.slopes(self.dense(padded.reshape(x.shape[0], -1)))


def modules() -> dict[str, tuple[Any, tuple[int, ...]]]:
    """By name, with the shape of a sample."""
    functions = (nn.GELU(), nn.SiLU(), nn.ELU(), nn.Softplus(), nn.Hardswish(), nn.Mish(), nn.LeakyReLU())
    hidden = (layer for function in functions for layer in (function, nn.Linear(4, 4)))
    images = (nn.Conv2d(1, 4, 3), nn.ReLU6(), nn.MaxPool2d(2), nn.BatchNorm2d(4), nn.AdaptiveAvgPool2d(1))
    lines = (nn.Conv1d(2, 4, 3, stride=2), nn.ReLU(), nn.AvgPool1d(2), nn.Flatten())
    normalised = (nn.Conv1d(2, 4, 3), nn.GroupNorm(2, 4), nn.Flatten(), nn.LayerNorm(24))
    return {
        "activations": (nn.Sequential(nn.Linear(6, 4), *hidden), (6,)),
        "double": (nn.Sequential(nn.Linear(6, 4), nn.Tanh(), nn.Linear(4, 3)).double(), (6,)),
        "convolution of one axis": (nn.Sequential(*lines), (2, 9)),
        "images": (nn.Sequential(*images, nn.Flatten(), nn.Linear(4, 3), nn.Softmax(-1)), (1, 8, 8)),
        "decoder": (
            nn.Sequential(nn.ConvTranspose2d(2, 3, 2, stride=2), nn.Upsample(scale_factor=2)),
            (2, 3, 3),
        ),
        "normalisations": (nn.Sequential(*normalised), (2, 8)),
        "shapes": (Shapes(), (4, 3)),
        **{kind: (Recurrent(kind), (3, 6)) for kind in ("RNN", "GRU", "LSTM")},
    }
