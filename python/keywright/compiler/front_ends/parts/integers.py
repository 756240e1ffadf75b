"""Integers: encrypted values are real numbers, which neither wrap nor are divided without a remainder."""

from collections.abc import Iterable

from onnx import TensorProto

from keywright.compiler.front_ends.operator_context import OperatorContext
from keywright.compiler.front_ends.operators.moves import MOVES

NARROW = frozenset(
    getattr(TensorProto, name)
    for name in ("INT8", "INT16", "INT32", "UINT8", "UINT16", "UINT32", "UINT64")  # 0 - 1 wraps in any
)
INTEGERS = NARROW | {TensorProto.INT64}
DIVIDING = frozenset(["Div", "Mean", "ReduceMean"])
KEEPING = frozenset(
    [*MOVES, "Abs", "Cast", "Equal", "IsInf", "IsNaN", "Max", "Min", "Relu", "Reshape", "Resize", "Shape"]
)
"""Operators of which no result is outside its operands' range, but for the least integer's absolute value."""


def require_exact(context: OperatorContext, kinds: Iterable[int]) -> None:
    """Refuse a node that runtimes compute in integers with another result than that of real numbers.

    Args:
        kinds: types of the encrypted operands.

    Raises:
        RefusalError: the node divides integers, or computes with ones that wrap.
    """
    for kind in kinds:
        divides = kind in INTEGERS and context.operator in DIVIDING
        wraps = kind in NARROW and context.operator not in KEEPING
        if divides or wraps:
            why = "integers are divided without a remainder" if divides else "integers of this size wrap"
            raise context.refuse(
                "operands of type",
                TensorProto.DataType.Name(kind),
                f"FLOAT or DOUBLE, from a Cast before it: {why}, and encrypted values do not",
            )
