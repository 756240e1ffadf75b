"""Generators of operators that move, join or choose elements."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto

from .drawing import Drawing
from .linear import other


def axis_of(d: Drawing, x: str) -> int:
    """Return one of the axes behind the batch."""
    return int(d.rng.integers(1, len(d.shape(x))))


def signed(d: Drawing, x: str, axis: int) -> int:
    """Return the axis, or its number from the end."""
    return int(d.draw(axis, axis - len(d.shape(x))))


def transpose(d: Drawing, x: str) -> str:
    x = d.shaped(x, d.draw(3, 4))
    order = d.rng.permutation(np.arange(1, len(d.shape(x))))
    return d.add("Transpose", x, perm=[0, *map(int, order)])


def concat(d: Drawing, x: str) -> str:
    axis = axis_of(d, x)
    shape = [*d.shape(x)]
    shape[axis] = int(d.rng.integers(1, 4))
    parts = [x, d.draw(x, d.normal(*shape), d.add("Mul", x, d.normal(*d.shape(x))))]
    d.rng.shuffle(parts)
    return d.add("Concat", *parts, axis=signed(d, x, axis))


def slice_(d: Drawing, x: str) -> str:
    axis = axis_of(d, x)
    size = d.shape(x)[axis]
    start, step = int(d.rng.integers(0, size)), int(d.draw(1, 2, -1))
    end = size if step > 0 else -size - 1
    return d.add("Slice", x, d.ints(start), d.ints(end), d.ints(signed(d, x, axis)), d.ints(step))


def split(d: Drawing, x: str) -> str:
    axis = axis_of(d, x)
    size = d.shape(x)[axis]
    if size < 2:
        return d.add("Split", x, d.ints(1), axis=axis)
    first = int(d.rng.integers(1, size))
    if d.rng.random() < 0.5 or d.opset < 18:
        return d.add("Split", x, d.ints(first, size - first), axis=signed(d, x, axis), outputs=2)
    return d.add("Split", x, axis=axis, num_outputs=2, outputs=2)


def gather(d: Drawing, x: str) -> str:
    axis = axis_of(d, x)
    size = d.shape(x)[axis]
    shape = d.draw((), (2,), (2, 2))
    chosen = d.rng.integers(-size, size, shape)
    return d.add("Gather", x, d.constant(chosen, np.int64), axis=signed(d, x, axis))


def gather_elements(d: Drawing, x: str) -> str:
    axis = axis_of(d, x)
    shape = [int(d.rng.integers(1, size + 1)) for size in d.shape(x)]
    chosen = d.rng.integers(-d.shape(x)[axis], d.shape(x)[axis], shape)
    return d.add("GatherElements", x, d.constant(chosen, np.int64), axis=axis)


def gather_nd(d: Drawing, x: str) -> str:
    x = d.shaped(x, 3)
    _, rows, columns = d.shape(x)
    count = int(d.rng.integers(1, 4))
    chosen = np.stack([d.rng.integers(0, rows, count), d.rng.integers(0, columns, count)], axis=1)
    if d.rng.random() < 0.5:
        return d.add("GatherND", x, d.constant(chosen[None], np.int64), batch_dims=1)
    zero = np.zeros((1, count, 1), np.int64)
    return d.add("GatherND", x, d.constant(np.concatenate([zero, chosen[None]], axis=2), np.int64))


def pad(d: Drawing, x: str) -> str:
    x = d.shaped(x, d.draw(2, 3, 4))
    shape = d.shape(x)
    mode = d.draw("constant", "reflect", "edge", *(["wrap"] if d.opset >= 19 else []))
    ends = [[0, *(int(d.rng.integers(0, min(size, 3))) for size in shape[1:])] for _ in range(2)]
    if mode == "constant" and d.rng.random() < 0.5:
        ends[0][-1] = -int(shape[-1] > 1)
    value = [d.constant(d.rng.normal())] if mode == "constant" and d.rng.random() < 0.5 else []
    return d.add("Pad", x, d.ints(*ends[0], *ends[1]), *value, mode=mode)


def expand(d: Drawing, x: str) -> str:
    x = d.add("Unsqueeze", x, d.ints(2)) if len(d.shape(x)) < 4 else x
    shape = [int(d.draw(size, 2)) if size == 1 and place else size for place, size in enumerate(d.shape(x))]
    return d.add("Expand", x, d.ints(*shape))


def tile(d: Drawing, x: str) -> str:
    return d.add("Tile", x, d.ints(1, *(int(d.draw(1, 2)) for _ in d.shape(x)[1:])))


def depth_to_space(d: Drawing, x: str) -> str:
    x = d.add("Concat", *[d.shaped(x, 4)] * 4, axis=1)
    return d.add("DepthToSpace", x, blocksize=2, mode=d.draw("DCR", "CRD"))


def space_to_depth(d: Drawing, x: str) -> str:
    x = d.shaped(x, 4)
    x = d.add("Concat", x, x, axis=2)
    return d.add("SpaceToDepth", d.add("Concat", x, x, axis=3), blocksize=2)


def resize(d: Drawing, x: str) -> str:
    x = d.shaped(x, 4)
    factors = [float(d.draw(1, 2, 3, 1.5, 1 / 3, 0.6)) for _ in range(2)]
    factors = [
        factor if size * factor >= 1 else 1.0 for size, factor in zip(d.shape(x)[2:], factors, strict=True)
    ]
    given: dict[str, Any] = {
        "coordinate_transformation_mode": d.draw(
            "asymmetric", "half_pixel", "pytorch_half_pixel", "align_corners"
        ),
        "nearest_mode": d.draw("floor", "ceil", "round_prefer_floor", "round_prefer_ceil"),
        "mode": "nearest",
    }
    if d.rng.random() < 0.4:
        del given["nearest_mode"]
        given["mode"] = d.draw("linear", "cubic")
        # The reference implementation, which computes cubic ones in double precision, differs for one pixel.
        factors = [float(d.draw(1, 1.5, 2, 3)) for _ in range(2)]
    if d.rng.random() < 0.5:
        return d.add("Resize", x, "", d.constant([1, 1, *factors], np.float32), **given)
    sizes = [max(1, int(size * factor)) for size, factor in zip(d.shape(x)[2:], factors, strict=True)]
    return d.add("Resize", x, "", "", d.ints(*d.shape(x)[:2], *sizes), **given)


def reverse_sequence(d: Drawing, x: str) -> str:
    x = d.shaped(x, 3)
    length = int(d.rng.integers(1, d.shape(x)[1] + 1))
    return d.add("ReverseSequence", x, d.ints(length), batch_axis=0, time_axis=1)


def squeeze(d: Drawing, x: str) -> str:
    place = int(d.rng.integers(1, len(d.shape(x)) + 1))
    return d.add("Squeeze", d.add("Unsqueeze", x, d.ints(place)), d.ints(place))


def unsqueeze(d: Drawing, x: str) -> str:
    x = d.shaped(x, d.draw(2, 3))
    return d.add("Unsqueeze", x, d.ints(int(d.rng.integers(1, len(d.shape(x)) + 1))))


def reshape(d: Drawing, x: str) -> str:
    size = d.size(x)
    parts = [part for part in range(1, size + 1) if size % part == 0]
    return d.add("Reshape", x, d.ints(d.draw(0, 1), int(d.draw(*parts)), -1))


def shape_(d: Drawing, x: str) -> str:
    """A reshape to a shape that the graph computes, as exporters write it."""
    rows = d.add("Gather", d.add("Shape", x), d.ints(0), axis=0)
    return d.add("Reshape", x, d.add("Concat", rows, d.ints(-1), axis=0))


def where(d: Drawing, x: str) -> str:
    mask = d.constant(d.rng.random(d.shape(x)) < 0.5, np.bool_)
    return d.add("Where", mask, *d.draw((x, other(d, x)), (other(d, x), x)))


def cast(d: Drawing, x: str) -> str:
    return d.add("Cast", d.add("Cast", x, to=TensorProto.FLOAT), to=TensorProto.DOUBLE)


def flatten(d: Drawing, x: str) -> str:
    return d.add("Flatten", x, axis=1)


def dropout(d: Drawing, x: str) -> str:
    return d.add("Dropout", x, *d.draw((), (d.constant(0.3),)))
