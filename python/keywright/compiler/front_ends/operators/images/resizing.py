"""Resize: by interpolation, or which pixel each pixel of the result is.

Positions are computed in single precision, as runtimes do: in double precision, pixels of a scale of a third
are others.
"""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from keywright.compiler.front_ends.operator_context import EncryptedValue, OperatorContext
from keywright.compiler.graph.sparse import Indices
from keywright.compiler.limits import MAX_ENTRIES, require_at_most, require_elements

from .interpolation import cubic, linear, resample, weights_at

Positions = NDArray[np.float32]

FIRST_OPSET = 11
"""Before this opset, runtimes round positions in ways of their own."""

COORDINATES = ("half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners", "half_pixel_symmetric")
MODES = ("nearest", "linear", "cubic")
ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


def resize(context: OperatorContext) -> EncryptedValue:
    """Add Resize by factors or to sizes."""
    source = context.encrypted(0)
    if context.opset < FIRST_OPSET:
        raise context.refuse("opset", context.opset, f"opset {FIRST_OPSET} or later")
    mode = context.attribute("mode", "nearest")
    if (policy := context.attribute("keep_aspect_ratio_policy", "stretch")) != "stretch":
        raise context.refuse("keep_aspect_ratio_policy", policy, "stretch")
    smooth, a = context.attribute("antialias", 0), context.attribute("cubic_coeff_a", -0.75)
    exclude_outside = bool(context.attribute("exclude_outside", 0))
    context.attribute("extrapolation_value", 0.0)  # of tf_crop_and_resize
    coordinates = context.attribute("coordinate_transformation_mode", "half_pixel")
    rounding = context.attribute("nearest_mode", "round_prefer_floor")
    for name, value, known in (
        ("coordinate_transformation_mode", coordinates, COORDINATES),
        ("nearest_mode", rounding, ROUNDINGS),
        ("mode", mode, MODES),
    ):
        if value not in known:
            raise context.refuse(name, value, ", ".join(known))
    rank = len(source.shape)
    axes = [axis % rank for axis in context.attribute("axes", list(range(rank)))]
    scales, sizes = context.constant(2), context.constant(3)
    given = sizes if scales is None or not scales.size else scales
    if given is None or given.size != len(axes):
        raise context.refuse("scales and sizes", "others", f"one of both, with {len(axes)} numbers")
    old = np.asarray([source.shape[axis] for axis in axes], np.float32)
    factors = given.astype(np.float32) / (old if given is sizes else np.float32(1))
    new = (given if given is sizes else np.floor(factors * old)).astype(np.int64)
    shape = list(source.shape)
    for axis, size in zip(axes, new.tolist(), strict=True):
        shape[axis] = size
    if min(shape) < 1:
        raise context.refuse("sizes", shape, "at least one pixel")
    require_elements(f"the result of node {context.name!r}", shape)
    chosen, result = source.indices(), source
    for axis, factor in zip(axes, factors, strict=True):
        length = source.shape[axis]
        places = positions(length, shape[axis], factor, coordinates)
        if mode == "nearest":
            chosen = chosen.take(nearest(length, places, rounding), axis=axis)
        elif length != shape[axis] or factor != 1:
            kernel, reach = (linear, 1) if mode == "linear" else (partial(cubic, a=a), 2)
            stretch = min(float(factor), 1.0) if smooth else 1.0
            require_at_most(f"node {context.name!r}", "weights", length * shape[axis], MAX_ENTRIES)
            exact = places.astype(np.float64)
            weights = weights_at(
                exact, length, kernel, reach, stretch=stretch, exclude_outside=exclude_outside
            )
            result = resample(context, result, axis, weights)
    return context.select(source, chosen) if mode == "nearest" else result


def positions(old: int, new: int, factor: np.float32, coordinates: str) -> Positions:
    """Return the position among ``old`` pixels of each of ``new`` ones, in single precision."""
    half, x = np.float32(0.5), np.arange(new, dtype=np.float32)
    match coordinates:
        case "asymmetric":
            position = x / factor
        case "align_corners" | "pytorch_half_pixel" if new == 1:
            position = np.zeros(1, np.float32)
        case "align_corners":
            position = x * np.float32(old - 1) / np.float32(max(new - 1, 1))
        case "half_pixel_symmetric":
            centre = np.float32(old) / np.float32(2)
            whole = np.float32(new) / (factor * np.float32(old))
            position = centre * (np.float32(1) - whole) + (x + half) / factor - half
        case _:
            position = (x + half) / factor - half
    return np.asarray(position, np.float32)


def nearest(old: int, position: Positions, rounding: str) -> Indices:
    """Return the pixel of ``old`` at each position."""
    half = np.float32(0.5)
    match rounding:
        case "floor":
            position = np.floor(position)
        case "ceil":
            position = np.ceil(position)
        case "round_prefer_ceil":
            position = np.floor(position + half)
        case _:
            position = np.ceil(position - half)
    return np.asarray(np.clip(position, 0, old - 1), np.int64)
