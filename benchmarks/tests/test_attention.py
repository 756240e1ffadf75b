"""The study of attention: its encoder and its terms, beside the formulas written out."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator
from studies.attention.inputs import published
from studies.attention.inputs.encoder import EPSILON, Array, Encoder
from studies.attention.inputs.sentences import Classifier, Labelled, common, gaps, heaviest, term_weights
from studies.attention.predicted import States

RNG = np.random.default_rng(4)
TOKENS, WIDTH, WIDE, VOCABULARY = 3, 4, 6, 13


def normal(values: Array, scale: Array, bias: Array) -> Array:
    centred = values - values.mean()
    return np.asarray(scale * centred / math.sqrt((centred**2).mean() + EPSILON) + bias)


def gelu(values: Array) -> Array:
    return np.asarray([0.5 * value * (1 + math.erf(value / math.sqrt(2))) for value in values])


def weights() -> dict[str, Array]:
    shapes: dict[str, tuple[int, ...]] = {"bert.embeddings.LayerNorm.weight": (WIDTH,)}
    layer = "bert.encoder.layer.0."
    for name in ("query", "key", "value"):
        shapes |= {f"{layer}attention.self.{name}.weight": (WIDTH, WIDTH)}
    shapes |= {f"{layer}attention.output.dense.weight": (WIDTH, WIDTH)}
    shapes |= {f"{layer}intermediate.dense.weight": (WIDE, WIDTH)}
    shapes |= {f"{layer}output.dense.weight": (WIDTH, WIDE)}
    shapes |= {"cls.predictions.transform.dense.weight": (WIDTH, WIDTH)}
    shapes |= {"bert.embeddings.word_embeddings.weight": (VOCABULARY, WIDTH)}
    dense = [name for name in shapes if name.endswith(("dense.weight", "query.weight"))]
    dense += [name for name in shapes if name.endswith(("key.weight", "value.weight"))]
    for name in dense:
        shapes |= {name.replace(".weight", ".bias"): shapes[name][:1]}
    for part in ("attention.output.", "output."):
        shapes |= {f"{layer}{part}LayerNorm.{kind}": (WIDTH,) for kind in ("weight", "bias")}
    shapes |= {f"cls.predictions.transform.LayerNorm.{kind}": (WIDTH,) for kind in ("weight", "bias")}
    shapes |= {"cls.predictions.bias": (VOCABULARY,)}
    return {name: RNG.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


def test_the_encoder_is_that_of_bert() -> None:
    given, x = weights(), RNG.normal(size=(TOKENS, WIDTH)).astype(np.float32)
    (outputs,) = ReferenceEvaluator(Encoder(given, TOKENS).model()).run(None, {"x": x[None]})
    part, half = "bert.encoder.layer.0.", WIDTH // 2

    def dense(name: str, value: Array) -> Array:
        return np.asarray(given[f"{part}{name}.weight"] @ value + given[f"{part}{name}.bias"])

    queries, keys, values = (
        [dense(f"attention.self.{name}", row) for row in x] for name in ("query", "key", "value")
    )
    for token, row in enumerate(x):
        mixed = np.zeros(WIDTH)
        for head in (slice(0, half), slice(half, WIDTH)):
            scores = [queries[token][head] @ key[head] / math.sqrt(half) for key in keys]
            shares = np.exp(scores) / np.exp(scores).sum()
            mixed[head] = sum(share * value[head] for share, value in zip(shares, values, strict=True))
        norms = [
            [given[f"{part}{name}LayerNorm.{kind}"] for kind in ("weight", "bias")]
            for name in ("attention.output.", "output.")
        ]
        state = normal(dense("attention.output.dense", mixed) + row, *norms[0])
        wide = gelu(dense("intermediate.dense", state))
        state = normal(dense("output.dense", wide) + state, *norms[1])
        assert np.abs(outputs[0, token] - state).max() < 1e-4  # type: ignore[index]


def test_the_published_encoder_is_read_from_its_cut_weights(tmp_path: Path) -> None:
    wide, arrays = 4 * WIDTH, dict[str, Array]()
    own: dict[str, Array] = {"bert.embeddings.LayerNorm.weight": np.ones(WIDTH)}
    own["bert.embeddings.token_type_embeddings.weight"] = np.arange(2.0 * WIDTH).reshape(2, WIDTH)
    gains = RNG.normal(size=(2, 2, WIDTH))
    matrices = RNG.normal(size=(2, wide, WIDTH))
    for layer, inverses in enumerate(published.INVERSE_DEVIATIONS):
        here = f"layer{layer}_"
        for name in ("query", "key", "value"):
            arrays[f"{here}attself_{name}_weight"] = RNG.normal(size=(WIDTH, WIDTH))
            arrays[f"{here}attself_{name}_bias"] = RNG.normal(size=(WIDTH, 1))
        for cut in range(4):
            rows = matrices[layer, cut * WIDTH : (cut + 1) * WIDTH]
            arrays[f"{here}intermediate_weight{cut + 1}"] = rows.T.reshape(-1, 1)
        arrays[f"{here}intermediate_bias"] = RNG.normal(size=(wide, 1))
        for place, (name, width) in enumerate((("selfoutput", WIDTH), ("output", wide))):
            arrays[f"{here}{name}_weight"] = RNG.normal(size=(WIDTH, width))
            arrays |= {f"{here}{name}_{kind}": RNG.normal(size=(WIDTH, 1)) for kind in ("bias", "normbias")}
            arrays[f"{here}{name}_vy"] = np.outer(gains[layer, place], [inverses[place], 1.0, 0.0])
    arrays |= {
        "pooler_dense_weight": RNG.normal(size=(WIDTH, WIDTH)),
        "pooler_dense_bias": np.zeros((WIDTH, 1)),
    }
    arrays |= {"classifier_weight": RNG.normal(size=(2, WIDTH)), "classifier_bias": np.array([[0.0], [1.0]])}
    np.savez(tmp_path / "weights.npz", **arrays)  # type: ignore[arg-type]
    weights, head = published.read(tmp_path / "weights.npz", own)
    assert weights["bert.embeddings.token_type_embeddings.weight"][0, 0] == WIDTH
    for layer in range(2):
        part = f"bert.encoder.layer.{layer}."
        assert np.allclose(weights[f"{part}intermediate.dense.weight"], matrices[layer])
        assert np.allclose(weights[f"{part}attention.output.LayerNorm.weight"], gains[layer, 0])
        assert np.allclose(weights[f"{part}output.LayerNorm.weight"], gains[layer, 1])
        query = arrays[f"layer{layer}_attself_query_weight"]
        assert np.allclose(weights[f"{part}attention.self.query.weight"], query.T)
    states = RNG.normal(size=(2, TOKENS, WIDTH))
    logits = [
        np.tanh(each[0] @ arrays["pooler_dense_weight"]) @ arrays["classifier_weight"].T for each in states
    ]
    assert np.allclose(head.margins(states), [1.0 + each[1] - each[0] for each in logits])
    signs = RNG.choice([-1.0, 1.0], states.shape)
    moved = head.margins(states + 1e-3 * signs) - head.margins(states)
    assert np.abs(moved).max() <= head.change(np.full((TOKENS, WIDTH), 1e-3))


def test_padding_is_hidden_from_the_tokens() -> None:
    given, x = weights(), RNG.normal(size=(2, TOKENS, WIDTH)).astype(np.float32)
    bits = np.array([[1, 1, 0], [1, 0, 0]], np.float32)
    padded = np.concatenate([x, bits[..., None]], axis=2)
    (outputs,) = ReferenceEvaluator(Encoder(given, TOKENS, padded=True).model()).run(None, {"x": padded})
    for states, sentence, length in zip(outputs, x, (2, 1), strict=True):
        alone = Encoder(given, length).model()
        (exact,) = ReferenceEvaluator(alone).run(None, {"x": sentence[None, :length]})
        assert np.abs(states[:length] - exact[0]).max() < 1e-5


def test_terms_that_change_places_are_within_the_predicted_error() -> None:
    given = weights()
    exact = list(RNG.normal(size=(4, TOKENS, WIDTH)))
    clear = [states + 1e-3 * RNG.normal(size=states.shape) for states in exact]
    predicted = States(exact, clear, np.full((TOKENS, WIDTH), 1e-6)).term_error(given)
    for ours, states in zip(clear, exact, strict=True):
        pair = [term_weights(given, each[None]) for each in (ours, states)]
        assert np.abs(pair[0] - pair[1]).max() <= predicted + 1e-4
        order = np.sort(pair[1][0])
        assert gaps(pair[1])[0] == pytest.approx(order[-10] - order[-11])
        assert common(*pair)[0] == 10 or gaps(pair[1])[0] <= 2 * predicted + 1e-4


def test_terms_are_weighed_as_splade_weighs_them() -> None:
    given, states = weights(), RNG.normal(size=(2, TOKENS, WIDTH))
    part, table = "cls.predictions.transform.", given["bert.embeddings.word_embeddings.weight"]
    for sentence, terms in zip(states, term_weights(given, states), strict=True):
        expected = np.zeros(VOCABULARY)
        for state in sentence:
            dense = given[f"{part}dense.weight"] @ state + given[f"{part}dense.bias"]
            last = normal(gelu(dense), *(given[f"{part}LayerNorm.{kind}"] for kind in ("weight", "bias")))
            for term in range(VOCABULARY):
                logit = float(table[term] @ last) + float(given["cls.predictions.bias"][term])
                expected[term] = max(expected[term], math.log1p(max(logit, 0.0)))
        assert terms == pytest.approx(expected, abs=1e-12)
        assert set(heaviest(terms[None])[0]) == set(np.argsort(expected)[-10:])


def test_labelled_sentences_are_read_and_classified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Tokenizer:
        """A token a letter."""

        @staticmethod
        def from_file(path: str) -> Tokenizer:
            return Tokenizer()

        def no_padding(self) -> None:
            """As the package has it."""

        no_truncation = no_padding

        def encode(self, text: str) -> SimpleNamespace:
            return SimpleNamespace(ids=[ord(letter) % VOCABULARY for letter in text])

    monkeypatch.setitem(sys.modules, "tokenizers", SimpleNamespace(Tokenizer=Tokenizer))
    (tmp_path / "labelled.tsv").write_text("1\tab\n0\tabcd\n1\tabc\n")
    read = Labelled.read(tmp_path / "tokenizer.json", tmp_path / "labelled.tsv")
    assert (read.labels, read.long(3)) == ([1, 0, 1], [1, 2])
    assert read.cut([1, 2], 3).tolist() == [read.ids[1][:3], read.ids[2]]
    assert read.cut([0], 3).tolist() == [[*read.ids[0], 0]]
    assert read.lengths([0, 1], 3).tolist() == [2, 3]
    assert read.behind(Labelled([[5]], []), 3) == Labelled([[5], read.ids[0], read.ids[2]], [])
    (tmp_path / "plain.txt").write_text("ab\n")
    assert Labelled.read(tmp_path / "tokenizer.json", tmp_path / "plain.txt").labels == []
    joined = Labelled.read(tmp_path / "tokenizer.json", tmp_path / "labelled.tsv", 6)
    assert joined == Labelled([[ord(each) % VOCABULARY for each in text] for text in ("ab abcd", "abc")], [])

    means = RNG.normal(size=(60, WIDTH))
    labels = [int(mean @ np.arange(WIDTH) > 0) for mean in means]
    classifier = Classifier.fit(means, labels, [0, 1])
    margins = classifier.margins(np.repeat(means[:2, None], TOKENS, axis=1))
    assert classifier.accuracy > 0.8
    assert np.allclose(margins, means[:2] @ classifier.weights + classifier.bias)
