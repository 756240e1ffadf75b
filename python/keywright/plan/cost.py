"""What a key switch takes: counts of its work, with weights.

A switch at level l with d digits of r rows (d < r if rows are summed to coarser digits) over t targets, k of
them removed:

    decomposition   (l + 1) inverse and d t - (l + 1) forward transforms, one conversion term for each prime
    of a digit and target products        r t of them, both halves
    division        2 k inverse and 2 (l + 1) forward transforms, 2 k (l + 1) conversion terms

Rotations of one ciphertext share the decomposition (docs/key-switching.md, "The pipeline"). Primes of at most
50 bits and wider ones have weights of their own: the former have faster arithmetic.
"""

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import cache

from .chain import SLACK, Shape

NARROW_BITS = 50
"""Widest primes with the faster arithmetic."""


@dataclass(frozen=True)
class Weights:
    """Seconds for each piece of work on a polynomial of 2^16 coefficients; a ring degree N takes N / 2^16 of
    it, transforms N log N.

    Attributes:
        transform: a number theoretic transform.
        product: both halves of the product of a digit and a row of a seeded key, for one prime.
        conversion: one term of a conversion to one prime.
        key_limb: generating one limb of one row of a seeded key.
        load_limb: reading it from a file.
        key_row: what is generated once for a row, beside its limbs: the error.
        key_prime: what is generated once for a prime, beside its limbs: the secrets.
        wide_transform: a transform modulo a prime of more than 50 bits; None for as long as the others.
        wide_product: a product modulo such a prime; likewise.
        wide_conversion: a conversion term to such a prime; likewise.
    """

    transform: float
    product: float
    conversion: float
    key_limb: float
    load_limb: float = 0.0
    key_row: float = 0.0
    key_prime: float = 0.0
    wide_transform: float | None = None
    wide_product: float | None = None
    wide_conversion: float | None = None

    def __post_init__(self) -> None:
        """Check signs.

        Raises:
            ValueError: a negative weight, or one that is not finite.
        """
        for name, value in zip(self.__dataclass_fields__, astuple(self), strict=True):
            if value is None and name.startswith("wide"):
                continue
            if value is None or not 0 <= value < float("inf"):
                raise ValueError(
                    f"weight {name} is {value}; it must be a finite number of seconds, at least 0"
                )


DEFAULT_WEIGHTS = Weights(transform=168e-6, product=105e-6, conversion=21e-6, key_limb=1.97e-3)
"""The proportions 8 : 5 : 1 of `EvaluationKeys.best`, with a transform of 168 microseconds: a rotation at
level 26 in 75 ms, as measured on
one core with AVX-512 (docs/limits.md, "Speed"); 2.48 GB of seeded keys in 9.3 s (docs/bootstrapping.md)."""


DIGIT_NOISE = 1.5 * 3.19**2
"""What a key switch adds for a digit as large as the special primes: N sigma^2 / 12, over the rounding of a
division, N (2/3) / 12 for a ternary secret (crates/rlwe/src/noise.rs)."""


@dataclass(frozen=True)
class Work:
    """Counts of what a part of a key switch does, modulo primes of at most 50 bits and modulo wider ones.

    In units of a polynomial of 2^16 coefficients.

    Attributes:
        transforms: number theoretic transforms.
        products: products of a digit and a key row.
        conversions: terms of conversions.
    """

    transforms: tuple[float, float] = (0.0, 0.0)
    products: tuple[float, float] = (0.0, 0.0)
    conversions: tuple[float, float] = (0.0, 0.0)

    @property
    def features(self) -> tuple[float, ...]:
        """Everything in one row: what weights are fitted to."""
        return (*self.transforms, *self.products, *self.conversions)

    def seconds(self, weights: Weights) -> float:
        """Predicted time."""
        return sum(
            count * weight for count, weight in zip(self.features, fitted_weights(weights), strict=True)
        )


def fitted_weights(weights: Weights) -> tuple[float, ...]:
    """The weights in the order of `Work.features`."""
    pairs = (
        (weights.transform, weights.wide_transform),
        (weights.product, weights.wide_product),
        (weights.conversion, weights.wide_conversion),
    )
    return tuple(value for narrow, wide in pairs for value in (narrow, narrow if wide is None else wide))


@dataclass(frozen=True)
class Use:
    """One way to use a key at a level.

    Attributes:
        shared: the decomposition.
        own: products and division.
        noise, removed: as of `SwitchCost`.
    """

    shared: Work
    own: Work
    noise: float
    removed: tuple[int, ...]


@dataclass(frozen=True)
class SwitchCost:
    """Seconds of the two parts of a key switch.

    Attributes:
        shared: decomposition, once for all rotations of a ciphertext with keys of one shape.
        own: products and division.
        noise: variance of the error that it adds, in units of the variance of the rounding of a division,
            that rounding not counted.
        removed: indices of the primes that it divides by.
    """

    shared: float
    own: float
    noise: float
    removed: tuple[int, ...]

    @property
    def alone(self) -> float:
        """A switch that shares nothing."""
        return self.shared + self.own


class CostModel:
    """Predicts times from shapes."""

    def __init__(self, weights: Weights | Mapping[int, Weights] = DEFAULT_WEIGHTS) -> None:
        """A model with these weights, for every ring degree or by its base-2 logarithm: a degree that is not
        there takes those of the nearest one."""
        self.weights: dict[int, Weights] = {16: weights} if isinstance(weights, Weights) else dict(weights)
        if not self.weights:
            raise ValueError("a model needs weights for one ring degree at least")
        self._best = cache(self._cheapest)

    def of_degree(self, log_n: int) -> Weights:
        """The weights for a ring degree."""
        return self.weights[min(self.weights, key=lambda known: (abs(known - log_n), -known))]

    def switch(self, shape: Shape, level: int) -> SwitchCost | None:
        """The fastest use of a key at a level, over all numbers of rows summed to a digit; None above the
        key's level."""
        return None if level > shape.level else self._best(shape, level)

    def key_seconds(self, shape: Shape) -> float:
        """Making a key."""
        weights = self.of_degree(shape.chain.log_n)
        parts = zip(key_parts(shape), (weights.key_limb, weights.key_row, weights.key_prime), strict=True)
        return sum(count * weight for count, weight in parts)

    def load_seconds(self, shape: Shape) -> float:
        """Reading a key from a file that the system has in memory."""
        return key_parts(shape)[0] * self.of_degree(shape.chain.log_n).load_limb

    def _cheapest(self, shape: Shape, level: int) -> SwitchCost | None:
        weights = self.of_degree(shape.chain.log_n)
        costs = [
            SwitchCost(use.shared.seconds(weights), use.own.seconds(weights), use.noise, use.removed)
            for use in uses(shape, level)
        ]
        return min(costs, key=lambda cost: cost.alone, default=None)


def key_parts(shape: Shape) -> tuple[float, float, float]:
    """Limbs, rows and primes of a key, in units of 2^16 coefficients."""
    size = 2.0 ** (shape.chain.log_n - 16)
    rows, primes = len(shape.digits), shape.level + 1 + shape.special
    return rows * primes * size, rows * size, primes * size


def uses(shape: Shape, level: int) -> list[Use]:
    """Every way to use a key at a level: 1, 2, ... adjacent rows summed to a digit, as far as the key has
    primes for that."""
    rows = sum(start <= level for start in shape.digits)
    found = (_use(shape, level, rows, merged) for merged in range(1, rows + 1))
    return [use for use in found if use is not None]


def _use(shape: Shape, level: int, rows: int, merged: int) -> Use | None:
    chain, starts = shape.chain, [*shape.digits, shape.level + 1]
    q = chain.q
    digits = [(starts[i], min(starts[min(i + merged, rows)], level + 1)) for i in range(0, rows, merged)]
    widest = max(sum(q[first:end]) for first, end in digits)
    tail, bits = 0, shape.special_bits
    first_tail = starts[rows]
    while bits + SLACK < widest:
        if first_tail + tail > shape.level:
            return None
        bits += q[first_tail + tail]
        tail += 1
    kept = q[: level + 1]
    removed = (*chain.pool(shape.level)[: shape.special], *q[first_tail : first_tail + tail])
    size = 2.0 ** (chain.log_n - 16)
    turns = size * chain.log_n / 16
    narrow_kept, narrow_removed = _narrow(kept), _narrow(removed)
    narrow, targets = narrow_kept + narrow_removed, len(kept) + len(removed)
    # A digit is not converted to its own primes.
    terms_narrow = terms_wide = 0
    for first, end in digits:
        own = _narrow(q[first:end])
        terms_narrow += (end - first) * (narrow - own)
        terms_wide += (end - first) * (targets - narrow - (end - first - own))
    shared = Work(
        transforms=(len(digits) * narrow * turns, len(digits) * (targets - narrow) * turns),
        conversions=(terms_narrow * size, terms_wide * size),
    )
    divided = 2 * len(removed)
    own_work = Work(
        transforms=(2 * narrow * turns, 2 * (targets - narrow) * turns),
        products=(rows * narrow * size, rows * (targets - narrow) * size),
        conversions=(divided * narrow_kept * size, divided * (len(kept) - narrow_kept) * size),
    )
    noise = DIGIT_NOISE * merged * sum(4.0 ** (sum(q[first:end]) - bits) for first, end in digits)
    dropped = tuple(range(first_tail, first_tail + tail))
    return Use(shared, own_work, noise, shape.special_primes + dropped)


def _narrow(bits: Sequence[float]) -> int:
    return sum(width <= NARROW_BITS for width in bits)
