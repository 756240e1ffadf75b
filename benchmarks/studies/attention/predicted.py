"""How far margins and weights of encrypted sentences may be from the model's, from calibration sentences."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .inputs.encoder import Array
from .inputs.published import Head
from .inputs.sentences import Classifier, term_weights


@dataclass(frozen=True)
class States:
    """States of calibration sentences, (tokens, width) each.

    Attributes:
        exact: the model's own.
        clear: the program's, without encryption.
        errors: the largest that encryption adds to each, predicted, (all tokens, width).
    """

    exact: list[Array]
    clear: list[Array]
    errors: Array

    def margin_error(self, classifier: Classifier | Head) -> float:
        """The largest change of a margin by polynomials, and what encryption adds at most."""
        change = max(
            abs(float((classifier.margins(clear[None]) - classifier.margins(exact[None]))[0]))
            for clear, exact in zip(self.clear, self.exact, strict=True)
        )
        return change + classifier.change(self.errors)

    def term_error(self, weights: dict[str, Array]) -> float:
        """The largest change of a term's weight by polynomials and by errors of encryption, signs random."""
        rng, change = np.random.default_rng(0), 0.0
        for clear, exact in zip(self.clear, self.exact, strict=True):
            signs = rng.choice([-1.0, 1.0], clear.shape)
            changed = term_weights(weights, clear[None] + signs * self.errors[: len(clear)])
            change = max(change, float(np.abs(changed - term_weights(weights, exact[None])).max()))
        return change
