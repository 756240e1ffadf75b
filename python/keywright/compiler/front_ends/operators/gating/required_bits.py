"""Which elements of the input a graph reads as bits: those of which it computes something else than the
model if they are no bits."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from keywright.compiler.graph.graph import Graph, Input, Linear, operands
from keywright.compiler.graph.sparse import Indices

Elements = dict[int, NDArray[np.bool_]]
"""Which elements of each value, by its number."""


def required_bits(graph: Graph, relied: Iterable[int], folded: Iterable[int] = ()) -> Indices:
    """Return the numbers of the elements of the input that have to be 0 or 1.

    Args:
        relied: numbers of the values that are read as bits. Of these, the elements count that the graph's
            output depends on.
        folded: numbers of values that are read as bits where the result is one constant: all their elements
            count, though no output depends on them.
    """
    whole = {number for number in folded if number in graph.nodes}
    read = {number: None for number in [*relied, *whole] if number in graph.nodes}
    source = next((number for number, node in graph.nodes.items() if isinstance(node, Input)), None)
    if not read or source is None or graph.output < 0:
        return np.zeros(0, np.int64)
    used = _reached(graph, {graph.output: np.ones(_size(graph, graph.output), np.bool_)})
    starts = {number: used[number] for number in read if number in used}
    starts |= {number: np.ones(_size(graph, number), np.bool_) for number in whole}
    elements = _reached(graph, starts).get(source, np.zeros(0, np.bool_))
    return np.flatnonzero(elements)


def _reached(graph: Graph, starts: Elements) -> Elements:
    """Return the elements from which some elements are computed, these included."""
    outcome = {number: elements.copy() for number, elements in starts.items()}
    for number in sorted(graph.nodes, reverse=True):
        elements = outcome.get(number)
        if elements is None:
            continue
        node = graph.nodes[number]
        for place, operand in enumerate(operands(node)):
            own = outcome.setdefault(operand, np.zeros(_size(graph, operand), np.bool_))
            if isinstance(node, Linear):
                own |= node.matrices[place].column_counts(elements) > 0
            else:
                own |= elements
    return outcome


def _size(graph: Graph, number: int) -> int:
    return int(np.prod(graph.nodes[number].shape, dtype=np.int64))
