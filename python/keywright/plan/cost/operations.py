"""The operations of a workload besides key switches: sums, products, rescalings, divisions and encodings.

The engine counts the kernels of each operation (crates/circuits/src/arithmetic.rs has the formulas).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from keywright._reading.records import shown, whole
from keywright.plan.ring.chain import Chain

from .model import Work

MAX_COUNT = 1 << 31


@dataclass(frozen=True)
class Operation:
    """Counts of one operation on ciphertexts of one level.

    Attributes:
        name: name of the place in the workload, for people.
        level: l.
        count: number of times.
        special: number of special primes instead of P, the first of the chain, if the operation has its own
            keys; None for P.
        products: products of two polynomials modulo every prime of Q.
        visits: sums, and products of a polynomial with a constant, modulo every prime of Q.
        constants: sums of a polynomial with a constant, modulo every prime of Q: a visit each.
        transforms: number theoretic transforms modulo every prime of Q.
        diagonals: products of a diagonal with both halves of a ciphertext, modulo every prime of Q P.
        lifted: the same modulo every prime of Q, where the ciphertext is a multiple of P.
        key_rows: products of a digit with both halves of a seeded key row, modulo every prime of Q P.
        raised_visits: sums and permutations modulo every prime of Q P.
        raised: polynomials modulo q_0 that are raised to Q.
        decomposed: polynomials modulo q_0 that are raised to Q P.
        lowered: polynomials modulo Q P that are divided by P.
        divided: polynomials modulo Q P that are divided by P q_l.
        rescaled: polynomials modulo Q that are divided by q_l.
        merged: relinearizations that divide by q_l as well.
        embeddings: vectors of slots that are encoded; their transforms are among `transforms`.
    """

    name: str
    level: int
    count: int = 1
    special: int | None = None
    products: int = 0
    visits: int = 0
    constants: int = 0
    transforms: int = 0
    diagonals: int = 0
    lifted: int = 0
    key_rows: int = 0
    raised_visits: int = 0
    raised: int = 0
    decomposed: int = 0
    lowered: int = 0
    divided: int = 0
    rescaled: int = 0
    merged: int = 0
    embeddings: int = 0

    def refusal(self, chain: Chain) -> str | None:
        """Return the fault of the operation in a workload over these primes, if it has one."""
        if not 0 <= self.level <= chain.max_level:
            return f"level {self.level} is not in [0, {chain.max_level}]"
        if self.count < 1:
            return f"count {self.count} is below 1"
        if self.special is not None and not 1 <= self.special <= len(chain.p):
            return f"{self.special} special primes; there are {len(chain.p)}"
        for name in (*COUNTS, "count"):
            value = getattr(self, name)
            if not 0 <= value < MAX_COUNT:
                return f"{name} is {value}; it must be in [0, {MAX_COUNT})"
        if self.level == 0 and self.divided + self.rescaled + self.merged:
            return "there is no prime to divide by at level 0"
        return None

    def work(self, chain: Chain, removed: Sequence[int], merged: Sequence[int] = ()) -> Work:
        """Return the counts of kernels of one such operation.

        Args:
            chain: the primes.
            removed: P, as indices through q_0 .. q_L, p_0, ...
            merged: the primes that the relinearization key of the level removes; P if there are none.
        """
        if self.special is not None:
            removed = range(chain.max_level + 1, chain.max_level + 1 + self.special)
        counts = {name: getattr(self, name) for name in COUNTS if getattr(self, name)}
        row = chain.widths.operation(self.level, counts, list(removed), list(merged or removed))
        return Work.counted(row, chain.log_n)

    def describe(self) -> dict[str, str | int]:
        """Return the JSON form: counts that are not 0."""
        out: dict[str, str | int] = {"name": self.name, "level": self.level, "count": self.count}
        if self.special is not None:
            out["special"] = self.special
        return out | {name: getattr(self, name) for name in COUNTS if getattr(self, name)}

    @classmethod
    def read(cls, entry: Mapping[str, Any]) -> "Operation":
        """Read the result of `describe`.

        Raises:
            ValueError: a count that does not exist, or is not an integer.
        """
        known = {"name", "level", "count", "special", *COUNTS}
        if not isinstance(entry, dict):
            raise ValueError(f"an operation is {shown(entry)}, not an object")
        for name, value in entry.items():
            if name not in known:
                raise ValueError(f"an operation has the unknown member {shown(name)}")
            if name != "name":
                whole(value, f"{name} of an operation")
        return cls(**{**entry, "name": str(entry["name"])})

    def times(self, count: int) -> "Operation":
        """Return the same operation, repeated this many times."""
        return replace(self, count=self.count * count)


COUNTS = tuple(f.name for f in fields(Operation) if f.name not in ("name", "level", "count", "special"))
"""The counts of an operation."""


def product_operation(name: str, level: int, *, square: bool = False) -> Operation:
    """Return a product of ciphertexts at a level, relinearized and rescaled, without the key switch."""
    return Operation(name, level, products=3 if square else 4, visits=1 if square else 0, merged=1)
