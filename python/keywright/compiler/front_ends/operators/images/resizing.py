"""Resize: by interpolation, or which pixel each pixel of the result is.

Positions are computed in single precision, as runtimes do: in double precision, pixels of a scale of a third
are others.
"""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from keywright.compiler.front_ends.operator_context import EncryptedValue, OperatorContext, picking
from keywright.compiler.graph.sparse import Indices
from keywright.compiler.limits import MAX_ENTRIES, require_at_most, require_elements

from .interpolation import cubic, linear, resample, weights_at

Positions = NDArray[np.float32]

FIRST_OPSET = 11
"""Before this opset, runtimes round positions in ways of their own."""

CROP = "tf_crop_and_resize"
COORDINATES = (
    "half_pixel",
    "pytorch_half_pixel",
    "asymmetric",
    "align_corners",
    "half_pixel_symmetric",
    CROP,
)
POLICIES = {"stretch": None, "not_larger": np.min, "not_smaller": np.max}
"""Which factor of all axes holds for each of them, if one does."""

MODES = ("nearest", "linear", "cubic")
ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


def resize(context: OperatorContext) -> EncryptedValue:
    """Add Resize by factors or to sizes."""
    source = context.encrypted(0)
    if context.opset < FIRST_OPSET:
        raise context.refuse("opset", context.opset, f"opset {FIRST_OPSET} or later")
    mode = context.attribute("mode", "nearest")
    policy = context.attribute("keep_aspect_ratio_policy", "stretch")
    smooth, a = context.attribute("antialias", 0), context.attribute("cubic_coeff_a", -0.75)
    exclude_outside = bool(context.attribute("exclude_outside", 0))
    beyond = context.attribute("extrapolation_value", 0.0)
    coordinates = context.attribute("coordinate_transformation_mode", "half_pixel")
    rounding = context.attribute("nearest_mode", "round_prefer_floor")
    for name, value, known in (
        ("coordinate_transformation_mode", coordinates, COORDINATES),
        ("nearest_mode", rounding, ROUNDINGS),
        ("mode", mode, MODES),
        ("keep_aspect_ratio_policy", policy, tuple(POLICIES)),
    ):
        if value not in known:
            raise context.refuse(name, value, ", ".join(known))
    rank = len(source.shape)
    axes = [axis % rank for axis in context.attribute("axes", list(range(rank)))]
    region = _region(context, len(axes)) if coordinates == CROP else np.zeros((len(axes), 2), np.float32)
    factors, new = _sizes(context, np.asarray([source.shape[axis] for axis in axes]), policy, region)
    shape = list(source.shape)
    for axis, size in zip(axes, new.tolist(), strict=True):
        shape[axis] = size
    if min(shape) < 1:
        raise context.refuse("sizes", shape, "at least one pixel")
    require_elements(f"the result of node {context.name!r}", shape)
    chosen, result = source.indices(), source
    outside = np.zeros(shape, np.bool_)
    for axis, factor, ends in zip(axes, factors, region, strict=True):
        length = source.shape[axis]
        places = positions(length, shape[axis], factor, coordinates, ends)
        if coordinates == CROP:
            out = (places < 0) | (places > length - 1)
            outside |= out.reshape([-1 if other == axis else 1 for other in range(rank)])
        stretch = min(float(factor), 1.0) if smooth else 1.0
        if mode == "nearest":
            chosen = chosen.take(nearest(length, places, rounding), axis=axis)
        elif stretch < 1 or not np.array_equal(places, np.arange(length)):
            kernel, reach = (linear, 1) if mode == "linear" else (partial(cubic, a=a), 2)
            require_at_most(f"node {context.name!r}", "weights", length * shape[axis], MAX_ENTRIES)
            exact = np.clip(places, 0, length - 1) if coordinates == CROP else places
            weights = weights_at(
                exact.astype(np.float64),
                length,
                kernel,
                reach,
                stretch=stretch,
                exclude_outside=exclude_outside,
            )
            result = resample(context, result, axis, weights)
    if mode == "nearest":
        result = context.select(source, chosen)
    if not outside.any():
        return result
    kept = picking(result, result.indices(), np.where(outside, 0.0, 1.0).ravel())
    return context.linear(result, result.shape, kept, np.where(outside, beyond, 0.0))


def _region(context: OperatorContext, axes: int) -> Positions:
    """Return the start and the end of the region on each axis, as shares of its length."""
    region = context.constant(1)
    if region is None or region.size != 2 * axes or not np.isfinite(region).all():
        raise context.refuse("roi", "another", f"{2 * axes} constant numbers: starts, then ends")
    return region.reshape(2, axes).T.astype(np.float32)


def _sizes(
    context: OperatorContext, old: NDArray[np.int64], policy: str, region: Positions
) -> tuple[Positions, NDArray[np.int64]]:
    """Return the factor and the new size of each axis."""
    scales, sizes = context.constant(2), context.constant(3)
    given = sizes if scales is None or not scales.size else scales
    if given is None or given.size != len(old):
        raise context.refuse("scales and sizes", "others", f"one of both, with {len(old)} numbers")
    length = old.astype(np.float32)
    if given is not sizes:
        factors = given.astype(np.float32)
        new = np.floor(factors * length).astype(np.int64)
        # The standard multiplies by the region's share, and runtimes do not.
        if region.any() and (new != np.floor(factors * length * (region[:, 1] - region[:, 0]))).any():
            raise context.refuse("scales", given.tolist(), f"sizes, for a part of the image by {CROP}")
        return factors, new
    factors = given.astype(np.float32) / length
    if (one := POLICIES[policy]) is None:
        return factors, given.astype(np.int64)
    factors = np.full_like(factors, one(factors))
    return factors, np.floor(factors * length + np.float32(0.5)).astype(np.int64)


def positions(old: int, new: int, factor: np.float32, coordinates: str, ends: Positions) -> Positions:
    """Return the position among ``old`` pixels of each of ``new`` ones, in single precision. ``ends`` are
    the ends of a region, as shares of the length."""
    half, x = np.float32(0.5), np.arange(new, dtype=np.float32)
    match coordinates:
        case "asymmetric":
            position = x / factor
        case "tf_crop_and_resize" if new == 1:
            position = half * (ends[:1] + ends[1:]) * np.float32(old - 1)
        case "tf_crop_and_resize":
            last = np.float32(old - 1)
            position = ends[0] * last + x * (ends[1] - ends[0]) * last / np.float32(new - 1)
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
