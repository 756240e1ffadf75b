"""The network during compilation: linear maps, sums, products and scalar functions of flattened tensors.

Nodes are values in static single assignment: a node's index is its name, and operands come before it. Shapes
exclude the batch dimension. Elements are numbered in row-major order, so a reshape needs no node.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from keywright._core import polynomial_depth
from keywright.minimax.series import chebyshev
from keywright.program.ahead import worked_ahead
from keywright.program.arrays import Shape, Vector
from keywright.program.instructions import OUTSIDE

from .convolution import Matrix
from .joint import JointSum
from .piecewise import Function
from .sparse import SparseMatrix

CHUNK_BYTES = 64 << 20
"""Values of at most this many bytes are computed at once."""

TOGETHER = 4
"""Samples whose joint elements are computed at once, so that places are read once for several."""


@dataclass(frozen=True)
class Domain:
    """The calibrated range of an approximation.

    Attributes:
        low, high: as computed.
        model_low, model_high: the same in the model's own numbers.
        total: as for `Activation`.
    """

    low: float
    high: float
    model_low: float
    model_high: float
    total: bool = False

    def scaled(self, factor: float) -> "Domain":
        """Return the range after the values are multiplied by a positive constant."""
        return replace(self, low=self.low * factor, high=self.high * factor)

    def excess(self, values: Vector) -> float:
        """Return how far values leave the range at most, as a share of its width; 0 if they do not."""
        beyond = max(float(values.max()) - self.high, self.low - float(values.min()), 0.0)
        return beyond / (self.high - self.low)

    def left(self, values: Vector) -> NDArray[np.bool_]:
        """Return which samples, the rows of values, leave the range by more than rounding."""
        slack = OUTSIDE * (self.high - self.low)
        outside = ~((values >= self.low - slack) & (values <= self.high + slack))
        return np.asarray(outside.reshape(len(values), -1).any(axis=1))


@dataclass(frozen=True, eq=False)
class Input:
    """The tensor that the client encrypts."""

    shape: Shape


@dataclass(frozen=True, eq=False)
class Linear:
    """bias + sum of matrices[k] @ operands[k]; consumes one level.

    Attributes:
        stride: rows and columns of the operands per row and column of the result, a hint for its layout.
        label: the ONNX node with most of its weights.
        separate: whether linear maps behind it stay apart: together they would take many more diagonals.
    """

    shape: Shape
    operands: tuple[int, ...]
    matrices: tuple[Matrix, ...]
    bias: Vector
    stride: tuple[int, int] = (1, 1)
    label: str = ""
    separate: bool = False


@dataclass(frozen=True, eq=False)
class Shift:
    """The operand plus a constant vector; consumes no level."""

    shape: Shape
    operands: tuple[int]
    vector: Vector


@dataclass(frozen=True, eq=False)
class Add:
    """The sum of two values."""

    shape: Shape
    operands: tuple[int, int]


@dataclass(frozen=True, eq=False)
class Multiply:
    """The elementwise product of two values; consumes one level.

    Attributes:
        domain: of its operand, if it is a square that approximates a function.
    """

    shape: Shape
    operands: tuple[int, int]
    label: str = ""
    domain: Domain | None = None


@dataclass(frozen=True, eq=False)
class Activation:
    """An elementwise function that is not a polynomial.

    Attributes:
        function: numpy function, array to array; a `PiecewiseLinear` if possible.
        operator: ONNX operator type.
        name: ONNX node.
        levels: that its approximation consumes; a lower bound until that is chosen.
        positive: whether its domain may end at 0: values are on the side where it is defined.
        limits: between which its operand is by its own computation, whatever the inputs are.
    """

    shape: Shape
    operands: tuple[int]
    function: Function
    operator: str
    name: str
    levels: int = 1
    positive: bool = False
    limits: tuple[float, float] = (-math.inf, math.inf)

    @property
    def total(self) -> bool:
        """Whether its operand is the sum of what a mask shows of a row: 0 where it shows nothing."""
        return self.operator == "Softmax" and self.positive

    @property
    def label(self) -> str:
        """Name in messages."""
        return f"{self.operator} at {self.name!r}"


@dataclass(frozen=True, eq=False)
class Polynomial:
    """An elementwise polynomial in the Chebyshev basis on [-1, 1]; coefficients by ascending degree.

    Attributes:
        domain: of its operand: [-1, 1] in the model's numbers. None inside a composition.
    """

    shape: Shape
    operands: tuple[int]
    coefficients: Vector
    label: str = ""
    domain: Domain | None = None


Node = Input | Linear | Shift | Add | Multiply | Activation | Polynomial


def operands(node: Node) -> tuple[int, ...]:
    """Return the values that a node reads."""
    return () if isinstance(node, Input) else node.operands


def with_operands(node: Node, new: Sequence[int]) -> Node:
    """Return the same node reading other values."""
    return node if isinstance(node, Input) else replace(node, operands=tuple(new))  # type: ignore[arg-type]


def describe(number: int, node: Node) -> str:
    """Return a node's name in messages: that of the user's model, or its kind and number if it has none."""
    label = "" if isinstance(node, Input | Shift | Add) else node.label
    return label or f"{type(node).__name__} {number}"


def levels_consumed(node: Node) -> int:
    """Return the levels between a node's operands and its result."""
    match node:
        case Linear() | Multiply():
            return 1
        case Activation(levels=levels):
            return levels
        case Polynomial(coefficients=coefficients):
            return polynomial_depth(len(coefficients) - 1)
        case _:
            return 0


@dataclass
class Graph:
    """A network with one input and one output.

    Thread safety: one thread at a time.

    Attributes:
        nodes: by value number; operands of a node are numbered below it.
        output: number of the value that the client decrypts.
    """

    nodes: dict[int, Node] = field(default_factory=dict)
    output: int = -1

    def add(self, node: Node) -> int:
        """Append a node and return its number."""
        number = max(self.nodes, default=-1) + 1
        self.nodes[number] = node
        return number

    @property
    def source(self) -> int:
        """Return the number of the input."""
        return next(number for number, node in self.nodes.items() if isinstance(node, Input))

    def consumers(self) -> dict[int, list[int]]:
        """Return the numbers of the nodes that read each value, once per use."""
        table: dict[int, list[int]] = {number: [] for number in self.nodes}
        for number, node in self.nodes.items():
            for operand in operands(node):
                table[operand].append(number)
        return table

    def topological_order(self) -> list[int]:
        """Return the numbers of the nodes that the output needs, operands first."""
        order: list[int] = []
        state: set[int] = set()
        stack = [self.output]
        while stack:
            number = stack[-1]
            waiting = [o for o in operands(self.nodes[number]) if o not in state]
            if waiting:
                stack.extend(waiting)
                continue
            stack.pop()
            if number not in state:
                state.add(number)
                order.append(number)
        return order

    def in_order(self) -> "Graph":
        """Return the graph in topological order, without unused nodes."""
        return Graph({number: self.nodes[number] for number in self.topological_order()}, self.output)

    def renumbered(self) -> "Graph":
        """Return the graph in topological order with consecutive numbers, without unused nodes."""
        ordered = self.in_order().nodes
        place = {number: index for index, number in enumerate(ordered)}
        nodes = {
            place[number]: with_operands(node, [place[o] for o in operands(node)])
            for number, node in ordered.items()
        }
        return Graph(nodes, place[self.output])

    def leading_to(self, numbers: Iterable[int]) -> "Graph":
        """Return the nodes that some values need, with their numbers; the last one is the output."""
        needed = set(numbers)
        for number in range(max(needed), -1, -1):
            if number in needed:
                needed.update(operands(self.nodes[number]))
        return Graph({number: self.nodes[number] for number in sorted(needed)}, max(needed))

    def depths(self) -> dict[int, int]:
        """Return the levels consumed on the longest path to each value."""
        depth: dict[int, int] = {}
        for number, node in self.nodes.items():
            depth[number] = max((depth[o] for o in operands(node)), default=0) + levels_consumed(node)
        return depth

    def depth(self) -> int:
        """Return the levels consumed on the longest path to the output."""
        return self.depths()[self.output]

    def evaluate(self, sample: Vector) -> dict[int, Vector]:
        """Compute every value for one flattened input or for several, (..., features), in the clear."""
        return self._evaluated([sample], {})[0]

    def _evaluated(self, parts: Sequence[Vector], joint: "Mapping[int, Joint]") -> list[dict[int, Vector]]:
        """Do the same for each of several parts, but return the least and the largest joint elements of some
        sums alone, of all parts together."""
        results = [dict[int, Vector]() for _ in parts]
        within = {number for each in joint.values() for number in each.inner}
        ends = np.cumsum([len(part) for part in parts])[:-1]
        for number, node in self.nodes.items():
            if number in joint and isinstance(node, Linear):
                left, right = (np.concatenate([each[n] for each in results]) for n in joint[number].factors)
                sums, *limits = joint[number].sums.apply(left, right)
                inner = dict(zip(joint[number].inner, limits, strict=True))
                for values, part in zip(results, np.split(sums + node.bias, ends), strict=True):
                    values |= {number: part, **inner}
            elif number not in within:
                for values, part in zip(results, parts, strict=True):
                    values[number] = _evaluate(node, part, values)
        return results

    def runs(self, samples: Vector) -> Iterator[tuple[slice, dict[int, Vector]]]:
        """Yield every value for many flattened inputs, (count, features), in chunks of `CHUNK_BYTES`: which
        inputs, and their values, infinite or not a number if they leave the floating-point range. Of joint
        elements that a sum alone reads, an array has the least and the largest, of a few chunks together. A
        process of several threads computes two chunks at a time."""
        each = 8 * sum(int(np.prod(node.shape, dtype=np.int64)) for node in self.nodes.values())
        count = max(CHUNK_BYTES // each, 1)
        chunks = [slice(n, min(n + count, len(samples))) for n in range(0, len(samples), count)]
        joint = joint_sums(self)
        together = max(TOGETHER // count, 1) if joint else 1

        def run(first: int) -> list[tuple[slice, dict[int, Vector]]]:
            part = chunks[first : first + together]
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                values = self._evaluated([samples[chunk] for chunk in part], joint)
            return list(zip(part, values, strict=True))

        firsts = range(0, len(chunks), together)
        # The values of one large input may be most of the memory of a compilation.
        alone = each > 2 * CHUNK_BYTES
        for group in map(run, firsts) if alone else worked_ahead(run, firsts):
            yield from group


def _evaluate(node: Node, sample: Vector, values: dict[int, Vector]) -> Vector:
    match node:
        case Input():
            return sample
        case Linear():
            terms = zip(node.operands, node.matrices, strict=True)
            total, *others = (matrix.apply(values[operand]) for operand, matrix in terms)
            for other in others:
                total += other
            total += node.bias
            return total
        case Shift():
            return values[node.operands[0]] + node.vector
        case Add():
            return values[node.operands[0]] + values[node.operands[1]]
        case Multiply():
            return values[node.operands[0]] * values[node.operands[1]]
        case Activation():
            return node.function(values[node.operands[0]])
        case Polynomial():
            return chebyshev(values[node.operands[0]], node.coefficients)


@dataclass(frozen=True, eq=False)
class Joint:
    """A sum of products. ``inner`` has the numbers of the product and of the maps that spread its factors,
    ``factors`` those of what they spread."""

    inner: tuple[int, int, int]
    factors: tuple[int, int]
    sums: JointSum


def joint_sums(graph: Graph) -> dict[int, Joint]:
    """Return the sums of products of which nothing else reads a part, by number."""
    consumers, results = graph.consumers(), {}

    def part(number: int) -> tuple[int, SparseMatrix, bool] | None:
        """Return the operand and the matrix of a map of one value, and whether it has a bias."""
        node = graph.nodes[number]
        if not isinstance(node, Linear) or len(node.operands) > 1:
            return None
        matrix = node.matrices[0]
        return (node.operands[0], matrix, bool(node.bias.any())) if isinstance(matrix, SparseMatrix) else None

    for number in graph.nodes:
        total = part(number)
        product = None if total is None else graph.nodes[total[0]]
        if total is None or not isinstance(product, Multiply):
            continue
        inner = total[0], *product.operands
        left, right = map(part, product.operands)
        alone = graph.output not in inner and all(len(consumers[each]) == 1 for each in inner)
        if alone and left is not None and right is not None and not (left[2] or right[2]):
            sums = JointSum.of(total[1], left[1], right[1])
            if sums is not None:
                results[number] = Joint(inner, (left[0], right[0]), sums)
    return results
