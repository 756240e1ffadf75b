"""A back end without encryption that keeps the rules of the encrypted one: levels, slots, steps, key
switches."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from keywright._core import polynomial_depth, polynomial_relinearizations
from keywright.nn.activations.polynomials import PolynomialSpec
from keywright.nn.errors import BackendMisuseError, OutOfLevelsError, OutOfRangeError
from keywright.nn.graph.sparse import Vector
from keywright.nn.layout.diagonals import DiagonalMatrix
from keywright.nn.placement.bootstraps import Bootstrap


@dataclass(frozen=True, eq=False)
class ClearCiphertext:
    """The values of all slots, and a level."""

    values: Vector
    level: int


@dataclass(frozen=True)
class PerformedSwitch:
    """A key switch that would have happened: kind, rotation step (0 for a relinearization), level."""

    kind: str
    step: int
    level: int


class ClearBackend:
    """Evaluates programs on plain vectors, step by step as the encrypted evaluator does.

    Args:
        bootstraps: those of the program, if it has any.

    Attributes:
        slots: length of every vector.
        log: the key switches that an encrypted evaluation would have made, in order, without those of
            bootstraps.
    """

    def __init__(self, slots: int, bootstraps: Sequence[Bootstrap] = ()) -> None:
        self.slots, self.bootstraps = slots, tuple(bootstraps)
        self.log: list[PerformedSwitch] = []

    def encrypt(self, values: Vector, level: int) -> ClearCiphertext:
        """A vector at a level. Raises `BackendMisuseError` for another length, or values that are not
        finite."""
        if values.shape != (self.slots,) or not np.isfinite(values).all():
            raise BackendMisuseError(f"expected {self.slots} finite values, got shape {values.shape}")
        return ClearCiphertext(np.asarray(values, np.float64), level)

    def level(self, ct: ClearCiphertext) -> int:
        """See `Backend.level`."""
        return ct.level

    def linear_transform(self, cts: list[ClearCiphertext], transform: DiagonalMatrix) -> ClearCiphertext:
        """See `Backend.linear_transform`."""
        level = self._common_level("linear_transform", cts)
        if transform.slots != self.slots or len(transform.diagonals) != len(cts):
            raise BackendMisuseError(
                f"a transform of {len(transform.diagonals)} inputs with {transform.slots} slots cannot take "
                f"{len(cts)} ciphertexts of {self.slots}"
            )
        self._spend("linear_transform", level, 1)
        babies = [
            {step: self._rotated(ct.values, step, level) for step in transform.baby_steps(operand)}
            for operand, ct in enumerate(cts)
        ]
        values = [dict(diagonals) for diagonals in transform.diagonals]  # made once, not for every step
        total = np.zeros(self.slots)
        for giant in transform.giant_steps():
            partial = np.zeros(self.slots)
            for operand, diagonals in enumerate(values):
                for r in sorted(diagonals):
                    baby = r % transform.n1
                    if r - baby == giant:
                        full = np.tile(diagonals[r], self.slots // len(diagonals[r]))
                        partial += np.roll(full, giant) * babies[operand][baby]
            total += self._rotated(partial, giant, level)
        return ClearCiphertext(total, level - 1)

    def rotate(self, ct: ClearCiphertext, step: int) -> ClearCiphertext:
        """See `Backend.rotate`."""
        return ClearCiphertext(self._rotated(ct.values, step, ct.level), ct.level)

    def add(self, left: ClearCiphertext, right: ClearCiphertext) -> ClearCiphertext:
        """See `Backend.add`."""
        return ClearCiphertext(left.values + right.values, self._common_level("add", [left, right]))

    def add_plain(self, ct: ClearCiphertext, vector: Vector) -> ClearCiphertext:
        """See `Backend.add_plain`."""
        if vector.shape != (self.slots,):
            raise BackendMisuseError(f"add_plain needs {self.slots} values, got shape {vector.shape}")
        return ClearCiphertext(ct.values + vector, ct.level)

    def mul(self, left: ClearCiphertext, right: ClearCiphertext) -> ClearCiphertext:
        """See `Backend.mul`."""
        level = self._common_level("mul", [left, right])
        self._spend("mul", level, 1)
        self.log.append(PerformedSwitch("relinearization", 0, level))
        return ClearCiphertext(left.values * right.values, level - 1)

    def polynomial(self, ct: ClearCiphertext, polynomial: PolynomialSpec) -> ClearCiphertext:
        """See `Backend.polynomial`."""
        depth = polynomial_depth(polynomial.degree)
        self._spend("polynomial", ct.level, depth)
        for offset in polynomial_relinearizations(polynomial.coefficients, polynomial.basis):
            self.log.append(PerformedSwitch("relinearization", 0, ct.level - offset))
        if polynomial.basis == "chebyshev":
            values = np.polynomial.chebyshev.chebval(ct.values, polynomial.coefficients)
        else:
            values = np.polynomial.polynomial.polyval(ct.values, polynomial.coefficients)
        return ClearCiphertext(np.asarray(values, np.float64), ct.level - depth)

    def drop_level(self, ct: ClearCiphertext, level: int) -> ClearCiphertext:
        """See `Backend.drop_level`."""
        if not 0 <= level <= ct.level:
            raise BackendMisuseError(f"cannot drop from level {ct.level} to {level}")
        return ClearCiphertext(ct.values, level)

    def bootstrap(self, ct: ClearCiphertext, index: int) -> ClearCiphertext:
        """See `Backend.bootstrap`. Raises `OutOfRangeError` for values above 1."""
        if not 0 <= index < len(self.bootstraps):
            raise BackendMisuseError(f"bootstrap {index} of {len(self.bootstraps)}")
        option = self.bootstraps[index]
        if ct.level < option.input_level:
            raise OutOfLevelsError("a bootstrap", ct.level, option.input_level)
        largest = float(np.abs(ct.values).max())
        if largest > 1:
            raise OutOfRangeError("a bootstrap", largest, -1.0, 1.0)
        return ClearCiphertext(ct.values, option.output_level)

    def _rotated(self, values: Vector, step: int, level: int) -> Vector:
        if not 0 <= step < self.slots:
            raise BackendMisuseError(f"rotation step {step} is not in [0, {self.slots})")
        if step:
            self.log.append(PerformedSwitch("rotation", step, level))
        return np.roll(values, -step)

    def _common_level(self, operation: str, cts: list[ClearCiphertext]) -> int:
        levels = {ct.level for ct in cts}
        if len(levels) != 1:
            raise BackendMisuseError(
                f"{operation} needs operands at one level, got {sorted(levels)}; drop the higher ones"
            )
        return levels.pop()

    def _spend(self, operation: str, level: int, needed: int) -> None:
        if level < needed:
            raise OutOfLevelsError(operation, level, needed)
