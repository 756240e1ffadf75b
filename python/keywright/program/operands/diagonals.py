"""Matrices by their diagonals, the form of linear maps between layouts."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from keywright.program.arrays import Vector


class Diagonals(Mapping[int, Vector]):
    """Diagonals of one input by index, made on demand. Only the table of the most recently used object is
    kept, so a program holds the sources of its diagonals and one table.

    Args:
        steps: indices of the diagonals, ascending.
        period: number of values of each, which then repeat.
        make: returns the values, (len(steps), period / copies).
        copies: number of consecutive values that are equal; a power of two.
    """

    _latest: "tuple[Diagonals, Vector] | None" = None

    def __init__(
        self, steps: Sequence[int], period: int, make: Callable[[], Vector], copies: int = 1
    ) -> None:
        self.steps, self.period, self.copies = tuple(steps), period, copies
        self._make = make
        self._place = {step: place for place, step in enumerate(self.steps)}

    def table(self) -> Vector:
        """Return all diagonals in the order of ``steps``: (len(steps), period)."""
        latest = Diagonals._latest
        if latest is None or latest[0] is not self:
            Diagonals._latest = None  # never hold two tables
            values = self.distinct()
            table = values if self.copies == 1 else np.repeat(values, self.copies, axis=1)
            latest = Diagonals._latest = self, table
        return latest[1]

    def distinct(self) -> Vector:
        """Return all diagonals with one of each ``copies`` equal values: (len(steps), period / copies)."""
        return self._make()

    @classmethod
    def release(cls) -> None:
        """Drop the most recent table."""
        Diagonals._latest = None

    def __getitem__(self, step: int) -> Vector:
        values: Vector = self.table()[self._place[step]]
        return values

    def __contains__(self, step: object) -> bool:
        return step in self._place

    def __iter__(self) -> Iterator[int]:
        return iter(self.steps)

    def __len__(self) -> int:
        return len(self.steps)


def period_of(diagonals: Mapping[int, Vector]) -> int:
    """Return the number of values of each diagonal of one input."""
    return diagonals.period if isinstance(diagonals, Diagonals) else len(next(iter(diagonals.values())))


def table_of(diagonals: Mapping[int, Vector]) -> Vector:
    """Return the diagonals of one input by ascending index: (diagonals, period)."""
    if isinstance(diagonals, Diagonals):
        return diagonals.table()
    return np.asarray([diagonals[r] for r in sorted(diagonals)])


def copies_of(diagonals: Mapping[int, Vector]) -> int:
    """Return how many consecutive values of each diagonal of one input are known to be equal."""
    return diagonals.copies if isinstance(diagonals, Diagonals) else 1


def distinct_of(diagonals: Mapping[int, Vector]) -> Vector:
    """Return `table_of`, with one of each `copies_of` equal values."""
    return diagonals.distinct() if isinstance(diagonals, Diagonals) else table_of(diagonals)


@dataclass(frozen=True, eq=False)
class DiagonalMatrix:
    """A block row of matrices by their diagonals: the sum over inputs k of M_k v_k.

    Diagonal r of M is ``M[i, (i + r) mod slots]``. Diagonals are evaluated by baby and giant steps. Here r =
    i + j, with the baby step i = r mod n1, a rotation of the input, and the giant step j = r - i, a rotation
    of the sum over inputs and baby steps.

    Attributes:
        slots: slots of the ciphertexts; a power of two.
        diagonals: for each input, the non-zero diagonals by r in [0, slots); each of length ``slots``, or of
            a smaller power of two, which then repeats. Those of a compiled network are `Diagonals`.
        n1: number of possible baby steps.
    """

    slots: int
    diagonals: tuple[Mapping[int, Vector], ...]
    n1: int

    def baby_steps(self, operand: int) -> list[int]:
        """Return the rotations of one input, ascending; 0 needs no key."""
        return sorted({r % self.n1 for r in self.diagonals[operand]})

    @property
    def giant_steps(self) -> list[int]:
        """Return the rotations of partial sums, ascending; 0 needs no key."""
        return sorted({r - r % self.n1 for diagonals in self.diagonals for r in diagonals})

    def on_slots(self, slots: int) -> "DiagonalMatrix":
        """Return the same map for vectors that repeat after a smaller number of slots.

        Raises:
            ValueError: some diagonals have a longer period.
        """
        if slots >= self.slots:
            return self
        longest = max(period_of(diagonals) for diagonals in self.diagonals)
        if longest > slots:
            raise ValueError(f"a diagonal repeats after {longest} slots, but there are only {slots}")
        reduced = tuple(_modulo(diagonals, slots) for diagonals in self.diagonals)
        return DiagonalMatrix(slots, reduced, min(self.n1, slots))

    def full_diagonal(self, operand: int, r: int) -> Vector:
        """Return one diagonal with as many values as there are slots."""
        diagonal = self.diagonals[operand][r]
        times = self.slots // len(diagonal)
        return diagonal if times == 1 else np.tile(diagonal, times)

    @property
    def periods(self) -> tuple[int, ...]:
        """Return for each input the number of values of a diagonal; 0 if it has none."""
        return tuple(period_of(diagonals) if diagonals else 0 for diagonals in self.diagonals)

    @property
    def bytes(self) -> int:
        """Bytes of all values in double precision, with one of each `copies_of` equal ones, whether they are
        in memory or not."""
        used = [diagonals for diagonals in self.diagonals if diagonals]
        return sum(8 * len(each) * period_of(each) // copies_of(each) for each in used)


def _modulo(diagonals: Mapping[int, Vector], slots: int) -> Diagonals:
    """Return diagonals with their indices modulo a number of slots; coinciding ones are summed."""
    steps = np.asarray(sorted(diagonals)) % slots
    kept, place = np.unique(steps, return_inverse=True)

    def make() -> Vector:
        table = np.zeros((len(kept), period_of(diagonals)))
        for row, values in zip(place.ravel(), table_of(diagonals), strict=True):
            table[row] += values
        return table

    return Diagonals(kept.tolist(), period_of(diagonals), make)
