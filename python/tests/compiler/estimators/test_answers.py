"""What the report says of the model's own outputs, behind the client's last steps."""

from __future__ import annotations

from typing import Any

import keywright as kw
import numpy as np
import pytest
from keywright.compiler.activations.ranges import HOLD_OUT_EVERY
from keywright.program.fit_report import AnswerDifference
from numpy.typing import NDArray

pytest.importorskip("sklearn")

Samples = NDArray[np.float64]


def data() -> tuple[Samples, NDArray[np.int64]]:
    rng = np.random.default_rng(0)
    samples = rng.normal(size=(300, 4))
    scores = samples @ rng.normal(size=(4, 4)) + 0.5 * rng.normal(size=(300, 4))
    return samples, scores.argmax(axis=1)


def fitted(name: str) -> Any:
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.neural_network import MLPClassifier
    from sklearn.svm import SVC

    samples, labels = data()
    if name == "isotonic":
        return CalibratedClassifierCV(SVC(), method="isotonic", cv=2).fit(samples, labels > 1)
    if name == "votes":
        return SVC().fit(samples[:150], labels[:150])
    return MLPClassifier((8,), max_iter=3000, random_state=0).fit(samples, labels)


@pytest.mark.parametrize(("name", "error"), [("isotonic", 0.05), ("votes", None), ("softmax", None)])
def test_changes_behind_the_last_steps_are_stated(name: str, error: float | None) -> None:
    estimator, samples = fitted(name), data()[0][: 150 if name == "votes" else None]
    compiled = kw.compile(estimator, samples, error=error)
    report = compiled.report.fit
    assert report is not None
    held_out = samples[HOLD_OUT_EVERY - 1 :: HOLD_OUT_EVERY]
    assert len(held_out) == report.held_out
    scores = compiled.simulate(held_out, repetitions=1).outputs
    own = compiled.answers(scores)
    (difference,) = report.outputs.answers
    exact = estimator.decision_function(held_out) if name == "votes" else estimator.predict_proba(held_out)
    change = np.abs(own[difference.name] - exact).max()
    assert change == pytest.approx(difference.largest_change, rel=1e-2, abs=1e-5)
    assert report.outputs.agreement == np.mean(own["output_label"] == estimator.predict(held_out))
    assert difference.name in str(report)
    bound = 0.05 if error is not None else difference.spread / 100
    assert difference.bound == pytest.approx(bound)
    warned = any("last steps" in text for text in compiled.report.warnings)
    assert warned or change <= bound
    assert any("last steps" in text for text in report.warnings) == difference.large
    assert difference.large or change <= bound


def test_the_report_of_answers_is_stored(tmp_path: Any) -> None:
    compiled = kw.compile(fitted("softmax"), data()[0])
    compiled.save(tmp_path / "folder")
    stored = kw.load(tmp_path / "folder").report.fit
    assert stored == compiled.report.fit
    assert stored is not None
    assert all(isinstance(each, AnswerDifference) for each in stored.outputs.answers)
    assert len(stored.outputs.answers) == 1
