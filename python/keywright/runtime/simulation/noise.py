"""Draws random errors, slot by slot, with the variances that the engine predicts."""

from collections.abc import Iterator, Sequence
from itertools import cycle

import numpy as np
from numpy.typing import DTypeLike

from keywright._core import BootstrapperPlan, ErrorModel
from keywright.errors.engine import ParameterError
from keywright.program.ahead import worked_ahead
from keywright.program.arrays import Numbers, Vector

Variance = tuple[float, float]
"""A variance that is the same at every slot, and one that the secret key multiplies there: see
`keywright.keys.ErrorModel`."""

MESSAGES = np.linspace(-1.0, 1.0, 65)
"""Messages at which a bootstrap's errors are evaluated, with interpolation between them."""


class NoiseSource:
    """Adds errors to all rows of a ciphertext except those that are computed without.

    Errors of coefficients are independent, so those of the parts of slots are normal and independent as well.
    Complex values have errors in both parts, real values in theirs alone.
    The exception is the secret key: its absolute value at a slot multiplies every rounding there, in all
    ciphertexts of one repetition. Its square over its mean is exponentially distributed, and a mean of
    ``max_slots / slots`` such variables if only ``slots`` slots are used.

    Args:
        model: of the parameters and keys.
        slots: of the ciphertexts.
        repetitions: each has its own secret key.
        rng: of all random numbers.
    """

    def __init__(self, model: ErrorModel, slots: int, repetitions: int, rng: np.random.Generator) -> None:
        self.model, self.slots = model, slots
        self._rng = rng
        copies = model.parameters.max_slots // slots
        self._secret = rng.gamma(copies, 1.0 / copies, (repetitions, slots))
        # Memory of the last errors, which the next ones of their shape take.
        self._errors: Numbers = np.empty(0)

    def add(self, values: Numbers, variance: Variance, scale: float) -> None:
        """Add an error with a variance of coefficients, at a scale, to values (batches, 1 + repetitions,
        slots)."""
        self.add_deviation(values, self._deviation(variance, scale))

    def ahead(
        self, shape: tuple[int, ...], variances: Sequence[Variance], scale: float, kind: DTypeLike
    ) -> Iterator[Numbers]:
        """Yield errors, (batches, repetitions, slots), that `add` would add one after the other to values of
        a kind. While one is used, another thread draws the next, if the process has several; an error is
        valid until then."""
        memory = cycle((np.empty(shape, kind), np.empty(shape, kind)))

        def drawn(variance: Variance) -> Numbers:
            return self._draw(next(memory), self._deviation(variance, scale))

        return worked_ahead(drawn, variances)

    def add_deviation(self, values: Numbers, deviation: float | Vector) -> None:
        """Add an error with a deviation for each slot, in units of the message."""
        noisy = values[:, 1:]
        if (self._errors.shape, self._errors.dtype) != (noisy.shape, noisy.dtype):
            self._errors = np.empty(noisy.shape, noisy.dtype)
        noisy += self._draw(self._errors, deviation)

    def _draw(self, errors: Numbers, deviation: float | Vector) -> Numbers:
        self._rng.standard_normal(out=errors.view(np.float64))
        errors *= deviation
        return errors

    def _deviation(self, variance: Variance, scale: float) -> Vector:
        """Return the deviation of a variance of coefficients in each slot, (repetitions, slots)."""
        plain, secret = variance
        unit = self.model.deviation_unit(self.slots, scale)
        return np.asarray(unit * np.sqrt(plain + secret * self._secret))

    def add_amplified(self, values: Numbers, variance: Variance, gains: Vector) -> None:
        """Add an error with a variance of coefficients at scale 1, times a gain for each value."""
        plain, secret = variance
        unit = self.model.deviation_unit(self.slots, 1.0)
        self.add_deviation(values, unit * gains * np.sqrt(plain + secret * self._secret))

    def add_bootstrap(self, values: Numbers, errors: "BootstrapErrors") -> None:
        noisy = values[:, 1:]
        integers = self._rng.choice(len(errors.probabilities), noisy.shape, p=errors.probabilities)
        # Interpolation between the two messages around each value.
        intervals = len(MESSAGES) - 1
        places = (np.clip(noisy.real, -1.0, 1.0) + 1.0) * (intervals / 2)
        below = np.minimum(places.astype(np.intp), intervals - 1)
        shares, entries = places - below, integers * len(MESSAGES) + below
        steps, bias = (
            (1.0 - shares) * table.take(entries) + shares * table.take(entries + 1)
            for table in (errors.steps, errors.bias)
        )
        rest = errors.rest[0] + errors.rest[1] * self._secret
        rounding = errors.rounding[0] + errors.rounding[1] * self._secret
        deviation = np.sqrt(rest + (steps + errors.other) / 2.0 * rounding)
        noisy += bias
        self.add_deviation(values, deviation)


class BootstrapErrors:
    """Errors of one bootstrap at `MESSAGES`: see `keywright.BootstrapperPlan.errors_of`.

    Raises:
        ParameterError: the engine cannot predict its order of stages.
    """

    def __init__(self, plan: BootstrapperPlan) -> None:
        result = plan.errors_of(MESSAGES)
        if result is None:
            raise ParameterError(
                f'the errors of a bootstrapping of order "{plan.order}" cannot be predicted; use one of '
                'order "slots_to_coeffs_first"',
                code="prediction",
                value=plan.order,
            )
        self.probabilities: Vector = np.asarray(result["probabilities"])
        self.steps: Vector = np.asarray(result["steps"])
        self.bias: Vector = np.asarray(result["bias"])
        self.other: float = result["other"]
        self.rest: Variance = result["rest"]
        self.rounding: Variance = result["rounding"]
