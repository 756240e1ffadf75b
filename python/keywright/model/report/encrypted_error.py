"""The predicted error of an encrypted run, compared with the spread of each output."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from keywright import compiler
from keywright.compiler.activations.choosing import margins, outputs_of
from keywright.compiler.approximating import ApproximatedModel
from keywright.errors import (
    ModelRefusedError,
    ParameterError,
)
from keywright.errors.network import imprecise
from keywright.model.exchange.interface import FRACTION_BITS
from keywright.plan.keys.execution import PlanExecution
from keywright.runtime import simulate

SAMPLES = 4
"""Calibration samples that are simulated, or a batch of them if that is more."""

REPETITIONS = 2

WARNED_SHARE = 0.01
"""Errors above this share of an output's spread are warned of; `keywright.compiler.Fit.noise` refuses."""

CONSTANT = 1e-9
"""Outputs that vary by less than this share of their size are constant: their spread is their size."""


@dataclass(frozen=True, eq=False)
class EncryptedError:
    """The errors that encryption adds to the outputs of a program, as predicted by
    `keywright.runtime.simulate`.

    Attributes:
        errors: the largest of each output, (outputs,).
        spread: standard deviation of each output on the calibration data, (outputs,).
        samples: number of simulated samples.
        kept: with a required accuracy, the share of calibration samples whose prediction neither polynomials
            nor errors of that size change; None without.
    """

    errors: NDArray[np.float64]
    spread: NDArray[np.float64]
    samples: int
    kept: float | None = None

    @property
    def worst(self) -> int:
        """The output with the largest error as a share of its spread."""
        return int(np.argmax(self.errors / self.spread))

    @property
    def share(self) -> float:
        """The largest error as a share of the spread of its output."""
        return float(self.errors[self.worst] / self.spread[self.worst])

    @property
    def warnings(self) -> tuple[str, ...]:
        """A warning if the share is large."""
        if self.share <= WARNED_SHARE:
            return ()
        return (f"{self}; use parameters with a larger scale (parameters=)",)

    def __str__(self) -> str:
        worst = self.worst
        return (
            f"encryption changes output {worst} by up to {self.errors[worst]:.2g}, {self.share:.2g} times "
            f"its spread of {self.spread[worst]:.3g}, predicted on {self.samples} calibration samples"
        )


def predict_error(
    model: ApproximatedModel, program: compiler.Program, plan: PlanExecution, entry: int | None = None
) -> EncryptedError | None:
    """Simulate a few calibration samples. Returns None if a bootstrap has no prediction.

    Args:
        entry: for thin clients, index of the bootstrap through which their ciphertexts enter.
    """
    samples = model.samples[: max(SAMPLES, program.batch)].reshape(-1, *program.input.shape)
    try:
        simulated = simulate(
            program,
            plan,
            samples,
            repetitions=REPETITIONS,
            entry=entry,
            step=0.0 if entry is None else 2.0**-FRACTION_BITS,
        )
    except ParameterError as error:
        if error.code != "prediction":
            raise
        return None
    errors = simulated.errors.max(axis=(0, 1))
    spread, size = model.outputs.std(axis=0), np.abs(model.outputs).max(axis=0)
    spread = np.where(spread > CONSTANT * size, spread, np.where(size > 0, size, 1.0))
    kept = None if model.fit.accuracy is None else _kept(model, errors)
    return EncryptedError(errors, spread, len(samples), kept)


def _kept(model: ApproximatedModel, errors: NDArray[np.float64]) -> float | None:
    """Return the share of calibration samples whose prediction equals the model's and is decided by more than
    the errors."""
    run = model.run
    outputs = outputs_of(model.graph, run.samples)
    result, expected = run.predictions(outputs), run.predictions(model.outputs)
    if result is None or expected is None:
        return None
    most = float(errors.max()) * (1 if outputs.shape[1] == 1 else 2)
    return float(((result == expected) & (margins(outputs) > most)).mean())


def require_precision(
    error: EncryptedError | None,
    accuracy: float | None,
    noise: float,
    *,
    divisor: float = 1.0,
    precise: Callable[[], str | None] = lambda: None,
) -> None:
    """Refuse a program whose predicted error is too large.

    Args:
        accuracy: the required share of equal predictions.
        noise: largest error as a share of an output's spread.
        divisor: by which clients divide inputs.
        precise: finds a preset that is precise enough.

    Raises:
        ModelRefusedError: with a `RefusalError`.
    """
    if error is None:
        return
    if not error.share <= noise:
        raise ModelRefusedError(
            [imprecise(str(error), error.share, noise, divisor=divisor, preset=precise())]
        )
    if accuracy is not None and error.kept is not None and error.kept < accuracy:
        lost = (
            f"{error.kept:.4%} of the predictions stay the same under encryption, {accuracy:.4%} are required"
        )
        raise ModelRefusedError(
            [imprecise(f"{lost}: {error}", error.share, noise, divisor=divisor, preset=precise())]
        )
