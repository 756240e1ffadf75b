"""What a trained model leaves: ONNX, samples, and what the framework itself predicts."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from studies.models.training.data import Data

CALIBRATION = 500
"""Samples at most, of those that were trained on."""


@dataclass(frozen=True)
class Trained:
    """A model: its ONNX bytes, its data, and its own outputs for the tests, scores or values."""

    onnx: bytes
    data: Data
    outputs: ArrayLike


Train = Callable[[Path | None], Trained]


def main(models: Mapping[str, Train]) -> None:
    """Train the model that the command line names and write NAME.onnx and NAME.npz."""
    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=models)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data", type=Path)
    options = parser.parse_args()
    trained = models[options.name](options.data)
    (options.folder / f"{options.name}.onnx").write_bytes(trained.onnx)
    arrays: dict[str, Any] = {
        "calibration": trained.data.train[:CALIBRATION],
        "tests": trained.data.tests,
        "wanted": trained.data.expected,
        "outputs": np.asarray(trained.outputs, np.float64),
    }
    np.savez(options.folder / f"{options.name}.npz", allow_pickle=False, **arrays)
