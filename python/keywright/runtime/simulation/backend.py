"""Runs programs in the clear with the errors of an encrypted run."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from keywright._core import polynomial_depth
from keywright.errors.engine import OperandError
from keywright.errors.network import OutOfRangeError
from keywright.plan.keys.execution import PlanExecution
from keywright.program.arrays import Numbers, Vector
from keywright.program.operands.bootstraps import LARGEST
from keywright.program.operands.diagonals import DiagonalMatrix, period_of
from keywright.program.operands.polynomials import PolynomialSpec
from keywright.runtime.scales import LevelDropped, as_ciphertext, at_one_scale, level_dropped

from .ciphertext import SimulatedCiphertext
from .noise import BootstrapErrors, NoiseSource

Value: TypeAlias = SimulatedCiphertext | LevelDropped[SimulatedCiphertext]

GRID = 1025
"""Points at which the gain of a polynomial's roundings is evaluated, with interpolation between them."""


class SimulatedBackend:
    """Evaluates programs on plain vectors, at the levels and scales of `EncryptedBackend`, and adds random
    errors as the engine predicts them for each operation; implements `Backend`.

    Some errors are far below the others and left out: relinearizations that end with a rescaling, which
    divides their error by a prime; the one rounding of constants and added vectors; and products of two
    errors, by which imaginary parts affect real ones.

    Args:
        noise: source of errors in each ring, by log2 of the degree of a smaller one; 0 for the largest.
        plan: of the program's keys.

    Raises:
        ParameterError: a bootstrap has no prediction.
    """

    def __init__(self, noise: Mapping[int, NoiseSource], plan: PlanExecution) -> None:
        self._noise, self._plan = noise, plan
        self._primes = plan.parameters.q
        self._bootstraps = plan.bootstrapper_plans
        self._errors = [BootstrapErrors(bootstrap) for bootstrap in self._bootstraps]

    def encrypt(
        self, values: Numbers, level: int, repetitions: int, *, public: bool, ring: int = 0
    ) -> SimulatedCiphertext:
        """Return vectors (batches, slots) as fresh ciphertexts of a ring."""
        rows, noise = np.repeat(values[:, None, :], 1 + repetitions, axis=1), self._noise[ring]
        scale = noise.model.parameters.scale
        noise.add(rows, noise.model.encryption(public), scale)
        return SimulatedCiphertext(rows, level, scale, ring)

    def enter(
        self, values: Vector, level: int, repetitions: int, index: int, step: float
    ) -> SimulatedCiphertext:
        """Return vectors (batches, slots) as ciphertexts of thin clients, behind the last three stages of a
        bootstrap. Its errors exceed those of the clients' own encryption of multiples of a step."""
        rows = np.repeat(values[:, None, :], 1 + repetitions, axis=1)
        self._noise[0].add_deviation(rows, step / np.sqrt(12))
        self._noise[0].add_bootstrap(rows, self._errors[index])
        return SimulatedCiphertext(rows, level, self._noise[0].model.parameters.scale)

    def leave(self, ct: Value, step: float) -> SimulatedCiphertext:
        """Return what thin clients read: multiples of a step."""
        result = as_ciphertext(ct)
        values = result.values.copy()
        self._noise[result.ring].add_deviation(values, step / np.sqrt(12))
        return replace(result, values=values)

    def level(self, ct: Value) -> int:
        return as_ciphertext(ct).level

    def linear_transform(self, cts: list[Value], transform: DiagonalMatrix) -> SimulatedCiphertext:
        operands = [k for k, diagonals in enumerate(transform.diagonals) if diagonals]
        inputs = at_one_scale([cts[k] for k in operands], self._set_scale)
        level, scale, ring = inputs[0].level, inputs[0].scale, inputs[0].ring
        noise, model = self._noise[ring], self._noise[ring].model
        indices = [sorted(transform.diagonals[k]) for k in operands]
        special = self._plan.in_ring(ring).special(level, transform)
        babies, end = model.linear_transform(indices, transform.slots, transform.n1, level, special)
        total = np.zeros_like(inputs[0].values)
        product, slots = np.empty_like(total), transform.slots
        # Twice in a row, a rotation is a part of it.
        twice, doubled = (np.empty((*total.shape[:-1], 2 * slots), total.dtype) for _ in range(2))
        rotated, again = doubled[..., :slots], doubled[..., slots:]
        encoding = 0.0
        for k, ct, added in zip(operands, inputs, babies, strict=True):
            by_baby: dict[int, list[int]] = {}
            for r in transform.diagonals[k]:
                by_baby.setdefault(r % transform.n1, []).append(r)
            twice[..., :slots] = twice[..., slots:] = ct.values
            for baby, variance in added:
                rotated[...] = twice[..., baby : baby + slots]
                noise.add(rotated, variance, scale)
                again[...] = rotated
                for r in by_baby[baby]:
                    giant = r - baby
                    diagonal = transform.full_diagonal(k, r)
                    total += np.multiply(doubled[..., giant : giant + slots], diagonal, out=product)
            one = model.diagonal(period_of(transform.diagonals[k]), level)
            encoding += one * len(transform.diagonals[k]) * float(np.mean(np.abs(ct.values[:, 0]) ** 2))
        noise.add_deviation(total, np.sqrt(encoding))
        noise.add(total, end, scale)
        return SimulatedCiphertext(total, level - 1, scale, ring)

    def rotate(self, ct: Value, step: int) -> SimulatedCiphertext:
        a = as_ciphertext(ct)
        values, noise = np.roll(a.values, -step, axis=-1), self._noise[a.ring]
        noise.add(values, noise.model.rotation(step, noise.slots, a.level), a.scale)
        return replace(a, values=values)

    def add(self, left: Value, right: Value) -> SimulatedCiphertext:
        a, b = at_one_scale([left, right], self._set_scale)
        return replace(a, values=a.values + b.values)

    def add_plain(self, ct: Value, vector: Numbers) -> SimulatedCiphertext:
        a = as_ciphertext(ct)
        return replace(a, values=a.values + vector)

    def mul(self, left: Value, right: Value) -> SimulatedCiphertext:
        a, b = as_ciphertext(left), as_ciphertext(right)
        scale = a.scale * b.scale / self._primes[a.level]
        return self._rescaled(a.values * b.values, a.level - 1, scale, a.ring)

    def polynomial(self, ct: Value, polynomial: PolynomialSpec) -> SimulatedCiphertext:
        a = as_ciphertext(ct)
        noise = self._noise[a.ring]
        largest = float(np.abs(a.values).max())
        grid = largest * np.cos(np.linspace(np.pi, 0.0, GRID))
        coefficients, basis = polynomial.coefficients, polynomial.basis
        gains = noise.model.polynomial(coefficients, basis, a.level, a.scale, grid)
        values = polynomial.evaluate(a.values)
        noise.add_amplified(values, noise.model.rescaling, np.interp(a.values[:, 1:].real, grid, gains))
        return replace(a, values=values, level=a.level - polynomial_depth(polynomial.degree))

    def add_both(self, ct: Value, vector: Vector) -> SimulatedCiphertext:
        return self.add_plain(ct, vector * (1 + 1j))

    def conjugate(self, ct: Value) -> SimulatedCiphertext:
        a = as_ciphertext(ct)
        values, noise = np.conj(a.values), self._noise[a.ring]
        noise.add(values, noise.model.conjugation(a.level), a.scale)
        return replace(a, values=values)

    def join(self, real: Value, imaginary: Value) -> SimulatedCiphertext:
        a, b = at_one_scale([real, imaginary], self._set_scale)
        return replace(a, values=a.values + 1j * b.values)

    def real(self, ct: Value, conjugate: Value) -> SimulatedCiphertext:
        a, b = as_ciphertext(ct), as_ciphertext(conjugate)
        return replace(a, values=a.values + b.values)

    def imaginary(self, ct: Value, conjugate: Value) -> SimulatedCiphertext:
        a, b = as_ciphertext(ct), as_ciphertext(conjugate)
        return replace(a, values=1j * (b.values - a.values))

    def drop_level(self, ct: Value, level: int) -> Value:
        a = as_ciphertext(ct)
        return level_dropped(ct, replace(a, level=level))

    def switch_ring(self, ct: Value, log_n: int) -> SimulatedCiphertext:
        a, noise = as_ciphertext(ct), self._noise[log_n]
        parts = np.split(a.values, max(1, a.values.shape[-1] // noise.slots), axis=-1)
        values = np.tile(np.mean(parts, axis=0), noise.slots // parts[0].shape[-1])
        source = self._plan.parameters.log_n if a.ring == 0 else a.ring
        target = noise.model.parameters.log_n
        noise.add(values, self._noise[0].model.switch_ring(source, target, a.level), a.scale)
        return SimulatedCiphertext(values, a.level, a.scale, log_n)

    def bootstrap(self, cts: list[Value], index: int) -> list[Value]:
        """See `Backend.bootstrap`. Raises `OutOfRangeError` for values above `LARGEST`."""
        return [self._bootstrapped(ct, index) for ct in cts]

    def _bootstrapped(self, ct: Value, index: int) -> SimulatedCiphertext:
        if not 0 <= index < len(self._bootstraps):
            raise OperandError(f"bootstrap {index} of {len(self._bootstraps)}")
        a, plan = as_ciphertext(ct), self._bootstraps[index]
        largest = float(np.abs(a.values[:, 0]).max())
        if largest > LARGEST:
            raise OutOfRangeError("a bootstrap", largest, -LARGEST, LARGEST)
        noise = self._noise[0]
        # A bootstrap removes imaginary parts of errors, and has its own.
        kept = a.values.real.astype(a.values.dtype)
        values = np.tile(kept[..., : plan.slots], noise.slots // min(plan.slots, a.values.shape[-1]))
        noise.add_bootstrap(values, self._errors[index])
        return SimulatedCiphertext(values, plan.output_level, plan.parameters.scale)

    def _set_scale(self, source: SimulatedCiphertext, level: int, scale: float) -> SimulatedCiphertext:
        return self._rescaled(source.values.copy(), level, scale, source.ring)

    def _rescaled(self, values: Numbers, level: int, scale: float, ring: int) -> SimulatedCiphertext:
        noise = self._noise[ring]
        noise.add(values, noise.model.rescaling, scale)
        return SimulatedCiphertext(values, level, scale, ring)
