"""The cost of a key switch: counts of its work, with weights.

The engine counts the work (`keywright._core.PrimeWidths`; crates/rlwe/src/planning/work.rs has the formulas).
This module scales counts to polynomials of 2^16 coefficients and converts them to seconds by the weights of a
machine. Rotations of one ciphertext share the decomposition. Baby and giant steps of a linear transform
divide differently from other switches (docs/explanation/planning.md). Primes of at most 50 bits and wider
ones have separate weights, because the former have faster arithmetic.

The work besides key switches is in `operations`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import cache
from typing import Literal, Self

from keywright.plan.ring.chain import Shape

OPTIONAL = ("wide_transform", "wide_product", "wide_conversion", "stored_product", "diagonal")
"""Weights that default to those of another kind of work."""


@dataclass(frozen=True)
class Weights:
    """Seconds for each kind of work on a polynomial of 2^16 coefficients. A ring degree N takes N / 2^16 of
    it; transforms scale as N log N.

    Attributes:
        transform: a number theoretic transform.
        product: both halves of the product of a digit and a row of a seeded key, for one prime.
        conversion: one term of a conversion to one prime.
        key_limb: generating one limb of one row of a seeded key.
        load_limb: reading it from a file.
        key_row: generating the error of a row, besides its limbs.
        key_prime: generating the secrets for a prime, besides its limbs.
        wide_transform: a transform modulo a prime of more than 50 bits; None: as `transform`.
        wide_product: a product modulo such a prime; None: as `product`.
        wide_conversion: a conversion term to such a prime; None: as `conversion`.
        stored_product: as `product`, for a key whose uniform half is stored; None: as `product`.
        diagonal: both halves of the product with a diagonal, for one prime; None: as `product`.
        multiplication: the product of two polynomials, for one prime.
        visit: a sum, a product with a constant or a permutation, for one prime.
        embedding: the Fourier transform of an encoding.
        call: overhead of an operation of the engine, for any ring degree.
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
    stored_product: float | None = None
    diagonal: float | None = None
    multiplication: float = 0.0
    visit: float = 0.0
    embedding: float = 0.0
    call: float = 0.0

    def __post_init__(self) -> None:
        """Check signs.

        Raises:
            ValueError: a negative weight, or one that is not finite.
        """
        for name, value in zip(self.__dataclass_fields__, astuple(self), strict=True):
            if value is None and name in OPTIONAL:
                continue
            if value is None or not 0 <= value < float("inf"):
                raise ValueError(
                    f"weight {name} is {value}; it must be a finite number of seconds, at least 0"
                )

    def times(self, factor: float) -> "Weights":
        """Return the weights of a machine that takes ``factor`` times as long."""
        return Weights(*(None if value is None else factor * value for value in astuple(self)))  # type: ignore[arg-type]


TYPICAL_WEIGHTS = Weights(
    transform=165e-6,
    product=80e-6,
    conversion=21e-6,
    key_limb=0.18e-3,
    load_limb=0.25e-3,
    key_row=0.5e-3,
    key_prime=0.25e-3,
    wide_transform=330e-6,
    wide_product=110e-6,
    wide_conversion=30e-6,
    stored_product=65e-6,
    diagonal=50e-6,
    multiplication=50e-6,
    visit=35e-6,
    embedding=550e-6,
    call=10e-6,
)
"""Proportions of the weights, towards which fitted ones are pulled; times one of `RING_FACTORS`, they are
seconds. A limb is read from a disk; from a cached file it takes half the time."""

RING_FACTORS = {13: 0.57, 14: 0.564, 15: 0.562, 16: 0.631}
"""Seconds of a core with AVX-512 IFMA relative to `TYPICAL_WEIGHTS`, by base-2 logarithm of the ring degree:
for predictions without a calibration. In the largest ring, less of the data is in cache."""

TICK = 2.0**-40
"""Seconds of work are multiples of this. Their sums are exact, up to 2^13 s, so that searches find changes of
the same cost equal, with any weights."""


@dataclass(frozen=True)
class Work:
    """Counts of work, in units of a polynomial of 2^16 coefficients; calls are plain counts.

    Pairs are counts modulo primes of at most 50 bits and modulo wider ones.

    Attributes:
        transforms: number theoretic transforms.
        products: products of a digit and a row of a seeded key.
        conversions: terms of conversions.
        stored_products: products of a digit and a row of a stored key.
        diagonals: products of both halves with a diagonal.
        multiplications: products of two polynomials.
        visits: sums, products with constants, permutations.
        embeddings: Fourier transforms of encodings.
        calls: operations of the engine: decompositions, products with keys, operations besides key switches.
    """

    transforms: tuple[float, float] = (0.0, 0.0)
    products: tuple[float, float] = (0.0, 0.0)
    conversions: tuple[float, float] = (0.0, 0.0)
    stored_products: float = 0.0
    diagonals: float = 0.0
    multiplications: float = 0.0
    visits: float = 0.0
    embeddings: float = 0.0
    calls: float = 0.0

    @property
    def features(self) -> tuple[float, ...]:
        """Return all counts in one row, the input of the fit."""
        return (
            *self.transforms,
            *self.products,
            *self.conversions,
            self.stored_products,
            self.diagonals,
            self.multiplications,
            self.visits,
            self.embeddings,
            self.calls,
        )

    def seconds(self, weights: Weights) -> float:
        """Return the predicted time, a multiple of `TICK`."""
        parts = zip(self.features, fitted_weights(weights), strict=True)
        return round(sum(count * weight for count, weight in parts) / TICK) * TICK

    def plus(self, other: "Work", times: float = 1.0) -> "Work":
        """Return the sum with a multiple of other work."""
        return Work.of_row([a + times * b for a, b in zip(self.features, other.features, strict=True)])

    @classmethod
    def counted(cls, row: Sequence[int], log_n: int) -> "Work":
        """Convert counts of the engine, on limbs of 2^log_n words; transforms scale as N log N."""
        size = 2.0 ** (log_n - 16)
        turns = size * log_n / 16
        units = (turns, turns, *(size,) * 8, turns, 1.0)
        return cls.of_row([count * unit for count, unit in zip(row, units, strict=True)])

    @classmethod
    def of_row(cls, row: Sequence[float]) -> "Work":
        """Return the work with these `features`."""
        return cls((row[0], row[1]), (row[2], row[3]), (row[4], row[5]), *row[6:])


def fitted_weights(weights: Weights) -> tuple[float, ...]:
    """Return the weights in the order of `Work.features`."""

    def either(value: float | None, otherwise: float) -> float:
        return otherwise if value is None else value

    return (
        weights.transform,
        either(weights.wide_transform, weights.transform),
        weights.product,
        either(weights.wide_product, weights.product),
        weights.conversion,
        either(weights.wide_conversion, weights.conversion),
        either(weights.stored_product, weights.product),
        either(weights.diagonal, weights.product),
        weights.multiplication,
        weights.visit,
        weights.embedding,
        weights.call,
    )


def nearest(known: Iterable[int], log_n: int) -> int:
    """Return the ring degree nearest to another one, the larger of two, by their base-2 logarithms."""
    return min(known, key=lambda degree: (abs(degree - log_n), -degree))


Form = Literal["whole", "baby", "giant"]
"""How a key switch handles its final division: a whole switch divides its result; baby steps of a linear
transform leave the division to the transform; a giant step divides half of its input and leaves the rest to
the transform."""
FORMS: tuple[Form, ...] = ("whole", "baby", "giant")


@dataclass(frozen=True)
class KeyUse:
    """One way to use a key at a level.

    Attributes:
        shared: the decomposition.
        own: products and division.
        baby, giant: the same as a baby step and as a giant step of a linear transform with double hoisting.
        noise, removed: as for `SwitchCost`.
        digits: first prime of each, and the one after its last: keys that agree in these and in `removed`
            share a decomposition.
    """

    shared: Work
    own: Work
    baby: Work
    giant: Work
    noise: float
    removed: tuple[int, ...]
    digits: tuple[tuple[int, int], ...]

    def of_form(self, form: Form) -> Work:
        """Return the unshared work in a form."""
        return {"whole": self.own, "baby": self.baby, "giant": self.giant}[form]


@dataclass(frozen=True)
class SwitchCost:
    """Seconds of the two parts of a key switch.

    Attributes:
        shared: decomposition, once for all rotations of a ciphertext with keys of one shape.
        own: products and division.
        noise: variance of the added error, in units of the variance of the rounding of a division, excluding
            that rounding.
        removed: indices of the primes that it divides by.
        baby, giant: seconds of the unshared part, as a baby step and as a giant step of a linear transform;
            None: as `own`.
    """

    shared: float
    own: float
    noise: float
    removed: tuple[int, ...]
    baby: float | None = None
    giant: float | None = None

    @property
    def alone(self) -> float:
        """Return the seconds of a switch that shares nothing."""
        return self.shared + self.own

    def of_form(self, form: Form) -> float:
        """Return the unshared seconds in a form."""
        part = self.baby if form == "baby" else self.giant if form == "giant" else None
        return self.own if part is None else part


class CostModel:
    """Predicts times from shapes.

    Thread safety: any number of threads may use one at the same time.
    """

    def __init__(self, weights: Weights | Mapping[int, Weights] | None = None) -> None:
        """Create a model with these weights, for every ring degree or by its base-2 logarithm; a missing
        degree uses the nearest one. By default they are `TYPICAL_WEIGHTS` times `RING_FACTORS`."""
        if weights is None:
            weights = {log_n: TYPICAL_WEIGHTS.times(factor) for log_n, factor in RING_FACTORS.items()}
        self.weights: dict[int, Weights] = {16: weights} if isinstance(weights, Weights) else dict(weights)
        if not self.weights:
            raise ValueError("weights is empty; a model needs weights for at least one ring degree")
        self._best = cache(self._cost)

    def __reduce__(self) -> tuple[type[Self], tuple[dict[int, Weights]]]:
        return type(self), (self.weights,)

    def of_degree(self, log_n: int) -> Weights:
        """Return the weights for a ring degree."""
        return self.weights[nearest(self.weights, log_n)]

    def switch(self, shape: Shape, level: int) -> SwitchCost | None:
        """Return the cost of the engine's use of a key at a level (`engine_use`); None above the key's
        level."""
        return self._best(shape, level)

    def key_seconds(self, shape: Shape) -> float:
        """Return the seconds of making a key."""
        return self.making_seconds(shape.chain.log_n, len(shape.digits), shape.level + 1 + shape.special)

    def making_seconds(self, log_n: int, rows: int, primes: int) -> float:
        """Return the seconds of making a key with this many rows over this many primes."""
        weights = self.of_degree(log_n)
        parts = zip(
            key_parts(log_n, rows, primes),
            (weights.key_limb, weights.key_row, weights.key_prime),
            strict=True,
        )
        return sum(count * weight for count, weight in parts)

    def load_seconds(self, shape: Shape) -> float:
        """Return the seconds of reading a key with two stored halves from a cached file."""
        halves = 1 if shape.seeded else 2
        return halves * shape_parts(shape)[0] * self.of_degree(shape.chain.log_n).load_limb

    def _cost(self, shape: Shape, level: int) -> SwitchCost | None:
        weights = self.of_degree(shape.chain.log_n)
        use = engine_use(shape, level)
        if use is None:
            return None
        return SwitchCost(
            use.shared.seconds(weights),
            use.own.seconds(weights),
            use.noise,
            use.removed,
            use.baby.seconds(weights),
            use.giant.seconds(weights),
        )


@cache
def engine_use(shape: Shape, level: int) -> KeyUse | None:
    """Return how the engine uses a key at a level, on any machine. None above the key's level."""
    chain = shape.chain
    use = chain.widths.switch(shape.level, shape.alpha, shape.special_primes, shape.seeded, level)
    if use is None:
        return None
    digits, removed, noise, work = use
    shared, whole, baby, giant = (Work.counted(row, chain.log_n) for row in work)
    return KeyUse(shared, whole, baby, giant, noise, tuple(removed), tuple(digits))


def key_parts(log_n: int, rows: int, primes: int) -> tuple[float, float, float]:
    """Return limbs, rows and primes of a key, in units of 2^16 coefficients."""
    size = 2.0 ** (log_n - 16)
    return rows * primes * size, rows * size, primes * size


def shape_parts(shape: Shape) -> tuple[float, float, float]:
    """Return the parts of a key of this shape."""
    return key_parts(shape.chain.log_n, len(shape.digits), shape.level + 1 + shape.special)
