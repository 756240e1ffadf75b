"""Scales values to at most 1 without a level, so that they can be bootstrapped."""

from collections.abc import Iterable, Mapping

import numpy as np

from keywright.compiler.graph.graph import Graph, Linear, Multiply, Node, Polynomial
from keywright.compiler.graph.simplify import scale_value
from keywright.program.arrays import Vector

TARGET = 1 - 2.0**-30
"""Target of the largest value: below 1 by more than rounding."""


def bound_values(graph: Graph, largest: Mapping[int, float], headroom: float) -> dict[int, float]:
    """Scale values of a graph so that ``headroom`` times their values on the samples is at most 1.

    A factor goes into the weights that make a value, and its inverse into those that read it; see
    `scale_value`. Values that allow no factor keep theirs.

    Args:
        largest: result of `largest_values` on the unchanged graph.
        headroom: factor by which a value may exceed the samples' values; squared for products.

    Returns:
        ``headroom`` (or its square) times the largest absolute value at each node of the changed graph;
            infinite if samples
        drive it to infinity. For operands of polynomials it is 1 or the largest value: a polynomial is not
            valid beyond.
    """
    scaled = dict(largest)
    for number, node in list(graph.nodes.items()):
        reach = _reach(node, headroom) * scaled[number]
        scalable = number != graph.output and isinstance(node, Linear | Multiply | Polynomial)
        if scalable and 0 < reach < float("inf"):
            for value, factor in scale_value(graph, number, TARGET / reach, reader=None).items():
                scaled[value] *= factor
    reached = {number: _reach(node, headroom) * scaled[number] for number, node in graph.nodes.items()}
    return reached | {number: max(scaled[number], 1.0) for number in _arguments(graph)}


def _arguments(graph: Graph) -> set[int]:
    """Return the operands of polynomials, whose range is [-1, 1]."""
    return {node.operands[0] for node in graph.nodes.values() if isinstance(node, Polynomial)}


def _reach(node: Node, headroom: float) -> float:
    """Return the headroom of a node: a product exceeds more than its operands."""
    return headroom**2 if isinstance(node, Multiply) else headroom


def largest_values(graph: Graph, samples: Vector) -> dict[int, float]:
    """Return the first result of `largest_and_outputs`, of flattened inputs, (count, features)."""
    return largest_and_outputs(graph, graph.runs(samples))[0]


def largest_and_outputs(
    graph: Graph, runs: Iterable[tuple[slice, Mapping[int, Vector]]]
) -> tuple[dict[int, float], Vector]:
    """Return the largest absolute value of every node in its runs (`Graph.runs`), infinite if one is not
    finite, 0 without any; and the outputs, (count, outputs)."""
    largest = dict.fromkeys(graph.nodes, 0.0)
    outputs = []
    for _, values in runs:
        outputs.append(values[graph.output])
        for number, entries in values.items():
            peak = max(float(entries.max()), -float(entries.min()))
            largest[number] = max(largest[number], peak if np.isfinite(peak) else float("inf"))
    return largest, np.concatenate(outputs) if outputs else np.empty((0, 0))
