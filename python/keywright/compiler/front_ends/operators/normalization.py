"""BatchNormalization at inference, and normalisations by a sample's own statistics."""

import numpy as np

from keywright.compiler.activations.functions import absolute, inverse_root, reciprocal, to_power
from keywright.compiler.front_ends.operator_context import EncryptedValue, OperatorContext
from keywright.compiler.graph.graph import Shift
from keywright.compiler.graph.sparse import SparseMatrix
from keywright.program.arrays import Vector

from .reductions import average


def batch_normalization(context: OperatorContext) -> EncryptedValue:
    """Add scale * (x - mean) / sqrt(variance + epsilon) + bias along the channel axis."""
    source = context.encrypted(0)
    scale, bias, mean, variance = (context.required_constant(index) for index in range(1, 5))
    context.attribute("momentum", 0.9)
    if context.attribute("training_mode", 0):
        raise context.refuse("training_mode", 1, "0, the statistics of training")
    channels = source.shape[1] if len(source.shape) > 1 else 0
    if any(value.shape != (channels,) for value in (scale, bias, mean, variance)):
        raise context.refuse("parameters of shape", scale.shape, f"({channels},)")
    with np.errstate(invalid="ignore", divide="ignore"):  # `total` refuses values that are not finite
        factor = scale / np.sqrt(variance + context.attribute("epsilon", 1e-5))
    pixels = source.size // channels
    matrix = SparseMatrix.diagonal(np.repeat(factor, pixels))
    offset = np.repeat(bias - mean * factor, pixels)
    return context.linear(source, source.shape, matrix, offset, laid_out=context.laid_out(source))


def layer_normalization(context: OperatorContext) -> EncryptedValue:
    """Add LayerNormalization: over the axes from ``axis`` on."""
    source = context.encrypted(0)
    context.attribute("stash_type", 1)
    axis = context.attribute("axis", -1) % len(source.shape)
    axes = list(range(axis, len(source.shape)))
    shape = source.shape[axis:]
    scale, bias = context.required_constant(1), context.constant(2)
    return _normalized(context, source, axes, *(_spread(context, value, shape) for value in (scale, bias)))


def rms_normalization(context: OperatorContext) -> EncryptedValue:
    """Add RMSNormalization: over the axes from ``axis`` on, without their mean."""
    source = context.encrypted(0)
    context.attribute("stash_type", 1)
    axis = context.attribute("axis", -1) % len(source.shape)
    scale = _spread(context, context.required_constant(1), source.shape[axis:])
    return _divided(context, source, list(range(axis, len(source.shape))), scale, None)


def instance_normalization(context: OperatorContext) -> EncryptedValue:
    """Add InstanceNormalization: over the pixels of each channel."""
    source = context.encrypted(0)
    shape = (source.shape[1], *(1 for _ in source.shape[2:]))
    scale, bias = (context.required_constant(index).reshape(shape) for index in (1, 2))
    return _normalized(context, source, list(range(2, len(source.shape))), scale, bias)


def group_normalization(context: OperatorContext) -> EncryptedValue:
    """Add GroupNormalization: over the channels and pixels of each group."""
    source, groups = context.encrypted(0), context.attribute("num_groups", 0)
    context.attribute("stash_type", 1)
    channels = source.shape[1] if len(source.shape) > 1 else 0
    if groups < 1 or channels % groups:
        raise context.refuse("num_groups", groups, f"a divisor of the {channels} channels")
    parts = channels // groups
    ones = (1,) * (len(source.shape) - 2)
    given = context.required_constant(1), context.required_constant(2)
    if any(value.shape != (channels,) for value in given):
        raise context.refuse("scale or bias of shape", given[0].shape, f"({channels},)")
    scale, bias = (value.reshape(groups, parts, *ones) for value in given)
    apart = EncryptedValue(source.number, (source.shape[0], groups, parts, *source.shape[2:]))
    result = _normalized(context, apart, list(range(2, len(apart.shape))), scale, bias)
    return EncryptedValue(result.number, source.shape)


def local_response_normalization(context: OperatorContext) -> EncryptedValue:
    """Add LRN: x (bias + alpha / size * the sum of squares of ``size`` channels around it)^-beta. A
    polynomial approximates the power on the sums of the calibration data."""
    source, size = context.encrypted(0), context.attribute("size", 0)
    alpha, beta = context.attribute("alpha", 1e-4), context.attribute("beta", 0.75)
    bias = context.attribute("bias", 1.0)
    if size < 1 or len(source.shape) < 3:
        raise context.refuse("size", size, "a number above 0, of values of shape (1, channels, pixels, ...)")
    if bias < 0 or alpha < 0:
        raise context.refuse("bias and alpha", (bias, alpha), "numbers of at least 0")
    channels = source.shape[1]
    into, of = np.nonzero(np.tri(channels, k=size // 2) - np.tri(channels, k=-((size - 1) // 2) - 1))
    squares = context.product(source, source)
    places = np.arange(source.size).reshape(channels, -1)
    pixels = places.shape[1]
    share = np.full(into.size * pixels, alpha / size)
    matrix = SparseMatrix.from_distinct(
        (source.size, source.size), places[into].ravel(), places[of].ravel(), share
    )
    offset = np.full(source.size, bias)
    sums = context.linear(squares, source.shape, matrix, offset, laid_out=context.laid_out(source))
    factor = context.function(sums, to_power(-beta), positive=True, limits=(bias, np.inf))
    return context.product(source, factor)


def normalizer(context: OperatorContext) -> EncryptedValue:
    """Add Normalizer, of scikit-learn: each sample over its norm."""
    kind = context.attribute("norm", "MAX")
    if kind not in ("L1", "L2"):
        raise context.refuse("norm", kind, "L1 or L2: the largest of many values takes many levels")
    return _over_norm(context, 1 if kind == "L1" else 2, len(context.encrypted(0).shape) - 1)


def lp_normalization(context: OperatorContext) -> EncryptedValue:
    """Add LpNormalization: values over their norm along an axis."""
    p, axis = context.attribute("p", 2), context.attribute("axis", -1)
    if p not in (1, 2):
        raise context.refuse("p", p, "1 or 2")
    return _over_norm(context, p, axis % len(context.encrypted(0).shape))


def _over_norm(context: OperatorContext, p: int, axis: int) -> EncryptedValue:
    r"""Add x over (the sum of \|x\|^p)^(1 / p). A polynomial approximates the inverse on the sums of the
    calibration data."""
    source = context.encrypted(0)
    powers = context.function(source, absolute) if p == 1 else context.product(source, source)
    shape = tuple(1 if place == axis else size for place, size in enumerate(source.shape))
    total = context.scaled(average(context, powers, [axis], shape), source.shape[axis])
    inverse = context.function(total, reciprocal if p == 1 else inverse_root, positive=True)
    return context.product(source, context.expand(inverse, source.shape))


def _spread(context: OperatorContext, value: Vector | None, shape: tuple[int, ...]) -> Vector | None:
    if value is None:
        return None
    try:
        return np.broadcast_to(value, shape)
    except ValueError as error:
        raise context.refuse("scale or bias of shape", value.shape, str(shape)) from error


def _normalized(
    context: OperatorContext,
    source: EncryptedValue,
    axes: list[int],
    scale: Vector | None,
    bias: Vector | None,
) -> EncryptedValue:
    """Add (x - mean) / sqrt(variance + epsilon) over axes, times scale, plus bias."""
    shape = tuple(1 if axis in axes else size for axis, size in enumerate(source.shape))
    mean = context.expand(average(context, source, axes, shape), source.shape)
    terms = [(source, SparseMatrix.diagonal(np.ones(source.size)))]
    terms.append((mean, SparseMatrix.diagonal(-np.ones(source.size))))
    centred = context.total(terms, source.shape, laid_out=context.laid_out(source))
    return _divided(context, centred, axes, scale, bias)


def _divided(
    context: OperatorContext,
    centred: EncryptedValue,
    axes: list[int],
    scale: Vector | None,
    bias: Vector | None,
) -> EncryptedValue:
    """Add x / sqrt(mean of x^2 + epsilon) over axes, times scale, plus bias. A polynomial approximates the
    inverse root on the means of the calibration data."""
    epsilon = context.attribute("epsilon", 1e-5)
    shape = tuple(1 if axis in axes else size for axis, size in enumerate(centred.shape))
    variance = average(context, context.product(centred, centred), axes, shape)
    raised = EncryptedValue(
        context.graph.add(
            Shift(context.laid_out(variance), (variance.number,), np.full(variance.size, epsilon))
        ),
        shape,
    )
    inverse = context.function(raised, inverse_root, positive=True)
    result = context.product(centred, context.expand(inverse, centred.shape))
    factor = np.ones(centred.size) if scale is None else np.broadcast_to(scale, centred.shape).ravel()
    offset = np.zeros(centred.size) if bias is None else np.broadcast_to(bias, centred.shape).ravel()
    matrix = SparseMatrix.diagonal(factor)
    return context.linear(result, centred.shape, matrix, offset, laid_out=context.laid_out(centred))
