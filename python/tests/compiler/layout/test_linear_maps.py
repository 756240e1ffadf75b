"""Layouts and diagonals: every way of packing gives the same matrix."""

import itertools
import math
from collections.abc import Mapping
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keywright import runtime
from keywright.compiler.graph.convolution import Convolution, Matrix, Window, product, product_entries
from keywright.compiler.graph.graph import Linear
from keywright.compiler.graph.sparse import SparseMatrix
from keywright.compiler.layout.layer_work import Prices
from keywright.compiler.layout.lowering import lower, placement_cost
from keywright.compiler.layout.shifts import LayoutPair, used_diagonals
from keywright.program.operands.diagonals import copies_of, distinct_of, period_of
from keywright.program.operands.layout import Layout, candidates

PRICES = Prices(rotation=1.0, hoisted=0.5, diagonal=0.0625, ciphertext=2.0)
SHAPES = [(3,), (16,), (40,), (1, 4, 4), (3, 4, 4), (5, 2, 3), (9, 1, 1), (6, 4, 8)]


def layouts(shape: tuple[int, ...], slots: int) -> list[Layout]:
    coarse = [layout for layout in candidates((1, 8, 8), slots, [], (1, 1)) if layout.ciphertexts == 1]
    layouts = list(candidates(shape, slots, [], (1, 1)))
    for source, stride in itertools.product(coarse[:3], itertools.product((1, 2, 4), (1, 2, 4))):
        layouts += candidates(shape, slots, [source], stride)
    return layouts


@pytest.mark.parametrize("slots", [16, 64, 512])
@pytest.mark.parametrize("shape", SHAPES)
def test_layouts_are_injective_and_invertible(shape: tuple[int, ...], slots: int) -> None:
    values = np.arange(1.0, np.prod(shape) + 1)
    choices = layouts(shape, slots)
    assert choices
    for layout in choices:
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
    sources, inputs = [], []
    matrices: list[Matrix] = []
    for _ in range(data.draw(st.integers(1, 2))):
        source = data.draw(st.sampled_from(layouts(data.draw(st.sampled_from(SHAPES)), slots)))
        dense = rng.integers(-5, 6, (len(target.positions), len(source.positions)))
        dense *= rng.random(dense.shape) < data.draw(st.sampled_from([0.1, 1.0]))
        sources.append(source)
        matrices.append(SparseMatrix.from_dense(dense.astype(np.float64)))
        inputs.append(rng.integers(-5, 6, len(source.positions)).astype(np.float64))
    linear = Linear((len(target.positions),), tuple(range(len(sources))), tuple(matrices), np.zeros(1))
    lowered = lower(linear, sources, target, PRICES)
    backend = runtime.ClearBackend(slots)
    cts = [backend.encrypt(r, 1) for s, x in zip(sources, inputs, strict=True) for r in s.pack(x)]
    rows = []
    cost = 0.0
    for read, transform in lowered.rows:
        ct = backend.linear_transform([cts[k] for k in read], transform)
        for step in lowered.folds:
            ct = backend.add(ct, backend.rotate(ct, step))
        rows.append(ct.values)
        used = [list(diagonals) for diagonals in transform.diagonals]
        cost += _cost(used, transform.n1) + len(lowered.folds) * PRICES.rotation
        assert _cost(used, transform.n1) == min(_cost(used, 1 << k) for k in range(slots.bit_length()))
    expected = sum(m.apply(x) for m, x in zip(matrices, inputs, strict=True))
    packed = np.asarray(rows)
    assert np.array_equal(target.unpack(packed)[0], expected)
    # The result keeps the promise of its layout: it repeats with the period.
    assert np.array_equal(packed, np.roll(packed, target.period, axis=1))
    if all(matrix.entries for matrix in matrices):
        assert placement_cost(matrices, sources, target, PRICES) == pytest.approx(cost)


def test_diagonals_do_not_depend_on_layouts_before() -> None:
    """Shifts are kept with a matrix and its multiples: every other layout, and its periods, get their own."""
    rng = np.random.default_rng(5)
    dense = rng.normal(size=(40, 40)) * (rng.random((40, 40)) < 0.1)
    matrix = SparseMatrix.from_dense(dense)
    for source, target in itertools.product(layouts((40,), 64) + layouts((5, 8), 16), repeat=2):
        if source.slots == target.slots:
            between = LayoutPair(source, target)
            fresh = used_diagonals(SparseMatrix.from_dense(dense), between)
            assert _steps(used_diagonals(matrix.scaled(2.0), between)) == _steps(fresh)
            assert fresh


def test_maps_between_many_ciphertexts_are_counted_where_they_have_entries() -> None:
    """1,100 ciphertexts of which each gives one: few pairs of them have diagonals."""
    count = 1100 * 64
    index = np.arange(count)
    identity = SparseMatrix.from_distinct((count, count), index, index, np.ones(count))
    layout = Layout(64, 64, index.astype(np.int32))
    expected = {(block, block): [0] for block in range(1100)}
    assert _steps(used_diagonals(identity, LayoutPair(layout, layout))) == expected
    nothing = SparseMatrix.from_distinct((count, count), index[:0], index[:0], np.zeros(0))
    assert not used_diagonals(nothing, LayoutPair(layout, layout))


def _steps(used: Mapping[tuple[int, int], np.ndarray]) -> dict[tuple[int, int], list[int]]:
    return {block: np.flatnonzero(each).tolist() for block, each in used.items()}


def _cost(diagonals: list[list[int]], n1: int) -> float:
    """What `best_n1` minimises, counted step by step."""
    babies = sum(len({r % n1 for r in steps} - {0}) for steps in diagonals)
    giants = len({r - r % n1 for steps in diagonals for r in steps} - {0})
    return 0.5 * babies + giants + 0.0625 * sum(map(len, diagonals))


@st.composite
def convolutions(draw: st.DrawFn) -> tuple[Convolution, tuple[int, int, int], tuple[int, int, int], int]:
    """A convolution, the shapes of its operand and its result, and its stride."""
    groups, members, outputs = (draw(st.integers(1, 3)) for _ in range(3))
    size, taps, stride = (
        draw(st.sampled_from([4, 8])),
        draw(st.sampled_from([1, 2, 3])),
        draw(st.integers(1, 2)),
    )
    pixels = [
        (y // stride * (size // stride) + x // stride, i * taps + j, (y + i - 1) * size + x + j - 1)
        for y, x in itertools.product(range(0, size, stride), repeat=2)
        for i, j in itertools.product(range(taps), repeat=2)
        if 0 <= y + i - 1 < size and 0 <= x + j - 1 < size
    ]
    into, tap, origin = np.asarray(pixels, np.int64).reshape(-1, 3).T
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    kernel = rng.integers(-4, 5, (groups * outputs, members, taps**2)).astype(np.float64)
    kernel *= rng.random(kernel.shape) < draw(st.sampled_from([0.3, 1.0]))
    side = size // stride
    window = Window(side**2, size**2, taps**2, into, tap, origin)
    shapes = (groups * members, size, size), (groups * outputs, side, side)
    return Convolution(kernel, groups, window), *shapes, stride


@st.composite
def layers(draw: st.DrawFn) -> tuple[Convolution, tuple[int, int], tuple[int, int], int]:
    """A dense layer on every token, the shapes of its operand and its result, and 1. Elements are numbered
    token by token or feature by feature."""
    tokens, inputs, outputs = (draw(st.sampled_from([1, 2, 3, 4, 8])) for _ in range(3))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    weights = rng.integers(1, 5, (outputs, inputs)) * (rng.random((outputs, inputs)) < 0.8)
    weights[:, 0] += 1  # never one that is explicit because it may be diagonal
    weights = np.concatenate((weights, weights), axis=1)
    numbers, shapes = [], []
    for features in weights.shape:
        first = draw(st.booleans())
        shapes.append((tokens, features) if first else (features, tokens))
        each = np.arange(tokens * features).reshape(shapes[-1])
        numbers.append(each.T if first else each)
    layer = Convolution.everywhere(weights.astype(np.float64), *numbers)
    assert isinstance(layer, Convolution)
    return layer, shapes[1], shapes[0], 1


Drawn = tuple[Convolution, tuple[int, ...], tuple[int, ...], int]


@settings(max_examples=100, deadline=None)
@given(st.one_of(convolutions(), layers()), st.integers(0, 99))
def test_a_convolution_is_its_explicit_matrix(drawn: Drawn, seed: int) -> None:
    convolution, source, target, _ = drawn
    explicit, rng = convolution.explicit(), np.random.default_rng(seed)
    columns = np.eye(math.prod(source))
    assert convolution.shape == explicit.shape == (math.prod(target), math.prod(source))
    assert np.array_equal(convolution.apply(columns), explicit.apply(columns))
    for unshared, most in ((3 * convolution.kernel[0].size, 1), (0, 5), (0, 3 * convolution.window.outputs)):
        module = "keywright.compiler.graph.convolution"  # some pixels, or images, at a time
        with patch.multiple(module, UNSHARED=unshared, MOST_PIXELS=most):
            assert np.array_equal(convolution.apply(columns), explicit.apply(columns))
    assert convolution.entries == explicit.entries == np.count_nonzero(explicit.apply(columns))
    assert np.array_equal(convolution.row_counts(), explicit.row_counts())
    assert np.array_equal(convolution.column_counts(), explicit.column_counts())
    read = rng.random(math.prod(target)) < 0.5
    assert np.array_equal(convolution.column_counts(read), explicit.column_counts(read))
    by_row = np.empty(math.prod(target))
    by_row[convolution.rows] = np.exp2(rng.integers(-3, 4, (len(convolution.rows), 1)))
    by_pixel = np.exp2(rng.integers(-3, 4, math.prod(source)))
    for factors in ({"rows": by_row}, {"columns": by_pixel}, {"rows": by_row, "columns": 0.5}):
        scaled = convolution.scaled(**factors)
        assert np.array_equal(scaled.apply(columns), explicit.scaled(**factors).apply(columns))
    assert isinstance(convolution.scaled(rows=by_row), Convolution)
    for left, right in (
        (SparseMatrix.diagonal(by_row), convolution),
        (convolution, SparseMatrix.diagonal(by_pixel)),
    ):
        assert np.array_equal(_dense(product(left, right)), _dense(left) @ _dense(right))
        assert product_entries(left, right) == convolution.entries


@settings(max_examples=60, deadline=None)
@given(st.one_of(convolutions(), layers()), st.integers(0, 99))
def test_elements_of_a_convolution_are_renumbered(drawn: Drawn, seed: int) -> None:
    """Another order of the operand, one of the result, and whole channels of the result: no entry is made."""
    convolution, source, target, _ = drawn
    rng = np.random.default_rng(seed)
    before, behind = (rng.permutation(math.prod(shape)) for shape in (source, target))
    whole = rng.random(len(convolution.rows)) < 0.5
    whole[0] = True
    apart = convolution.groups > 1
    some = rng.permutation(convolution.rows[whole].ravel())
    for left, right, kernels in (
        (convolution, _moving(before, len(before)), True),
        (_moving(behind, len(behind)), convolution, True),
        (_moving(some, len(behind)), convolution, bool(whole.all()) or not apart),
        (_moving(behind[:1], len(behind)), convolution, convolution.window.outputs == 1 and not apart),
        (_moving(np.zeros(3, np.int64), len(behind)), convolution, False),
    ):
        if isinstance(left, SparseMatrix) and left.is_diagonal():
            continue
        outcome = product(left, right)
        assert kernels == isinstance(outcome, Convolution)
        assert np.array_equal(_dense(outcome), _dense(left) @ _dense(right))


def _moving(chosen: np.ndarray, size: int) -> SparseMatrix:
    places = np.arange(len(chosen))
    return SparseMatrix.from_distinct((len(chosen), size), places, chosen, np.ones(len(chosen)))


@pytest.mark.parametrize(("tokens_last", "period", "copies"), [(True, 256, 16), (False, 16, 1)])
def test_diagonals_of_every_token_are_stored_once(tokens_last: bool, period: int, copies: int) -> None:
    """16 tokens of 16 features: the same 16 or 31 x 16 values, whichever are neighbours."""
    places = np.arange(256).reshape(16, 16)
    elements = places if tokens_last else places.T
    layer = Convolution.everywhere(np.arange(1.0, 257).reshape(16, 16), elements, elements)
    layout = next(iter(candidates((256,), 256, [], (1, 1))))
    ((_, lowered),) = lower(Linear((256,), (0,), (layer,), np.zeros(1)), [layout], layout, PRICES).rows
    (diagonals,) = lowered.diagonals
    assert (period_of(diagonals), copies_of(diagonals)) == (period, copies)
    assert distinct_of(diagonals).shape == (len(diagonals), 16)
    assert len(diagonals) == (16 if tokens_last else 31)
    assert lowered.bytes == 8 * 16 * len(diagonals)


def test_a_map_is_prepared_once_for_all_pairs_of_ciphertexts() -> None:
    places = np.arange(256).reshape(16, 16)
    layer = Convolution.everywhere(np.arange(1.0, 257).reshape(16, 16), places, places)
    layout = next(iter(candidates((256,), 64, [], (1, 1))))
    separated = "keywright.compiler.layout.shifts._Separated.of"
    with (
        patch(separated, return_value=None) as of,
        patch.object(Convolution, "explicit", autospec=True, side_effect=Convolution.explicit) as explicit,
    ):
        lowered = lower(Linear((256,), (0,), (layer,), np.zeros(1)), [layout], layout, PRICES)
        tables = [distinct_of(diagonals) for _, row in lowered.rows for diagonals in row.diagonals]
    assert len(tables) == 16
    assert of.call_count == explicit.call_count == 1


def _dense(matrix: Matrix) -> np.ndarray:
    return matrix.explicit().apply(np.eye(matrix.shape[1])).T


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_diagonals_of_a_convolution_are_those_of_its_entries(data: st.DataObject) -> None:
    convolution, shape, result, stride = data.draw(st.one_of(convolutions(), layers()))
    slots = data.draw(st.sampled_from([64, 256, 1024]))
    source = data.draw(st.sampled_from(list(candidates(shape, slots, [], (1, 1)))))
    target = data.draw(st.sampled_from(list(candidates(result, slots, [source], (stride, stride)))))
    fast, naive = (
        used_diagonals(m, LayoutPair(source, target)) for m in (convolution, convolution.explicit())
    )
    assert _steps(fast) == _steps(naive)
    linears = [Linear(result, (0,), (m,), np.zeros(1)) for m in (convolution, convolution.explicit())]
    one_by_one = zip(*(lower(n, [source], target, PRICES).rows for n in linears), strict=True)
    for (read, one), (also, other) in one_by_one:
        assert (read, one.n1) == (also, other.n1)
        for k, (diagonals, expected) in enumerate(zip(one.diagonals, other.diagonals, strict=True)):
            assert list(diagonals) == list(expected)
            for r in diagonals:
                assert np.array_equal(one.full_diagonal(k, r), other.full_diagonal(k, r))
        for each in (one, other):
            assert each.bytes == sum(distinct_of(diagonals).nbytes for diagonals in each.diagonals)


def test_diagonals_of_a_map_that_spreads_are_as_short_as_they_repeat() -> None:
    """Each value is copied to 4 places of a row of 8, in 32 rows: the diagonals repeat with the rows."""
    size = 256
    into = np.arange(size)
    spread = SparseMatrix.from_entries((size, size), into, into // 8 * 8 + into % 2, np.ones(size))
    weights = SparseMatrix(spread.shape, spread.rows, spread.columns, np.arange(1.0, size + 1))
    layout = next(iter(candidates((size,), size, [], (1, 1))))
    for matrix, period in ((spread, 8), (weights, size)):
        node = Linear((size,), (0,), (matrix,), np.zeros(1))
        ((_, lowered),) = lower(node, [layout], layout, PRICES).rows
        assert lowered.periods == (period,)
        dense = sum(np.roll(np.diag(lowered.full_diagonal(0, r)), r, axis=1) for r in lowered.diagonals[0])
        assert np.array_equal(dense, _dense(matrix))


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 8), st.integers(1, 8), st.integers(1, 8), st.integers(0, 99))
def test_sparse_products_and_sums(m: int, k: int, n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b, c = (rng.integers(-2, 3, shape).astype(np.float64) for shape in ((m, k), (k, n), (m, k)))
    sa, sb, sc = (SparseMatrix.from_dense(x) for x in (a, b, c))
    assert np.array_equal((sa @ sb).apply(np.eye(n)).T, a @ b)
    assert np.array_equal((sa + sc).apply(np.eye(k)).T, a + c)
    assert product_entries(sa, sb) == int((a != 0).astype(int).sum(0) @ (b != 0).astype(int).sum(1))


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
    linear = Linear((4, 8, 8), (0,), (matrix,), np.zeros(256))
    ((_, transform),) = lower(linear, [image], result, PRICES).rows
    assert len(transform.diagonals[0]) == 9


@pytest.mark.parametrize("size", [0, 1, 5])
def test_equal_entries_are_stored_once(size: int) -> None:
    places = np.arange(size)
    spread = SparseMatrix.from_distinct((size + 1, size + 2), places, places, np.full(size, 3.0))
    scaled = spread.scaled(0.5, 4.0)
    assert scaled.values.tolist() == [6.0] * size
    assert all(each.values.strides == (0,) for each in (spread, scaled) if size)
    assert spread.scaled(np.arange(size + 1.0)).values.tolist() == (3.0 * places).tolist()
