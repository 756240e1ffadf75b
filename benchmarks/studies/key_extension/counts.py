"""Work and bytes of a key switch with an ordinary and with an extended key, by formulas.

The oracle (`switching`) does exactly this work. Counts are of polynomials modulo one prime.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, log2

from keywright.plan.cost.model import Weights

NARROW = 50
"""Most bits of a prime with fast arithmetic."""

HALF_A_BIT = 0.5
"""Primes of the auxiliary modulus are near to a power of two; this much is allowed for their distance."""


@dataclass(frozen=True)
class Setting:
    """A key switch.

    Attributes:
        log_n: base-2 logarithm of the ring degree.
        primes: of the ciphertext at its level.
        special: special primes.
        alpha: primes of a digit.
        bits: of each of these primes.
    """

    log_n: int
    primes: int
    special: int
    alpha: int
    bits: float = 50.0

    @property
    def digits(self) -> int:
        """Of the input."""
        return ceil(self.primes / self.alpha)

    @property
    def limbs(self) -> int:
        """Primes of the key."""
        return self.primes + self.special


@dataclass(frozen=True)
class Counts:
    """Work and bytes of a key switch.

    Attributes:
        transforms: number theoretic transforms, forward and inverse.
        shared: transforms that all rotations of one ciphertext share.
        products: of a polynomial with both halves of a row, for one prime.
        conversions: terms, one prime to one other.
        key_bytes: both halves stored, as an evaluation reads them.
        sent_bytes: with a seed for the uniform half. An extended key is made of such a key, without a secret.
        bits: of the primes of the transforms between digits and sums.
        seeded: whether the uniform half is expanded from its seed while it is used.
    """

    transforms: tuple[int, int]
    shared: int
    products: int
    conversions: tuple[int, int]
    key_bytes: int
    sent_bytes: int
    bits: float
    seeded: bool

    def seconds(self, weights: Weights) -> float:
        """Predicted for one thread from the weights of the planner's model, for 2^16 coefficients.

        Pairs of counts are those of the ciphertext's primes and those of the auxiliary ones.
        """
        wide = self.bits > NARROW
        transform = (weights.transform, weights.wide_transform if wide else weights.transform)
        conversion = (weights.conversion, weights.wide_conversion if wide else weights.conversion)
        stored = weights.product if self.seeded else weights.stored_product
        product = stored if not wide else weights.wide_product
        pairs = (
            *zip(self.transforms, transform, strict=True),
            *zip(self.conversions, conversion, strict=True),
        )
        return sum(count * (weight or 0.0) for count, weight in (*pairs, (self.products, product)))


def ordinary(of: Setting) -> Counts:
    """Hybrid key switching."""
    limbs = of.limbs
    terms = sum(
        size * (limbs - size) for size in [of.alpha] * (of.primes // of.alpha) + [of.primes % of.alpha]
    )
    sizes = of.digits * limbs * 8 << of.log_n
    return Counts(
        transforms=(of.digits * limbs + 2 * limbs, 0),
        shared=of.digits * limbs,
        products=of.digits * limbs,
        conversions=(terms + 2 * of.special * of.primes, 0),
        key_bytes=2 * sizes,
        sent_bytes=sizes,
        bits=of.bits,
        seeded=True,
    )


def auxiliary(of: Setting, size: int, bits: float) -> int:
    """Primes of `bits` bits whose product is above twice every coefficient of a sum."""
    digit = min(of.alpha, of.primes) * of.bits - 1
    key_digit = min(size, of.limbs) * of.bits - 1
    needed = 1 + log2(of.digits) + of.log_n + digit + key_digit
    return ceil((needed + HALF_A_BIT) / bits)


def extended(of: Setting, size: int, bits: float) -> Counts:
    """With a key in digits of `size` primes, over an auxiliary modulus of primes of `bits` bits."""
    rows, inner = ceil(of.limbs / size), auxiliary(of, size, bits)
    return Counts(
        transforms=(3 * of.primes, of.digits * inner + 2 * rows * inner),
        shared=of.primes + of.digits * inner,
        products=of.digits * rows * inner,
        conversions=(2 * (of.special * of.primes + inner * of.limbs), of.primes * inner),
        key_bytes=2 * (of.digits * rows * inner * 8 << of.log_n),
        sent_bytes=ordinary(of).sent_bytes,
        bits=bits,
        seeded=False,
    )


def extensions(of: Setting) -> Iterator[tuple[int, float, Counts]]:
    """Every size of a digit of the key with auxiliary primes of both widths: size, bits, counts."""
    for size in range(1, of.limbs + 1):
        for bits in (float(NARROW), 60.0):
            yield size, bits, extended(of, size, bits)
