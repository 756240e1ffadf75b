"""ConvFHE's network 3-20-1 on encrypted images: `python -m studies.coefficient_network --weights W
--images I`.

W is the folder `weight_ker3_h5` of github.com/dwkim606/lattigo_conv: 19 convolutions of 3 x 3 with folded
normalisation, and a linear layer. I has a folder of CIFAR-10's test images for each class. Values are in
coefficients, as in the source; the program `coefficient_network` of `suite` runs the layers. The keys for
its packings (ARK's CRot2) are ConvFHE's, those of ARK's two configurations, LowMem's, level-aware ones, or
`optimal`.
Values keep their places in this program, so it has no change of width (CRot1). The last row and column of an
image are left out: they must be zero for the first convolutions.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from harness.console import Console
from harness.folders import record_folder
from harness.measurement import machine
from harness.programs.suite import build, output
from keywright.plan import Chain, CostModel
from numpy.typing import NDArray

from studies.coefficient_convolution import Layer, key_sets, pack_workload, packing_lines

PROGRAM = "coefficient_network"
Array = NDArray[np.float64]
WIDTH, CHANNELS, KERNEL, CLASSES = 32, 64, 3, 10
"""Columns of an image and channels of 32 x 32 that fit N = 2^16."""
BLOCKS = ((16, 7), (32, 6), (64, 6))
"""Channels and convolutions of each block; the first convolution of the later ones has stride 2."""
INPUT = 256.0
"""What pixels, less their mean, are divided by."""
MARGIN = 1.5
"""Bounds of values over the largest of the images."""
Q = (50, 36, 31, 31, 31, *[40] * 12, *[57] * 4, *[60] * 4, *[46] * 4)
P = (61,) * 6
"""Bits of the primes of the program."""


@dataclass(frozen=True)
class Convolution:
    """A convolution with its normalisation, (rows, columns, in, out), and the grids of its input and of its
    result: the first row, and the distance of rows."""

    weights: Array
    bias: Array
    source: tuple[int, int]
    result: tuple[int, int]

    def rows(self) -> NDArray[np.intp]:
        """Rows, and columns, of the result."""
        first, step = self.result
        return np.arange(first, WIDTH - 1, step)


def read_network(folder: Path) -> tuple[list[Convolution], Array, Array]:
    """The convolutions, and the matrix and summands of the linear layer."""
    layers: list[Convolution] = []
    grid, before = (0, 1), 3
    for block, (channels, count) in enumerate(BLOCKS):
        for index in range(count):
            number = len(layers)
            kernel = np.loadtxt(folder / f"w{number}-conv.csv").reshape(KERNEL, KERNEL, before, channels)
            factor, bias = (np.loadtxt(folder / f"w{number}-{name}.csv") for name in "ab")
            first, step = grid
            result = (first + step, 2 * step) if block and not index else grid
            layers.append(Convolution(kernel * factor, bias, grid, result))
            grid, before = result, channels
    matrix = np.loadtxt(folder / "final-fckernel.csv").reshape(before, CLASSES)
    return layers, matrix, np.loadtxt(folder / "final-fcbias.csv")


def read_images(folder: Path, count: int) -> tuple[Array, NDArray[np.intp], Array]:
    """So many images, in turns of the classes, with their labels, and the mean of all images' pixels."""
    from PIL import Image

    classes = [sorted(path.iterdir()) for path in sorted(folder.iterdir())]
    chosen = [(classes[i % CLASSES][i // CLASSES], i % CLASSES) for i in range(count)]
    images = np.stack([np.asarray(Image.open(path), dtype=np.float64) for path, _ in chosen])
    mean = np.mean(
        [np.asarray(Image.open(path), np.float64).mean((0, 1)) for of in classes for path in of], 0
    )
    return images, np.array([label for _, label in chosen]), mean


def convolve(values: Array, layer: Convolution) -> Array:
    """A convolution in the clear, of (images, rows, columns, channels) at their places."""
    step, rows = layer.source[1], layer.rows()
    out = np.zeros((*values.shape[:3], layer.bias.size))
    padded = np.pad(values, ((0, 0), (step, step), (step, step), (0, 0)))
    for i in range(KERNEL):
        for j in range(KERNEL):
            seen = padded[:, i * step : i * step + WIDTH, j * step : j * step + WIDTH]
            out[:, rows[:, None], rows] += seen[:, rows[:, None], rows] @ layer.weights[i, j]
    out[:, rows[:, None], rows] += layer.bias
    return out


def clear_run(images: Array, network: tuple[list[Convolution], Array, Array]) -> tuple[Array, list[float]]:
    """Scores in the clear, and the largest value before each ReLU."""
    layers, matrix, bias = network
    values, largest = images, []
    for layer in layers:
        values = convolve(values, layer)
        largest.append(float(np.abs(values).max()))
        values = np.maximum(values, 0)
    rows = layers[-1].rows()
    return values[:, rows[:, None], rows].mean((1, 2)) @ matrix + bias, largest


def place(row: Any, column: Any) -> Any:
    """The coefficient of channel 0 of a pixel."""
    return (row * WIDTH + column) * CHANNELS


def program_lines(
    network: tuple[list[Convolution], Array, Array], bounds: list[float], bound: float
) -> tuple[list[str], list[Array]]:
    """The layers as the program reads them. Values are divided by the bounds of their layers."""
    layers, matrix, bias = network
    lines, numbers, before = [], [], INPUT
    apart_before = CHANNELS // 4
    for index, (layer, limit) in enumerate(zip(layers, bounds, strict=True)):
        inputs, outputs = layer.weights.shape[2:]
        apart = CHANNELS // outputs
        step = layer.source[1]
        offsets = (np.arange(KERNEL) - KERNEL // 2) * step
        channels = np.arange(inputs) * (4 if index == 0 else apart_before)
        shifts = place(offsets[:, None], offsets)[:, :, None] + channels
        rows = layer.rows()
        places = place(rows[:, None], rows)
        weights = layer.weights.reshape(-1, outputs).T * (before / limit)
        lines.append(f"layer {outputs} {shifts.size} {apart} {places.size}")
        numbers += [
            -shifts.ravel().astype(float),
            weights.ravel(),
            layer.bias / limit,
            places.ravel().astype(float),
        ]
        before, apart_before = limit, apart
    rows = layers[-1].rows()
    middle = int(rows[rows.size // 2])
    shifts = (
        place(rows[:, None] - middle, rows - middle)[:, :, None] + np.arange(matrix.shape[0]) * apart_before
    )
    weights = np.tile(matrix / rows.size**2, (rows.size**2, 1)).T * (before / bound)
    lines.append(f"layer {CLASSES} {shifts.size} {4} 1")
    numbers += [
        -shifts.ravel().astype(float),
        weights.ravel(),
        bias / bound,
        np.array([place(middle, middle)], float),
    ]
    return lines, numbers


def coefficients(image: Array) -> Array:
    """An image as coefficients, its last row and column left out."""
    out = np.zeros(1 << 16)
    rows = np.arange(WIDTH - 1)
    for channel in range(3):
        out[place(rows[:, None], rows) + 4 * channel] = image[: WIDTH - 1, : WIDTH - 1, channel] / INPUT
    return out


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m studies.coefficient_network", description=__doc__)
    parser.add_argument("--weights", type=Path, required=True, help="the folder weight_ker3_h5")
    parser.add_argument("--images", type=Path, required=True, help="folders of CIFAR-10's test images")
    parser.add_argument("--clear", type=int, default=100, help="images in the clear (default: 100)")
    parser.add_argument("--count", type=int, default=1, help="encrypted images for each key set (default: 1)")
    parser.add_argument("--sets", help="key sets, with commas between them (default: all)")
    parser.add_argument("--threads", type=int, default=2, help="threads of the engine (default: 2)")
    parser.add_argument("--out", type=Path, help="folder of the record (default: record/DATE-convfhe)")
    return parser.parse_args()


def main() -> int:
    """Write the record."""
    options = arguments()
    console = Console()
    programs = build(console, [PROGRAM])
    network = read_network(options.weights)
    raw, labels, mean = read_images(options.images, options.clear)
    images = raw - mean
    images[:, -1], images[:, :, -1] = 0, 0
    scores, largest = clear_run(images, network)
    correct = int((scores.argmax(1) == labels).sum())
    bounds = [MARGIN * value for value in largest]
    bound = MARGIN * float(np.abs(scores).max())
    layer_lines, numbers = program_lines(network, bounds, bound)
    numbers += [coefficients(image) for image in images[: options.count]]
    workload = pack_workload(Layer("3-20-1", KERNEL, WIDTH, CHANNELS), Chain(16, Q, P, 1747))
    path = record_folder(options.out, "convfhe") / "network.jsonl"
    with path.open("a") as out, tempfile.TemporaryDirectory() as folder:
        values = Path(folder) / "numbers.bin"
        np.concatenate(numbers).astype("<f8").tofile(values)
        for name, plan, planning in key_sets(workload, CostModel()):
            if options.sets and name not in options.sets.split(","):
                continue
            text = Path(folder) / "network.txt"
            text.write_text("\n".join([*packing_lines(plan), *layer_lines, f"images {options.count}"]))
            run = json.loads(
                output([str(programs / PROGRAM), str(text), str(values)], threads=options.threads)
            )
            results = np.array(run.pop("results")) * bound
            expected = scores[: options.count]
            row = {
                "keys_of": name,
                "planning_s": planning,
                "longest_way": plan.max_hops,
                **run,
                "labels_kept": int((results.argmax(1) == expected.argmax(1)).sum()),
                "images": options.count,
                "error": float(np.abs(results - expected).max()),
                "largest_score": float(np.abs(expected).max()),
                "clear_correct": correct,
                "clear_images": options.clear,
                "machine": machine.describe(),
            }
            print(json.dumps(row), file=out, flush=True)
            console.line(
                f"{name}: {row['labels_kept']} of {options.count} labels, {np.median(run['seconds']):.1f} s"
            )
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
