"""What a key switch takes: counts of its work, with weights.

A switch at level l with d digits of r rows (d < r if rows are summed to coarser digits) over t targets, k of
them removed:

    decomposition   (l + 1) inverse and d t - (l + 1) forward transforms, one conversion term for each prime
                    of a digit and each target
    products        r t of them, both halves
    division        2 k inverse and 2 (l + 1) forward transforms, 2 k (l + 1) conversion terms
    the rest        4 (l + 1) visits: quotients and permutations

Rotations of one ciphertext share the decomposition (docs/key-switching.md, "The pipeline"). Baby and giant
steps of a linear transform do not divide as others do (docs/planning.md): a baby step visits 2 t + l + 1
limbs instead, a giant step divides one half before, and visits 5 t + l + 1. Primes of at most 50 bits and
wider ones have weights of their own: the former have faster arithmetic.

What workloads compute beside key switches is in `operations`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import cache
from typing import Literal

from keywright.plan.ring.chain import SLACK, Shape

NARROW_BITS = 50
"""Widest primes with the faster arithmetic."""


OPTIONAL = ("wide_transform", "wide_product", "wide_conversion", "stored_product", "diagonal")
"""Weights that can be those of something else."""


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
        stored_product: as `product`, of a key whose uniform half is stored; None for as long.
        diagonal: both halves of the product with a diagonal, for one prime; None for as long as `product`.
        multiplication: the product of two polynomials, for one prime.
        visit: a sum, a product with a constant or a permutation, for one prime.
        embedding: the Fourier transform of an encoding.
        call: what an operation of the engine takes whatever the ring degree.
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


DEFAULT_WEIGHTS = Weights(transform=168e-6, product=105e-6, conversion=21e-6, key_limb=1.97e-3)
"""The proportions 8 : 5 : 1 of `EvaluationKeys.best`, with a transform of 168 microseconds: a rotation at
level 26 in 75 ms, as measured on
one core with AVX-512 (docs/limits.md, "Speed"); 2.48 GB of seeded keys in 9.3 s (docs/bootstrapping.md)."""


DIGIT_NOISE = 1.5 * 3.19**2
"""What a key switch adds for a digit as large as the special primes: N sigma^2 / 12, over the rounding of a
division, N (2/3) / 12 for a ternary secret (crates/rlwe/src/noise.rs)."""


@dataclass(frozen=True)
class Work:
    """Counts of what is computed, in units of a polynomial of 2^16 coefficients; calls are just counted.

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
        calls: operations of the engine: decompositions, products with keys, operations beside key switches.
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
        """Everything in one row: what weights are fitted to."""
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
        """Predicted time."""
        return sum(
            count * weight for count, weight in zip(self.features, fitted_weights(weights), strict=True)
        )

    def plus(self, other: "Work", times: float = 1.0) -> "Work":
        """The sum with a multiple of another."""
        row = [a + times * b for a, b in zip(self.features, other.features, strict=True)]
        return Work((row[0], row[1]), (row[2], row[3]), (row[4], row[5]), *row[6:])


def fitted_weights(weights: Weights) -> tuple[float, ...]:
    """The weights in the order of `Work.features`."""

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
    """The ring degree nearest to another one, the larger of two, by their base-2 logarithms."""
    return min(known, key=lambda degree: (abs(degree - log_n), -degree))


Form = Literal["whole", "baby", "giant"]
"""What becomes of the division of a key switch: each divides its result; the baby steps of a linear transform
leave that to it; a giant step divides half of what it takes, and leaves the rest to it."""
FORMS: tuple[Form, ...] = ("whole", "baby", "giant")


@dataclass(frozen=True)
class Use:
    """One way to use a key at a level.

    Attributes:
        shared: the decomposition.
        own: products and division.
        baby, giant: the same as a baby step and as a giant step of a linear transform.
        noise, removed: as of `SwitchCost`.
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
        """What is not shared, in a form."""
        return {"whole": self.own, "baby": self.baby, "giant": self.giant}[form]


@dataclass(frozen=True)
class SwitchCost:
    """Seconds of the two parts of a key switch.

    Attributes:
        shared: decomposition, once for all rotations of a ciphertext with keys of one shape.
        own: products and division.
        noise: variance of the error that it adds, in units of the variance of the rounding of a division,
            that rounding not counted.
        removed: indices of the primes that it divides by.
        baby, giant: seconds of the part that is not shared, as a baby step and as a giant step of a linear
            transform; None for as long as `own`.
    """

    shared: float
    own: float
    noise: float
    removed: tuple[int, ...]
    baby: float | None = None
    giant: float | None = None

    @property
    def alone(self) -> float:
        """A switch that shares nothing."""
        return self.shared + self.own

    def of_form(self, form: Form) -> float:
        """Seconds of what is not shared, in a form."""
        part = {"whole": self.own, "baby": self.baby, "giant": self.giant}[form]
        return self.own if part is None else part


class CostModel:
    """Predicts times from shapes."""

    def __init__(self, weights: Weights | Mapping[int, Weights] = DEFAULT_WEIGHTS) -> None:
        """A model with these weights, for every ring degree or by its base-2 logarithm: a degree that is not
        there takes those of the nearest one."""
        self.weights: dict[int, Weights] = {16: weights} if isinstance(weights, Weights) else dict(weights)
        if not self.weights:
            raise ValueError("a model needs weights for one ring degree at least")
        self._best = cache(self._cost)

    def of_degree(self, log_n: int) -> Weights:
        """The weights for a ring degree."""
        return self.weights[nearest(self.weights, log_n)]

    def switch(self, shape: Shape, level: int) -> SwitchCost | None:
        """The engine's use of a key at a level (`engine_use`); None above the key's level."""
        return self._best(shape, level)

    def key_seconds(self, shape: Shape) -> float:
        """Making a key."""
        weights = self.of_degree(shape.chain.log_n)
        parts = zip(key_parts(shape), (weights.key_limb, weights.key_row, weights.key_prime), strict=True)
        return sum(count * weight for count, weight in parts)

    def load_seconds(self, shape: Shape) -> float:
        """Reading a key from a file that the system has in memory: both halves, if none is a seed."""
        halves = 1 if shape.seeded else 2
        return halves * key_parts(shape)[0] * self.of_degree(shape.chain.log_n).load_limb

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
def engine_use(shape: Shape, level: int) -> Use | None:
    """How the engine uses a key at a level: with as few transforms, products and conversion terms as can be,
    in the proportions of `DEFAULT_WEIGHTS` whatever they take on this machine. None above the key's level."""
    if level > shape.level:
        return None

    def cost(use: Use) -> float:
        return use.shared.seconds(DEFAULT_WEIGHTS) + use.own.seconds(DEFAULT_WEIGHTS)

    return min(uses(shape, level), key=cost, default=None)


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
    removed = (*chain.special_candidates(shape.level)[: shape.special], *q[first_tail : first_tail + tail])
    size = 2.0 ** (chain.log_n - 16)
    turns = size * chain.log_n / 16
    narrow_kept, narrow_removed = narrow_count(kept), narrow_count(removed)
    narrow, targets = narrow_kept + narrow_removed, len(kept) + len(removed)
    # A digit is not converted to its own primes.
    terms_narrow = terms_wide = 0
    for first, end in digits:
        own = narrow_count(q[first:end])
        terms_narrow += (end - first) * (narrow - own)
        terms_wide += (end - first) * (targets - narrow - (end - first - own))
    shared = Work(
        transforms=(len(digits) * narrow * turns, len(digits) * (targets - narrow) * turns),
        conversions=(terms_narrow * size, terms_wide * size),
        # Dropped primes that are removed as well multiply the input.
        visits=(len(kept) * size if tail else 0.0),
        calls=1.0,
    )
    wide, wide_kept = targets - narrow, len(kept) - narrow_kept
    rows_of = (rows * narrow * size, rows * wide * size)
    products = Work(products=rows_of, calls=1.0)
    if not shape.seeded:
        products = Work(stored_products=sum(rows_of), calls=1.0)
    half = Work(
        transforms=(narrow * turns, wide * turns),
        conversions=(len(removed) * narrow_kept * size, len(removed) * wide_kept * size),
        visits=len(kept) * size,
    )
    # The halves of a result are permuted beside that.
    whole = products.plus(half, 2).plus(Work(visits=2 * len(kept) * size))
    baby = products.plus(Work(visits=(2 * targets + len(kept)) * size))
    giant = products.plus(half).plus(Work(visits=5 * targets * size))
    noise = DIGIT_NOISE * merged * sum(4.0 ** (sum(q[first:end]) - bits) for first, end in digits)
    dropped = tuple(range(first_tail, first_tail + tail))
    return Use(shared, whole, baby, giant, noise, shape.special_primes + dropped, tuple(digits))


def narrow_count(bits: Sequence[float]) -> int:
    """How many primes have the faster arithmetic."""
    return sum(width <= NARROW_BITS for width in bits)
