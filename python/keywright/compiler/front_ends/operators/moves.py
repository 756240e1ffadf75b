"""Operators that move elements: every element of a result is an element of an operand or a constant.

Reshape, Shape and Cast, which leave all elements in place, are here, too.
"""

import numpy as np
import onnx

from keywright.compiler.front_ends.operator_context import (
    FLOATS,
    Constant,
    EncryptedValue,
    Operand,
    OperatorContext,
    picking,
)
from keywright.compiler.front_ends.reference import Array
from keywright.program.arrays import Shape

from .gating.gates import compared

MOVES: dict[str, tuple[int, ...]] = {
    "Concat": (),
    "DepthToSpace": (0,),
    "Dropout": (0,),
    "Expand": (0,),
    "Flatten": (0,),
    "Gather": (0,),
    "GatherElements": (0,),
    "GatherND": (0,),
    "Identity": (0,),
    "Pad": (0,),
    "ReverseSequence": (0,),
    "Slice": (0,),
    "SpaceToDepth": (0,),
    "Split": (0,),
    "Squeeze": (0,),
    "Tile": (0,),
    "Transpose": (0,),
    "Unsqueeze": (0,),
    "Where": (1, 2),
}
"""Operators by ONNX type, with the operands that may be encrypted; all if none is named."""


def move(context: OperatorContext) -> tuple[Operand, ...]:
    """Return the results as linear maps: ONNX's reference implementation moves the numbers of elements.

    It is run twice, with numbers and with negated numbers. Entries that differ are elements, all others
    constants.
    """
    allowed = MOVES[context.operator]
    if context.operator == "Dropout" and (trains := context.constant(2)) is not None and trains.any():
        raise context.refuse("training_mode", True, "false: in training, values are dropped at random")
    feeds: dict[str, Array] = {}
    sources: dict[str, tuple[EncryptedValue, int]] = {}
    first = 1
    for index, (name, operand) in enumerate(zip(context.node.input, context.operands, strict=True)):
        if isinstance(operand, Constant):
            beside = operand.array.dtype.kind == "f" and context.operator in ("Concat", "Where")
            feeds[name] = operand.array.astype(np.float64) if beside else operand.array
        elif operand is not None:
            if allowed and index not in allowed:
                raise context.refuse(f"operand {index}", "an encrypted value", "a constant")
            if name not in sources:
                sources[name] = operand, first
                feeds[name] = (operand.indices() + first).astype(np.float64)
                first += operand.size
    results = context.evaluate(feeds)
    negative = context.evaluate(feeds | {name: -feeds[name] for name in sources})
    return tuple(
        _moved(context, list(sources.values()), plus, minus)
        for plus, minus in zip(results, negative, strict=True)
    )


def _moved(
    context: OperatorContext,
    sources: list[tuple[EncryptedValue, int]],
    numbers: Array,
    negative: Array,
) -> Operand:
    if numbers.dtype.kind != "f":
        return Constant(numbers)  # the mask of a Dropout
    moved = numbers != negative
    if not moved.any():
        return Constant(numbers)
    chosen = np.where(moved, numbers, 0).astype(np.int64)
    parts = []
    for source, first in sources:
        own = (chosen >= first) & (chosen < first + source.size)
        if own.all():
            return context.select(source, chosen - first)
        if own.any():
            parts.append((source, picking(source, np.where(own, chosen - first, -1))))
    return context.total(parts, chosen.shape, np.where(moved, 0.0, numbers.astype(np.float64)))


def reshape(context: OperatorContext) -> EncryptedValue:
    """Add any reshape; a model for a batch of B samples may name B, or a multiple of it, as the first
    size."""
    source = context.encrypted(0)
    target = [int(size) for size in context.required_constant(1).ravel()]
    keep = not context.attribute("allowzero", 0)
    for batch in dict.fromkeys((context.batch, 1)):
        shape = _reshaped(source.shape, target, batch, keep)
        if shape is not None:
            return source.reshaped(shape)
    raise context.refuse("shape", target, f"one of {source.size} elements a sample")


def _reshaped(old: Shape, target: list[int], batch: int, keep: bool) -> Shape | None:
    """Return the shape of a sample when ``batch`` of them are reshaped together; None if there is none."""
    whole = (old[0] * batch, *old[1:]) if old else old
    sizes = [whole[i] if size == 0 and keep and i < len(whole) else size for i, size in enumerate(target)]
    total = int(np.prod(whole, dtype=np.int64))
    known = int(np.prod([size for size in sizes if size != -1], dtype=np.int64))
    if sizes.count(-1) == 1 and known > 0:
        sizes[sizes.index(-1)] = total // known
    if int(np.prod(sizes, dtype=np.int64)) != total or any(size < 0 for size in sizes):
        return None
    if batch > 1:
        if not sizes or sizes[0] % batch:
            return None
        sizes[0] //= batch
    return tuple(sizes)


def shape_of(context: OperatorContext) -> Constant:
    """Fold the shape of an encrypted value with a batch of 1: a constant, with which exporters compute."""
    full = context.encrypted(0).shape
    start, end = context.attribute("start", 0), context.attribute("end", len(full))
    return Constant(np.asarray(full[start:end], np.int64))


def cast(context: OperatorContext) -> Operand:
    """Ignore a change to another floating-point type, and of bits to any type."""
    kind = context.attribute("to", onnx.TensorProto.FLOAT)
    context.attribute("saturate", 1)
    context.attribute("round_mode", "up")
    source = context.encrypted(0)
    if kind == onnx.TensorProto.BOOL and not source.gate:
        return compared(context, source, lambda x: x != 0)
    if kind not in FLOATS and not source.bits:
        raise context.refuse("to", onnx.TensorProto.DataType.Name(kind), "a type of floating-point numbers")
    return source
