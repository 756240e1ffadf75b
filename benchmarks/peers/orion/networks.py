"""The networks, and Orion's parameters for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import orion.nn as on
import torch
from numpy.typing import NDArray
from torch import nn

Weights = dict[str, NDArray[np.float32]]

LENET = {14: ([50] + [40] * 7, [50, 50], 1 << 13), 15: ([55] + [40] * 7, [61, 61, 61], 1 << 14)}
"""Primes of the chain, special primes and weight of the secret, by log2 of the ring's degree: seven levels of
40 bits, as the network takes, and a key's modulus within the bound for uniform ternary secrets."""
RESNET = {16: ([55] + [40] * 10, [61, 61, 61], 1 << 14)}
"""Those of configs/resnet.yml of Orion's repository; BOOTSTRAP has the special primes of its bootstraps."""
BOOTSTRAP = [61] * 8


class LeNet(on.Module):  # type: ignore[misc]
    """Orion's own LeNet for any widths; batch normalisations are in the weights, as Orion has them once it
    has fused them."""

    def __init__(self, weights: Weights) -> None:
        super().__init__()
        shapes = {name: weights[f"{name}.weight"].shape for name in ("conv1", "conv2", "dense1", "dense2")}
        first, second = (shapes[name] for name in ("conv1", "conv2"))
        self.conv1 = on.Conv2d(first[1], first[0], kernel_size=5, padding=2, stride=2)
        self.act1 = on.Quad()
        self.conv2 = on.Conv2d(second[1], second[0], kernel_size=5, padding=2, stride=2)
        self.act2 = on.Quad()
        self.flatten = on.Flatten()
        self.dense1 = on.Linear(*reversed(shapes["dense1"]))
        self.act3 = on.Quad()
        self.dense2 = on.Linear(*reversed(shapes["dense2"]))
        self.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})

    def forward(self, x: Any) -> Any:
        """Scores of (1, 1, 28, 28), in the clear or encrypted."""
        x = self.act2(self.conv2(self.act1(self.conv1(x))))
        return self.dense2(self.act3(self.dense1(self.flatten(x))))


class Block(on.Module):  # type: ignore[misc]
    """Two convolutions beside the input, squares."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = on.Conv2d(inputs, outputs, kernel_size=3, stride=stride, padding=1)
        self.act1 = on.Quad()
        self.conv2 = on.Conv2d(outputs, outputs, kernel_size=3, stride=1, padding=1)
        self.act2 = on.Quad()
        self.add = on.Add()
        self.shortcut = (
            nn.Sequential() if stride == 1 else on.Conv2d(inputs, outputs, kernel_size=1, stride=stride)
        )

    def forward(self, x: Any) -> Any:
        """The next block's input."""
        return self.act2(self.add(self.conv2(self.act1(self.conv1(x))), self.shortcut(x)))


class ResNet20(on.Module):  # type: ignore[misc]
    """Orion's ResNet-20 with squares, batch normalisations in the weights."""

    def __init__(self, weights: Weights) -> None:
        super().__init__()
        self.stem = on.Conv2d(3, 16, kernel_size=3, stride=1, padding=1)
        self.act = on.Quad()
        layers = ((16, 16, 1), (16, 32, 2), (32, 64, 2))
        self.blocks = nn.ModuleList(
            Block(inputs if place == 0 else outputs, outputs, stride if place == 0 else 1)
            for inputs, outputs, stride in layers
            for place in range(3)
        )
        self.pool = on.AdaptiveAvgPool2d(output_size=(1, 1))
        self.flatten = on.Flatten()
        self.linear = on.Linear(64, 10)
        own = {name: torch.from_numpy(array) for name, array in weights.items()}
        # Orion's mean has a weight of its own.
        self.load_state_dict({"pool.weight": self.pool.weight, **own})

    def forward(self, x: Any) -> Any:
        """Scores of (1, 3, 32, 32), in the clear or encrypted."""
        x = self.act(self.stem(x))
        for block in self.blocks:
            x = block(x)
        return self.linear(self.flatten(self.pool(x)))


NETWORKS = {"lenet": (LeNet, LENET), "resnet20": (ResNet20, RESNET)}
