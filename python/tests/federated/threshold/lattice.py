"""Lattice reduction in exact integers, and the hidden-number problem that it solves."""

import math
from collections.abc import Sequence
from itertools import pairwise

Vector = list[int]

# Lovasz's constant is 99/100: bases a little shorter than those of the usual 3/4, in about twice the steps.
DELTA = (99, 100)


def dot(left: Sequence[int], right: Sequence[int]) -> int:
    return sum(x * y for x, y in zip(left, right, strict=True))


def nearest(numerator: int, denominator: int) -> int:
    """The integer nearest to a fraction of positive denominator, halves up."""
    return (2 * numerator + denominator) // (2 * denominator)


def centred(value: int, modulus: int) -> int:
    """The representative of a residue in `[-modulus / 2, modulus / 2)`."""
    value %= modulus
    return value - modulus if 2 * value >= modulus else value


def gram_schmidt(basis: Sequence[Sequence[int]]) -> tuple[list[Vector], Vector]:
    """Orthogonalisation without fractions.

    Returns:
        Coefficients `lam` and determinants `d` with `d[0] = 1`, `d[i]` the Gram determinant of the first `i`
        vectors, `mu_ij = lam[i][j] / d[j + 1]` and `|b*_i|^2 = d[i + 1] / d[i]`.

    Raises:
        ValueError: the vectors are dependent.
    """
    count = len(basis)
    lam = [[0] * count for _ in range(count)]
    d = [1] * (count + 1)
    for i in range(count):
        for j in range(i + 1):
            value = dot(basis[i], basis[j])
            for k in range(j):
                value = (d[k + 1] * value - lam[i][k] * lam[j][k]) // d[k]
            lam[i][j] = value
        d[i + 1] = lam[i][i]
        if d[i + 1] <= 0:
            raise ValueError("the vectors are linearly dependent")
    return lam, d


def lll(vectors: Sequence[Sequence[int]]) -> list[Vector]:
    """A reduced basis of the lattice that linearly independent vectors span.

    The integral algorithm of de Weger (Cohen, A Course in Computational Algebraic Number Theory, 2.6.7).

    Raises:
        ValueError: the vectors are dependent.
    """
    basis = [list(vector) for vector in vectors]
    lam, d = gram_schmidt(basis)
    above, below = DELTA

    def shorten(k: int, i: int) -> None:
        if 2 * abs(lam[k][i]) <= d[i + 1]:
            return
        factor = nearest(lam[k][i], d[i + 1])
        basis[k] = [x - factor * y for x, y in zip(basis[k], basis[i], strict=True)]
        lam[k][i] -= factor * d[i + 1]
        for j in range(i):
            lam[k][j] -= factor * lam[i][j]

    def swap(k: int) -> None:
        basis[k - 1], basis[k] = basis[k], basis[k - 1]
        for j in range(k - 1):
            lam[k - 1][j], lam[k][j] = lam[k][j], lam[k - 1][j]
        common = lam[k][k - 1]
        middle = (d[k - 1] * d[k + 1] + common * common) // d[k]
        for i in range(k + 1, len(basis)):
            old = lam[i][k]
            lam[i][k] = (d[k + 1] * lam[i][k - 1] - common * old) // d[k]
            lam[i][k - 1] = (middle * old + common * lam[i][k]) // d[k + 1]
        d[k] = middle

    k = 1
    while k < len(basis):
        shorten(k, k - 1)
        if below * (d[k + 1] * d[k - 1] + lam[k][k - 1] ** 2) < above * d[k] ** 2:
            swap(k)
            k = max(k - 1, 1)
        else:
            for i in reversed(range(k - 1)):
                shorten(k, i)
            k += 1
    return basis


class Reduced:
    """A reduced basis, ready to find lattice vectors near given ones.

    Args:
        vectors: a basis.
    """

    def __init__(self, vectors: Sequence[Sequence[int]]) -> None:
        self.basis = lll(vectors)
        lam, self.determinants = gram_schmidt(self.basis)
        # Row i is d_i b*_i, an integer vector, by the same recurrence without fractions.
        d = self.determinants
        self.directions: list[Vector] = []
        for i, vector in enumerate(self.basis):
            row = vector
            for j, direction in enumerate(self.directions):
                row = [(d[j + 1] * x - lam[i][j] * y) // d[j] for x, y in zip(row, direction, strict=True)]
            self.directions.append(row)

    def near(self, target: Sequence[int]) -> Vector:
        """A lattice vector near `target` (Babai's nearest plane).

        It is the nearest one, and the only one within that distance, if some lattice vector is nearer than
        half the shortest `b*_i`.
        """
        rest = list(target)
        for vector, direction, size in zip(
            reversed(self.basis), reversed(self.directions), reversed(self.determinants), strict=False
        ):
            factor = nearest(dot(rest, direction), size)
            rest = [x - factor * y for x, y in zip(rest, vector, strict=True)]
        return [x - y for x, y in zip(target, rest, strict=True)]

    def gap_exceeds(self, squared: int) -> bool:
        """Whether every `|b*_i|^2` is above `squared`: then so is that of every lattice vector but 0."""
        return all(after > squared * before for before, after in pairwise(self.determinants))

    @property
    def log_gap(self) -> float:
        """log2 of the shortest `|b*_i|`: no lattice vector but 0 is shorter."""
        logs = [math.log2(value) for value in self.determinants]
        return min(after - before for before, after in pairwise(logs)) / 2


class HiddenNumber:
    """The problem of finding `u` modulo `Q` from `a_k = multipliers_k u + e_k mod Q` with short `e_k`, for
    given multipliers. The reduction of the multipliers serves every `u`.

    The vectors `(multipliers_k x mod Q)_k` of all `x` form a lattice. The answers are near the vector of `u`.

    Args:
        multipliers: one per question, at least one of them invertible.
        modulus: `Q`.
    """

    def __init__(self, multipliers: Sequence[int], modulus: int) -> None:
        self.multipliers = [value % modulus for value in multipliers]
        self.modulus = modulus
        for pivot, value in enumerate(self.multipliers):
            try:
                self._inverse = pow(value, -1, modulus)
            except ValueError:
                continue
            self._pivot = pivot
            break
        else:
            raise ValueError("no multiplier is invertible")
        size = len(self.multipliers)
        rows = [[modulus * (i == k) for i in range(size)] for k in range(size)]
        rows[self._pivot] = [centred(value * self._inverse, modulus) for value in self.multipliers]
        self._lattice = Reduced(rows)

    @property
    def log_gap(self) -> float:
        """Return log2 of a lower bound on the length of non-zero lattice vectors."""
        return self._lattice.log_gap

    def decides(self, bits: int) -> bool:
        """Whether `solve` is exact for errors of ``bits`` bits: it finds the only solution, and if it finds
        none there is none.

        Two solutions differ by a lattice vector with coordinates up to `2^bits`. If the lattice has no such
        short vector, there is at most one solution, and it is nearer than half the shortest `b*_i`.
        """
        return self._lattice.gap_exceeds(len(self.multipliers) << 2 * bits)

    def solve(self, answers: Sequence[int], bits: int) -> int | None:
        """Return `u` for which all `|e_k| <= 2^(bits - 1)`; None if none is found."""
        near = self._lattice.near([answer % self.modulus for answer in answers])
        hidden = near[self._pivot] * self._inverse % self.modulus
        errors = (
            centred(answer - multiplier * hidden, self.modulus)
            for answer, multiplier in zip(answers, self.multipliers, strict=True)
        )
        return hidden if all(2 * abs(error) <= 1 << bits for error in errors) else None


def hidden_number(answers: Sequence[int], multipliers: Sequence[int], modulus: int, bits: int) -> int | None:
    """Return `u` with all `|answers_k - multipliers_k u mods modulus| <= 2^(bits - 1)`, None if none is
    found.

    `HiddenNumber.decides` says whether another one can exist.
    """
    return HiddenNumber(multipliers, modulus).solve(answers, bits)
