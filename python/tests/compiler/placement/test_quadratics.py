"""Rewriting that preserves values: squares completed, shortcuts absorbed, values scaled for bootstraps."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import numpy as np
import onnx
import pytest
from keywright import compiler
from keywright.compiler.graph.graph import Add, Graph, Input, Linear, Multiply, Polynomial, Shift
from keywright.compiler.graph.quadratics import complete_squares
from keywright.compiler.graph.simplify import simplify
from keywright.compiler.graph.sparse import SparseMatrix
from keywright.compiler.placement.bounding import bound_values, largest_values
from onnx import helper

Build = Callable[..., onnx.ModelProto]
SIZE = 6


def diagonal(values: np.ndarray, source: int, bias: float = 0.0) -> Linear:
    return Linear((SIZE,), (source,), (SparseMatrix.diagonal(values),), np.full(SIZE, bias))


def quadratic(c1: np.ndarray, c2: np.ndarray) -> Graph:
    """c2 x x + c1 x + 0.25, written out, behind an input."""
    graph = Graph()
    x = graph.add(Input((SIZE,)))
    square = graph.add(Multiply((SIZE,), (x, x)))
    terms = graph.add(diagonal(c2, square)), graph.add(diagonal(c1, x, 0.125))
    total = graph.add(Add((SIZE,), terms))
    graph.output = graph.add(Shift((SIZE,), (total,), np.full(SIZE, 0.125)))
    return graph


def kinds(graph: Graph) -> list[str]:
    return [type(node).__name__ for node in graph.nodes.values()]


@pytest.mark.parametrize("seed", range(5))
def test_a_square_is_completed(seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph = quadratic(rng.normal(size=SIZE), rng.choice([-1, 1], SIZE) * rng.uniform(0.1, 1, SIZE))
    done = simplify(graph)
    assert kinds(done).count("Multiply") == 1
    assert "Add" not in kinds(done)
    for x in (np.zeros(SIZE), np.ones(SIZE), rng.normal(size=SIZE)):
        expected = graph.evaluate(x)[graph.output]
        # Vertices are below 50 here, so squares are below 2600 and each is rounded once or twice.
        assert np.abs(done.evaluate(x)[done.output] - expected).max() <= 2600 * 8 * 2**-52


def test_a_square_of_equal_coefficients_is_completed() -> None:
    graph = Graph()
    x = graph.add(Input((SIZE,)))
    graph.output = graph.add(Add((SIZE,), (graph.add(Multiply((SIZE,), (x, x))), x)))
    done = complete_squares(graph)
    assert kinds(done) == ["Input", "Shift", "Multiply", "Linear"]
    values = np.linspace(-1, 1, SIZE)
    assert np.abs(done.evaluate(values)[done.output] - values * (values + 1)).max() <= 2**-50


def test_what_is_no_quadratic_takes_no_memory_for_each_element() -> None:
    """A model of a few bytes can have hundreds of values of millions of elements."""
    graph, shape = Graph(), (1 << 22,)
    value = graph.add(Input(shape))
    for _ in range(100):
        value = graph.add(Polynomial(shape, (value,), np.array([0.0, 0.0, 0.0, 1.0])))
    graph.output = value
    tracemalloc.start()
    complete_squares(graph)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * shape[0]


@pytest.mark.parametrize("c2", [np.zeros(SIZE), np.r_[0.0, np.ones(SIZE - 1)], np.full(SIZE, 1e-9)])
def test_what_has_no_vertex_nearby_is_left(c2: np.ndarray) -> None:
    graph = quadratic(np.ones(SIZE), c2)
    assert kinds(complete_squares(graph)) == kinds(graph.renumbered())


def test_a_square_without_a_linear_part_is_left() -> None:
    graph = quadratic(np.zeros(SIZE), np.ones(SIZE))
    assert kinds(complete_squares(graph)) == kinds(graph.renumbered())


def test_a_model_that_writes_a_quadratic_out_takes_one_level(build: Build) -> None:
    node = helper.make_node
    model = build(
        [
            node("MatMul", ["x", "w"], ["h"]),
            node("Mul", ["h", "h"], ["s"]),
            node("Mul", ["s", "two"], ["d"]),
            node("Add", ["d", "h"], ["q"]),
            node("MatMul", ["q", "w"], ["y"]),
        ],
        (4,),
        {"w": np.tri(4, dtype=np.float32), "two": np.asarray([1, 2, 3, 4], np.float32)},
    )
    program = compiler.compile_program(model, compiler.Target(slots=4, levels=9))
    assert program.depth == 3
    x = np.random.default_rng(1).normal(size=(10, 4))
    assert compiler.check(program, x, model).max_abs_error < 1e-3


def residual(rng: np.random.Generator) -> Graph:
    """A square beside a shortcut from before it, and a last matrix."""
    graph = Graph()
    x = graph.add(Input((SIZE,)))
    dense = [SparseMatrix.from_dense(rng.normal(size=(SIZE, SIZE))) for _ in range(4)]

    def linear(source: int, index: int) -> int:
        return graph.add(Linear((SIZE,), (source,), (dense[index],), rng.normal(size=SIZE)))

    first = linear(x, 0)
    start = graph.add(Multiply((SIZE,), (first, first)))
    inner = linear(start, 1)
    square = graph.add(Multiply((SIZE,), (inner, inner)))
    total = graph.add(Add((SIZE,), (linear(square, 2), start)))
    outer = graph.add(Multiply((SIZE,), (total, total)))
    graph.output = linear(outer, 3)
    return graph


def test_a_shortcut_becomes_part_of_the_layer_it_is_added_to() -> None:
    rng = np.random.default_rng(2)
    graph = residual(rng)
    done = simplify(graph)
    assert "Add" not in kinds(done)
    assert done.depth() == graph.depth()
    x = rng.normal(size=SIZE)
    expected = graph.evaluate(x)[graph.output]
    assert np.allclose(done.evaluate(x)[done.output], expected, rtol=1e-12, atol=0)


def test_values_are_brought_to_at_most_one() -> None:
    rng = np.random.default_rng(3)
    graph = simplify(residual(rng))
    samples = rng.normal(size=(20, SIZE))
    expected = [graph.evaluate(sample)[graph.output] for sample in samples]
    bounds = bound_values(graph, largest_values(graph, samples), 2.0)
    for number in set(graph.nodes) - {0, graph.output}:
        assert 0.1 < bounds[number] <= 1
        peak = max(np.abs(graph.evaluate(sample)[number]).max() for sample in samples)
        # Bounds follow the factors: each factor rounds, and so does each value that is measured again.
        assert 2 * peak <= bounds[number] * (1 + 2.0**-40)
    for sample, values in zip(samples, expected, strict=True):
        assert np.allclose(graph.evaluate(sample)[graph.output], values, rtol=1e-10, atol=0)


def test_a_value_that_overflows_has_no_bound() -> None:
    graph = simplify(residual(np.random.default_rng(4)))
    bounds = bound_values(graph, largest_values(graph, np.full((1, SIZE), 1e200)), 2.0)
    assert bounds[graph.output] == np.inf


def test_products_with_diagonals_are_those_of_dense_matrices() -> None:
    rng = np.random.default_rng(5)
    matrix = SparseMatrix.from_dense(rng.normal(size=(4, 3)) * (rng.uniform(size=(4, 3)) < 0.7))
    left, right = (SparseMatrix.diagonal(rng.normal(size=size)) for size in (4, 3))

    def dense(sparse: SparseMatrix) -> np.ndarray:
        return np.asarray([sparse.apply(unit) for unit in np.eye(sparse.shape[1])]).T

    assert np.allclose(dense(left @ matrix), dense(left) @ dense(matrix), rtol=1e-15)
    assert np.allclose(dense(matrix @ right), dense(matrix) @ dense(right), rtol=1e-15)
    rows, columns = np.asarray([0, 1, 1]), np.asarray([1, 0, 2])
    distinct = SparseMatrix.from_distinct((2, 3), rows, columns, np.asarray([1.0, 0.0, 2.0]))
    assert len(distinct.values) == 2
    assert np.array_equal(dense(distinct), [[0, 1, 0], [0, 0, 2]])
