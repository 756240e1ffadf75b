"""Generators of operators that are sums, products and matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from .drawing import ML, Drawing


def other(d: Drawing, x: str) -> str:
    """Return an operand that broadcasts with a value: a constant, the value itself, or one made of it."""
    shape = d.shape(x)
    kind = d.draw("scalar", "full", "trailing", "ones", "itself", "made", "made", "reduced")
    if kind == "scalar":
        return d.constant(d.rng.normal())
    if kind == "full":
        return d.normal(*shape)
    if kind == "trailing":
        return d.normal(shape[-1])
    if kind == "ones":
        return d.normal(*(size if d.rng.random() < 0.5 else 1 for size in shape))
    if kind == "itself":
        return x
    if kind == "made" or len(shape) < 3:
        return d.add("Mul", x, d.normal(*shape))
    return reduce(d, x, "ReduceMean", keepdims=1)


def pair(d: Drawing, x: str, operator: str) -> str:
    """Add a node of two operands in either order."""
    y = other(d, x)
    if x == y and operator == "Sub":
        y = d.add("Mul", x, d.constant(0.5))
    return d.add(operator, *d.draw((x, y), (y, x)))


def divide(d: Drawing, x: str) -> str:
    """Add a division by numbers, or by a value above 0."""
    if d.rng.random() < 0.5:
        return d.add("Div", x, d.constant(d.rng.choice([-1, 1], d.shape(x)[-1]) * d.rng.uniform(0.5, 2)))
    return d.add("Div", d.draw(x, d.constant(d.rng.normal())), d.positive(x))


def many(d: Drawing, x: str, operator: str) -> str:
    """Add a node of one to three operands."""
    return d.add(operator, x, *(other(d, x) for _ in range(d.draw(0, 1, 2))))


def power(d: Drawing, x: str) -> str:
    """Add a power."""
    if d.rng.random() < 0.4:
        return d.add("Pow", d.positive(x), d.constant(d.draw(-1.0, 0.5, -0.5, -2.0, 1.5)))
    exponent = d.draw(1, 2, 3, 4)
    return d.add("Pow", x, d.constant(exponent, d.draw(np.float64, np.int64)))


def gemm(d: Drawing, x: str) -> str:
    """Add Gemm with any of its attributes."""
    x = d.shaped(x, 2)
    inputs, outputs, turned = d.size(x), int(d.rng.integers(1, 9)), int(d.draw(0, 1))
    weights = d.normal(outputs, inputs) if turned else d.normal(inputs, outputs)
    bias = d.draw((), (d.normal(outputs),), (d.normal(1, outputs),), (d.constant(d.rng.normal()),))
    attributes = d.draw({}, {"alpha": 0.5}, {"alpha": -1.5, "beta": 0.25})
    return d.add("Gemm", x, weights, *bias, transB=turned, **attributes)


def matmul(d: Drawing, x: str) -> str:
    """Add a product with a matrix, a stack of matrices or a vector on either side."""
    if d.rng.random() < 0.4:
        x = d.shaped(x, 2)
        return d.add("MatMul", x, d.normal(d.size(x), int(d.rng.integers(1, 9))))
    x = d.shaped(x, 3)
    _, rows, columns = d.shape(x)
    kind, new = d.draw("right", "left", "stack", "vector"), int(d.rng.integers(1, 6))
    if kind == "right":
        return d.add("MatMul", x, d.normal(columns, new))
    if kind == "left":
        return d.add("MatMul", d.normal(new, rows), x)
    if kind == "stack":
        return d.add("MatMul", x, d.normal(1, columns, new))
    return d.add("MatMul", x, d.normal(columns))


def reduce(d: Drawing, x: str, operator: str, keepdims: int | None = None) -> str:
    """Add a reduction over some axes, which are an attribute or an operand by the version."""
    x = d.shaped(x, d.draw(2, 3, 4)) if keepdims is None else x
    rank = len(d.shape(x))
    count = int(d.rng.integers(1, rank))
    axes = sorted(int(axis) for axis in d.rng.choice(np.arange(1, rank), count, replace=False))
    if operator == "ReduceProd":
        axes = axes[:1]
    if d.rng.random() < 0.3:
        axes = [axis - rank for axis in axes]
    keep: dict[str, Any] = {"keepdims": int(d.draw(0, 1) if keepdims is None else keepdims)}
    if d.opset >= 18 or operator == "ReduceSum":
        return d.add(operator, x, d.ints(*axes), **keep)
    return d.add(operator, x, axes=axes, **keep)


def window(d: Drawing, x: str, *, most: int = 3) -> tuple[str, dict[str, Any]]:
    """Return an image of one or two axes and a window that fits it."""
    x = d.shaped(x, d.draw(3, 4))
    sizes = d.shape(x)[2:]
    kernel = [int(d.rng.integers(1, min(most, size) + 1)) for size in sizes]
    strides = [int(d.draw(1, 1, 2)) for _ in sizes]
    pads = [int(d.rng.integers(0, size)) for size in kernel] + [int(d.rng.integers(0, s)) for s in kernel]
    return x, {"kernel_shape": kernel, "strides": strides, "pads": pads}


def convolution(d: Drawing, x: str) -> str:
    """Add a convolution with groups, strides, padding, dilations."""
    x, given = window(d, x)
    channels, kernel = d.shape(x)[1], given["kernel_shape"]
    group = int(d.draw(*[g for g in range(1, channels + 1) if channels % g == 0]))
    outputs = group * int(d.draw(1, 2))
    operands = [x, d.normal(outputs, channels // group, *kernel)]
    operands += d.draw([], [d.normal(outputs)])
    if d.rng.random() < 0.3:
        del given["pads"]
        mode = d.draw("VALID", "SAME_UPPER", "SAME_LOWER")
        return d.add("Conv", *operands, group=group, auto_pad=mode, **given)
    fitting = all(2 * (k - 1) + 1 <= size for k, size in zip(kernel, d.shape(x)[2:], strict=True))
    given["dilations"] = [2 if fitting and d.rng.random() < 0.3 else 1 for _ in kernel]
    return d.add("Conv", *operands, group=group, **given)


def transposed_convolution(d: Drawing, x: str) -> str:
    """Add a transposed convolution."""
    x = d.shaped(x, d.draw(3, 4))
    channels, sizes = d.shape(x)[1], d.shape(x)[2:]
    kernel = [int(d.rng.integers(1, 4)) for _ in sizes]
    strides = [int(d.draw(1, 2)) for _ in sizes]
    group = int(d.draw(*[g for g in range(1, channels + 1) if channels % g == 0]))
    outputs = int(d.draw(1, 2))
    # In double precision the reference implementation runs it, and gives all groups the first one's biases.
    biases = d.draw([], [d.normal(outputs)]) if group == 1 else []
    operands = [x, d.normal(channels, outputs, *kernel), *biases]
    pads = [min(k - 1, 1) if s > 1 else 0 for k, s in zip(kernel, sizes, strict=True)] * 2
    return d.add("ConvTranspose", *operands, strides=strides, group=group, pads=pads)


def average_pool(d: Drawing, x: str) -> str:
    """Add a pool with or without its padding counted."""
    x, given = window(d, x)
    if d.opset >= 19 and d.rng.random() < 0.3:
        given["ceil_mode"] = 1
    return d.add("AveragePool", x, count_include_pad=int(d.draw(0, 1)), **given)


def normalization(d: Drawing, x: str, operator: str) -> str:
    """Add a normalisation of channels: by stored numbers, or by those of the sample."""
    x = d.shaped(x, d.draw(3, 4))
    channels = d.shape(x)[1]
    scale, bias = d.constant(d.rng.uniform(0.5, 1.5, channels)), d.normal(channels)
    if operator == "BatchNormalization":
        variance = d.constant(d.rng.uniform(0.3, 4, channels))
        return d.add(operator, x, scale, bias, d.normal(channels), variance, epsilon=0.01)
    if operator == "InstanceNormalization":
        return d.add(operator, x, scale, bias, epsilon=0.1)
    groups = int(d.draw(*[g for g in range(1, channels + 1) if channels % g == 0]))
    return d.add(operator, x, scale, bias, num_groups=groups, epsilon=0.1)


def layer_normalization(d: Drawing, x: str) -> str:
    """Add a normalisation over the last axes."""
    x = d.shaped(x, d.draw(2, 3))
    shape = d.shape(x)
    axis = int(d.draw(*range(1, len(shape))))
    operands = [d.constant(d.rng.uniform(0.5, 1.5, shape[axis:])), *d.draw([], [d.normal(*shape[axis:])])]
    return d.add("LayerNormalization", x, *operands, axis=d.draw(axis, axis - len(shape)), epsilon=0.1)


def norm(d: Drawing, x: str, operator: str) -> str:
    """Add a norm, or the logarithm of a sum, of values away from 0."""
    x = d.add("Add", d.tame(x), d.constant(4.0))
    return reduce(d, d.add("Mul", x, d.constant(0.2)), operator)


def running_sum(d: Drawing, x: str) -> str:
    """Add sums of the elements up to each one along an axis."""
    axis = int(d.draw(*range(1, len(d.shape(x))), -1))
    ways: dict[str, Any] = {"exclusive": int(d.draw(0, 1)), "reverse": int(d.draw(0, 1))}
    return d.add("CumSum", x, d.constant(axis, np.int64), **ways)


def response_normalization(d: Drawing, x: str) -> str:
    """Add a normalisation by neighbouring channels."""
    x = d.shaped(x, 4)
    numbers = {"alpha": 0.5, "beta": d.draw(0.75, 0.5), "bias": d.draw(1.0, 2.0)}
    return d.add("LRN", x, size=int(d.draw(1, 3)), **numbers)


def over_norm(d: Drawing, x: str, operator: str) -> str:
    """Add a division by a norm, of values away from 0."""
    x = d.add("Add", d.shaped(x, 2), d.constant(2.0 * d.draw(-1, 1)))
    if operator == "Normalizer":
        return d.add(operator, x, domain=ML, norm=d.draw("L1", "L2"))
    return d.add(operator, x, p=int(d.draw(1, 2)), axis=int(d.draw(1, -1)))
