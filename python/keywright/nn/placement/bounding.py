"""Values brought to at most 1 without a level, so that they can be bootstrapped."""

import numpy as np

from keywright.nn.graph.graph import Graph, Linear, Multiply, Node, Polynomial
from keywright.nn.graph.simplify import scale_value
from keywright.nn.graph.sparse import Vector

TARGET = 1 - 2.0**-30
"""Largest value aimed at: below 1 by more than rounding."""


def bound_values(graph: Graph, samples: Vector, headroom: float) -> dict[int, float]:
    """Scale values of a graph so that ``headroom`` times what samples drive into them is at most 1.

    A factor goes into the weights that make a value, and its inverse into those that read it; see
    `scale_value`. Values that allow no factor keep theirs.

    Args:
        samples: (count, features), flattened inputs; at least one.
        headroom: how many times the samples' values a value may reach; its square for products.

    Returns:
        ``headroom`` (or its square) times the largest absolute value seen at each node of the changed graph;
        infinite where samples drive it out of the finite numbers.
    """
    before = _largest(graph, samples)
    for number, node in list(graph.nodes.items()):
        largest = _reach(node, headroom) * before[number]
        scalable = number != graph.output and isinstance(node, Linear | Multiply | Polynomial)
        if scalable and 0 < largest < float("inf"):
            scale_value(graph, number, TARGET / largest, reader=None)
    # A factor of a product's operand changes what was scaled before it, so all values are measured again.
    after = _largest(graph, samples)
    return {number: _reach(node, headroom) * after[number] for number, node in graph.nodes.items()}


def _reach(node: Node, headroom: float) -> float:
    """A product reaches further than its operands."""
    return headroom**2 if isinstance(node, Multiply) else headroom


def _largest(graph: Graph, samples: Vector) -> dict[int, float]:
    largest = dict.fromkeys(graph.nodes, 0.0)
    for sample in samples:
        with np.errstate(over="ignore", invalid="ignore"):
            values = graph.evaluate(sample)
        for number, entries in values.items():
            peak = float(np.abs(entries).max())
            largest[number] = max(largest[number], peak if np.isfinite(peak) else float("inf"))
    return largest
