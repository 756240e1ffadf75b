"""Train a network of a setting of ConvFHE whose weights are not published: `python -m
studies.coefficient_network.train --images I --test T --setting 5-8-3 --out W`.

I has a folder of CIFAR-10's training images for each class, and T of its test images. Writes a file for each
array, as `studies.coefficient_network` reads them, and prints the share of test images that are right. Needs
torch and pillow.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from studies.coefficient_network.network import (
    CLASSES,
    COLOURS,
    IMAGE,
    SETTINGS,
    Array,
    Setting,
    cropped,
    read_images,
    write_network,
)

COUNT, TESTED, BATCH, SHIFT = 50_000, 1000, 128, 3
"""Images that are trained on, and test images, in turns of the classes; images of a step, and pixels that
images move."""


class PlainNetwork(nn.Module):
    """Convolutions, each with a normalisation and a ReLU, then a mean and a linear layer."""

    def __init__(self, setting: Setting) -> None:
        super().__init__()
        self.setting = setting
        sizes = zip((COLOURS, *setting.channels[:-1]), setting.channels, strict=True)
        self.convolutions = nn.ModuleList(nn.Conv2d(a, b, setting.kernel, bias=False) for a, b in sizes)
        self.normalisations = nn.ModuleList(nn.BatchNorm2d(b) for b in setting.channels)
        self.linear = nn.Linear(setting.channels[-1], CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scores of (images, channels, rows, columns), without the rows that must be zero."""
        half = self.setting.kernel // 2
        for index, (convolve, normalise) in enumerate(
            zip(self.convolutions, self.normalisations, strict=True)
        ):
            x = convolve(functional.pad(x, [half] * 4))
            if index in self.setting.strides:
                rows = (x.shape[2] + half) // 2 - half
                x = x[:, :, 1 : 2 * rows : 2, 1 : 2 * rows : 2]
            x = functional.relu(normalise(x))
        return self.linear(x.mean((2, 3)))

    def arrays(self) -> dict[str, Array]:
        """Kernels, normalisations folded to a factor and a summand, and the linear layer."""
        out: dict[str, torch.Tensor] = {}
        for index, (convolve, normalise) in enumerate(
            zip(self.convolutions, self.normalisations, strict=True)
        ):
            factor = normalise.weight / (normalise.running_var + normalise.eps).sqrt()
            out[f"w{index}-conv"] = convolve.weight.permute(2, 3, 1, 0)
            out[f"w{index}-a"] = factor
            out[f"w{index}-b"] = normalise.bias - normalise.running_mean * factor
        out |= {"final-fckernel": self.linear.weight.T, "final-fcbias": self.linear.bias}
        return {name: np.asarray(array.detach().cpu().double()) for name, array in out.items()}


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m studies.coefficient_network.train", description=__doc__)
    parser.add_argument("--images", type=Path, required=True, help="folders of CIFAR-10's training images")
    parser.add_argument("--test", type=Path, required=True, help="folders of its test images")
    parser.add_argument("--setting", choices=sorted(SETTINGS), default="5-8-3", help="default: 5-8-3")
    parser.add_argument(
        "--epochs", type=int, default=20, help="0 writes the weights at the beginning (default: 20)"
    )
    parser.add_argument("--limit", type=float, default=1e9, help="seconds after which training ends early")
    parser.add_argument("--out", type=Path, required=True, help="folder of the weights")
    return parser.parse_args()


def moved(images: torch.Tensor) -> torch.Tensor:
    """Images moved by a few pixels, half of them mirrored."""
    if torch.rand(()) < 0.5:
        images = images.flip(3)
    rows, columns = (int(torch.randint(-SHIFT, SHIFT + 1, ())) for _ in range(2))
    padded = functional.pad(images, [SHIFT] * 4)
    return padded[:, :, SHIFT + rows :, SHIFT + columns :][:, :, :IMAGE, :IMAGE]


def main() -> int:
    """Train, write and print."""
    options = arguments()
    torch.manual_seed(1)
    setting = SETTINGS[options.setting]
    images, labels, mean = read_images(options.images, COUNT)
    rows = IMAGE - setting.kernel // 2
    values = torch.tensor(images - mean, dtype=torch.float32).permute(0, 3, 1, 2)
    tested, truth, mean = read_images(options.test, TESTED)
    held = torch.tensor(cropped(tested - mean, setting.kernel), dtype=torch.float32)
    held = held.permute(0, 3, 1, 2)[:, :, :rows, :rows]
    target, expected = torch.tensor(labels), torch.tensor(truth)
    network = PlainNetwork(setting).to(memory_format=torch.channels_last)
    steps = COUNT // BATCH
    optimiser = torch.optim.SGD(network.parameters(), 0.1, 0.9, weight_decay=1e-3, nesterov=True)
    write_network(options.out, network.arrays())
    begin = time.monotonic()
    for epoch in range(options.epochs):
        network.train()
        for step, chosen in enumerate(torch.randperm(COUNT).split(BATCH)):
            # The rate rises in the first quarter and falls to zero, with the epochs or with the time.
            done = max((epoch + step / steps) / options.epochs, (time.monotonic() - begin) / options.limit)
            optimiser.param_groups[0]["lr"] = 0.1 * max(0.0, min(4 * done, (1 - done) / 0.75)) + 1e-5
            batch = torch.cat([moved(part) for part in values[chosen].split(8)])[:, :, :rows, :rows]
            with torch.autocast("cpu", dtype=torch.bfloat16):
                scores = network(batch.contiguous(memory_format=torch.channels_last))
            loss = functional.cross_entropy(scores.float(), target[chosen], label_smoothing=0.05)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        network.eval()
        with torch.no_grad():
            right = (network(held).argmax(1) == expected).float().mean()
        print(f"epoch {epoch + 1}: {100 * right:.1f} % right", flush=True)
        write_network(options.out, network.arrays())
        if time.monotonic() - begin > options.limit:
            break
    return 0


if __name__ == "__main__":
    sys.exit(main())
