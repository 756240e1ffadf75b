"""Profane language."""

from __future__ import annotations

import warnings
from pathlib import Path

import joblib
import numpy as np
from cifar import OnnxWriter

from gallery.entry import Array, Case, Entry

TESTS, CALIBRATION = 64, 200
WORDS = 12


def texts(vocabulary: list[str], count: int, seed: int) -> list[str]:
    """Texts of some words of the package's vocabulary, at random."""
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(vocabulary, WORDS)) for _ in range(count)]


def load(folder: Path) -> Case:
    """The five linear classifiers of the package behind their sigmoids, whose mean is the probability; the
    client computes the vectorizer's weights of words. The package loads both with joblib, as this does."""
    data = folder / "profanity_check" / "data"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fitted with an older version of scikit-learn
        vectorizer, model = (joblib.load(data / f"{name}.joblib") for name in ("vectorizer", "model"))
    heads = model.calibrated_classifiers_
    weights = np.concatenate([head.estimator.coef_ for head in heads])
    biases = np.concatenate([head.estimator.intercept_ for head in heads])
    slopes = np.array([head.calibrators[0].a_ for head in heads])
    offsets = np.array([head.calibrators[0].b_ for head in heads])
    writer = OnnxWriter()
    operands = [-slopes[:, None] * weights, -slopes * biases - offsets]  # 1 / (1 + exp(a f + b))
    constants = [writer.constant(each.astype(np.float32)) for each in operands]
    value = writer.node("Sigmoid", writer.node("Gemm", "words", *constants, name="heads", transB=1))
    result = writer.node("ReduceMean", value, name="probability", axes=[1], keepdims=1)
    vocabulary = sorted(vectorizer.vocabulary_)

    def words(count: int, seed: int) -> Array:
        return np.asarray(vectorizer.transform(texts(vocabulary, count, seed)).toarray())

    return Case(
        writer.model("words", (len(vocabulary),), result, 1),
        words(CALIBRATION, 1),
        words(TESTS, 2),
        decide=lambda probabilities: probabilities[:, 0] >= 0.5,
    )


ENTRY = Entry(
    title="profane language by 15,442 words; five linear classifiers, the mean of their sigmoids",
    licence="MIT",
    data=f"texts of {WORDS} words of the vocabulary at random",
    load=load,
)
