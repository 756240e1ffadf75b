"""What a key switch takes: counts of its work, with weights.

A switch at level l with d digits of r rows (d < r if rows are summed to coarser digits) over t targets, k of
them removed:

    decomposition   (l + 1) inverse and d t - (l + 1) forward transforms, one conversion term for each prime
    of a digit and target products        r t of them, both halves
    division        2 k inverse and 2 (l + 1) forward transforms, 2 k (l + 1) conversion terms

Rotations of one ciphertext share the decomposition (docs/key-switching.md, "The pipeline").
"""

from dataclasses import dataclass
from functools import cache

from .chain import Shape


@dataclass(frozen=True)
class Weights:
    """Seconds for each piece of work on a polynomial of 2^16 coefficients; a ring degree N takes N / 2^16 of
    it, transforms N log N.

    Attributes:
        transform: a number theoretic transform.
        product: both halves of the product of a digit and a key row, for one prime.
        conversion: one term of a conversion to one prime.
        key_limb: generating one limb of one row of a seeded key.
    """

    transform: float
    product: float
    conversion: float
    key_limb: float


DEFAULT_WEIGHTS = Weights(transform=168e-6, product=105e-6, conversion=21e-6, key_limb=1.97e-3)
"""The proportions 8 : 5 : 1 of `EvaluationKeys.best`, with a transform of 168 microseconds: a rotation at
level 26 in 75 ms, as measured on
one core with AVX-512 (docs/limits.md, "Speed"); 2.48 GB of seeded keys in 9.3 s (docs/bootstrapping.md)."""


@dataclass(frozen=True)
class SwitchCost:
    """Seconds of the two parts of a key switch.

    Attributes:
        shared: decomposition, once for all rotations of a ciphertext with keys of one shape.
        own: products and division.
        noise: variance of the error that it adds, in units of the variance of a rounding of the secret's
            half; see `noise`.
    """

    shared: float
    own: float
    noise: float

    @property
    def alone(self) -> float:
        """A switch that shares nothing."""
        return self.shared + self.own


class CostModel:
    """Predicts times from shapes."""

    def __init__(self, weights: Weights = DEFAULT_WEIGHTS) -> None:
        """A model with these weights."""
        self.weights = weights
        self._best = cache(self._cheapest)

    def switch(self, shape: Shape, level: int) -> SwitchCost | None:
        """The fastest use of a key at a level, over all numbers of rows summed to a digit; None above the
        key's level."""
        return None if level > shape.level else self._best(shape, level)

    def key_seconds(self, shape: Shape) -> float:
        """Making a key."""
        limbs = len(shape.digits) * (shape.level + 1 + shape.special)
        return limbs * self.weights.key_limb * 2.0 ** (shape.chain.log_n - 16)

    def _cheapest(self, shape: Shape, level: int) -> SwitchCost | None:
        rows = sum(start <= level for start in shape.digits)
        found = [self._use(shape, level, rows, merged) for merged in range(1, rows + 1)]
        return min((cost for cost in found if cost is not None), key=lambda cost: cost.alone, default=None)

    def _use(self, shape: Shape, level: int, rows: int, merged: int) -> SwitchCost | None:
        """The use that sums `merged` adjacent rows to a digit, or None if the key has too few primes for
        that."""
        q, starts = shape.chain.q, [*shape.digits, shape.level + 1]
        digits = [(starts[i], min(starts[min(i + merged, rows)], level + 1)) for i in range(0, rows, merged)]
        widest = max(sum(q[first:end]) for first, end in digits)
        tail, bits = 0, shape.special_bits
        first_tail = starts[rows]
        while bits < widest:
            if first_tail + tail > shape.level:
                return None
            bits += q[first_tail + tail]
            tail += 1
        kept, removed = level + 1, shape.special + tail
        targets = kept + removed
        log_n = shape.chain.log_n
        size = 2.0 ** (log_n - 16)
        transform = self.weights.transform * size * log_n / 16
        convert = self.weights.conversion * size
        terms = sum((end - first) * (targets - (end - first)) for first, end in digits)
        shared = len(digits) * targets * transform + terms * convert
        own = (
            rows * targets * self.weights.product * size
            + 2 * targets * transform
            + 2 * removed * kept * convert
        )
        noise = merged * sum(4.0 ** (sum(q[first:end]) - bits) for first, end in digits)
        return SwitchCost(shared, own, noise)
