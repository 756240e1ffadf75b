"""Random pipelines of scikit-learn, on ciphertexts, against scikit-learn itself."""

import os
import warnings
from typing import Any

import keywright as kw
import numpy as np
import pytest
from keywright.errors import ModelRefusedError
from keywright.model import Model

from .checking import Outcome, figures, most_answered, refused
from .drawn.drawing import Array
from .drawn.pipelines import Pipeline, drawn
from .running import require_stated, small

COUNT = int(os.environ.get("KEYWRIGHT_TESTBED", "12"))
SINGLE = 2.0**-13
"""Rounding of exported estimators, which are in single precision, as a share of the spread of a feature or of
the outputs: see `keywright.compiler.front_ends.exporters.estimator.LOST`."""


def check_pipeline(case: Pipeline) -> Outcome:
    """Compile a pipeline by default, run it on ciphertexts, and compare it with its own methods."""
    chosen = case.samples[:6]
    try:
        compiled = kw.compile(case.model, case.samples, parameters=small())
    except ModelRefusedError as error:
        return refused(error)
    run = require_stated(compiled, chosen)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        require_own(case.model, compiled, run.outputs, chosen, float(run.bound))
    return Outcome(figures=figures(run))


def require_own(model: Any, compiled: Model, outputs: Array, samples: Array, bound: float) -> None:
    """Check outputs against the methods of an estimator, within what the report and the bound state."""
    report = compiled.program.fit_report
    assert report is not None
    # Held-out samples have the stated change; the others follow the rule of the default.
    stated = max(
        report.outputs.largest_change, (2**-4 if report.activations else 0.0) * report.outputs.largest_output
    )
    answers = compiled.answers(outputs)
    if not answers:
        expected = np.asarray(model.predict(samples), np.float64)
        assert np.abs(outputs.reshape(expected.shape) - expected).max() <= (
            stated + bound + SINGLE * max(np.abs(expected).max(), np.ptp(model.predict(samples)))
        )
        return
    labels = next(values for name, values in answers.items() if "label" in name).ravel()
    scores = np.asarray(outputs, np.float64).reshape(len(samples), -1)
    ordered = np.sort(scores, axis=1)
    margin = np.abs(scores[:, 0]) if scores.shape[1] == 1 else ordered[:, -1] - ordered[:, -2]
    decided = margin > 2 * (stated + bound + SINGLE * np.abs(scores).max())
    expected = np.asarray(model.predict(samples)).ravel()
    if scores.shape[1] == len(np.unique(expected)) or scores.shape[1] == 1 or decided.all():
        assert np.array_equal(labels[decided].astype(expected.dtype), expected[decided])
    if hasattr(model, "predict_proba") and not report.activations:
        probabilities = np.asarray(list(answers.values())[-1], np.float64)
        own = np.asarray(model.predict_proba(samples))
        # A probability changes by at most half of what its score changes, or, for log-likelihoods, all of it.
        error = bound + SINGLE * np.abs(scores).max()
        assert np.abs(probabilities.reshape(own.shape) - own).max() <= 2 * error


def test_pipelines_are_what_scikit_learn_computes() -> None:
    most_answered([check_pipeline(drawn(seed)) for seed in range(COUNT)], 0.6)


@pytest.mark.full
def test_many_pipelines_are_what_scikit_learn_computes() -> None:
    most_answered([check_pipeline(drawn(seed)) for seed in range(COUNT, 40 * COUNT)], 0.6)
