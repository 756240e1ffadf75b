"""Draws random errors, slot by slot, with the variances that the engine predicts."""

import numpy as np

from keywright._core import BootstrapperPlan, ErrorModel
from keywright.errors.engine import ParameterError
from keywright.program.arrays import Numbers, Vector

Variance = tuple[float, float]
"""A variance that is the same at every slot, and one that the secret key multiplies there: see
`keywright.keys.ErrorModel`."""

MESSAGES = np.linspace(-1.0, 1.0, 65)
"""Messages at which a bootstrap's errors are evaluated, with interpolation between them."""

ROWS, LEAST_DRAWN = 32, 1 << 16
"""Rows of slots for which a source draws normal numbers, and the fewest numbers that it draws."""


class NoiseSource:
    """Adds errors to all rows of a ciphertext except those that are computed without.

    Errors of coefficients are independent, so those of the parts of slots are normal and independent as well.
    Complex values have errors in both parts, real values in theirs alone.
    The exception is the secret key: its absolute value at a slot multiplies every rounding there, in all
    ciphertexts of one repetition. Its square over its mean is exponentially distributed, and a mean of
    ``max_slots / slots`` such variables if only ``slots`` slots are used.

    Normal numbers are drawn once, in a circle: P of them, then their negatives. A row of errors is a stretch
    of the circle at a random place, since drawing anew would take most of the time of a simulation.

    - Errors of one row are independent: a row of at most P numbers has none twice, or with its negative.
    - Two rows are uncorrelated: each is as likely as its negative.
    - A sum S of D rows, each with weights w and their autocorrelation c, has the expected variance, D c(0).
      Given the places, its variance is that times 1 + e, where shared numbers of two rows at a distance s
      contribute the signed c(s) with probability 1 / P: e has mean 0 and variance (2 / P) sum_s c(s)^2 /
      c(0)^2. Equal weights of n numbers, the largest case, have 4 n / (3 P), so at `ROWS` a deviation is
      typically off by a tenth; random weights have 4 / P.
    - No number is beyond the largest of P, some 4.3 deviations, however many are taken.

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
        drawn = rng.standard_normal(max(ROWS * slots, LEAST_DRAWN))
        self._places = 2 * len(drawn)
        # The longest row has both parts of complex values.
        self._circle = np.concatenate((drawn, -drawn, drawn[: 2 * slots]))

    def add(self, values: Numbers, variance: Variance, scale: float) -> None:
        """Add an error with a variance of coefficients, at a scale, to values (batches, 1 + repetitions,
        slots)."""
        self.add_deviation(values, self._deviation(variance, scale))

    def add_deviation(self, values: Numbers, deviation: float | Vector) -> None:
        """Add an error with a deviation for each slot, in units of the message."""
        noisy = values[:, 1:]
        deviations = np.broadcast_to(deviation, noisy.shape)
        places = self._rng.integers(self._places, size=noisy.shape[:2])
        for row in np.ndindex(*places.shape):
            normal = self._circle[places[row] :][: noisy[row].view(np.float64).size]
            noisy[row] += normal.view(noisy.dtype) * deviations[row]

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
