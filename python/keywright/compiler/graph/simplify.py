"""Exact rewriting that saves levels: functions fused, linear maps merged, constants folded.

Each rule returns whether it changed the graph; `simplify` applies them until none does. What follows a change
in a chain is changed in the same pass: long chains take time by their length, not its square.
"""

from collections.abc import Iterator
from dataclasses import replace
from math import prod

import numpy as np

from keywright.compiler.limits import MAX_ENTRIES
from keywright.program.arrays import Vector

from .convolution import Matrix, product, product_entries, product_of_kernels, total
from .graph import Activation, Add, Graph, Linear, Multiply, Node, Polynomial, Shift, operands, with_operands
from .piecewise import Function, PiecewiseLinear, composed, summed
from .quadratics import complete_squares
from .sparse import SparseMatrix

MAX_FUSED = 256
"""Pieces or evaluations of functions of which a fused one may consist: both can double at every node."""

MERGE_GROWTH = 16
"""A merged map may have this many times the entries of its parts. Beyond that, the saved level costs too many
diagonals."""


SMALLEST = 2.0**-256
"""Factors of squares are above this and below its inverse, far within the range of floating point."""


def simplify(graph: Graph) -> Graph:
    """Return an equal graph that consumes as few levels as these rules reach, in topological order without
    dead nodes."""
    graph = _fuse_functions(graph.renumbered())
    graph = complete_squares(graph)
    rules = (_fold_shift, _fold_constant, _merge_linear, _sum_linear, _absorb_addition)
    while any(rule(graph) for rule in rules):
        graph = graph.in_order()
    return graph.renumbered()


def _fuse_functions(graph: Graph) -> Graph:
    """Fuse sums, products and compositions of elementwise functions of one value, such as x * sigmoid(x) or x
    (1 + tanh(x + x^3)), into one activation. Values with other readers are not fused if that would add
    activations."""
    options = [_fused(graph, across_shared).renumbered() for across_shared in (True, False)]
    return min(options, key=lambda g: sum(isinstance(node, Activation) for node in g.nodes.values()))


def _fused(graph: Graph, across_shared: bool) -> Graph:
    nodes = dict(graph.nodes)
    chains: dict[int, tuple[int, Function, Activation | None]] = {}
    consumers, costs = graph.consumers(), dict[int, int]()
    for number, node in graph.nodes.items():
        shared = any(chains[o][2] is not None and set(consumers[o]) != {number} for o in operands(node))
        costs[number] = 1 + sum(costs[operand] for operand in operands(node))
        pieces = prod(1 + len(each.kinks) for each in _piecewise(node, chains))
        apart = (shared and not across_shared) or max(costs[number], pieces) > MAX_FUSED
        chain = None if apart else _chain(node, chains)
        chains[number] = chain or (number, PiecewiseLinear(), None)
        if isinstance(chains[number][1], PiecewiseLinear):
            costs[number] = 1
        if chain is not None and chain[2] is not None:
            nodes[number] = replace(chain[2], operands=(chain[0],), function=chain[1])
    return Graph(nodes, graph.output)


def _piecewise(
    node: Node, chains: dict[int, tuple[int, Function, Activation | None]]
) -> Iterator[PiecewiseLinear]:
    """Yield the piecewise linear functions that are composed at a node."""
    for function in [getattr(node, "function", None), *(chains[operand][1] for operand in operands(node))]:
        if isinstance(function, PiecewiseLinear):
            yield function


def _chain(
    node: Node, chains: dict[int, tuple[int, Function, Activation | None]]
) -> tuple[int, Function, Activation | None] | None:
    """If a node is an elementwise function of one value, return that value, the function, and the first
    activation inside (None for a polynomial)."""
    match node:
        case Activation(operands=(source,), function=outer):
            base, inner, first = chains[source]
            if node.positive and _rises(inner):
                return base, composed(outer, inner), node
            if first is None and (node.positive or _kinked(outer, inner)):
                return source, outer, node
            return base, composed(outer, inner), first or node
        case Linear(operands=(source,), matrices=(matrix,), bias=bias):
            factor = matrix.scalar()
            if factor is None or (bias != bias[0]).any():
                return None
            base, inner, first = chains[source]
            return base, composed(PiecewiseLinear(factor, float(bias[0])), inner), first
        case Shift(operands=(source,), vector=vector):
            if (vector != vector[0]).any():
                return None
            base, inner, first = chains[source]
            return base, composed(PiecewiseLinear(1.0, float(vector[0])), inner), first
        case Multiply(operands=(left, right)) | Add(operands=(left, right)):
            base, f, first = chains[left]
            other, g, second = chains[right]
            if base != other:
                return None
            if isinstance(node, Multiply):
                both = composed(np.square, f) if left == right else lambda x: f(x) * g(x)
                return base, both, first or second
            return base, summed(f, g), first or second
        case _:
            return None


def _rises(inner: Function) -> bool:
    """Whether a function of positive values is affine and rising: a factor, or max(x, 0) + c."""
    if not isinstance(inner, PiecewiseLinear):
        return False
    if not inner.kinks:
        return inner.slope > 0 and inner.offset == 0
    bends = sum(bend for _, bend in inner.kinks)
    flat = len(inner.kinks) == 1 and inner.kinks[0][0] == 0 and inner.slope == bends
    return flat and bends > 0 and inner.offset >= 0


def _kinked(outer: Function, inner: Function) -> bool:
    """Whether fusing would lose a piecewise linear function: ``outer`` after a polynomial."""
    return isinstance(outer, PiecewiseLinear) and not isinstance(inner, PiecewiseLinear)


def _fold_shift(graph: Graph) -> bool:
    """Absorb a constant before or after a linear map into its bias, and merge two constants."""
    consumers, changed = graph.consumers(), False
    for number in graph.nodes:
        while (folded := _with_shift(graph, number, consumers)) is not None:
            graph.nodes[number], changed = folded, True
    return changed


def _with_shift(graph: Graph, number: int, consumers: dict[int, list[int]]) -> Node | None:
    """Return a node that has absorbed a constant before it; None if there is none."""
    match graph.nodes[number]:
        case Linear() as node:
            for index, operand in enumerate(node.operands):
                source = graph.nodes[operand]
                if isinstance(source, Shift):
                    bias = node.bias + node.matrices[index].apply(source.vector)
                    new = [*node.operands[:index], source.operands[0], *node.operands[index + 1 :]]
                    return replace(node, bias=bias, operands=tuple(new))
        case Shift(operands=(operand,), vector=vector):
            source = graph.nodes[operand]
            if isinstance(source, Linear) and len(consumers[operand]) == 1:
                return replace(source, bias=source.bias + vector, shape=source.shape)
            if isinstance(source, Shift):
                return replace(source, vector=source.vector + vector)
    return None


def _fold_constant(graph: Graph) -> bool:
    """Multiply by a constant, as a stored statistic is, in a linear map; a map of a constant is one, too."""
    changed = False
    for number, node in graph.nodes.items():
        if isinstance(node, Multiply):
            for factor, other in (node.operands, node.operands[::-1]):
                if (values := _constant(graph.nodes[factor])) is not None:
                    matrix = SparseMatrix.diagonal(values)
                    nothing = np.zeros(len(values))
                    graph.nodes[number] = Linear(node.shape, (other,), (matrix,), nothing, label=node.label)
                    changed = True
                    break
        elif isinstance(node, Linear) and len(node.operands) == 1 and node.matrices[0].entries:
            inner = graph.nodes[node.operands[0]]
            if (values := _constant(inner)) is not None:
                places = np.zeros(0, np.int64)
                matrix = SparseMatrix(node.matrices[0].shape, places, places, np.zeros(0))
                bias = node.bias + node.matrices[0].apply(values)
                graph.nodes[number] = replace(node, matrices=(matrix,), bias=bias)
                changed = True
    return changed


def _constant(node: Node) -> Vector | None:
    """Return the value of a linear map without entries."""
    if isinstance(node, Linear) and not any(matrix.entries for matrix in node.matrices):
        return node.bias
    return None


def _merge_linear(graph: Graph) -> bool:
    """Multiply a linear map that only linear maps read into them."""
    consumers, changed = graph.consumers(), False
    for number, inner in graph.nodes.items():
        readers = consumers[number]
        if not isinstance(inner, Linear) or inner.separate or number == graph.output or not readers:
            continue
        if all(_can_merge(graph.nodes[reader], number, inner) for reader in readers):
            for reader in set(readers):
                outer = graph.nodes[reader]
                if isinstance(outer, Linear):
                    graph.nodes[reader] = _merged(outer, number, inner)
            if any(isinstance(graph.nodes[operand], Linear) for operand in inner.operands):
                return True  # it may merge into the new readers
            changed = True
    return changed


def _can_merge(outer: Node, number: int, inner: Linear) -> bool:
    if not isinstance(outer, Linear):
        return False
    for operand, matrix in zip(outer.operands, outer.matrices, strict=True):
        if operand == number:
            parts = matrix.entries + sum(m.entries for m in inner.matrices)
            terms = [product_entries(matrix, m) for m in inner.matrices]
            if sum(terms) > MERGE_GROWTH * parts:
                return False
            # A kernel may stand for more entries; whether the product is one is known once it is built.
            if max(matrix.entries, sum(terms), *(m.entries for m in inner.matrices)) > MAX_ENTRIES and any(
                product_of_kernels(matrix, m) is None for m in inner.matrices
            ):
                return False
    return True


def _merged(outer: Linear, number: int, inner: Linear) -> Linear:
    bias = outer.bias.copy()
    terms: list[tuple[int, Matrix]] = []
    for operand, matrix in zip(outer.operands, outer.matrices, strict=True):
        if operand == number:
            bias += matrix.apply(inner.bias)
            terms += [(o, product(matrix, m)) for o, m in zip(inner.operands, inner.matrices, strict=True)]
        else:
            terms.append((operand, matrix))
    rows, columns = (one * other for one, other in zip(outer.stride, inner.stride, strict=True))
    return _linear((outer, inner), bias, terms, (rows, columns))


def _linear(
    parts: tuple[Linear, Linear], bias: Vector, terms: list[tuple[int, Matrix]], stride: tuple[int, int]
) -> Linear:
    """Return the sum of matrix times operand over the terms, with one matrix per operand. It has the first
    part's shape, and the label of the part with more weights."""
    sums: dict[int, Matrix] = {}
    for operand, matrix in terms:
        sums[operand] = total(sums[operand], matrix) if operand in sums else matrix
    label = max(parts, key=lambda part: sum(matrix.entries for matrix in part.matrices)).label
    separate = parts[0].separate
    return Linear(parts[0].shape, tuple(sums), tuple(sums.values()), bias, stride, label, separate)


def _sum_linear(graph: Graph) -> bool:
    """Merge the sum of two linear maps that nothing else reads into one linear map of both operands."""
    consumers = graph.consumers()
    for number, node in graph.nodes.items():
        if not isinstance(node, Add):
            continue
        left, right = (graph.nodes[operand] for operand in node.operands)
        single = all(len(set(consumers[operand])) == 1 for operand in node.operands)
        if single and isinstance(left, Linear) and isinstance(right, Linear):
            terms = [
                *zip(left.operands, left.matrices, strict=True),
                *zip(right.operands, right.matrices, strict=True),
            ]
            stride = max(left.stride, right.stride, key=prod)
            graph.nodes[number] = _linear((left, right), left.bias + right.bias, terms, stride)
            return True
    return False


def _absorb_addition(graph: Graph) -> bool:
    """Merge the sum of a linear map that nothing else reads and a value that is ready a level before it into
    one linear map of both. A shortcut then takes one diagonal, and its scaling merges into its readers."""
    consumers, depths = graph.consumers(), graph.depths()
    for number, node in graph.nodes.items():
        if not isinstance(node, Add):
            continue
        for linear, other in (node.operands, node.operands[::-1]):
            branch = graph.nodes[linear]
            single = consumers[linear] == [number]
            if single and isinstance(branch, Linear) and depths[other] < depths[linear]:
                identity = SparseMatrix.diagonal(np.ones(len(branch.bias)))
                shortcut = Linear(node.shape, (other,), (identity,), np.zeros(len(branch.bias)))
                terms = [*zip(branch.operands, branch.matrices, strict=True), (other, identity)]
                joined = _linear((branch, shortcut), branch.bias, terms, branch.stride)
                graph.nodes[number] = replace(joined, shape=node.shape)
                return True
    return False


def scale_value(graph: Graph, number: int, factor: float, reader: int | None) -> dict[int, float]:
    """Multiply a value by a constant without spending a level, if its producer and all its readers but one
    allow it.

    The producer takes the factor into its weights. Other readers must be linear maps, which take the inverse,
    or products and shifts with such maps behind them.

    Args:
        reader: the node that asks for the factor; None if it is the reader of the output.

    Returns:
        The factor of every changed value; empty, with an unchanged graph, if it is not allowed.
    """
    scaling = _Scaling(graph)
    if not scaling.scale(number, factor, set() if reader is None else {reader}):
        return {}
    graph.nodes.update(scaling.changes)
    return scaling.factors


def shift_input(graph: Graph, offset: Vector, scale: Vector) -> Graph:
    """Return the graph of the same function for an input ``(x - offset) / scale``.

    Linear maps that read the input take the constants into weights and biases. Other readers get a linear
    map; it merges into linear maps behind it or takes a level.

    Args:
        offset, scale: of every element of the input.
    """
    result = Graph(dict(graph.nodes), graph.output)
    source, others = graph.source, []
    for number, node in graph.nodes.items():
        if isinstance(node, Linear) and source in node.operands:
            read = [operand == source for operand in node.operands]
            inner = [matrix for matrix, mine in zip(node.matrices, read, strict=True) if mine]
            result.nodes[number] = replace(
                node,
                matrices=tuple(
                    matrix.scaled(columns=scale) if mine else matrix
                    for matrix, mine in zip(node.matrices, read, strict=True)
                ),
                bias=node.bias + sum(matrix.apply(offset) for matrix in inner),
            )
        elif source in operands(node):
            others.append(number)
    if not others and graph.output != source:
        return result
    whole = result.add(Linear(graph.nodes[source].shape, (source,), (SparseMatrix.diagonal(scale),), offset))
    for number in others:
        node = result.nodes[number]
        result.nodes[number] = with_operands(
            node, [whole if operand == source else operand for operand in operands(node)]
        )
    if graph.output == source:
        result.output = whole
    return simplify(result.renumbered())


def shift_output(graph: Graph, offset: Vector, scale: Vector) -> Graph:
    """Return the graph of ``(y - offset) / scale`` for its output y, elementwise. A linear map at the end
    takes the constants; behind others a linear map takes a level."""
    result = Graph(dict(graph.nodes), graph.output)
    last = result.nodes[graph.output]
    if isinstance(last, Linear) and not graph.consumers()[graph.output]:
        matrices = tuple(matrix.scaled(rows=1 / scale) for matrix in last.matrices)
        result.nodes[graph.output] = replace(last, matrices=matrices, bias=(last.bias - offset) / scale)
        return result
    matrix = SparseMatrix.diagonal(1 / scale)
    result.output = result.add(Linear(last.shape, (graph.output,), (matrix,), -offset / scale))
    return simplify(result.renumbered())


def absorbs_shifts(graph: Graph) -> bool:
    """Whether linear maps take all constants of `shift_input` and `shift_output`, which then change no value
    but the input and the output, and no numbers of values."""
    consumers = graph.consumers()
    ends = (*consumers[graph.source], graph.output)
    return all(isinstance(graph.nodes[number], Linear) for number in ends) and not consumers[graph.output]


class _Scaling:
    """Nodes that take a factor, until it is known whether all can."""

    def __init__(self, graph: Graph) -> None:
        self.graph, self.consumers = graph, graph.consumers()
        self.changes: dict[int, Node] = {}
        self.factors: dict[int, float] = {}

    def scale(self, number: int, factor: float, readers: set[int]) -> bool:
        """Whether a value can be scaled; ``readers`` ask for it and are not changed."""
        if number == self.graph.output and readers:
            return False
        if not all(self._read(other, number, factor) for other in set(self.consumers[number]) - readers):
            return False
        self.factors[number] = self.factors.get(number, 1.0) * factor
        return self._produce(number, factor)

    def _read(self, reader: int, number: int, factor: float) -> bool:
        """Whether a reader of a scaled value can take the inverse factor, or pass the factor on to its own
        readers."""
        node = self.changes.get(reader, self.graph.nodes[reader])
        match node:
            case Linear():
                matrices = tuple(
                    m.scaled(1.0 / factor) if o == number else m
                    for o, m in zip(node.operands, node.matrices, strict=True)
                )
                self.changes[reader] = replace(node, matrices=matrices)
                return True
            case Shift():
                self.changes[reader] = replace(node, vector=node.vector * factor)
            case Multiply(operands=(left, right), domain=None):
                if left == right:
                    if not SMALLEST < abs(factor) < 1 / SMALLEST:
                        return False
                    factor = factor**2
            case _:
                return False
        if reader == self.graph.output:
            return False
        self.factors[reader] = self.factors.get(reader, 1.0) * factor
        return all(self._read(other, reader, factor) for other in set(self.consumers[reader]))

    def _produce(self, number: int, factor: float) -> bool:
        """Whether a node, or what it reads, can take the factor."""
        node = self.changes.get(number, self.graph.nodes[number])
        match node:
            case Linear():
                scaled = tuple(matrix.scaled(factor) for matrix in node.matrices)
                self.changes[number] = replace(node, matrices=scaled, bias=node.bias * factor)
                return True
            case Polynomial():
                self.changes[number] = replace(node, coefficients=node.coefficients * factor)
                return True
            case Shift():
                self.changes[number] = replace(node, vector=node.vector * factor)
                return self.scale(node.operands[0], factor, {number})
            case Multiply(operands=(left, right), domain=domain):
                if factor <= 0:
                    return False
                root = factor**0.5 if left == right else factor
                if domain is not None:
                    self.changes[number] = replace(node, domain=domain.scaled(root))
                return self.scale(left, root, {number})
            case Add(operands=(left, right)):
                return left != right and all(self.scale(o, factor, {number}) for o in (left, right))
            case _:
                return False
