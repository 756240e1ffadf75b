"""Labelled sentences: their token ids, and what is read from their states behind the encoder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from keywright.compiler.activations.functions import gelu
from onnx.reference import ReferenceEvaluator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

from .encoder import EPSILON, Array, Encoder, embedded

FOLDS = 10
PADDING = 0
"""The id of a token that fills a sentence."""

WEIGHT = 0.1
"""Inverse weight of the regression's penalty."""


@dataclass(frozen=True)
class Labelled:
    """Sentences of a file.

    Attributes:
        ids: token ids of each.
        labels: 0 or 1 of each; none if the file has none.
    """

    ids: list[list[int]]
    labels: list[int]

    @staticmethod
    def read(tokenizer: Path, file: Path, joined: int = 0) -> Labelled:
        """Read a sentence a line, behind its label and a tab if there are labels. If ``joined`` is not 0,
        lines are joined until they have so many tokens, and have no labels."""
        reader = import_module("tokenizers").Tokenizer.from_file(str(tokenizer))
        reader.no_padding()
        reader.no_truncation()
        rows = [line.split("\t", 1) for line in file.read_text(encoding="utf-8").splitlines()]
        labels = [int(label) for label, *rest in rows if rest]
        if not joined:
            return Labelled([reader.encode(row[-1]).ids for row in rows], labels)
        texts = [""]
        for row in rows:
            if texts[-1] and len(reader.encode(texts[-1]).ids) >= joined:
                texts.append("")
            texts[-1] = f"{texts[-1]} {row[-1]}".strip()
        return Labelled([reader.encode(text).ids for text in texts], [])

    def long(self, length: int) -> list[int]:
        """The numbers of the sentences with at least so many tokens."""
        return [number for number, ids in enumerate(self.ids) if len(ids) >= length]

    def behind(self, queries: Labelled, length: int) -> Labelled:
        """Queries, and behind them the sentences that are not longer than a length, without labels."""
        return Labelled([*queries.ids, *(ids for ids in self.ids if len(ids) <= length)], [])

    def cut(self, numbers: list[int], length: int) -> Array:
        """Ids of some sentences, cut or padded, (count, length)."""
        rows = [self.ids[number][:length] for number in numbers]
        return np.array([ids + [PADDING] * (length - len(ids)) for ids in rows])

    def lengths(self, numbers: list[int], length: int) -> Array:
        """Tokens of some sentences, cut to a length, (count,)."""
        return np.array([min(len(self.ids[number]), length) for number in numbers])


def read_out(
    read: Callable[[Array], Array], weights: dict[str, Array], sentences: Labelled, length: int
) -> Array:
    """What is read from the states of every sentence, cut to ``length`` tokens, by the model in the clear."""
    results: list[Any] = [None] * len(sentences.ids)
    sizes = sentences.lengths(list(range(len(sentences.ids))), length)
    for size in set(sizes):
        numbers = np.flatnonzero(sizes == size)
        runner = ReferenceEvaluator(Encoder(weights, int(size)).model())
        inputs = embedded(weights, sentences.cut(list(numbers), int(size)))
        outputs: Any = runner.run(None, {"x": inputs})
        for number, each in zip(numbers, read(outputs[0]), strict=True):
            results[number] = each
    return np.array(results)


@dataclass(frozen=True)
class Classifier:
    """A linear classifier of mean states.

    Attributes:
        weights, bias: the margin of label 1 is their product with the mean state, plus the bias.
        accuracy: in cross-validation on all sentences.
    """

    weights: Array
    bias: float
    accuracy: float

    @staticmethod
    def fit(means: Array, labels: list[int], tests: list[int]) -> Classifier:
        """Fit to all sentences but those of the test."""
        regression = LogisticRegression(C=WEIGHT, max_iter=10_000)
        accuracy = cross_val_score(regression, means, labels, cv=FOLDS).mean()
        others = np.setdiff1d(np.arange(len(labels)), tests)
        regression.fit(means[others], np.array(labels)[others])
        return Classifier(regression.coef_[0], float(regression.intercept_[0]), float(accuracy))

    def margins(self, states: Array) -> Array:
        """Margins of states, (count, tokens, width)."""
        return np.asarray(states.mean(axis=1) @ self.weights + self.bias)

    def change(self, errors: Array) -> float:
        """The most by which a margin changes with states, (tokens, width)."""
        return float(np.abs(self.weights) @ errors.mean(axis=0))


def term_weights(weights: dict[str, Array], states: Array) -> Array:
    """SPLADE's weights of all terms, (count, vocabulary): max over tokens of log(1 + relu(logit)), of states
    (count, tokens, width) behind the encoder."""
    part = "cls.predictions.transform."
    dense = states @ weights[f"{part}dense.weight"].T + weights[f"{part}dense.bias"]
    active = gelu(np.asarray(dense, np.float64))
    centred = active - active.mean(-1, keepdims=True)
    normal = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + EPSILON)
    scale, bias = (weights[f"{part}LayerNorm.{name}"] for name in ("weight", "bias"))
    table = weights["bert.embeddings.word_embeddings.weight"]
    logits = (normal * scale + bias) @ table.T + weights["cls.predictions.bias"]
    return np.asarray(np.log1p(np.maximum(logits, 0.0)).max(axis=1))


def heaviest(weights: Array) -> Array:
    """The ten heaviest terms of each sentence, in no order."""
    return np.sort(np.argpartition(weights, -10, axis=1)[:, -10:], axis=1)


def gaps(weights: Array) -> Array:
    """By how much the tenth heaviest term of each sentence is heavier than the next."""
    eleventh, tenth = np.sort(weights, axis=1)[:, -11:-9].T
    return np.asarray(tenth - eleventh)


def common(ours: Array, exact: Array) -> list[int]:
    """How many of the ten heaviest terms of each sentence are equal."""
    pairs = zip(heaviest(ours), heaviest(exact), strict=True)
    return [len(set(one) & set(other)) for one, other in pairs]
