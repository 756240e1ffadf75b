"""Encrypted runs in small rings, and what is stated about their errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import keywright as kw
import numpy as np
from keywright.compiler.activations.functions import ACTIVATIONS, INSIDE
from keywright.compiler.front_ends.operators.activations import COMPARISONS
from keywright.errors import ModelRefusedError, RefusalError
from keywright.model import Model
from keywright.plan.keys.execution import PlanExecution
from keywright.runtime import run_clear, simulate

from .drawn.drawing import Array

STATED_FACTOR = 4.0
"""Measured errors are within this factor of simulated ones: see `Model.simulate`."""

REPETITIONS = 16
"""Of simulations: the largest of 16 errors of one output is hardly ever below its standard deviation."""

DEVIATIONS = 5

BUDGET = 8 << 30


def small(levels: int = 24, log_n: int = 11, bits: int = 45) -> kw.Parameters:
    """Return parameters without security, which are quick."""
    return kw.Parameters.from_bits(log_n, [bits + 10] + levels * [bits], [60], bits, insecure=True)


def polynomials(degree: int) -> dict[str, str]:
    """Return one degree for every function that a polynomial approximates."""
    return {name.lower(): f"chebyshev:{degree}" for name in [*ACTIVATIONS, *INSIDE, *COMPARISONS]}


@dataclass(frozen=True, eq=False)
class Encrypted:
    """An encrypted run.

    Attributes:
        outputs: (samples, *output_shape).
        clear: of the same program, without encryption.
        bound: on the difference of both, derived by the engine from every operation.
        keys: that it ran with.
    """

    outputs: Array
    clear: Array
    bound: float
    keys: PlanExecution

    @property
    def errors(self) -> Array:
        """Absolute errors of the outputs."""
        return np.asarray(np.abs(self.outputs - self.clear))


def encrypted(compiled: Model, samples: Array) -> Encrypted:
    """Run a compiled model on ciphertexts; the client's check of ranges accepts the samples."""
    compiled.client().guard(samples)
    planned = compiled.plan_process(len(samples), BUDGET)
    features, _ = compiled.program.features(samples)
    outputs = compiled.infer(features, planned)
    clear = run_clear(compiled.program, features)
    return Encrypted(outputs.outputs, clear, outputs.error_bound, planned.execution)


def require_stated(compiled: Model, samples: Array) -> Encrypted:
    """Check that the errors of an encrypted run are within the derived bound, and within the stated factor of
    the simulated ones."""
    run = encrypted(compiled, samples)
    require_simulated(compiled, samples, run)
    return run


def require_simulated(compiled: Model, samples: Array, run: Encrypted) -> None:
    """Check that the errors of a run are within the derived bound, and within the stated factor of simulated
    ones.

    The errors of a run of few outputs are few draws from the same distribution as the simulated ones. The
    largest is compared with the largest over all repetitions, and the mean with the simulated mean plus
    `DEVIATIONS` deviations of a mean of half-normal errors, each of which has a deviation of 0.76 means.
    """
    worst, mean = float(run.errors.max()), float(run.errors.mean())
    assert worst <= run.bound, f"error {worst:.3g} above the derived bound {run.bound:.3g}"
    features, _ = compiled.program.features(samples)
    simulated = simulate(compiled.program, run.keys, features, repetitions=REPETITIONS)
    largest = float(simulated.errors.max())
    assert worst <= STATED_FACTOR * largest, f"largest error {worst:.3g}, simulated {largest:.3g}"
    allowance = 1 + DEVIATIONS * 0.76 / np.sqrt(run.errors.size)
    assert mean <= STATED_FACTOR * allowance * simulated.mean_error, (
        f"mean error {mean:.3g}, simulated {simulated.mean_error:.3g}"
    )


def require_model(compiled: Model, expected: Array, samples: Array, rounding: float) -> Encrypted:
    """Check that an encrypted run follows the model as closely as its report states.

    Args:
        expected: the model's outputs of all calibration samples, (samples, ...).
        rounding: of these outputs.
    """
    report = compiled.program.fit_report
    assert report is not None
    assert report.held_out == 0
    run = require_stated(compiled, samples)
    target, outputs = np.asarray(expected)[: len(samples)], run.clear
    if compiled.program.output.client_part is not None:
        if report.activations:
            return run
        (outputs,) = compiled.answers(outputs).values()
    target = np.asarray(target, np.float64).reshape(np.shape(outputs))
    stated = report.outputs.largest_change * (1 + 1e-9) + rounding
    difference = float(np.abs(outputs - target).max())
    assert difference <= stated, f"the program is off by {difference:.3g}, stated {stated:.3g}"
    return run


def compiled_with_drawn(model: Any, samples: Any, seed: int, **given: Any) -> Model:
    """Compile a model for small parameters with drawn polynomials, and any error of encryption."""
    methods = polynomials(int(np.random.default_rng([seed, 7]).choice([3, 5, 7])))
    given = {"parameters": small(), "noise": np.inf, **given}
    try:
        return kw.compile(model, samples, activations=methods, **given)
    except ModelRefusedError as refusal:
        reasons = [each for each in refusal.exceptions if isinstance(each, RefusalError)]
        lacking = {name for each in reasons for name in each.details.get("names", ())}
        if not lacking:
            raise
    own = {name: method for name, method in methods.items() if name not in lacking}
    return kw.compile(model, samples, activations=own, **given)
