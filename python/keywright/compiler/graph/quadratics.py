"""Rewrites quadratic functions such as c2 * x * x + c1 * x + c0 as one square.

This takes one level instead of two, and following layers read one value instead of x and its square.
"""

import math
from dataclasses import dataclass

import numpy as np

from keywright.program.arrays import Vector

from .graph import Add, Domain, Graph, Linear, Multiply, Node, Shift
from .sparse import SparseMatrix

MAX_VERTEX = 1e6
"""A quadratic whose vertex is farther from zero is not rewritten: cancellation would lose too much of the
linear part."""


@dataclass(frozen=True, eq=False)
class _Quadratic:
    """c0 + c1 * x + c2 * x^2 of the value ``base``, with a coefficient for each element, or one for all."""

    base: int
    c0: Vector
    c1: Vector
    c2: Vector

    @property
    def square(self) -> bool:
        """Whether there is a square at all."""
        return bool(self.c2.any())


def complete_squares(graph: Graph) -> Graph:
    """Return an equal graph in which c2 x^2 + c1 x + c0, summed from several values, is c2 (x + c1 / 2 c2)^2
    + c."""
    forms: dict[int, _Quadratic] = {}
    nodes = dict(graph.nodes)
    result = Graph(nodes, graph.output)
    for number, node in graph.nodes.items():
        form = _form(node, forms)
        if form is None:
            form = _Quadratic(number, np.zeros(()), np.ones(()), np.zeros(()))
        elif isinstance(node, Add) and form.square and form.c1.any() and (form.c2 != 0).all():
            vertex = form.c1 / (2 * form.c2)
            if np.abs(vertex).max() <= MAX_VERTEX:
                nodes[number] = _completed(result, node, form, vertex, _label(graph, node))
        forms[number] = form
    return result.renumbered()


def _label(graph: Graph, node: Add) -> str:
    parts = [graph.nodes[operand] for operand in node.operands]
    return next((part.label for part in parts if isinstance(part, Multiply | Linear)), "")


def _completed(graph: Graph, node: Add, form: _Quadratic, vertex: Vector, label: str) -> Linear:
    def each(coefficient: Vector) -> Vector:
        return np.broadcast_to(coefficient, math.prod(node.shape)).copy()

    shifted = graph.add(Shift(node.shape, (form.base,), each(vertex)))
    square = graph.add(Multiply(node.shape, (shifted, shifted), label))
    rest = each(form.c0 - form.c2 * vertex**2)
    return Linear(node.shape, (square,), (SparseMatrix.diagonal(each(form.c2)),), rest, label=label)


def _form(node: Node, forms: dict[int, _Quadratic]) -> _Quadratic | None:
    """Return a node as an elementwise function of degree at most 2 of one value, if it is one."""
    match node:
        case Multiply(domain=Domain()):
            return None  # an approximation, whose argument has a range: another square would lose it
        case Shift(operands=(source,), vector=vector):
            form = forms[source]
            return _Quadratic(form.base, form.c0 + vector, form.c1, form.c2)
        case Linear(operands=(source,), matrices=(SparseMatrix() as matrix,), bias=bias) if (
            matrix.is_diagonal()
        ):
            form, factor = forms[source], matrix.values
            return _Quadratic(form.base, form.c0 * factor + bias, form.c1 * factor, form.c2 * factor)
        case Add(operands=(left, right)) | Multiply(operands=(left, right)):
            f, g = forms[left], forms[right]
            if f.base != g.base:
                return None
            if isinstance(node, Add):
                return _Quadratic(f.base, f.c0 + g.c0, f.c1 + g.c1, f.c2 + g.c2)
            if f.square or g.square:
                return None
            return _Quadratic(f.base, f.c0 * g.c0, f.c0 * g.c1 + f.c1 * g.c0, f.c1 * g.c1)
        case _:
            return None
