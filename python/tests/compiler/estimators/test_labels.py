"""Labels are the estimator's own, of its type: truth values, texts, numbers of any kind."""

from typing import Any

import numpy as np
import pytest
from keywright import compiler, runtime
from keywright.compiler.activations.fit import Thresholds
from keywright.compiler.front_ends.model_source import to_source
from numpy.typing import NDArray
from sklearn import ensemble, linear_model, neural_network, svm, tree
from sklearn.calibration import CalibratedClassifierCV
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.impute import SimpleImputer
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.matrices import cells

VALUES = np.random.default_rng(5).normal(size=(150, 3))
TWO = (VALUES @ [1.0, -2.0, 0.5] > 0).astype(int)
CLASSES = {
    "truth values": np.asarray([False, True]),
    "negative integers": np.asarray([-7, 3]),
    "small integers": np.asarray([-1, 1], np.int8),
    "floating point": np.asarray([-2.0, 5.0]),
    "single precision": np.asarray([-2.0, 5.0], np.float32),
    "texts": np.asarray(["no", "yes"]),
    "objects": np.asarray(["no", "yes"], object),
}
MODELS: dict[str, Any] = {
    "linear": linear_model.LogisticRegression(),
    "ridge": linear_model.RidgeClassifier(),
    "machine": svm.LinearSVC(),
    "discriminants": LinearDiscriminantAnalysis(),
    "bayes": GaussianNB(),
    "perceptron": neural_network.MLPClassifier((3,), activation="identity", solver="lbfgs", random_state=0),
    "pipeline": make_pipeline(StandardScaler(), linear_model.LogisticRegression()),
    "pipeline that imputes": make_pipeline(SimpleImputer(), linear_model.LogisticRegression()),
    "calibrated": CalibratedClassifierCV(linear_model.LogisticRegression(), cv=2),
    "tree": tree.DecisionTreeClassifier(max_depth=3),
    "forest": ensemble.RandomForestClassifier(3, max_depth=3, random_state=0),
    "boosting": ensemble.GradientBoostingClassifier(n_estimators=3, max_depth=2),
    "histograms": ensemble.HistGradientBoostingClassifier(max_iter=3, max_depth=2),
    "tree behind a scaler": make_pipeline(StandardScaler(), tree.DecisionTreeClassifier(max_depth=3)),
}
TREES = ("tree", "forest", "boosting", "histograms", "tree behind a scaler")


def labels(estimator: Any, thresholds: Thresholds) -> NDArray[Any]:
    source = to_source(estimator, VALUES)
    approximated = compiler.approximate(source, compiler.Fit(calibration=VALUES, thresholds=thresholds))
    program = compiler.compile_program(approximated, compiler.Target(slots=1024, levels=30))
    return next(iter(program.answers(runtime.run_clear(program, VALUES)).values()))


@pytest.mark.parametrize(("name", "kind"), cells([*MODELS], [*CLASSES]))
def test_labels_are_of_the_estimator(name: str, kind: str) -> None:
    estimator = MODELS[name].fit(VALUES, CLASSES[kind][TWO])
    own = estimator.predict(VALUES)
    outcome = labels(estimator, "public" if name in TREES else "private")
    assert np.mean(outcome == own) > 0.98
    assert outcome.dtype.kind.replace("O", "U") == own.dtype.kind.replace("O", "U")
