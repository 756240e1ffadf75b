"""Runs of a model on samples, and work on the next item while one is used."""

from __future__ import annotations

from collections.abc import Iterator

import keywright as kw
import numpy as np
import pytest
from keywright.compiler.graph import graph as graphs
from keywright.compiler.graph.graph import Graph, Input, Linear, Multiply, Node
from keywright.compiler.graph.sparse import SparseMatrix
from keywright.compiler.placement.bounding import largest_and_outputs
from keywright.program.ahead import worked_ahead


@pytest.fixture(params=[1, 2])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    """Numbers of threads of the engine, one after the other."""
    before = kw.threads()
    kw.set_threads(request.param)
    yield request.param
    kw.set_threads(before)


def test_results_keep_the_order_of_their_items(threads: int) -> None:
    assert list(worked_ahead(lambda n: n * n, range(20))) == [n * n for n in range(20)]
    assert list(worked_ahead(lambda n: n, [])) == []


def test_only_the_next_item_is_begun_before_the_caller_asks(threads: int) -> None:
    begun: list[int] = []

    def begin(number: int) -> int:
        begun.append(number)
        return number

    results = worked_ahead(begin, range(10))
    for number in range(5):
        assert next(results) == number
        assert len(begun) <= number + 2
    results.close()
    assert len(begun) <= 6


def test_an_error_reaches_the_caller_at_its_item(threads: int) -> None:
    results = worked_ahead(lambda n: 1 // (2 - n), range(5))
    assert [next(results), next(results)] == [0, 1]
    with pytest.raises(ZeroDivisionError):
        next(results)


def test_chunks_are_the_same_on_every_number_of_threads(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    matrix = SparseMatrix.from_dense(rng.normal(size=(7, 5)))
    nodes: dict[int, Node] = {
        0: Input((5,)),
        1: Linear((7,), (0,), (matrix,), rng.normal(size=7)),
        2: Multiply((7,), (1, 1)),
    }
    graph, samples = Graph(nodes, 2), rng.normal(size=(23, 5))
    monkeypatch.setattr(graphs, "CHUNK_BYTES", 8 * 19 * 4)
    chunks = [(chunk, values[2]) for chunk, values in graph.runs(samples)]
    assert [chunk for chunk, _ in chunks] == [slice(n, min(n + 4, 23)) for n in range(0, 23, 4)]
    expected = [graph.evaluate(samples[chunk])[2] for chunk, _ in chunks]
    assert np.array_equal(np.concatenate([values for _, values in chunks]), np.concatenate(expected))
    largest, outputs = largest_and_outputs(graph, graph.runs(samples))
    assert np.array_equal(outputs, np.concatenate(expected))
    assert largest[2] == np.abs(outputs).max()
