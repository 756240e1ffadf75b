"""A back end without encryption that checks the rules of the encrypted one: levels, slots, steps, key
switches."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from keywright._core import polynomial_depth
from keywright.errors.engine import OperandError
from keywright.errors.network import OutOfRangeError
from keywright.program.arrays import Numbers, Vector
from keywright.program.operands.bootstraps import LARGEST, Bootstrap
from keywright.program.operands.diagonals import DiagonalMatrix
from keywright.program.operands.polynomials import PolynomialSpec

REPEATED = 1e-9
"""Allowed difference of repeated values, relative to the largest: they are summed in different orders."""


@dataclass(frozen=True, eq=False)
class ClearCiphertext:
    """The values of all slots, a level, and log2 of the degree of the smaller ring (0 for the largest)."""

    values: Numbers
    level: int
    log_n: int = 0


@dataclass(frozen=True)
class PerformedSwitch:
    """A key switch of an encrypted evaluation: kind, rotation step (0 for a relinearization), level, ring."""

    kind: str
    step: int
    level: int
    log_n: int = 0


class ClearBackend:
    """Evaluates programs on plain vectors, step by step as the encrypted evaluator does.

    Thread safety: one thread at a time, because `log` is of the last run.

    Args:
        bootstraps: the program's bootstraps, if it has any.

    Attributes:
        slots: length of every vector in the largest ring.
        log: the key switches that an encrypted evaluation would make, in order, without bootstraps.
    """

    def __init__(self, slots: int, bootstraps: Sequence[Bootstrap] = ()) -> None:
        self.slots, self.bootstraps = slots, tuple(bootstraps)
        self.log: list[PerformedSwitch] = []

    def encrypt(self, values: Vector, level: int, log_n: int = 0) -> ClearCiphertext:
        """Return a vector at a level, in a ring. Raises `OperandError` for another length, or values
        that are not finite."""
        slots = self._slots(log_n)
        if values.shape != (slots,) or not np.isfinite(values).all():
            raise OperandError(f"expected {slots} finite values, got shape {values.shape}")
        return ClearCiphertext(np.asarray(values, np.float64), level, log_n)

    def level(self, ct: ClearCiphertext) -> int:
        """See `Backend.level`."""
        return ct.level

    def linear_transform(self, cts: list[ClearCiphertext], transform: DiagonalMatrix) -> ClearCiphertext:
        """See `Backend.linear_transform`."""
        level, log_n = self._common_level("linear_transform", cts)
        slots = self._slots(log_n)
        if transform.slots != slots or len(transform.diagonals) != len(cts):
            raise OperandError(
                f"a transform of {len(transform.diagonals)} inputs with {transform.slots} slots does not "
                f"accept {len(cts)} ciphertexts of {slots}"
            )
        self._spend("linear_transform", level, 1)
        babies = [
            {step: self._rotated(ct.values, step, level, log_n) for step in transform.baby_steps(operand)}
            for operand, ct in enumerate(cts)
        ]
        values = [dict(diagonals) for diagonals in transform.diagonals]  # made once, not for every step
        total = np.zeros_like(cts[0].values)
        for giant in transform.giant_steps:
            partial = np.zeros_like(total)
            for operand, diagonals in enumerate(values):
                for r in sorted(diagonals):
                    baby = r % transform.n1
                    if r - baby == giant:
                        diagonal, periods = diagonals[r], (-1, len(diagonals[r]))
                        factors = _rotated(diagonal, -giant % len(diagonal))
                        partial.reshape(periods)[:] += factors * babies[operand][baby].reshape(periods)
            total += self._rotated(partial, giant, level, log_n)
        return ClearCiphertext(total, level - 1, log_n)

    def rotate(self, ct: ClearCiphertext, step: int) -> ClearCiphertext:
        """See `Backend.rotate`."""
        return replace(ct, values=self._rotated(ct.values, step, ct.level, ct.log_n))

    def add(self, left: ClearCiphertext, right: ClearCiphertext) -> ClearCiphertext:
        """See `Backend.add`."""
        level, log_n = self._common_level("add", [left, right])
        return ClearCiphertext(left.values + right.values, level, log_n)

    def add_plain(self, ct: ClearCiphertext, vector: Numbers) -> ClearCiphertext:
        """See `Backend.add_plain`."""
        if vector.shape != ct.values.shape:
            raise OperandError(f"add_plain needs {len(ct.values)} values, got shape {vector.shape}")
        return replace(ct, values=ct.values + vector)

    def mul(self, left: ClearCiphertext, right: ClearCiphertext) -> ClearCiphertext:
        """See `Backend.mul`."""
        level, log_n = self._common_level("mul", [left, right])
        self._spend("mul", level, 1)
        self.log.append(PerformedSwitch("relinearization", 0, level, log_n))
        return ClearCiphertext(left.values * right.values, level - 1, log_n)

    def polynomial(self, ct: ClearCiphertext, polynomial: PolynomialSpec) -> ClearCiphertext:
        """See `Backend.polynomial`."""
        depth = polynomial_depth(polynomial.degree)
        self._spend("polynomial", ct.level, depth)
        for offset in polynomial.relinearizations:
            self.log.append(PerformedSwitch("relinearization", 0, ct.level - offset, ct.log_n))
        return ClearCiphertext(polynomial.evaluate(ct.values), ct.level - depth, ct.log_n)

    def add_both(self, ct: ClearCiphertext, vector: Vector) -> ClearCiphertext:
        """See `Backend.add_both`."""
        return self.add_plain(ct, vector * (1 + 1j))

    def conjugate(self, ct: ClearCiphertext) -> ClearCiphertext:
        """See `Backend.conjugate`."""
        self.log.append(PerformedSwitch("conjugation", 0, ct.level, ct.log_n))
        return replace(ct, values=np.conj(ct.values))

    def join(self, real: ClearCiphertext, imaginary: ClearCiphertext) -> ClearCiphertext:
        """See `Backend.join`."""
        level, log_n = self._common_level("join", [real, imaginary])
        return ClearCiphertext(real.values + 1j * imaginary.values, level, log_n)

    def real(self, ct: ClearCiphertext, conjugate: ClearCiphertext) -> ClearCiphertext:
        """See `Backend.real`."""
        level, log_n = self._common_level("real", [ct, conjugate])
        return ClearCiphertext(np.real(ct.values + conjugate.values), level, log_n)

    def imaginary(self, ct: ClearCiphertext, conjugate: ClearCiphertext) -> ClearCiphertext:
        """See `Backend.imaginary`."""
        level, log_n = self._common_level("imaginary", [ct, conjugate])
        return ClearCiphertext(np.imag(ct.values - conjugate.values), level, log_n)

    def drop_level(self, ct: ClearCiphertext, level: int) -> ClearCiphertext:
        """See `Backend.drop_level`."""
        if not 0 <= level <= ct.level:
            raise OperandError(f"cannot drop from level {ct.level} to {level}")
        return replace(ct, level=level)

    def switch_ring(self, ct: ClearCiphertext, log_n: int) -> ClearCiphertext:
        """See `Backend.switch_ring`. Raises `OperandError` for values that do not repeat."""
        if log_n == ct.log_n:
            raise OperandError(f"a switch from ring {log_n} to itself")
        slots = self._slots(log_n)
        values = self._repeating(ct.values, slots)
        return replace(ct, values=np.tile(values, slots // len(values)), log_n=log_n)

    def bootstrap(self, cts: list[ClearCiphertext], index: int) -> list[ClearCiphertext]:
        """See `Backend.bootstrap`. Raises `OutOfRangeError` for values above `LARGEST`."""
        return [self._bootstrapped(ct, index) for ct in cts]

    def _bootstrapped(self, ct: ClearCiphertext, index: int) -> ClearCiphertext:
        if not 0 <= index < len(self.bootstraps):
            raise OperandError(f"bootstrap {index} of {len(self.bootstraps)}")
        option = self.bootstraps[index]
        if ct.level < option.input_level:
            raise _out_of_levels("a bootstrap", ct.level, option.input_level)
        if ct.log_n != option.input_log_n:
            raise OperandError(f"a bootstrap from ring {option.input_log_n} of one in ring {ct.log_n}")
        values = self._repeating(ct.values, option.slots)
        largest = float(np.abs(values).max())
        if largest > LARGEST:
            raise OutOfRangeError("a bootstrap", largest, -LARGEST, LARGEST)
        return ClearCiphertext(np.tile(values, self.slots // len(values)), option.output_level)

    def _slots(self, log_n: int) -> int:
        return min(self.slots, 1 << (log_n - 1)) if log_n else self.slots

    @staticmethod
    def _repeating(values: Numbers, period: int) -> Numbers:
        """Return one period of the values."""
        rows = values.reshape(-1, min(period, len(values)))
        spread = float(np.abs(rows - rows[0]).max())
        if spread > REPEATED * float(np.abs(rows).max()):
            raise OperandError(f"the values do not repeat after {period} slots: they differ by {spread}")
        return np.asarray(rows[0])

    def _rotated(self, values: Numbers, step: int, level: int, log_n: int) -> Numbers:
        if not 0 <= step < len(values):
            raise OperandError(f"rotation step {step} is not in [0, {len(values)})")
        if step:
            self.log.append(PerformedSwitch("rotation", step, level, log_n))
        return _rotated(values, step)

    def _common_level(self, operation: str, cts: list[ClearCiphertext]) -> tuple[int, int]:
        levels, rings = {ct.level for ct in cts}, {ct.log_n for ct in cts}
        if len(rings) != 1:
            raise OperandError(f"{operation} needs operands in one ring, got {sorted(rings)}")
        if len(levels) != 1:
            raise OperandError(
                f"{operation} needs operands at one level, got {sorted(levels)}; drop the higher ones"
            )
        return levels.pop(), rings.pop()

    def _spend(self, operation: str, level: int, needed: int) -> None:
        if level < needed:
            raise _out_of_levels(operation, level, needed)


def _out_of_levels(operation: str, level: int, needed: int) -> OperandError:
    return OperandError(
        f"{operation} consumes {needed} levels, but its operand is at level {level}; start at a higher level",
        code="levels",
    )


def _rotated(values: Numbers, step: int) -> Numbers:
    """Return values from a step on, then those before: `numpy.roll` takes longer than the rest of a
    transform."""
    return np.concatenate((values[step:], values[:step]))
