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


def product(exponents: Array, values: Array, dense: Array) -> Array:
    """A sparse polynomial times a dense one, modulo X^N + 1."""
    out = np.zeros(N)
    for exponent, value in zip(exponents.astype(int) % (2 * N), values, strict=True):
        sign, shift = (1, exponent) if exponent < N else (-1, exponent - N)
        out += sign * value * np.concatenate((-dense[N - shift :], dense[: N - shift]))
    return out


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
        after, rows = np.zeros(N), of.rows()
        for channel, (kernel, summand) in enumerate(zip(kernels, summands, strict=True)):
            at = places.astype(int)
            assert set(at) == set(place(rows[:, None], rows).ravel())
            after[at + channel * apart] = product(exponents, kernel, values)[at] + summand
        values = np.maximum(after, 0)
        results = np.stack([values[place(rows[:, None], rows) + c * apart] for c in range(summands.size)], -1)
        assert np.allclose(results * bound, expected[0][rows[:, None], rows], atol=1e-9)
    exponents, kernels, summands, places = numbers[8:]
    rows = second.rows()
    scores = [
        product(exponents, k, values)[int(places[0])] + b
        for k, b in zip(kernels.reshape(10, -1), summands, strict=True)
    ]
    mean = expected[0][rows[:, None], rows].mean((0, 1))
    assert np.allclose(np.array(scores) * 5.0, mean @ matrix + bias, atol=1e-9)
