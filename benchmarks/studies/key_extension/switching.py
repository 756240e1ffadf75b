"""Key switching with an ordinary and with an extended key, on integers, with every transform counted.

An oracle for rings of any small degree, on Python integers. It multiplies by the definition, and counts the
number theoretic transforms that an implementation needs. Nothing here is fast or secret.

The ordinary switch multiplies each digit of the input with a row of the key modulo every prime of `Q P`.
The extended switch cuts the rows into digits as well. Their products with digits of the input are short, and
a sum over all rows is below an auxiliary modulus `T`: it is computed modulo the few primes of `T`, and then
converted to the primes of its own digit.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

Polynomial = list[int]
Residues = dict[int, Polynomial]
"""A polynomial modulo each of some primes."""


def centred(values: Sequence[int], modulus: int) -> Polynomial:
    """Representatives in (-modulus / 2, modulus / 2]."""
    return [v - modulus if 2 * (v := value % modulus) > modulus else v for value in values]


def times(a: Sequence[int], b: Sequence[int], modulus: int | None = None) -> Polynomial:
    """The product modulo X^N + 1, and modulo a number if one is given."""
    n = len(a)
    out = [0] * n
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            place, sign = (i + j, 1) if i + j < n else (i + j - n, -1)
            out[place] += sign * x * y
    return out if modulus is None else [value % modulus for value in out]


def groups(primes: Sequence[int], size: int) -> list[list[int]]:
    """Runs of at most `size` primes."""
    return [list(primes[start : start + size]) for start in range(0, len(primes), size)]


@dataclass(frozen=True)
class Ring:
    """Primes of ciphertexts and special ones, and how many make a digit of the input.

    Attributes:
        n: degree.
        q: primes of ciphertexts.
        p: special primes, whose product is not below a digit.
        alpha: primes of a digit.
    """

    n: int
    q: tuple[int, ...]
    p: tuple[int, ...]
    alpha: int

    @property
    def primes(self) -> tuple[int, ...]:
        """All of them."""
        return (*self.q, *self.p)

    @property
    def digits(self) -> list[list[int]]:
        """Primes of each digit of the input."""
        return groups(self.q, self.alpha)


@dataclass
class Key:
    """Rows of both halves: integers modulo `Q P`, a row for each digit of the input."""

    rows: list[tuple[Polynomial, Polynomial]]


def make_key(ring: Ring, old: Polynomial, new: Polynomial, source: random.Random) -> Key:
    """A key from one secret to another, with errors of at most 3."""
    q, everything = prod(ring.q), prod(ring.primes)
    rows = []
    for digit in ring.digits:
        inside = prod(digit)
        mask = q // inside * pow(q // inside, -1, inside) * prod(ring.p)
        uniform = [source.randrange(everything) for _ in range(ring.n)]
        error = [source.randint(-3, 3) for _ in range(ring.n)]
        known = times(uniform, new)
        body = [(mask * s + e - k) % everything for s, e, k in zip(old, error, known, strict=True)]
        rows.append((body, uniform))
    return Key(rows)


@dataclass
class Switched:
    """Both halves modulo `Q`, and the work: transforms, products of a limb with both halves of a row, terms
    of conversions."""

    halves: tuple[Polynomial, Polynomial]
    work: Counter[str] = field(default_factory=Counter)


def _digits_of(ring: Ring, value: Polynomial, work: Counter[str]) -> list[Polynomial]:
    work["transforms"] += len(ring.q)
    return [centred(value, prod(digit)) for digit in ring.digits]


def _divided(ring: Ring, sums: Sequence[Residues], work: Counter[str]) -> tuple[Polynomial, Polynomial]:
    """Divide both halves, with the centred remainder of `P` taken off, and transform them back."""
    p, q = prod(ring.p), prod(ring.q)
    out = []
    for half in sums:
        whole = _joined(half, ring.primes)
        remainder = centred(whole, p)
        work["conversions"] += len(ring.p) * len(ring.q)
        work["transforms"] += len(ring.q)
        out.append([(w - r) // p % q for w, r in zip(whole, remainder, strict=True)])
    return out[0], out[1]


def _joined(residues: Residues, primes: Sequence[int]) -> Polynomial:
    """The integers below the product that have these residues."""
    modulus = prod(primes)
    basis = [(modulus // r) * pow(modulus // r, -1, r) for r in primes]
    length = len(residues[primes[0]])
    return [
        sum(residues[r][i] * one for r, one in zip(primes, basis, strict=True)) % modulus
        for i in range(length)
    ]


def ordinary(ring: Ring, key: Key, value: Polynomial) -> Switched:
    """Hybrid key switching of a polynomial modulo `Q`: each digit over all primes of `Q P`."""
    work: Counter[str] = Counter()
    sums: list[Residues] = [{r: [0] * ring.n for r in ring.primes} for _ in range(2)]
    for digit, primes, row in zip(_digits_of(ring, value, work), ring.digits, key.rows, strict=True):
        for r in ring.primes:
            if r not in primes:
                # The input has the transforms of its own residues.
                work["conversions"] += len(primes)
                work["transforms"] += 1
            work["products"] += 1
            for total, half in zip(sums, row, strict=True):
                product = times([v % r for v in digit], [v % r for v in half], r)
                total[r] = [(x + y) % r for x, y in zip(total[r], product, strict=True)]
    # The remainder of the special primes is taken in coefficients.
    work["transforms"] += 2 * len(ring.p)
    return Switched(_divided(ring, sums, work), work)


@dataclass(frozen=True)
class Extension:
    """Digits of the key's rows, and the auxiliary modulus.

    Attributes:
        size: primes of `Q P` in a digit of the key.
        t: primes of the auxiliary modulus.
    """

    size: int
    t: tuple[int, ...]


def least_auxiliary(ring: Ring, size: int) -> int:
    """Above twice what any coefficient of the sums can be: so large must the auxiliary modulus be."""
    digit = max(prod(primes) for primes in ring.digits)
    key_digit = max(prod(primes) for primes in groups(ring.primes, size))
    return 2 * len(ring.digits) * ring.n * (digit // 2 + 1) * (key_digit // 2 + 1) + 1


def extend(ring: Ring, key: Key, extension: Extension) -> list[list[tuple[Residues, Residues]]]:
    """The key over the auxiliary modulus: for each row, for each digit of the key, both halves. It needs no
    secret."""

    def over(half: Polynomial, primes: Sequence[int]) -> Residues:
        short = centred(half, prod(primes))
        return {r: [v % r for v in short] for r in extension.t}

    return [
        [(over(body, primes), over(uniform, primes)) for primes in groups(ring.primes, extension.size)]
        for body, uniform in key.rows
    ]


def extended(ring: Ring, key: Key, extension: Extension, value: Polynomial) -> Switched:
    """The same switch with the extended key.

    Raises:
        ValueError: the auxiliary modulus is too small for exact sums.
    """
    if prod(extension.t) < least_auxiliary(ring, extension.size):
        raise ValueError("the auxiliary modulus is too small")
    work: Counter[str] = Counter()
    rows = extend(ring, key, extension)
    key_digits = groups(ring.primes, extension.size)
    sums = [[{r: [0] * ring.n for r in extension.t} for _ in key_digits] for _ in range(2)]
    for digit, primes, row in zip(_digits_of(ring, value, work), ring.digits, rows, strict=True):
        work["transforms"] += len(extension.t)
        work["conversions"] += len(primes) * len(extension.t)
        for place, halves in enumerate(row):
            work["products"] += len(extension.t)
            for total, half in zip(sums, halves, strict=True):
                for r in extension.t:
                    product = times([v % r for v in digit], half[r], r)
                    total[place][r] = [(x + y) % r for x, y in zip(total[place][r], product, strict=True)]
    out: list[Residues] = [{}, {}]
    for residues, total in zip(out, sums, strict=True):
        for primes, part in zip(key_digits, total, strict=True):
            work["transforms"] += len(extension.t)
            work["conversions"] += len(extension.t) * len(primes)
            short = centred(_joined(part, extension.t), prod(extension.t))
            residues.update({r: [v % r for v in short] for r in primes})
    return Switched(_divided(ring, out, work), work)
