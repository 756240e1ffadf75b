"""What an operator sees of its node: operands, attributes, and the graph it adds to."""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import onnx
from numpy.typing import NDArray

from keywright.nn.errors import InvalidModelError, UnsupportedAttributeError
from keywright.nn.graph.convolution import Convolution, Matrix
from keywright.nn.graph.graph import Graph, Linear, Shape
from keywright.nn.graph.sparse import Vector


@dataclass(frozen=True, eq=False)
class Constant:
    """A value known when compiling."""

    array: NDArray[np.generic]


@dataclass(frozen=True)
class EncryptedValue:
    """A value of the graph: its number and its shape without the batch dimension."""

    number: int
    shape: Shape

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))


Operand = Constant | EncryptedValue
Attribute = int | float | str | list[int] | list[float] | NDArray[np.generic]


T = TypeVar("T", int, float, str, list[int])


class OperatorContext:
    """One ONNX node while it is added to a graph.

    Attributes:
        graph: receives the nodes.
        name, operator: for messages.
    """

    def __init__(
        self,
        graph: Graph,
        node: onnx.NodeProto,
        name: str,
        operands: list[Operand | None],
    ) -> None:
        self.graph, self.name, self.operator = graph, name, node.op_type
        self._operands = operands
        self._attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        self._read: set[str] = set()

    def attribute(self, name: str, default: T) -> T:
        """An attribute's value, or ``default`` where the node does not set it."""
        self._read.add(name)
        value = self._attributes.get(name, default)
        return value.decode() if isinstance(value, bytes) else value  # type: ignore[return-value]

    def check_all_attributes_read(self) -> None:
        """Refuse attributes that the operator did not ask for. Raises `UnsupportedAttributeError`."""
        for name, value in self._attributes.items():
            if name not in self._read:
                raise self.refuse(name, value, "it to be absent")

    def refuse(self, attribute: str, value: object, allowed: str) -> UnsupportedAttributeError:
        """The error for an attribute or operand that has no encrypted form."""
        return UnsupportedAttributeError(self.name, self.operator, attribute, value, allowed)

    def operand(self, index: int) -> Operand | None:
        """An operand, or None where it is absent."""
        return self._operands[index] if index < len(self._operands) else None

    def encrypted(self, index: int) -> EncryptedValue:
        """An operand that must depend on the input. Raises `UnsupportedAttributeError` for a constant one."""
        value = self.operand(index)
        if not isinstance(value, EncryptedValue):
            raise self.refuse(f"operand {index}", "a constant", "an encrypted value")
        return value

    def constant(self, index: int) -> Vector | None:
        """A constant operand in double precision, or None where it is absent.

        Raises `UnsupportedAttributeError` for an encrypted one.
        """
        value = self.operand(index)
        if value is None:
            return None
        if isinstance(value, EncryptedValue):
            raise self.refuse(f"operand {index}", "an encrypted value", "a constant")
        return np.asarray(value.array, np.float64)

    def required_constant(self, index: int) -> Vector:
        """A constant operand that must be there. Raises `UnsupportedAttributeError`."""
        value = self.constant(index)
        if value is None:
            raise self.refuse(f"operand {index}", "absent", "a constant")
        return value

    def image(self, index: int) -> tuple[EncryptedValue, tuple[int, int, int]]:
        """An encrypted operand of shape (channels, height, width). Raises `UnsupportedAttributeError` for
        another rank."""
        value = self.encrypted(index)
        if len(value.shape) != 3:
            raise self.refuse(f"shape of operand {index}", value.shape, "(channels, height, width)")
        return value, (value.shape[0], value.shape[1], value.shape[2])

    def linear(
        self,
        source: EncryptedValue,
        shape: Shape,
        matrix: Matrix,
        bias: Vector | None = None,
        stride: int = 1,
    ) -> EncryptedValue:
        """Add matrix @ source + bias. Raises `InvalidModelError` where sizes do not fit or weights are
        not finite."""
        size = int(np.prod(shape, dtype=np.int64))
        if matrix.shape != (size, source.size):
            raise InvalidModelError(
                f"node {self.name!r}: a {matrix.shape} matrix cannot map {source.shape} to {shape}"
            )
        weights = matrix.kernel if isinstance(matrix, Convolution) else matrix.values
        if not (np.isfinite(weights).all() and (bias is None or np.isfinite(bias).all())):
            raise InvalidModelError(
                f"node {self.name!r}: weights are not finite, or become so where they are put together"
            )
        offset = np.zeros(size) if bias is None else np.asarray(bias, np.float64)
        node = Linear(shape, (source.number,), (matrix,), offset, stride, self.name)
        return EncryptedValue(self.graph.add(node), shape)
