"""How the labels of a model follow from its outputs, and which of them errors may change."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from keywright.compiler.activations.ranges import ExactRun
from keywright.program.arrays import Vector
from keywright.program.client.jumps import moved, rows_to_look_at
from keywright.program.client.last_steps import ClientPart

TIE = 1e-9
"""Outputs that differ by less than this share of the largest are equal but for rounding."""


@dataclass(frozen=True, eq=False)
class LabelRule:
    """How the labels of a model follow from its outputs.

    Attributes:
        run: the model's run, which knows if the largest output or the sign of a single one is a label.
        part: the client's last step, whose results other than floating-point numbers are labels; None if
            outputs are the model's own.
    """

    run: ExactRun
    part: ClientPart | None

    @property
    def of_last_steps(self) -> bool:
        """Whether the client's last steps give the labels."""
        return self.part is not None and self.part.gives_labels

    def labels(self, outputs: Vector) -> NDArray[np.str_] | None:
        """Return the labels of outputs, (count, outputs), as texts, (count, labels); None without labels."""
        if self.part is not None and self.of_last_steps:
            results = self.part.run(outputs.reshape(-1, *self.part.shape)).values()
            columns = [
                np.asarray(each).reshape(len(outputs), -1) for each in results if each.dtype.kind != "f"
            ]
            return np.concatenate([each.astype(np.str_) for each in columns], axis=1)
        indices = self.run.predictions(outputs)
        return None if indices is None else indices.reshape(len(outputs), -1).astype(np.str_)

    def ties(self, outputs: Vector) -> NDArray[np.bool_]:
        """Return which labels rounding decides, (count,)."""
        sizes = np.maximum(TIE * np.abs(outputs).max(axis=1), np.finfo(np.float64).tiny)
        return self.undecided(outputs, sizes)

    def undecided(self, outputs: Vector, errors: float | Vector) -> NDArray[np.bool_]:
        """Return which labels change if outputs change by up to an error, (count,): by the client's last
        steps, or else the best two towards each other, the least two, or signs. None of them does without
        labels.

        Args:
            outputs: (count, outputs).
            errors: of all rows, or of each, (count,).
        """
        size = np.broadcast_to(np.asarray(errors, np.float64), len(outputs))
        close = np.zeros(len(outputs), np.bool_)
        if self.part is not None and self.of_last_steps and len(outputs):
            # They may decide anywhere, as Floor does, and only among some outputs, as those of one label.
            rows = rows_to_look_at(self.part, outputs, size[:, None])
            close[rows] = moved(self.part, outputs[rows], size[rows, None]).labels
            return close
        near = (np.abs(outputs) <= size[:, None]).any(axis=1)
        near |= (np.diff(np.sort(outputs, axis=1), axis=1) <= 2 * size[:, None]).any(axis=1)
        close[near] = self._changed(outputs[near], size[near])
        return close

    def _changed(self, outputs: Vector, size: Vector) -> NDArray[np.bool_]:
        changed = np.zeros(len(outputs), np.bool_)
        own = self.labels(outputs) if len(outputs) else None
        if own is None:
            return changed
        rows, order = np.arange(len(outputs)), np.argsort(outputs, axis=1)
        moved = [np.where(np.abs(outputs) <= size[:, None], -outputs, outputs)]
        if outputs.shape[1] > 1:
            # Equal ones may be moved in either direction.
            for first, second, sign in ((-1, -2, -1.0), (-1, -2, 1.0), (0, 1, 1.0), (0, 1, -1.0)):
                closer = outputs.copy()
                closer[rows, order[:, first]] += sign * size
                closer[rows, order[:, second]] -= sign * size
                moved.append(closer)
        for each in moved:
            changed |= np.any(self.labels(each) != own, axis=1)
        return changed
