"""Fatigue of a muscle."""

from __future__ import annotations

import warnings
from pathlib import Path

import joblib
import numpy as np
from keywright.compiler import to_onnx

from gallery.entry import Case, Entry

TESTS, CALIBRATION = 500, 500


def load(folder: Path) -> Case:
    """The pipeline of a scaler and a logistic regression. The package loads it with joblib, as this does."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fitted with an older version of scikit-learn
        bundle = joblib.load(folder / "emg_fd" / "models" / "fatigue_model_bundle.joblib")
    pipeline, threshold = bundle["model"], bundle["best_threshold"]
    scaler = pipeline.named_steps["scaler"]
    scaler.__dict__.pop("feature_names_in_", None)  # samples are arrays without names
    rng = np.random.default_rng(0)
    samples = scaler.mean_ + scaler.scale_ * rng.normal(size=(CALIBRATION + TESTS, len(scaler.mean_)))
    return Case(
        to_onnx(pipeline, samples),
        samples[:CALIBRATION],
        samples[CALIBRATION:],
        output="output_probability",
        clear=pipeline.predict_proba,
        decide=lambda probabilities: probabilities[:, 1] >= threshold,
    )


ENTRY = Entry(
    title="fatigue of a muscle by 26 features of its signal; a scaler and a logistic regression",
    licence="MIT",
    data="drawn with the means and deviations of the package's scaler",
    load=load,
)
