"""Counts of products of attention, beside the products themselves on slots, rotation by rotation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from studies.attention.layouts.products import (
    Box,
    Shape,
    baby_steps,
    box,
    columns,
    conversion,
    into_box,
    tricyclic,
)

Array = NDArray[np.float64]


class Machine:
    """Counts what is done to slots."""

    def __init__(self) -> None:
        self.rotations, self.products, self.steps = 0, 0, set[int]()

    def turn(self, values: Array, step: int) -> Array:
        if step % len(values) == 0:
            return values
        self.rotations += 1
        self.steps.add(step % len(values))
        return np.roll(values, -step)

    def multiply(self, left: Array, right: Array) -> Array:
        self.products += 1
        return left * right


def stored(matrices: Array, sides: tuple[int, int, int], slots: int) -> Array:
    """A stack of matrices in a box of these sides, again and again."""
    padded = np.zeros(sides)
    padded[tuple(map(slice, matrices.shape))] = matrices
    places = np.arange(slots)
    return np.asarray(padded[tuple(places % side for side in sides)])


def congruent(remainders: list[tuple[int, int]]) -> int:
    """The least number with these remainders of pairwise coprime divisors."""
    product = math.prod(divisor for _, divisor in remainders)
    parts = [(rest, divisor, product // divisor) for rest, divisor in remainders]
    return sum(rest * other * pow(other, -1, divisor) for rest, divisor, other in parts) % product


@pytest.mark.parametrize(("heads", "rows", "inner", "width"), [(2, 5, 4, 5), (3, 4, 5, 7), (1, 8, 3, 8)])
def test_tricyclic_products(heads: int, rows: int, inner: int, width: int) -> None:
    slots, rng, machine = 1 << 12, np.random.default_rng(1), Machine()
    shape = Shape(heads, rows, inner, width)
    sides = box(shape, slots)
    assert isinstance(sides, Box)
    left, right = rng.normal(size=(heads, rows, inner)), rng.normal(size=(heads, inner, width))
    first = stored(left, (sides.heads, sides.rows, sides.inner), slots)
    second = stored(right, (sides.heads, sides.inner, sides.columns), slots)
    babies, giants = sides.steps
    step = sides.heads * sides.rows
    turned = [machine.turn(first, step * baby) for baby in range(babies)]
    total, relinearised = np.zeros(slots), 0
    for giant in range(giants):
        behind = step * babies * giant
        terms = []
        for baby in range(min(babies, sides.inner - babies * giant)):
            where = [(0, sides.heads), (-behind, sides.columns), (step * baby, sides.inner)]
            terms.append(machine.multiply(turned[baby], machine.turn(second, congruent(where))))
        relinearised += 1
        total += machine.turn(np.sum(terms, axis=0), behind)
    result = np.where(np.arange(slots) < sides.stored, total, 0.0)
    for doubling in range(sides.doublings):
        result = result + machine.turn(result, -sides.stored << doubling)

    places = np.arange(sides.stored << sides.doublings)
    h, r, c = (places % side for side in (sides.heads, sides.rows, sides.columns))
    inside = (h < heads) & (r < rows) & (c < width)
    assert np.allclose(result[places[inside]], (left @ right)[h[inside], r[inside], c[inside]])
    counts = tricyclic(shape, slots)
    assert (counts.products, counts.relinearizations) == (machine.products, relinearised)
    assert machine.rotations <= counts.rotations <= machine.rotations + 1  # one rotation of the right is by 0
    assert len(machine.steps) <= counts.steps


@pytest.mark.parametrize(("heads", "rows", "inner"), [(2, 5, 4), (3, 4, 5), (1, 8, 3)])
def test_factors_are_brought_into_boxes(heads: int, rows: int, inner: int) -> None:
    slots, shape = 1 << 12, Shape(heads, rows, inner, rows)
    sides = box(shape, slots)
    assert isinstance(sides, Box)
    matrices = np.random.default_rng(3).normal(size=(heads, rows, inner))
    period = 1 << (matrices.size - 1).bit_length()
    source = np.zeros(period)
    source[: matrices.size] = matrices.transpose(0, 2, 1).ravel()
    source = np.tile(source, slots // period)
    expected = stored(matrices, (sides.heads, sides.rows, sides.inner), slots)
    expected[sides.heads * sides.rows * sides.inner :] = 0
    steps = np.flatnonzero(into_box(shape, sides, slots))
    reached = np.stack([np.roll(source, -step) for step in steps])
    places = np.flatnonzero(expected)
    assert np.isclose(reached[:, places], expected[places]).any(axis=0).all()
    needed = [np.isclose(turned[places], expected[places]).any() for turned in reached]
    assert all(needed)
    assert conversion(shape, slots)["box_diagonals"] == len(steps)


@pytest.mark.parametrize(("heads", "tokens", "width"), [(2, 8, 3), (1, 16, 4), (3, 4, 2)])
def test_products_of_columns(heads: int, tokens: int, width: int) -> None:
    slots, rng, machine = 64, np.random.default_rng(2), Machine()
    sentences = slots // tokens
    queries, keys, values = rng.normal(size=(3, sentences, heads, tokens, width))
    scores = np.einsum("bhmd,bhnd->bhmn", queries, keys)

    def column(array: Array, head: int, feature: int) -> Array:
        return np.asarray(array[:, head, :, feature].T.ravel())  # the sentences of a token are neighbours

    counts = columns(Shape(heads, tokens, width, tokens), slots, diagonal=False)
    babies, relinearised = baby_steps(heads, heads * width, tokens), 0
    giants = tokens // babies
    diagonals: dict[tuple[int, int], Array] = {}
    for head in range(heads):
        turned = [
            [machine.turn(column(keys, head, d), b * sentences) for b in range(babies)] for d in range(width)
        ]
        for giant in range(giants):
            by = giant * babies * sentences
            left = [machine.turn(column(queries, head, d), -by) for d in range(width)]
            for baby in range(babies):
                terms = [machine.multiply(left[d], turned[d][baby]) for d in range(width)]
                relinearised += 1
                diagonals[head, giant * babies + baby] = machine.turn(np.sum(terms, axis=0), by)
    m = np.arange(tokens)
    for (head, j), diagonal in diagonals.items():
        assert np.allclose(diagonal, scores[:, head, m, (m + j) % tokens].T.ravel())
    assert (machine.rotations, machine.products, len(machine.steps), relinearised) == (
        counts.rotations, counts.products, counts.steps, counts.relinearizations
    )  # fmt: skip
    assert (counts.sentences, counts.ciphertexts) == (
        sentences,
        (heads * width, heads * width, heads * tokens),
    )

    machine, relinearised = Machine(), 0
    for head in range(heads):
        left = [machine.turn(diagonals[head, j], -(j // babies) * babies * sentences) for j in range(tokens)]
        for d in range(width):
            turned_values = [machine.turn(column(values, head, d), b * sentences) for b in range(babies)]
            total = np.zeros(slots)
            for giant in range(giants):
                terms = [machine.multiply(left[giant * babies + b], turned_values[b]) for b in range(babies)]
                relinearised += 1
                total += machine.turn(np.sum(terms, axis=0), giant * babies * sentences)
            assert np.allclose(total, (scores @ values)[:, head, :, d].T.ravel())
    counts = columns(Shape(heads, tokens, tokens, width), slots, diagonal=True)
    assert (machine.rotations, machine.products, len(machine.steps), relinearised) == (
        counts.rotations, counts.products, counts.steps, counts.relinearizations
    )  # fmt: skip
