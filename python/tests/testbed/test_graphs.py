"""Random graphs over all operators, on ciphertexts, against ONNX's libraries.

`KEYWRIGHT_TESTBED` is the number of graphs; `python -m record` in this folder draws for a time and writes a
record.
"""

import os

import pytest
from keywright.compiler.front_ends.operators import OPERATORS

from .checking import check_graph, most_answered
from .drawn.registry import GENERATORS, graph, single

COUNT = int(os.environ.get("KEYWRIGHT_TESTBED", "24"))
ATTEMPTS = 4


BITS = {"And", "Not", "Or"}
"""Operators of masks in the input, whose tests are those of attention: drawn inputs are no bits."""


def test_every_operator_has_a_generator() -> None:
    """An operator that the compiler reads is drawn here: add how to `registry.GENERATORS`."""
    assert set(GENERATORS) | BITS == set(OPERATORS)


@pytest.mark.parametrize("operator", sorted(GENERATORS))
def test_an_operator_is_what_its_library_computes(operator: str) -> None:
    """One of the first drawings is answered; all are right or refused."""
    reasons: list[str] = []
    for seed in range(ATTEMPTS):
        outcome = check_graph(single(operator, seed), seed)
        if outcome.answered:
            return
        reasons += outcome.texts
    raise AssertionError(reasons)


def test_graphs_are_what_their_libraries_compute() -> None:
    most_answered([check_graph(graph(seed), seed) for seed in range(COUNT)], 0.6)


@pytest.mark.full
def test_many_graphs_are_what_their_libraries_compute() -> None:
    most_answered([check_graph(graph(seed), seed) for seed in range(COUNT, 20 * COUNT)], 0.6)
