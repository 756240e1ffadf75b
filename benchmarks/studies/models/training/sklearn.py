"""scikit-learn's models: `python -m studies.models.training.sklearn NAME FOLDER`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import skl2onnx
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from studies.models.training.data import Data, table
from studies.models.training.files import Trained, main


def fitted(estimator: Any, data: Data) -> Trained:
    """A pipeline behind a scaler, exported by skl2onnx."""
    pipeline = make_pipeline(StandardScaler(), estimator).fit(data.train, data.known)
    classes = hasattr(pipeline, "predict_proba")
    options = {"zipmap": False} if classes else None
    exported = skl2onnx.to_onnx(pipeline, data.train[:1], options=options)
    predict = pipeline.predict_proba if classes else pipeline.predict
    return Trained(exported.SerializeToString(), data, predict(data.tests))


def logistic(_: Path | None) -> Trained:
    """64 pixels, ten classes."""
    return fitted(LogisticRegression(max_iter=1000), table("digits"))


def perceptron(_: Path | None) -> Trained:
    """30-32-16-2 with ReLU."""
    network = MLPClassifier((32, 16), alpha=1e-2, max_iter=400, random_state=1)
    return fitted(network, table("breast_cancer"))


def machine(_: Path | None) -> Trained:
    """Support vectors with a radial kernel."""
    return fitted(SVR(C=1.0, gamma=0.03, epsilon=0.3), table("diabetes"))


MODELS = {"sklearn-logistic": logistic, "sklearn-perceptron": perceptron, "sklearn-svm": machine}

if __name__ == "__main__":
    main(MODELS)
