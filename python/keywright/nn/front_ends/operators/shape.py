"""Flatten, Reshape, Squeeze, Unsqueeze, Identity, Dropout and Shape: operators that move no element."""

import numpy as np

from keywright.nn.front_ends.operator_context import Constant, EncryptedValue, OperatorContext
from keywright.nn.graph.graph import Shape


def identity(context: OperatorContext) -> EncryptedValue:
    """Identity, and Dropout at inference."""
    for name in ("ratio", "seed"):
        context.attribute(name, 0)
    training = context.constant(2)
    if training is not None and training.any():
        raise context.refuse("training_mode", "true", "false")
    return context.encrypted(0)


def flatten(context: OperatorContext) -> EncryptedValue:
    """(batch, ...) to (batch, features)."""
    source = context.encrypted(0)
    axis = context.attribute("axis", 1)
    if axis not in (1, -len(source.shape)):
        raise context.refuse("axis", axis, "1, which keeps the samples apart")
    return EncryptedValue(source.number, (source.size,))


def reshape(context: OperatorContext) -> EncryptedValue:
    """Any reshape that keeps the samples apart."""
    source = context.encrypted(0)
    target = [int(size) for size in context.required_constant(1).ravel()]
    if not context.attribute("allowzero", 0):
        old = (1, *source.shape)
        target = [old[i] if size == 0 and i < len(old) else size for i, size in enumerate(target)]
    known = int(np.prod([size for size in target if size != -1], dtype=np.int64))
    if target.count(-1) == 1 and known > 0:
        target[target.index(-1)] = source.size // known
    if not target or target[0] != 1 or int(np.prod(target, dtype=np.int64)) != source.size:
        raise context.refuse("shape", target, f"a batch of 1 and {source.size} elements")
    return EncryptedValue(source.number, tuple(target[1:]))


def squeeze(context: OperatorContext) -> EncryptedValue:
    """Removal of axes of size 1 other than the batch."""
    source = context.encrypted(0)
    axes = _axes(context, source, [i + 1 for i, size in enumerate(source.shape) if size == 1])
    if any(axis == 0 or source.shape[axis - 1] != 1 for axis in axes):
        raise context.refuse("axes", axes, "axes of size 1 other than the batch")
    return EncryptedValue(source.number, tuple(s for i, s in enumerate(source.shape) if i + 1 not in axes))


def unsqueeze(context: OperatorContext) -> EncryptedValue:
    """Insertion of axes of size 1 after the batch."""
    source = context.encrypted(0)
    given = context.constant(1)
    axes = context.attribute("axes", [0]) if given is None else [int(axis) for axis in given.ravel()]
    rank = len(source.shape) + 1 + len(axes)
    axes = sorted(axis % rank for axis in axes)
    if 0 in axes:
        raise context.refuse("axes", axes, "axes after the batch")
    shape: Shape = source.shape
    for axis in axes:
        shape = (*shape[: axis - 1], 1, *shape[axis - 1 :])
    return EncryptedValue(source.number, shape)


def shape_of(context: OperatorContext) -> Constant:
    """The shape of an encrypted value with a batch of 1: a constant, as exporters compute with it."""
    full = (1, *context.encrypted(0).shape)
    start, end = context.attribute("start", 0), context.attribute("end", len(full))
    return Constant(np.asarray(full[start:end], np.int64))


def _axes(context: OperatorContext, source: EncryptedValue, default: list[int]) -> list[int]:
    given = context.constant(1)
    axes = context.attribute("axes", default) if given is None else [int(axis) for axis in given.ravel()]
    return [axis % (len(source.shape) + 1) for axis in axes]
