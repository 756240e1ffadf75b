"""The terms of a text, with weights for a sparse index."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from gallery.entry import Array, Case, Entry

TOKENS = 32
TESTS, CALIBRATION = 4, 100


def windows(folder: Path) -> Array:
    """Ids of the documentation strings in the package's modules, (count, 32): pieces of 30 tokens between
    [CLS] and [SEP], in an order by chance."""
    reader = import_module("tokenizers").Tokenizer.from_file(str(folder / "model" / "tokenizer.json"))
    reader.no_padding()
    reader.no_truncation()
    rows = []
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                first, *ids, last = reader.encode(ast.get_docstring(node) or "").ids
                size = TOKENS - 2
                starts = range(0, len(ids) - size + 1, size)
                rows += [[first, *ids[start : start + size], last] for start in starts]
    return np.random.default_rng(1).permutation(np.array(rows))


def load(folder: Path) -> Case:
    """The encoder behind the embeddings of 32 tokens; the client weighs terms by its last states."""
    from onnx.reference import ReferenceEvaluator
    from studies.attention.inputs.encoder import Encoder, embedded, tensors
    from studies.attention.inputs.sentences import heaviest, term_weights

    weights = tensors(folder / "cognition" / "model" / "model.safetensors")
    model = Encoder(weights, TOKENS).model()
    inputs = embedded(weights, windows(folder / "cognition")[: TESTS + CALIBRATION])
    evaluator = ReferenceEvaluator(model)

    def clear(samples: Array) -> Array:
        results: Any = evaluator.run(None, {"x": samples})
        return np.asarray(results[0])

    return Case(
        model,
        inputs[TESTS:],
        inputs[:TESTS],
        options={"samples": 1},
        clear=clear,
        decide=lambda states: heaviest(term_weights(weights, states)),
        agree=lambda one, other: (one == other).all(axis=1),
    )


ENTRY = Entry(
    title="SPLADE-tiny: weights of 30,522 terms for a text of 32 tokens; BERT of two layers, two heads, GELU",
    licence="Apache-2.0",
    data="documentation strings of the package's own modules; labels are the ten heaviest terms",
    load=load,
    changes="clients embed tokens and apply the head for words, whose matrix is the table of embeddings",
)
