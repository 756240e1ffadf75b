"""The context of an operator: its operands, its attributes, and the graph that it extends."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
import onnx
from numpy.typing import NDArray

from keywright.compiler.graph.convolution import Matrix, total
from keywright.compiler.graph.graph import Activation, Graph, Input, Linear, Multiply
from keywright.compiler.graph.piecewise import Function
from keywright.compiler.graph.sparse import Indices, SparseMatrix
from keywright.compiler.limits import require_elements
from keywright.errors import RefusalError
from keywright.errors.refusals.operators import unsupported_attribute
from keywright.program.arrays import Shape, Vector

from .reference import Reference

FLOATS = frozenset(
    {
        onnx.TensorProto.FLOAT,
        onnx.TensorProto.FLOAT16,
        onnx.TensorProto.BFLOAT16,
        onnx.TensorProto.DOUBLE,
    }
)
"""Types of values that can be encrypted."""


@dataclass(frozen=True, eq=False)
class Constant:
    """A value known at compile time."""

    array: NDArray[np.generic]


BITS = (0.0, 1.0)


@dataclass(frozen=True, eq=False)
class EncryptedValue:
    """A value of the graph: its number and its ONNX shape, with a batch of 1.

    Attributes:
        order: the number of each element in the graph's value, in the value's shape, where elements are not
            stored in row-major order; every number occurs once.
        masked: constants of a mask in the value's shape, which were not added: at most `HIDDEN` of the room
            of operators, down to minus infinity, for elements that it hides from a softmax, and 0 for others.
        before_mask: for a value to which large negative constants were added, the value with them as a mask,
            which a softmax reads in its place.
        numbers: the two numbers of which every element is one, computed from elements of the input that
            calibration data show to be 0 or 1; None for other values.
        gate: whether bits stand for their logarithm, 0 or minus infinity, which is added before a softmax.
        shown: the bits of the elements that a softmax shows, in the value's shape, where such a gate was
            added; None if it shows all.
    """

    number: int
    shape: Shape
    order: Indices | None = None
    masked: Vector | None = None
    before_mask: "EncryptedValue | None" = None
    numbers: tuple[float, float] | None = None
    gate: bool = False
    shown: "EncryptedValue | None" = None

    @property
    def bits(self) -> bool:
        """Whether every element is 0 or 1."""
        return self.numbers == BITS

    @property
    def hides(self) -> bool:
        """Whether only a softmax can read the value."""
        return self.masked is not None or self.gate or self.shown is not None

    @property
    def hiding(self) -> str:
        """What hides elements, in words."""
        if self.masked is not None:
            return "a mask of minus infinity"
        return "an encrypted mask, 0 or at most -10,000 by an input of 0 and 1"

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    def indices(self) -> Indices:
        """Return the number of each element, in the value's shape."""
        return np.arange(self.size).reshape(self.shape) if self.order is None else self.order

    def reshaped(self, shape: Shape) -> "EncryptedValue":
        """Return the value in another shape of as many elements."""
        order = None if self.order is None else self.order.reshape(shape)
        masked = None if self.masked is None else self.masked.reshape(shape)
        before = None if self.before_mask is None else self.before_mask.reshaped(shape)
        shown = None if self.shown is None else self.shown.reshaped(shape)
        return EncryptedValue(self.number, shape, order, masked, before, self.numbers, self.gate, shown)

    def stored(self, values: Vector) -> Vector:
        """Return constants in the value's shape as a vector in the order of its elements."""
        flat = np.broadcast_to(values, self.shape).ravel()
        if self.order is None:
            return flat
        placed = np.empty(self.size)
        placed[self.order.ravel()] = flat
        return placed


Operand = Constant | EncryptedValue
Attribute = int | float | str | list[int] | list[float] | NDArray[np.generic]


T = TypeVar("T", int, float, str, list[int], list[float], list[str])


def of_sample(shape: Shape) -> Shape:
    """Return a shape without the batch axis, if that is the first."""
    return shape[1:] if len(shape) > 1 and shape[0] == 1 else shape or (1,)


@dataclass
class DataClaims:
    """What the import of a model takes from calibration data.

    Attributes:
        bits: which elements of the graph's input are 0 or 1; see `operators.gating.gates`.
        masks: the finite masks of softmaxes; see `operators.attention.masks`.
        relied: numbers of the graph's values that are read as bits; see `operators.gating.required_bits`.
        folded: numbers of such values of which a comparison is the same for both numbers, and a constant.
        required: numbers of the elements of the input that have to be 0 or 1 in every sample, once the graph
            is complete.
    """

    bits: NDArray[np.bool_] | None = None
    masks: list[Any] = field(default_factory=list)
    relied: list[int] = field(default_factory=list)
    folded: list[int] = field(default_factory=list)
    required: Indices = field(default_factory=lambda: np.zeros(0, np.int64))


class OperatorContext:
    """One ONNX node while it is added to a graph.

    Attributes:
        graph: receives the nodes.
        node, name, operator: the ONNX node, and its name in messages.
        batch: samples that the model takes at a time; 1 if it takes any number. The graph is for one sample.
        halvings: of the operand of a softmax; see `operators.attention.softmax`.
        claims: what the import takes from calibration data.
    """

    def __init__(
        self,
        graph: Graph,
        node: onnx.NodeProto,
        name: str,
        operands: list[Operand | None],
        reference: Reference,
        batch: int = 1,
        halvings: int = 0,
        claims: DataClaims | None = None,
    ) -> None:
        self.graph, self.node, self.name, self.operator = graph, node, name, node.op_type
        self.batch, self.halvings = batch, halvings
        self.claims = DataClaims() if claims is None else claims
        self._operands, self._reference = operands, reference
        self._attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        self._read: set[str] = set()

    @property
    def operands(self) -> tuple[Operand | None, ...]:
        """Return all operands, None for those that are absent."""
        return tuple(self._operands)

    @property
    def opset(self) -> int:
        """The version of ONNX's operators that the model was exported with."""
        return self._reference.opset

    def attribute(self, name: str, default: T) -> T:
        """Return an attribute's value, or ``default`` if the node does not set it."""
        self._read.add(name)
        value = self._attributes.get(name, default)
        if isinstance(value, list):
            decoded: Any = [entry.decode() if isinstance(entry, bytes) else entry for entry in value]
            return decoded  # type: ignore[no-any-return]
        return value.decode() if isinstance(value, bytes) else value  # type: ignore[return-value]

    def check_all_attributes_read(self) -> None:
        """Refuse attributes that the operator did not read. Raises `RefusalError`."""
        for name, value in self._attributes.items():
            if name not in self._read:
                raise self.refuse(name, value, "it to be absent")

    def refuse(self, attribute: str, value: object, allowed: str) -> RefusalError:
        """Return the error for an attribute or operand that has no encrypted form."""
        return unsupported_attribute(self.name, self.operator, attribute, value, allowed)

    def operand(self, index: int) -> Operand | None:
        """Return an operand, or None if it is absent."""
        return self._operands[index] if index < len(self._operands) else None

    def encrypted(self, index: int) -> EncryptedValue:
        """Return an operand that must depend on the input. Raises `RefusalError` for a constant
        one."""
        value = self.operand(index)
        if not isinstance(value, EncryptedValue):
            raise self.refuse(f"operand {index}", "a constant", "an encrypted value")
        return value

    def constant(self, index: int) -> Vector | None:
        """Return a constant operand in double precision, or None if it is absent.

        Raises `RefusalError` for an encrypted one.
        """
        value = self.operand(index)
        if value is None:
            return None
        if isinstance(value, EncryptedValue):
            raise self.refuse(f"operand {index}", "an encrypted value", "a constant")
        return np.asarray(value.array, np.float64)

    def required_constant(self, index: int) -> Vector:
        """Return a required constant operand. Raises `RefusalError`."""
        value = self.constant(index)
        if value is None:
            raise self.refuse(f"operand {index}", "absent", "a constant")
        return value

    def axes(self, source: EncryptedValue, default: list[int]) -> list[int]:
        """Return the axes of a node, from an attribute or, in newer opsets, its second operand."""
        given = self.constant(1)
        axes = self.attribute("axes", default) if given is None else given.ravel().tolist()
        rank = len(source.shape)
        known = {axis % rank for axis in axes if axis in range(-rank, rank)}
        if len(known) != len(axes):
            raise self.refuse("axes", axes, f"different axes of the shape {source.shape}")
        return sorted(map(int, known))

    def image(self, index: int) -> tuple[EncryptedValue, tuple[int, int, int]]:
        """Return an encrypted operand of shape (1, channels, height, width), or (1, channels, length), which
        is an image of height 1. Raises `RefusalError` for another rank."""
        value = self.encrypted(index)
        if len(value.shape) not in (3, 4) or value.shape[0] != 1:
            raise self.refuse(
                f"shape of operand {index}",
                value.shape,
                "(1, channels, height, width) or (1, channels, length)",
            )
        height = value.shape[2] if len(value.shape) == 4 else 1
        return value, (value.shape[1], height, value.shape[-1])

    def evaluate(
        self, feeds: Mapping[str, NDArray[Any]], node: onnx.NodeProto | None = None
    ) -> list[NDArray[Any]]:
        """Return the results of the node, or of one in its place, for other operands, by ONNX's reference
        implementation."""
        self._read.update(self._attributes)
        return self._reference.run(self.node if node is None else node, self.name, feeds)

    def linear(
        self,
        source: EncryptedValue,
        shape: Shape,
        matrix: Matrix,
        bias: Vector | None = None,
        stride: tuple[int, int] = (1, 1),
        laid_out: Shape | None = None,
        *,
        separate: bool = False,
    ) -> EncryptedValue:
        """Add matrix @ source + bias; see `total`."""
        return self.total([(source, matrix)], shape, bias, stride, laid_out, separate=separate)

    def total(
        self,
        terms: Sequence[tuple[EncryptedValue, Matrix]],
        shape: Shape,
        bias: Vector | None = None,
        stride: tuple[int, int] = (1, 1),
        laid_out: Shape | None = None,
        *,
        separate: bool = False,
    ) -> EncryptedValue:
        """Add bias + the sum of matrix @ value over the terms.

        Args:
            shape: of the result, with the batch.
            stride: rows and columns of the values for each row and column of the result.
            laid_out: the result's shape for layouts; by default without the batch.
            separate: whether the map stays apart from linear maps behind it.

        Raises:
            RefusalError: sizes do not match, or weights are not finite.
            RefusalError: the result has too many elements.
        """
        require_elements(f"the result of node {self.name!r}", shape)
        size = int(np.prod(shape, dtype=np.int64))
        offset = np.zeros(size) if bias is None else np.asarray(bias, np.float64).ravel()
        sums: dict[int, Matrix] = {}
        for source, matrix in terms:
            if matrix.shape != (size, source.size):
                raise RefusalError(
                    f"node {self.name!r}: a {matrix.shape} matrix cannot map {source.shape} to {shape}"
                )
            number = source.number
            sums[number] = total(sums[number], matrix) if number in sums else matrix
        weights = [matrix.values for matrix in sums.values()]
        if not all(np.isfinite(result).all() for result in [*weights, offset]):
            raise RefusalError(
                f"node {self.name!r}: weights are not finite, or become so when they are combined"
            )
        shown = of_sample(shape) if laid_out is None else laid_out
        node = Linear(shown, tuple(sums), tuple(sums.values()), offset, stride, self.name, separate)
        return EncryptedValue(self.graph.add(node), shape)

    def select(self, source: EncryptedValue, chosen: Indices) -> EncryptedValue:
        """Return the elements with these numbers, in the shape of ``chosen``."""
        numbers = BITS if self._are_bits(source, chosen) else source.numbers
        if np.array_equal(chosen.ravel(), np.arange(source.size)):
            return EncryptedValue(source.number, chosen.shape, numbers=numbers)
        if source.order is not None and _permutes(chosen, source.size):
            return EncryptedValue(source.number, chosen.shape, chosen, numbers=numbers)
        return replace(self.linear(source, chosen.shape, picking(source, chosen)), numbers=numbers)

    def _are_bits(self, source: EncryptedValue, chosen: Indices) -> bool:
        """Whether elements of the input are 0 or 1."""
        known = self.claims.bits
        if not isinstance(self.graph.nodes[source.number], Input) or known is None:
            return False
        return bool(known[chosen].all())

    def row_major_operands(self) -> None:
        """Store all encrypted operands in row-major order."""
        self._operands = [
            self.row_major(value) if isinstance(value, EncryptedValue) else value for value in self._operands
        ]

    def refuse_masked(self) -> None:
        """Refuse operands of which a mask hides elements: only a softmax gives that a meaning. Raises
        `RefusalError`."""
        for index, value in enumerate(self._operands):
            if isinstance(value, EncryptedValue) and value.hides:
                way = "a Softmax behind it"
                if value.masked is None:
                    way += ", or, if it hides nothing, a smaller constant and larger weights behind it"
                raise self.refuse(f"operand {index}", f"a value with {value.hiding}", way)

    def row_major(self, source: EncryptedValue) -> EncryptedValue:
        """Return a value whose elements are stored in row-major order."""
        if source.order is None:
            return source
        return self.linear(source, source.shape, picking(source, source.order))

    def expand(self, source: EncryptedValue, shape: Shape) -> EncryptedValue:
        """Broadcast a value to a shape, with its masks. Raises `RefusalError` if that is impossible."""
        if source.shape == shape:
            return source
        require_elements(f"the result of node {self.name!r}", shape)
        try:
            result = self.select(source, np.broadcast_to(source.indices(), shape))
        except ValueError as error:
            raise self.refuse("operand of shape", source.shape, f"one that broadcasts to {shape}") from error
        masked, before, shown = source.masked, source.before_mask, source.shown
        return replace(
            result,
            masked=None if masked is None else np.broadcast_to(masked, shape),
            before_mask=None if before is None else self.expand(before, shape),
            gate=source.gate,
            shown=None if shown is None else self.expand(shown, shape),
        )

    def scaled(self, source: EncryptedValue, factors: Vector | float) -> EncryptedValue:
        """Return a value with each element times a constant."""
        matrix = SparseMatrix.diagonal(
            source.stored(np.reshape(np.broadcast_to(factors, source.size), source.shape))
        )
        result = self.linear(source, source.shape, matrix, laid_out=self.laid_out(source))
        return replace(result, order=source.order)

    def product(self, left: EncryptedValue, right: EncryptedValue) -> EncryptedValue:
        """Return the product of two values of equal shape."""
        left, right = self.aligned(left, right)
        node = Multiply(self.laid_out(left), (left.number, right.number), self.name)
        return EncryptedValue(self.graph.add(node), left.shape, left.order)

    def aligned(self, left: EncryptedValue, right: EncryptedValue) -> tuple[EncryptedValue, EncryptedValue]:
        """Return two values of equal shape with their elements in the same order."""
        if left.order is right.order or np.array_equal(left.indices(), right.indices()):
            return left, right
        return self.row_major(left), self.row_major(right)

    def function(
        self,
        source: EncryptedValue,
        function: Function,
        operator: str | None = None,
        *,
        positive: bool = False,
        limits: tuple[float, float] = (-math.inf, math.inf),
    ) -> EncryptedValue:
        """Return an elementwise function of a value, which a polynomial will approximate.

        Args:
            operator: name of the function; by default the node's.
            positive: whether it is defined for positive values only.
            limits: between which the value is by its own computation.
        """
        shape, called = self.laid_out(source), operator or self.operator
        node = Activation(
            shape, (source.number,), function, called, self.name, positive=positive, limits=limits
        )
        return EncryptedValue(self.graph.add(node), source.shape, source.order)

    def laid_out(self, source: EncryptedValue) -> Shape:
        """Return the shape of a value for layouts."""
        return self.graph.nodes[source.number].shape


def _permutes(chosen: Indices, size: int) -> bool:
    """Whether every number below a size occurs once."""
    return chosen.size == size and np.array_equal(np.sort(chosen, axis=None), np.arange(size))


def picking(source: EncryptedValue, chosen: Indices, factors: Vector | float = 1.0) -> SparseMatrix:
    """Return the matrix that selects elements by number, times factors; -1 selects none."""
    flat = chosen.ravel()
    rows = np.flatnonzero(flat >= 0)
    values = np.broadcast_to(np.asarray(factors, np.float64), flat.shape)
    return SparseMatrix.from_distinct((len(flat), source.size), rows, flat[rows], values[rows])
