"""The primes of a parameter set, and the possible shapes of a switching key.

A key of level L has rows for its digits, runs of at most alpha primes of q_0..q_L, over q_0..q_L and its
special primes. The engine computes its digits and its bytes (`keywright._core.PrimeWidths`;
docs/explanation/key-switching.md, "KeySpec").
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import groupby

from keywright._copies import Stated
from keywright._core import PrimeWidths, maximum_log_qp

MAX_BOUND = 1 << 30
"""A bound on the bits of a modulus above this is no bound."""


@dataclass(frozen=True)
class Chain(Stated):
    """The primes of a parameter set, by their widths.

    Attributes:
        log_n: base-2 logarithm of the ring degree N.
        q: bits of q_0, q_1, ...: whole numbers, or base-2 logarithms for the primes of parameters.
        p: bits of the special primes.
        bound: maximum bits of a key's modulus; None uses the engine's bound for a uniform ternary secret.
    """

    log_n: int
    q: tuple[float, ...]
    p: tuple[float, ...]
    bound: int | None = None

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            ValueError: a number is out of range; the message states its bound.
        """
        if not 10 <= self.log_n <= 17:
            raise ValueError(f"log2 of the ring degree is {self.log_n}; it must be from 10 to 17")
        for name, primes, most in (("q", self.q, 128), ("p", self.p, 128)):
            if not 1 <= len(primes) <= most:
                raise ValueError(f"{len(primes)} primes {name}; there must be from 1 to {most}")
            for bits in primes:
                if not 20 <= bits <= 61.01:
                    raise ValueError(f"a prime of {name} has {bits:g} bits; it must have from 20 to 61")
        if self.bound is not None and not 1 <= self.bound <= MAX_BOUND:
            raise ValueError(
                f"a key may have a modulus of {self.bound:g} bits; it must be from 1 to {MAX_BOUND}"
            )

    @cached_property
    def _hash(self) -> int:
        return hash((self.log_n, self.q, self.p, self.bound))

    def __hash__(self) -> int:
        """Return the hash, which is computed once: planning looks up chains all the time."""
        return self._hash

    @cached_property
    def widths(self) -> PrimeWidths:
        """Return the widths for the engine, which computes sizes and counts of work from them."""
        return PrimeWidths(self.log_n, self.q, self.p)

    @property
    def max_level(self) -> int:
        """Level of fresh ciphertexts."""
        return len(self.q) - 1

    def describe(self) -> str:
        """Describe the primes, with widths to a tenth of a bit."""
        q, p = (", ".join(_runs(primes)) for primes in (self.q, self.p))
        return f"primes of {q} and special ones of {p} bits in a ring of degree 2^{self.log_n}"

    @property
    def modulus_bound(self) -> int:
        """Maximum bits of the modulus of a key."""
        return maximum_log_qp(self.log_n) if self.bound is None else self.bound

    def special_candidates(self, level: int) -> tuple[int, ...]:
        """Return the candidate special primes for a key of this level, in the order in which a key takes
        them: as many as the bound on its modulus allows.

        They are numbered through q_0 .. q_L, p_0, ...
        """
        return tuple(self.widths.special_candidates(level, self.modulus_bound))


def _runs(widths: Iterable[float]) -> list[str]:
    """Return equal adjacent widths once, with their number."""
    runs = [(len(list(run)), width) for width, run in groupby(f"{width:.1f}" for width in widths)]
    return [f"{count} x {width}" if count > 1 else width for count, width in runs]


@dataclass(frozen=True)
class Shape(Stated):
    """Level, digits and special primes of a key.

    Attributes:
        chain: the primes.
        level: its highest level.
        alpha: maximum primes per digit.
        special: number of special primes, the first ones of `chain.special_candidates(level)`.
        seeded: whether the uniform halves are seeds, as in every planned key, or stored.
    """

    chain: Chain
    level: int
    alpha: int
    special: int
    seeded: bool = True

    @cached_property
    def _hash(self) -> int:
        return hash((self.chain, self.level, self.alpha, self.special))

    def __hash__(self) -> int:
        """Return the hash, which is computed once."""
        return self._hash

    @cached_property
    def special_primes(self) -> tuple[int, ...]:
        """The special primes, numbered through q_0 .. q_L, p_0, ..."""
        return self.chain.special_candidates(self.level)[: self.special]

    @cached_property
    def digits(self) -> tuple[int, ...]:
        """First prime of every digit. A digit ends at alpha primes, or when one more would make it larger
        than the product of the special primes. Empty if a single prime is larger."""
        digits = self.chain.widths.digits(self.level, self.alpha, self.special_primes)
        return tuple(first for first, _ in digits or ())

    @property
    def legal(self) -> bool:
        """Whether every digit is at most the product of the special primes."""
        return bool(self.digits)

    @cached_property
    def stored_bytes(self) -> int:
        """Bytes in memory: residues, and the seed of a seeded key."""
        primes = self.level + 1 + self.special
        return self.chain.widths.key_bytes(len(self.digits), primes, self.seeded)


@cache
def shapes(chain: Chain, level: int) -> tuple[Shape, ...]:
    """Return every sensible shape of a key of this level: for each alpha the fewest special primes that hold
    its digits, and none that another shape beats in both digits and special primes."""
    best: dict[int, Shape] = {}
    for shape in _candidates(chain, level):
        digits = len(shape.digits)
        known = best.get(digits)
        if known is None or shape.special < known.special:
            best[digits] = shape
    return tuple(best[digits] for digits in sorted(best))


def _candidates(chain: Chain, level: int) -> Iterator[Shape]:
    for special in range(1, len(chain.special_candidates(level)) + 1):
        for alpha in range(1, level + 2):
            shape = Shape(chain, level, alpha, special)
            if shape.legal:
                yield shape
