"""Generators of functions that polynomials approximate, of maxima and of recurrent layers."""

from __future__ import annotations

from typing import Any

import numpy as np

from .drawing import Drawing
from .linear import other, reduce, window

ATTRIBUTES: dict[str, dict[str, tuple[float, float]]] = {
    "Celu": {"alpha": (0.4, 2)},
    "Elu": {"alpha": (0.4, 2)},
    "HardSigmoid": {"alpha": (0.1, 0.5), "beta": (0.2, 0.7)},
    "LeakyRelu": {"alpha": (-0.3, 0.5)},
    "Selu": {"alpha": (0.5, 2), "gamma": (0.5, 2)},
    "Swish": {"alpha": (0.5, 2)},
    "ThresholdedRelu": {"alpha": (0.0, 0.5)},
}
NEWEST = {"Mish": 18, "GroupNormalization": 21, "Gelu": 20, "Swish": 24}


def function(d: Drawing, x: str, operator: str) -> str:
    """Add a function of one value, with attributes of its own."""
    ranges = ATTRIBUTES.get(operator, {})
    given: dict[str, Any] = {
        name: float(d.rng.uniform(*ends)) for name, ends in ranges.items() if d.rng.random() < 0.7
    }
    if operator == "Gelu":
        given = d.draw({}, {"approximate": "tanh"})
    if operator == "Clip":
        low, high = float(d.rng.uniform(-1, -0.1)), float(d.rng.uniform(0.1, 1))
        least = d.draw("", d.constant(low))
        return d.add("Clip", x, least, *d.draw((d.constant(high),), (d.constant(high),), ()))
    if operator in ("Log", "Reciprocal", "Sqrt"):
        x = d.positive(x)
    return d.add(operator, x, **given)


def prelu(d: Drawing, x: str) -> str:
    slopes = d.draw(d.constant(d.rng.uniform(-0.2, 0.8)), d.constant(d.rng.uniform(0, 1, d.shape(x)[1:])))
    return d.add("PRelu", x, slopes)


def comparison(d: Drawing, x: str, operator: str) -> str:
    """Add a comparison with a number, and a choice by it that does not jump."""
    number = float(d.rng.normal(scale=0.5))
    bound = d.constant(number)
    chosen = d.add(operator, *d.draw((x, bound), (bound, x)))
    above = d.add("Sub", x, bound)
    return d.add("Where", chosen, *d.draw((above, d.constant(0.0)), (d.constant(0.0), above)))


def number_test(d: Drawing, x: str, operator: str) -> str:
    """Add a test for values that are not numbers, and a choice by it."""
    asked = (x, x) if operator == "Equal" else (x,)
    chosen, factor = d.add(operator, *asked), d.add("Mul", x, d.normal(*d.shape(x)))
    return d.add("Where", chosen, factor, x)


def extreme(d: Drawing, x: str, operator: str) -> str:
    y = other(d, x)
    if y == x:
        y = d.constant(d.rng.normal(scale=0.5))
    return d.add(operator, *d.draw((x, y), (y, x)))


def max_pool(d: Drawing, x: str) -> str:
    x, given = window(d, x, most=2)
    return d.add("MaxPool", x, ceil_mode=int(d.draw(0, 1)), **given)


def few(d: Drawing, x: str) -> str:
    """Return a value of at most 8 elements: each doubling is a round of a maximum."""
    return d.add("Gemm", d.shaped(x, 2), d.normal(d.size(x), 8)) if d.size(x) > 8 else x


def reduce_extreme(d: Drawing, x: str, operator: str) -> str:
    return reduce(d, few(d, x), operator)


def recurrent(d: Drawing, x: str, operator: str) -> str:
    """Add a recurrent layer of two steps; its output is the last or all states."""
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[operator]
    features, hidden = d.size(x), 2
    if features > 8 or features % 2:
        x = d.add("Gemm", d.shaped(x, 2), d.normal(features, 4))
        features = 4
    x = d.add("Reshape", x, d.ints(2, 1, features // 2))
    direction = d.draw("forward", "reverse", "bidirectional")
    ways = 2 if direction == "bidirectional" else 1
    operands = [
        d.constant(d.rng.normal(size=(ways, gates * hidden, features // 2)) / 2),
        d.constant(d.rng.normal(size=(ways, gates * hidden, hidden)) / 2),
    ]
    if d.rng.random() < 0.7:
        operands.append(d.constant(d.rng.normal(size=(ways, 2 * gates * hidden)) / 2))
    given: dict[str, Any] = {"linear_before_reset": int(d.draw(0, 1))} if operator == "GRU" else {}
    last = d.add(
        operator, x, *operands, outputs=2, hidden_size=hidden, direction=direction, **given
    )  # fmt: skip
    every = d.results(last)[0]
    y = d.draw(every, last)
    return d.add("Reshape", y, d.ints(1, int(np.prod(d.shape(y)))))
