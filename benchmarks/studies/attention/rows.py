"""What the study writes of a compiled encoder and of a sentence."""

from __future__ import annotations

from dataclasses import dataclass

from .inputs.encoder import Array


@dataclass(frozen=True)
class Compiled:
    """A compiled encoder and its keys; ``margin_error`` is the largest change of a margin on the calibration
    sentences by polynomials, and what the predicted errors of encryption add at most; ``term_error`` the same
    of a term's weight."""

    tokens: int
    layers: int
    levels: int
    bootstraps: int
    compile_s: float
    compile_processor_s: float
    compile_peak_bytes: int
    keys: int
    key_bytes: int
    predicted_s: float
    predicted_share: float
    sent_bytes: int
    returned_bytes: int
    accuracy: float
    margin_error: float
    term_error: float
    calibration: int


@dataclass(frozen=True)
class Compared:
    """Terms of a sentence beside the model's.

    Attributes:
        exact: the model's states, (its tokens, width).
        error, largest: the largest difference of a state, and the largest state.
        terms: how many of the ten heaviest terms are equal.
        gap: by how much the model's tenth heaviest term is heavier than the next.
        change: the largest difference of a term's weight.
    """

    exact: Array
    error: float
    largest: float
    terms: int | None = None
    gap: float | None = None
    change: float | None = None


@dataclass(frozen=True)
class Row:
    """A sentence: its states against the model's, the margin of its label, and its terms as `Compared` has
    them. The times are those of all sentences that were evaluated ``together`` with it."""

    tokens: int
    sentence: int
    together: int
    wall_s: float
    processor_s: float
    error: float
    largest: float
    margin: float
    exact_margin: float
    label: int | None
    terms: int | None
    gap: float | None
    change: float | None
    peak_bytes: int
    planned_bytes: int
    load: float
    threads: int
