"""Notes of music."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper
from onnx.utils import Extractor

from gallery.entry import Array, Case, Entry, run_onnx

LENGTH, RATE = 43844, 22050
SPECTROGRAM = "model_1/normalized_log_1/Reshape_2;model_1/normalized_log_1/Reshape_2"


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
    """The network behind the normalised logarithm of its constant-Q transform, (172, 309)."""
    whole = onnx.load(folder / "basic_pitch" / "saved_models" / "icassp_2022" / "nmp.onnx")
    shape: list[str | int | None] = ["batch", 172, 309]
    whole.graph.value_info.append(helper.make_tensor_value_info(SPECTROGRAM, TensorProto.FLOAT, shape))
    parts, results = Extractor(whole), [output.name for output in whole.graph.output]
    first = parts.extract_model([whole.graph.input[0].name], [SPECTROGRAM])
    return Case(
        parts.extract_model([SPECTROGRAM], results),
        run_onnx(first, sounds(20, 1)),
        run_onnx(first, sounds(1, 2)),
        options={"samples": 1},
    )


ENTRY = Entry(
    title="notes of music in 2 s of sound; a constant-Q transform, convolutions with ReLU, three outputs",
    licence="Apache-2.0",
    data="tones of six harmonics",
    load=load,
    changes="clients compute the constant-Q transform and its normalised logarithm",
)
