"""The encoder of FHE-BERT-Tiny for SST-2 (Rovida and Leporati, ePrint 2024/1045), from its published weights.

The file has every weight but the table of embeddings and the gains of the normalisations, which the circuit
stores multiplied by inverse deviations, one for each place of a token. Those of the first place are in the
system's notebook on its accuracy, and the gains follow.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .encoder import Array

INVERSE_DEVIATIONS = ((0.74959624, 0.41566986), (0.67416530, 0.81992316))
"""Of the first token, behind attention and behind the feed-forward part of each layer."""

CUTS = 4
"""Parts into which the circuit cuts the wide matrices."""


@dataclass(frozen=True)
class Head:
    """The label: a dense layer and tanh of the first token's state, and a linear classifier.

    Attributes:
        dense, offset: (width, width) and (width,).
        weights, bias: the margin of label 1 is their product with the values behind tanh, plus the bias.
        accuracy: share of right labels, nan if unknown.
    """

    dense: Array
    offset: Array
    weights: Array
    bias: float
    accuracy: float = float("nan")

    def margins(self, states: Array) -> Array:
        """Margins of states, (count, tokens, width)."""
        return np.asarray(
            np.tanh(states[:, 0] @ self.dense.T + self.offset) @ self.weights + self.bias, np.float64
        )

    def change(self, errors: Array) -> float:
        """The most by which a margin changes with states, (tokens, width)."""
        return float(np.abs(self.weights) @ np.abs(self.dense) @ errors[0])


def read(path: Path, embeddings: dict[str, Array]) -> tuple[dict[str, Array], Head]:
    """The weights of the encoder by the names of `transformers`, and its head.

    Args:
        path: weights.npz with an array for each text file of the system.
        embeddings: another encoder's weights, whose table is taken; token types are 1, as in the system.
    """
    with np.load(path) as stored:
        arrays = {name: np.squeeze(stored[name]).astype(np.float32) for name in stored.files}
    weights = {name: each for name, each in embeddings.items() if name.startswith("bert.embeddings.")}
    types = "bert.embeddings.token_type_embeddings.weight"
    weights[types] = weights[types][1:]
    for layer, inverses in enumerate(INVERSE_DEVIATIONS):
        here, part = f"layer{layer}_", f"bert.encoder.layer.{layer}."
        width = arrays[f"{here}output_bias"].size
        for name in ("query", "key", "value"):
            weights[f"{part}attention.self.{name}.weight"] = arrays[f"{here}attself_{name}_weight"].T
            weights[f"{part}attention.self.{name}.bias"] = arrays[f"{here}attself_{name}_bias"]
        cut = [arrays[f"{here}intermediate_weight{index + 1}"].reshape(-1, width).T for index in range(CUTS)]
        weights[f"{part}intermediate.dense.weight"] = np.concatenate(cut)
        weights[f"{part}intermediate.dense.bias"] = arrays[f"{here}intermediate_bias"]
        for own, name, inverse in zip(
            ("selfoutput", "output"), ("attention.output", "output"), inverses, strict=True
        ):
            weights[f"{part}{name}.dense.weight"] = arrays[f"{here}{own}_weight"]
            weights[f"{part}{name}.dense.bias"] = arrays[f"{here}{own}_bias"]
            weights[f"{part}{name}.LayerNorm.weight"] = arrays[f"{here}{own}_vy"][:, 0] / np.float32(inverse)
            weights[f"{part}{name}.LayerNorm.bias"] = arrays[f"{here}{own}_normbias"]
    classes, biases = arrays["classifier_weight"], arrays["classifier_bias"]
    head = Head(
        arrays["pooler_dense_weight"].T, arrays["pooler_dense_bias"], classes[1] - classes[0],
        float(biases[1] - biases[0]),
    )  # fmt: skip
    return weights, head
