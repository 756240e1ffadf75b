"""Lattice reduction against its definition, and the hidden-number problem on random instances."""

import itertools
import math
import random
from collections.abc import Sequence
from fractions import Fraction

import pytest
from tests.federated.threshold.lattice import (
    HiddenNumber,
    Reduced,
    centred,
    dot,
    gram_schmidt,
    hidden_number,
    lll,
    nearest,
)

MODULUS = (2**59 - 55) * (2**59 - 427)


def product(left: Sequence[Fraction | int], right: Sequence[Fraction]) -> Fraction:
    return sum((x * y for x, y in zip(left, right, strict=True)), Fraction(0))


def orthogonalised(basis: list[list[int]]) -> tuple[list[list[Fraction]], list[list[Fraction]]]:
    """Gram-Schmidt in fractions, from the definition: vectors and coefficients."""
    vectors: list[list[Fraction]] = []
    coefficients = []
    for b in basis:
        vector, row = [Fraction(x) for x in b], []
        for earlier in vectors:
            mu = product(b, earlier) / product(earlier, earlier)
            vector = [x - mu * y for x, y in zip(vector, earlier, strict=True)]
            row.append(mu)
        vectors.append(vector)
        coefficients.append(row)
    return vectors, coefficients


def determinant(rows: list[list[int]]) -> int:
    """By elimination without fractions (Bareiss)."""
    rows, sign, before = [list(row) for row in rows], 1, 1
    for k in range(len(rows) - 1):
        pivot = next((i for i in range(k, len(rows)) if rows[i][k]), None)
        if pivot is None:
            return 0
        if pivot != k:
            rows[k], rows[pivot], sign = rows[pivot], rows[k], -sign
        for i in range(k + 1, len(rows)):
            for j in range(k + 1, len(rows)):
                rows[i][j] = (rows[i][j] * rows[k][k] - rows[i][k] * rows[k][j]) // before
        before = rows[k][k]
    return sign * rows[-1][-1]


def random_basis(rng: random.Random, size: int, columns: int, bits: int) -> list[list[int]]:
    return [[rng.randint(-(2**bits), 2**bits) for _ in range(columns)] for _ in range(size)]


def test_helpers() -> None:
    assert [nearest(n, 4) for n in (-7, -6, -5, -2, 1, 2, 5, 6, 7)] == [-2, -1, -1, 0, 0, 1, 1, 2, 2]
    assert [centred(x, 5) for x in range(-3, 6)] == [2, -2, -1, 0, 1, 2, -2, -1, 0]
    assert [centred(x, 4) for x in range(5)] == [0, 1, -2, -1, 0]


@pytest.mark.parametrize("size", range(1, 11))
def test_a_reduced_basis_is_one_of_the_same_lattice(size: int) -> None:
    rng = random.Random(size)
    for columns, bits in ((size, 3), (size, 120), (size + 2, 40)):
        basis = random_basis(rng, size, columns, bits)
        lam, d = gram_schmidt(basis)
        vectors, coefficients = orthogonalised(basis)
        for i, j in itertools.combinations(range(size), 2):
            assert Fraction(lam[j][i], d[i + 1]) == coefficients[j][i]
        reduced = lll(basis)
        vectors, coefficients = orthogonalised(reduced)
        assert all(2 * abs(mu) <= 1 for row in coefficients for mu in row)
        sizes = [product(vector, vector) for vector in vectors]
        for k in range(1, size):
            assert sizes[k] >= (Fraction(99, 100) - coefficients[k][k - 1] ** 2) * sizes[k - 1]
        # The same lattice: the new vectors are integer combinations of the old ones, of the same volume.
        assert gram_schmidt(reduced)[1][-1] == d[-1]
        old, _ = orthogonalised(basis)
        for vector in reduced:
            rest = [Fraction(x) for x in vector]
            for i in reversed(range(size)):
                factor = product(rest, old[i]) / product(old[i], old[i])
                assert factor.denominator == 1
                rest = [x - factor * y for x, y in zip(rest, basis[i], strict=True)]
            assert not any(rest)
        if size == columns:
            assert abs(determinant(reduced)) == abs(determinant(basis))


def test_a_short_vector_that_was_planted_is_found() -> None:
    rng = random.Random(7)
    for size in (4, 7, 10):
        short = [rng.randint(-9, 9) for _ in range(size - 1)] + [1]
        basis = [short]
        for row in random_basis(rng, size - 1, size, 60):
            factor = rng.randint(-(2**60), 2**60)
            basis.append([x + factor * y for x, y in zip(row, short, strict=True)])
        mixed = [*basis[1:], [sum(column) for column in zip(*basis, strict=True)]]
        assert lll(mixed)[0] in (short, [-x for x in short])


def test_dependent_vectors_are_an_error() -> None:
    for basis in ([[1, 2], [2, 4]], [[0, 0]], [[1, 0], [0, 1], [1, 1]]):
        with pytest.raises(ValueError, match="dependent"):
            lll(basis)


def test_the_nearest_plane_finds_what_is_near() -> None:
    rng = random.Random(3)
    for size in (1, 2, 5, 9):
        lattice = Reduced(random_basis(rng, size, size, 50))
        vectors, _ = orthogonalised(lattice.basis)
        shortest = min(product(vector, vector) for vector in vectors)
        assert math.isclose(lattice.log_gap, math.log2(shortest) / 2, rel_tol=1e-9)
        assert lattice.gap_exceeds(math.ceil(shortest) - 1)
        assert not lattice.gap_exceeds(math.ceil(shortest))
        for _ in range(20):
            factors = [rng.randint(-(2**70), 2**70) for _ in range(size)]
            point = [dot(factors, column) for column in zip(*lattice.basis, strict=True)]
            reach = math.isqrt(int(shortest) // (4 * size))
            target = [x + rng.randint(-reach, reach) for x in point]
            assert lattice.near(target) == point


@pytest.mark.parametrize("count", range(4, 11))
def test_hidden_numbers_are_found(count: int) -> None:
    rng = random.Random(count)
    bits = 82
    for _ in range(3):
        multipliers = [rng.randrange(MODULUS) for _ in range(count)]
        hidden = rng.randrange(MODULUS)
        errors = [rng.randrange(-(2 ** (bits - 1)), 2 ** (bits - 1)) for _ in range(count)]
        answers = [(m * hidden + e) % MODULUS for m, e in zip(multipliers, errors, strict=True)]
        assert HiddenNumber(multipliers, MODULUS).decides(bits)
        assert hidden_number(answers, multipliers, MODULUS, bits) == hidden


@pytest.mark.parametrize("count", range(5, 11))
def test_nothing_is_found_where_there_is_nothing(count: int) -> None:
    rng = random.Random(count)
    problem = HiddenNumber([rng.randrange(MODULUS) for _ in range(count)], MODULUS)
    assert problem.decides(82)
    for _ in range(20):
        assert problem.solve([rng.randrange(MODULUS) for _ in range(count)], 82) is None


def test_errors_at_the_bound_and_beyond_it() -> None:
    rng = random.Random(5)
    multipliers = [rng.randrange(MODULUS) for _ in range(8)]
    for size in (2**81, 2**81 + 1):
        answers = [m * 12345 + size for m in multipliers]
        assert hidden_number(answers, multipliers, MODULUS, 82) == (12345 if size == 2**81 else None)


def test_few_or_related_questions_do_not_decide() -> None:
    rng = random.Random(6)
    few = [rng.randrange(MODULUS) for _ in range(3)]  # 3 * 36 < 118
    assert not HiddenNumber(few, MODULUS).decides(82)
    # Fractions of small height: u and u + 60 x answer alike for small x.
    related = [pow(d, -1, MODULUS) * n % MODULUS for n, d in ((1, 3), (2, 5), (7, 4), (5, 6), (3, 2), (9, 5))]
    problem = HiddenNumber(related, MODULUS)
    assert not problem.decides(82)
    assert problem.decides(3)
    hidden = rng.randrange(MODULUS)
    answers = [m * hidden + rng.randrange(-(2**81), 2**81) for m in related]
    solution = problem.solve(answers, 82)
    assert solution is None or abs(centred((solution - hidden) * pow(60, -1, MODULUS), MODULUS)) < 2**82


def test_a_pivot_is_any_invertible_multiplier() -> None:
    rng = random.Random(8)
    prime = 2**59 - 55
    multipliers = [0, prime, *(rng.randrange(MODULUS) for _ in range(6))]
    hidden = rng.randrange(MODULUS)
    answers = [m * hidden + rng.randrange(-(2**81), 2**81) for m in multipliers]
    assert hidden_number(answers, multipliers, MODULUS, 82) == hidden
    with pytest.raises(ValueError, match="invertible"):
        hidden_number([0, 0], [0, prime], MODULUS, 82)
