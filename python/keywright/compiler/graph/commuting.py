"""Equal graphs in which products and sums of a softmax stand in another order.

A softmax multiplies its exponentials by the inverse of their sum, and a product with values sums the results
over the row. The inverse is the same for all terms of that sum, and can multiply the sum instead, as in Rabe
and Staats (arXiv 2112.05682) and FlashAttention (arXiv 2205.14135). The product with the values then no
longer waits for the inverse, whose polynomial takes the most levels.

An inverse is computed once for each row and spread. The sum can instead be computed at every place that the
inverse is spread to; then nothing has to be spread, and the sum takes more rotations.

Both save levels on the longest path. Whether that is faster depends on bootstraps and rotations; the compiler
compares whole programs.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from keywright.program.arrays import Vector

from .convolution import Convolution, Matrix, product, product_entries
from .graph import Activation, Graph, Linear, Multiply, Node, Polynomial, operands, with_operands
from .simplify import simplify
from .sparse import Indices, SparseMatrix

FACTOR_LAST = "factor behind the sum"
SUMS_EVERYWHERE = "sums at every place"
MERGED = "merged"
"""What the labels of layers in these orders end in."""

MOST_MERGED = 1 << 13
"""Elements up to which maps around products of matrices are merged: beyond that, diagonals take too long."""

MAX_SPREAD_ENTRIES = 1 << 21
"""Entries of the largest matrix of sums at every place that is tried: it takes about a second."""


@dataclass(frozen=True, eq=False)
class Form:
    """An equal graph.

    Attributes:
        graph: in topological order.
        origin: for values that have the largest and the least element of a value of the first graph, the
            number of that value.
    """

    graph: Graph
    origin: Mapping[int, int]


def forms(graph: Graph) -> Iterator[Form]:
    """Yield the graph and equal ones that take fewer levels, each made from the one before it: with factors
    behind sums and sums at every place; and with all maps merged that products of matrices keep apart, unless
    they are large."""
    form = Form(graph, {number: number for number in graph.nodes})
    yield form
    for rule in (_with_a_factor_last, _with_a_sum_everywhere):
        form = _repeated(form, rule)
    if form.graph is not graph:
        yield form
    apart = [node for node in form.graph.nodes.values() if isinstance(node, Linear) and node.separate]
    sizes = [matrix.shape for node in apart for matrix in node.matrices]
    if sizes and max(map(max, sizes)) <= MOST_MERGED:
        nodes = {
            number: replace(node, separate=False, label=f"{node.label}, {MERGED}") if node in apart else node
            for number, node in form.graph.nodes.items()
        }
        yield Form(simplify(Graph(nodes, form.graph.output)), {})


def _repeated(form: Form, rule: Callable[[Graph], dict[int, int | None] | None]) -> Form:
    """Apply a rule to a graph that it changes until it does not apply. It returns for every value with
    another meaning an older value with the same range, or None."""
    graph = Graph(dict(form.graph.nodes), form.graph.output)
    while (changed := rule(graph)) is not None:
        same = {n: form.origin.get(old) for n, old in changed.items() if old is not None}
        kept = {n: old for n, old in form.origin.items() if n not in changed}
        known = kept | {n: old for n, old in same.items() if old is not None}
        order, graph = graph.topological_order(), graph.renumbered()
        form = Form(graph, {place: known[n] for place, n in enumerate(order) if n in known})
        graph = Graph(dict(graph.nodes), graph.output)
    return form


@dataclass(frozen=True, eq=False)
class _Shared:
    """A value that has an element of another one, times a constant, at each place.

    Attributes:
        source: the number of the other value.
        size: its elements.
        groups: the element at each place; -1 for none.
        factors: the constant at each place; 0 for none.
    """

    source: int
    size: int
    groups: Indices
    factors: Vector

    @staticmethod
    def read(node: Node, readers: list[int]) -> "_Shared | None":
        """Return what a node spreads, if it does nothing else and has one reader."""
        if not isinstance(node, Linear) or len(node.operands) != 1 or len(readers) != 1 or node.bias.any():
            return None
        matrix = node.matrices[0]
        if not isinstance(matrix, SparseMatrix) or matrix.shape[1] >= matrix.shape[0]:
            return None
        if matrix.row_counts().max(initial=0) > 1:
            return None
        groups, factors = np.full(matrix.shape[0], -1), np.zeros(matrix.shape[0])
        factors[matrix.rows] = matrix.values
        groups[matrix.rows] = np.where(matrix.values == 0, -1, matrix.columns)
        return _Shared(node.operands[0], matrix.shape[1], groups, factors)

    @property
    def matrix(self) -> SparseMatrix:
        """The map that spreads the other value."""
        places = np.flatnonzero(self.factors)
        shape = len(self.groups), self.size
        return SparseMatrix(shape, places, self.groups[places], self.factors[places])

    @property
    def filled(self) -> "_Shared":
        """The same with an element at every place, that of a place a multiple of ``size`` away if there is
        one: rows of products come last, so that it often is of the same row."""
        near, places = np.zeros(self.size, np.int64), np.arange(len(self.groups))
        near[places[self.groups >= 0] % self.size] = self.groups[self.groups >= 0]
        groups = np.where(self.groups >= 0, self.groups, near[places % self.size])
        return replace(self, groups=groups, factors=np.ones(len(groups)))

    def behind(self, matrix: Matrix) -> "tuple[SparseMatrix, _Shared] | None":
        """Return a map of the value without this factor, and the factor of its result; None if the terms of
        a sum have different ones, or weights, or if all are 0."""
        if not isinstance(matrix, SparseMatrix) or (matrix.values != matrix.values[:1]).any():
            return None
        kept = self.factors[matrix.columns] != 0
        if not kept.any():
            return None
        rows, columns = matrix.rows[kept], matrix.columns[kept]
        groups = np.full(matrix.shape[0], -1)
        groups[rows] = self.groups[columns]
        if (groups[rows] != self.groups[columns]).any():
            return None
        inner = SparseMatrix(matrix.shape, rows, columns, matrix.values[kept] * self.factors[columns])
        return inner, replace(self, groups=groups, factors=(groups >= 0).astype(np.float64))


def _with_a_factor_last(graph: Graph) -> dict[int, int | None] | None:
    """Move one factor that the terms of a sum share behind the sum."""
    consumers = graph.consumers()
    for number, node in graph.nodes.items():
        if isinstance(node, Multiply) and node.domain is None:
            for value, factor in (node.operands, node.operands[::-1]):
                shared = _Shared.read(graph.nodes[factor], consumers[factor])
                steps = [] if shared is None else list(_up_to_sums(graph, consumers, (number, value), shared))
                if steps:
                    return _factor_last(graph, steps, consumers)
    return None


_Step = tuple[int, Linear | Multiply, _Shared]
"""The number of a node, the node without the factor, and the factor of its result."""


def _up_to_sums(
    graph: Graph, consumers: Mapping[int, list[int]], at: tuple[int, int], shared: _Shared
) -> Iterator[_Step]:
    """Yield the nodes behind a product, up to the smallest sum of further products behind which its factor
    can stand; nothing if there is none.

    Args:
        at: numbers of the product, and of its other operand.
    """
    number, value = at
    steps: list[_Step] = []
    best, least, multiplied = 0, np.inf, False
    while len(consumers[number]) == 1 and number != graph.output:
        (reader,) = consumers[number]
        node, sums = graph.nodes[reader], False
        if isinstance(node, Multiply) and node.domain is None:
            first, second = node.operands
            node, multiplied = replace(node, operands=(value, second if first == number else first)), True
        elif isinstance(node, Linear) and len(node.operands) == 1 and not node.bias.any():
            matrix = node.matrices[0]
            moved = shared.behind(matrix)
            if moved is None:
                break
            (inner, shared), sums = moved, multiplied and bool(matrix.row_counts().max() > 1)
            node = replace(node, operands=(value,), matrices=(inner,))
        else:
            break
        steps.append((reader, node, shared))
        number = value = reader
        if sums and len(shared.groups) < least:
            best, least = len(steps), len(shared.groups)
    yield from steps[:best]


def _factor_last(
    graph: Graph, steps: list[_Step], consumers: Mapping[int, list[int]]
) -> dict[int, int | None]:
    last, node, shared = steps[-1]
    nothing, label = np.zeros(len(shared.groups)), f"{node.label}, {FACTOR_LAST}"
    readers = {reader: graph.nodes[reader] for reader in consumers[last]}
    graph.nodes.update((number, each) for number, each, _ in steps)
    spread = graph.add(Linear(node.shape, (shared.source,), (shared.matrix,), nothing, label=label))
    whole = graph.add(Multiply(node.shape, (last, spread), label))
    _read_instead(graph, readers, last, whole)
    changed: dict[int, int | None] = {number: None for number, _, _ in steps}
    return changed | {spread: shared.source, whole: last}


def _read_instead(graph: Graph, readers: Mapping[int, Node], old: int, new: int) -> None:
    """Let nodes read another value, and so the output."""
    for reader, node in readers.items():
        graph.nodes[reader] = with_operands(node, [new if o == old else o for o in operands(node)])
    if graph.output == old:
        graph.output = new


def _with_a_sum_everywhere(graph: Graph) -> dict[int, int | None] | None:
    """Compute one sum at every place that a function of it is spread to."""
    consumers = graph.consumers()
    for number, node in graph.nodes.items():
        shared = _Shared.read(node, consumers[number])
        if shared is not None and ((shared.factors == 1) | (shared.factors == 0)).all():
            chain = _down_to_sum(graph, consumers, shared.source)
            sums = graph.nodes[chain[-1]] if chain else None
            hidden = _hidden(graph, consumers, number, shared)
            if isinstance(sums, Linear) and hidden is not None:
                spread = shared.filled.matrix
                if product_entries(spread, sums.matrices[0]) <= MAX_SPREAD_ENTRIES:
                    graph.nodes.update(hidden)
                    masked = consumers[number] if hidden else []
                    return _sum_everywhere(graph, number, chain, spread) | dict.fromkeys(masked)
    return None


def _hidden(
    graph: Graph, consumers: Mapping[int, list[int]], number: int, shared: _Shared
) -> dict[int, Node] | None:
    """Return the readers of the product with a spread factor without the places where this is 0: a mask hides
    them. None if such readers are not linear maps."""
    if (shared.groups >= 0).all():
        return {}
    (multiplied,) = consumers[number]
    places = np.flatnonzero(shared.factors)
    kept = SparseMatrix((len(shared.groups),) * 2, places, places, np.ones(len(places)))
    results: dict[int, Node] = {}
    for reader in consumers[multiplied]:
        node = graph.nodes[reader]
        if not isinstance(node, Linear) or not isinstance(graph.nodes[multiplied], Multiply):
            return None
        matrices = tuple(
            matrix.explicit() @ kept if operand == multiplied else matrix
            for operand, matrix in zip(node.operands, node.matrices, strict=True)
        )
        results[reader] = replace(node, matrices=matrices)
    return results or None


def _down_to_sum(graph: Graph, consumers: Mapping[int, list[int]], number: int) -> list[int]:
    """Return the numbers of functions one of the other, the last of which is the value, and of the sum that
    the first one reads; nothing if others read them."""
    chain = [number]
    while len(consumers[chain[-1]]) == 1:
        node = graph.nodes[chain[-1]]
        if isinstance(node, Linear):
            return chain if len(node.operands) == 1 and len(chain) > 1 else []
        if not isinstance(node, Activation | Polynomial):
            break
        chain.append(node.operands[0])
    return []


def _sum_everywhere(
    graph: Graph, number: int, chain: list[int], spread: SparseMatrix
) -> dict[int, int | None]:
    shape, sums = graph.nodes[number].shape, graph.nodes[chain[-1]]
    assert isinstance(sums, Linear)
    graph.nodes[chain[-1]] = replace(
        sums,
        shape=shape,
        matrices=(_at_places(spread, sums.matrices[0]),),
        bias=spread.apply(sums.bias),
        label=f"{sums.label}, {SUMS_EVERYWHERE}",
    )
    for each in chain[:-1]:
        graph.nodes[each] = replace(graph.nodes[each], shape=shape)
    readers = {reader: node for reader, node in graph.nodes.items() if number in operands(node)}
    _read_instead(graph, readers, number, chain[0])
    return {}


def _at_places(spread: SparseMatrix, sums: Matrix) -> Matrix:
    """Return the product of a map that spreads all sums to equally many places with that of the sums. Sums
    with the same weights, of equally many elements, are one matrix for all rows."""
    count = sums.shape[0]
    if isinstance(sums, SparseMatrix) and sums.entries % count == 0 and spread.entries % count == 0:
        order, places = np.lexsort((sums.columns, sums.rows)), np.argsort(spread.columns, kind="stable")
        rows, weights = (each[order].reshape(count, -1) for each in (sums.rows, sums.values))
        columns, groups = sums.columns[order].reshape(count, -1), spread.columns[places].reshape(count, -1)
        whole = np.array_equal(np.sort(columns, axis=None), np.arange(sums.shape[1]))
        alike = all((each == np.arange(count)[:, None]).all() for each in (rows, groups))
        if whole and alike and (weights == weights[0]).all():
            kernel = np.tile(weights[0], (groups.shape[1], 1))
            return Convolution.everywhere(kernel, places.reshape(count, -1).T, columns.T)
    return product(spread, sums)
