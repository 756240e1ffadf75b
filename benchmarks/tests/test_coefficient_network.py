"""The layers of `studies.coefficient_network` as polynomials are the convolutions that they state."""

import numpy as np
import pytest
from studies.coefficient_network import (
    CHANNELS,
    INPUT,
    Array,
    Convolution,
    coefficients,
    convolve,
    place,
    program_lines,
)

N = 1 << 16


def products(exponents: Array, kernels: Array, dense: Array, places: Array) -> Array:
    """Coefficients of products modulo X^N + 1 at places, (places, kernels)."""
    at = (places.astype(int)[:, None] - exponents.astype(int)) % (2 * N)
    return np.asarray(np.where(at < N, dense[at % N], -dense[at % N]) @ kernels.T)


def layer(
    rng: np.random.Generator, sizes: tuple[int, int], source: tuple[int, int], stride: int
) -> Convolution:
    """A convolution of random weights."""
    first, step = source
    result = (first + step, 2 * step) if stride == 2 else source
    return Convolution(rng.normal(size=(3, 3, *sizes)), rng.normal(size=sizes[1]), source, result)


@pytest.mark.parametrize("stride", [1, 2])
def test_layers_are_convolutions(stride: int) -> None:
    rng = np.random.default_rng(1)
    first = layer(rng, (3, 16), (0, 1), 1)
    second = layer(rng, (16, 16 * stride), (0, 1), stride)
    image = rng.normal(size=(1, 32, 32, 3))
    image[:, -1], image[:, :, -1] = 0, 0
    matrix, bias = rng.normal(size=(16 * stride, 10)), rng.normal(size=10)
    _, numbers = program_lines(([first, second], matrix, bias), [2.0, 3.0], 5.0)
    values, expected = coefficients(image[0]), image
    assert np.abs(values).max() == pytest.approx(np.abs(image).max() / INPUT)
    for index, (of, bound) in enumerate(((first, 2.0), (second, 3.0))):
        exponents, kernels, summands, places = numbers[4 * index : 4 * index + 4]
        expected = np.maximum(convolve(expected, of), 0)
        apart, kernels = CHANNELS // summands.size, kernels.reshape(summands.size, -1)
        after, rows, at = np.zeros(N), of.rows(), places.astype(int)
        assert set(at) == set(place(rows[:, None], rows).ravel())
        sums = products(exponents, kernels, values, places) + summands
        for channel in range(summands.size):
            after[at + channel * apart] = sums[:, channel]
        values = np.maximum(after, 0)
        results = np.stack([values[place(rows[:, None], rows) + c * apart] for c in range(summands.size)], -1)
        assert np.allclose(results * bound, expected[0][rows[:, None], rows], atol=1e-9)
    exponents, kernels, summands, places = numbers[8:]
    rows = second.rows()
    scores = products(exponents, kernels.reshape(10, -1), values, places)[0] + summands
    mean = expected[0][rows[:, None], rows].mean((0, 1))
    assert np.allclose(scores * 5.0, mean @ matrix + bias, atol=1e-9)
