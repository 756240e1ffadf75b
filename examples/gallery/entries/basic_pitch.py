"""Notes of music."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx

from gallery.entry import Array, Case, Entry

LENGTH, RATE = 43844, 22050


def sounds(count: int, seed: int) -> Array:
    """Pieces of music of 2 s, one note at a time, with six harmonics."""
    rng = np.random.default_rng(seed)
    times = np.arange(LENGTH) / RATE
    windows = np.zeros((count, LENGTH, 1))
    for sound in windows:
        for start in range(0, LENGTH, LENGTH // 4):
            pitch = 440 * 2 ** (rng.integers(-24, 25) / 12)
            tone = np.sum([np.sin(2 * np.pi * k * pitch * times) / k for k in range(1, 7)], axis=0)
            sound[start : start + LENGTH // 4, 0] = 0.2 * tone[: len(sound[start : start + LENGTH // 4])]
    return windows


def load(folder: Path) -> Case:
    """The network as shipped, from 43,844 samples to the contour of notes."""
    return Case(
        onnx.load(folder / "basic_pitch" / "saved_models" / "icassp_2022" / "nmp.onnx"),
        sounds(20, 1),
        sounds(1, 2),
        options={"samples": 1},
    )


ENTRY = Entry(
    title="notes of music in 2 s of sound; a constant-Q transform, convolutions with ReLU, three outputs",
    licence="Apache-2.0",
    data="tones of six harmonics",
    load=load,
)
