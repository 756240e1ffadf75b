"""Layouts and diagonals: every way of packing gives the same matrix."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keywright import nn
from keywright.nn.graph.sparse import SparseMatrix
from keywright.nn.layout.layout import Layout, candidates
from keywright.nn.layout.lowering import (
    BABY_COST,
    DIAGONAL_COST,
    place_blocks,
    placement_cost,
    steps_cost,
    transforms,
)
from keywright.nn.layout.packing import CIPHERTEXT_COST
from keywright.nn.placement.costs import CostTable

SHAPES = [(3,), (16,), (40,), (1, 4, 4), (3, 4, 4), (5, 2, 3), (9, 1, 1), (6, 4, 8)]


def layouts(shape: tuple[int, ...], slots: int) -> list[Layout]:
    coarse = [layout for layout in candidates((1, 8, 8), slots, [], 1) if layout.ciphertexts == 1]
    found = list(candidates(shape, slots, [], 1))
    for source, stride in itertools.product(coarse[:3], (1, 2, 4)):
        found += candidates(shape, slots, [source], stride)
    return found


@pytest.mark.parametrize("slots", [16, 64, 512])
@pytest.mark.parametrize("shape", SHAPES)
def test_layouts_are_injective_and_invertible(shape: tuple[int, ...], slots: int) -> None:
    values = np.arange(1.0, np.prod(shape) + 1)
    found = layouts(shape, slots)
    assert found
    for layout in found:
        packed = layout.pack(values)
        assert packed.shape == (layout.ciphertexts, slots)
        assert np.array_equal(layout.unpack(packed)[0], values)
        assert np.array_equal(packed, np.roll(packed, layout.period, axis=1))
        assert np.count_nonzero(packed) == len(values) * (
            slots // layout.period if layout.ciphertexts == 1 else 1
        )


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_diagonals_are_the_matrix(data: st.DataObject) -> None:
    slots = data.draw(st.sampled_from([16, 64, 256]))
    target = data.draw(st.sampled_from(layouts(data.draw(st.sampled_from(SHAPES)), slots)))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    sources, matrices, inputs = [], [], []
    for _ in range(data.draw(st.integers(1, 2))):
        source = data.draw(st.sampled_from(layouts(data.draw(st.sampled_from(SHAPES)), slots)))
        dense = rng.integers(-5, 6, (len(target.positions), len(source.positions)))
        dense *= rng.random(dense.shape) < data.draw(st.sampled_from([0.1, 1.0]))
        sources.append(source)
        matrices.append(SparseMatrix.from_dense(dense.astype(np.float64)))
        inputs.append(rng.integers(-5, 6, len(source.positions)).astype(np.float64))
    placement = place_blocks(matrices, sources, target)
    backend = nn.ClearBackend(slots)
    cts = [backend.encrypt(r, 1) for s, x in zip(sources, inputs, strict=True) for r in s.pack(x)]
    rows = []
    cost = 0.0
    for transform in transforms(placement, slots):
        ct = backend.linear_transform(cts, transform)
        for step in placement.folds:
            ct = backend.add(ct, backend.rotate(ct, step))
        rows.append(ct.values)
        used = [np.asarray(sorted(diagonals), np.int64) for diagonals in transform.diagonals]
        cost += steps_cost(used, transform.n1) + len(placement.folds)
    expected = sum(m.apply(x) for m, x in zip(matrices, inputs, strict=True))
    packed = np.asarray(rows)
    assert np.array_equal(target.unpack(packed)[0], expected)
    # The result keeps the promise of its layout: it repeats with the period.
    assert np.array_equal(packed, np.roll(packed, target.period, axis=1))
    assert placement_cost(matrices, sources, target) == pytest.approx(cost)


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 8), st.integers(1, 8), st.integers(1, 8), st.integers(0, 99))
def test_sparse_products_and_sums(m: int, k: int, n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b, c = (rng.integers(-2, 3, shape).astype(np.float64) for shape in ((m, k), (k, n), (m, k)))
    sa, sb, sc = (SparseMatrix.from_dense(x) for x in (a, b, c))
    assert np.array_equal((sa @ sb).apply(np.eye(n)).T, a @ b)
    assert np.array_equal((sa + sc).apply(np.eye(k)).T, a + c)
    assert sa.product_entries(sb) == int((a != 0).astype(int).sum(0) @ (b != 0).astype(int).sum(1))


def test_a_replicated_input_makes_a_convolution_cost_its_taps() -> None:
    """One 8x8 image to four channels by a 3x3 kernel: nine diagonals, although results are in 256 slots."""
    image = Layout(256, 64, np.arange(64, dtype=np.int32))
    result = Layout(256, 256, np.arange(256, dtype=np.int32))
    entries = [
        (c * 64 + y * 8 + x, (y + dy) * 8 + x + dx)
        for c, y, x, dy, dx in itertools.product(range(4), range(8), range(8), (-1, 0, 1), (-1, 0, 1))
        if 0 <= y + dy < 8 and 0 <= x + dx < 8
    ]
    rows, columns = np.asarray(entries, np.int64).T
    matrix = SparseMatrix.from_entries((256, 64), rows, columns, np.ones(len(rows)))
    (transform,) = transforms(place_blocks([matrix], [image], result), 256)
    assert len(transform.diagonals[0]) == 9


@pytest.mark.parametrize(
    ("cost", "operation", "factor"),
    [(BABY_COST, "hoisted", 2.5), (DIAGONAL_COST, "diagonal", 6.0), (CIPHERTEXT_COST, "multiplication", 2.0)],
)
def test_costs_that_order_layouts_are_near_those_of_the_cost_table(
    cost: float, operation: str, factor: float
) -> None:
    table = CostTable.default()
    level = len(table.rotation) // 2
    relative = getattr(table, operation)[level] / table.rotation[level]
    assert 1 / factor <= cost / relative <= factor
