"""ConvFHE's networks, their places in a polynomial, and their results in the clear."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
LOG_N = 16
IMAGE, COLOURS, CLASSES = 32, 3, 10
"""Rows of pixels, and their channels."""
INPUT = 256.0
"""What pixels, less their mean, are divided by."""
BLOCK = 200
"""Images in the clear at a time."""
SIGN = (
    (10.8541842577442, -62.2833925211098, 114.369227820443, -62.8023496973074),
    (4.13976170985111, -5.84997640211679, 2.94376255659280, -0.454530437460152),
    (
        1.649783695218665,
        -3.921136301456775,
        6.4453832057782,
        -6.2458558624243,
        3.47083995714037,
        -1.02149033499971,
        0.1232035694630155,
    ),
)
"""The sign of ConvFHE's source (Lee, Lee, No and Kim, IEEE TDSC 19, 2022, precision 10), a composition of
polynomials, the last one halved: their odd coefficients."""


@dataclass(frozen=True)
class Setting:
    """A network: rows of its kernels, channels of its convolutions' results, and which have stride 2."""

    name: str
    kernel: int
    channels: tuple[int, ...]
    strides: tuple[int, ...]


SETTINGS: Mapping[str, Setting] = {
    "3-20-1": Setting("3-20-1", 3, (*[16] * 7, *[32] * 6, *[64] * 6), (7, 13)),
    "5-8-3": Setting("5-8-3", 5, (16, 48, 48, 96, 96, 192, 192), (3, 5)),
}


@dataclass(frozen=True)
class Convolution:
    """A convolution with its normalisation.

    Attributes:
        weights: (rows, columns, in, out).
        bias: of each channel of the result.
        width: rows of the grid of its input, of which the last `kernel // 2` rows and columns are zero.
        stride: 1 or 2; with 2, the grid of the result has half of the rows.
    """

    weights: Array
    bias: Array
    width: int
    stride: int

    @property
    def kernel(self) -> int:
        """Rows of the kernel."""
        return len(self.weights)

    @property
    def rows(self) -> int:
        """Rows of the result that are not zero."""
        return self.width // self.stride - self.kernel // 2

    @property
    def fitting(self) -> int:
        """Channels of the input's grid that fit a polynomial."""
        return (1 << LOG_N) // self.width**2

    @property
    def parts(self) -> int:
        """Ciphertexts of the result before they are joined."""
        return -(-self.bias.size // self.fitting)

    @property
    def apart(self) -> int:
        """Distance of the channels of a part of the result."""
        return self.fitting // (1 << (self.bias.size // self.parts - 1).bit_length())


@dataclass(frozen=True)
class Network:
    """The convolutions, and the matrix and the summands of the linear layer after the mean."""

    layers: tuple[Convolution, ...]
    matrix: Array
    bias: Array


def read_network(setting: Setting, folder: Path) -> Network:
    """A network from a file for each array, as ConvFHE's source has them."""

    def numbers(name: str) -> Array:
        return np.loadtxt(folder / f"{name}.csv")

    blank = blank_network(setting)
    layers = tuple(
        replace(
            layer,
            weights=numbers(f"w{index}-conv").reshape(layer.weights.shape) * numbers(f"w{index}-a"),
            bias=numbers(f"w{index}-b"),
        )
        for index, layer in enumerate(blank.layers)
    )
    matrix = numbers("final-fckernel").reshape(len(blank.matrix), -1)
    return Network(layers, matrix, numbers("final-fcbias"))


def blank_network(setting: Setting) -> Network:
    """A network of a setting's shape, all of whose weights are zero."""
    layers: list[Convolution] = []
    width, before = IMAGE, COLOURS
    for index, channels in enumerate(setting.channels):
        stride = 2 if index in setting.strides else 1
        weights = np.zeros((setting.kernel, setting.kernel, before, channels))
        layers.append(Convolution(weights, np.zeros(channels), width, stride))
        width, before = width // stride, channels
    return Network(tuple(layers), np.zeros((before, CLASSES)), np.zeros(CLASSES))


def read_images(folder: Path, count: int) -> tuple[Array, NDArray[np.intp], Array]:
    """So many images, in turns of the classes, with their labels, and the mean of all images' pixels."""
    from PIL import Image

    classes = [sorted(path.iterdir()) for path in sorted(folder.iterdir())]
    turns = (divmod(i, len(classes)) for i in range(count))
    chosen = [(classes[label][turn], label) for turn, label in turns]
    images = np.stack([np.asarray(Image.open(path), dtype=np.float64) for path, _ in chosen])
    mean = np.mean(
        [np.asarray(Image.open(path), np.float64).mean((0, 1)) for of in classes for path in of], 0
    )
    return images, np.array([label for _, label in chosen]), mean


def cropped(images: Array, kernel: int) -> Array:
    """Images without the last rows and columns, which must be zero."""
    images = images.copy()
    images[:, IMAGE - kernel // 2 :], images[:, :, IMAGE - kernel // 2 :] = 0, 0
    return images


def convolve(values: Array, layer: Convolution) -> Array:
    """A convolution in the clear, of (images, rows, columns, channels). With stride 2, a row of the result
    has its centre at an odd row."""
    half, width = layer.kernel // 2, layer.width // layer.stride
    out = np.zeros((len(values), width, width, layer.bias.size))
    padded = np.pad(values, ((0, 0), (half, half), (half, half), (0, 0)))
    at = np.arange(layer.rows) * layer.stride + layer.stride - 1
    for i in range(layer.kernel):
        for j in range(layer.kernel):
            seen = padded[:, (at + i)[:, None], at + j]
            out[:, : layer.rows, : layer.rows] += seen @ layer.weights[i, j]
    out[:, : layer.rows, : layer.rows] += layer.bias
    return out


def relu(values: Array, bound: float) -> Array:
    """The polynomials that stand in for ReLU, of values up to a bound."""
    half_sign = values / bound
    for odd in SIGN:
        half_sign = half_sign * np.polynomial.polynomial.polyval(half_sign**2, odd)
    return values * (half_sign + 0.5)


def clear_run(
    images: Array, network: Network, bounds: Sequence[float] | Array | None = None
) -> tuple[Array, Array]:
    """Scores in the clear, and the largest value before each ReLU. With bounds of the layers, the polynomials
    stand in for ReLU, as in the encrypted network."""
    scores, largest = [], np.zeros(len(network.layers))
    rows = network.layers[-1].rows
    for values in np.array_split(images, -(-len(images) // BLOCK)):
        for index, layer in enumerate(network.layers):
            values = convolve(values, layer)
            largest[index] = max(largest[index], np.abs(values).max())
            values = np.maximum(values, 0) if bounds is None else relu(values, bounds[index])
        scores.append(values[:, :rows, :rows].mean((1, 2)) @ network.matrix + network.bias)
    return np.concatenate(scores), largest


def place(row: Any, column: Any, width: int) -> Any:
    """The coefficient of channel 0 of a pixel."""
    return (row * width + column) * ((1 << LOG_N) // width**2)


def coefficients(image: Array, apart: int) -> Array:
    """An image as coefficients."""
    out = np.zeros(1 << LOG_N)
    rows = np.arange(IMAGE)
    for channel in range(COLOURS):
        out[place(rows[:, None], rows, IMAGE) + apart * channel] = image[..., channel] / INPUT
    return out


@dataclass(frozen=True)
class LayerLine:
    """A layer as the program reads it: sizes and numbers."""

    sizes: tuple[int, ...]
    numbers: tuple[Array, ...]

    def line(self) -> str:
        """`layer CHANNELS TERMS FITTING APART PARTS NARROWED PLACES`."""
        return " ".join(["layer", *map(str, self.sizes)])


def layer_lines(network: Network, bounds: Sequence[float] | Array, bound: float) -> list[LayerLine]:
    """All layers. Values are divided by the bounds of their layers; the last one has the mean and the linear
    layer. Channels of a result with stride are at its even places, from which a change of width brings them
    together."""
    out: list[LayerLine] = []
    before, apart = INPUT, network.layers[0].apart
    for layer, limit in zip(network.layers, bounds, strict=True):
        inputs, outputs = layer.weights.shape[2:]
        offsets = np.arange(layer.kernel) - layer.kernel // 2 + layer.stride - 1
        shifts = place(offsets[:, None], offsets, layer.width)[:, :, None] + np.arange(inputs) * apart
        rows = np.arange(layer.rows) * layer.stride
        places = place(rows[:, None], rows, layer.width)
        weights = layer.weights.reshape(-1, outputs).T * (before / limit)
        narrowed = int(layer.stride > 1)
        sizes = (outputs, shifts.size, layer.fitting, layer.apart, layer.parts, narrowed, places.size)
        numbers = (-shifts.ravel(), weights.ravel(), layer.bias / limit, places.ravel())
        out.append(LayerLine(sizes, tuple(np.asarray(part, float) for part in numbers)))
        before = limit
        apart = 4 * layer.apart // layer.parts if narrowed else layer.apart
    last = network.layers[-1]
    width, rows = last.width // last.stride, np.arange(last.rows)
    fitting, middle = (1 << LOG_N) // width**2, last.rows // 2
    shifts = place(rows[:, None] - middle, rows - middle, width)[:, :, None]
    shifts = shifts + np.arange(network.matrix.shape[0]) * apart
    weights = np.tile(network.matrix / rows.size**2, (rows.size**2, 1)).T * (before / bound)
    classes = network.bias.size
    sizes = (classes, shifts.size, fitting, fitting >> (classes - 1).bit_length(), 1, 0, 1)
    numbers = (-shifts.ravel(), weights.ravel(), network.bias / bound, [place(middle, middle, width)])
    return [*out, LayerLine(sizes, tuple(np.asarray(part, float) for part in numbers))]


def log_slots(network: Network) -> int:
    """`log2` of the slots in which all results fit as complex numbers."""
    return LOG_N - min(layer.apart for layer in network.layers).bit_length()


@dataclass(frozen=True)
class MaskedRotation:
    """A rotation and the slots that keep its result: `run` slots at `start`, at every `period`."""

    step: int
    start: int
    run: int
    period: int


def change_of_width(
    layer: Convolution, slots: int
) -> tuple[tuple[MaskedRotation, ...], tuple[MaskedRotation, ...]]:
    """The two steps of a change of width, as the source's `gen_comprs_sparse` has them for the grid of a
    layer's input: rows and columns at even places move together, then the channels do.

    A full packing of many channels is moved in groups of four or eight. The source moves a channel of a group
    of eight seven quarters of a channel instead of three, which does not bring it to its place; here it is
    three.
    """
    half, channel = layer.width // 2, layer.width**2 // 2
    channels = layer.fitting // layer.apart
    group = 1
    if layer.apart == 1:
        group = 8 if channels > 8 * half else 4 if channels > 4 * half else 1
    quarter = channel // 4
    inner = tuple(
        MaskedRotation(
            j * half // 2 + 3 * k * quarter, k * quarter + j * half // 2, half // 2, channel * group
        )
        for k in range(group)
        for j in range(half)
    )
    outer = tuple(
        MaskedRotation(3 * b * group * quarter, b * group * quarter, group * quarter, slots)
        for b in range(channels // group)
    )
    return inner, outer


def write_network(folder: Path, arrays: Mapping[str, Array]) -> None:
    """Arrays in the form that [`read_network`] reads."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in arrays.items():
        with (folder / f"{name}.csv").open("w", newline="") as file:
            csv.writer(file).writerows([f"{value:.9g}"] for value in np.ravel(array))
