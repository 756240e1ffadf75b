"""Which predictions errors may change: only outputs that a label is chosen among are compared."""

import keywright as kw
import numpy as np
import pytest
from keywright.errors import ModelRefusedError
from keywright.model.report.label_rule import LabelRule
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.multioutput import MultiOutputClassifier

RNG = np.random.default_rng(0)
SAMPLES = RNG.normal(size=(300, 4))
LABELS = np.c_[SAMPLES[:, 0] > 0, np.digitize(SAMPLES[:, 1], [-0.6, 0.6])].astype(int)


def test_labels_of_several_outputs_are_chosen_within_each() -> None:
    """The scores of the first classifier are in two columns, of which each is that of the other's too."""
    model = kw.compile(MultiOutputClassifier(LogisticRegression()).fit(SAMPLES, LABELS), calibration=SAMPLES)
    assert model.encrypted_error is not None
    labels = model.encrypted_error.labels
    assert labels is not None
    assert (labels.undecided, labels.ties) == (0, 0)
    assert model.report.warnings == ()
    count = int(np.prod(labels.rule.part.shape)) if labels.rule.part else 0
    scores = np.tile([3.0, -3.0, 3.0, 3.0, -1.0, -2.0][:count], (200, 1))
    assert not labels.rule.undecided(scores, 1e-3).any()
    scores[150:, -1] = 3.0  # the best two of the second classifier
    assert np.flatnonzero(labels.rule.undecided(scores, 1e-3)).tolist() == list(range(150, 200))


def test_close_rows_are_all_looked_at() -> None:
    """Without last steps, the largest output is the label: others may be as close as they like."""
    model = kw.compile(LogisticRegression().fit(SAMPLES, LABELS[:, 1]), calibration=SAMPLES)
    assert model.encrypted_error is not None
    assert model.encrypted_error.labels is not None
    rule = LabelRule(model.encrypted_error.labels.rule.run, None)
    outputs = np.tile([5.0, 1.0, 1.0], (1000, 1))
    outputs[700:, 1] = 5.0
    assert np.flatnonzero(rule.undecided(outputs, 1e-6)).tolist() == list(range(700, 1000))


def test_several_labels_are_predictions() -> None:
    several = MultiOutputClassifier(LogisticRegression()).fit(SAMPLES, LABELS)
    model = kw.compile(several, calibration=SAMPLES, accuracy=0.9)
    assert model.encrypted_error is not None
    assert model.encrypted_error.kept == 1
    with pytest.raises(ModelRefusedError, match="outputs are values and not labels"):
        kw.compile(LinearRegression().fit(SAMPLES, LABELS), calibration=SAMPLES, accuracy=0.9)
