"""`keywright[sklearn]`: a fitted pipeline is exported and compiled."""

import numpy as np
from keywright import compiler
from keywright.runtime import run_clear
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

points = np.random.default_rng(3).normal(size=(100, 4)).astype(np.float32)
labels = np.where(points[:, 0] + points[:, 1] > 0.3, "yes", "no")
estimator = make_pipeline(StandardScaler(), LogisticRegression()).fit(points, labels)
classifier = compiler.compile_program(
    compiler.to_onnx(estimator, points), compiler.Target(slots=16, levels=1)
)
answers = classifier.answers(run_clear(classifier, points[:5]))
assert list(answers["output_label"]) == list(estimator.predict(points[:5]))
print("a pipeline of scikit-learn gives the same labels")
