"""Is somebody speaking?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from gallery.entries.voice2gender import voices
from gallery.entry import Array, Case, Entry

CHUNK = 576
TESTS, CALIBRATION = 4, 300


def chunks(count: int, seed: int) -> Array:
    """Pieces of 36 ms at 16 kHz: vowels and noise of different loudness, in turns."""
    rng = np.random.default_rng(seed)
    sounds, _ = voices(max(count // 8, 2), seed)
    windows = np.empty((count, CHUNK))
    for number, chunk in enumerate(windows):
        samples = np.frombuffer(sounds[rng.integers(len(sounds))], "<i2") / 32768
        start = rng.integers(len(samples) - CHUNK)
        noise = rng.normal(size=CHUNK)
        if number % 2:
            noise = np.convolve(noise, np.ones(8) / 8, "same") * rng.uniform(0.5, 2)
        chunk[:] = samples[start : start + CHUNK] * (number % 2 == 0) + 0.005 * noise
        chunk *= np.exp(rng.uniform(np.log(0.3), 0))
    return windows


def load(folder: Path) -> Case:
    """The network for 16 kHz without branches, at the start of a recording: its state is zero."""
    model = onnx.load(folder / "silero_vad" / "data" / "silero_vad_openvino_16k.onnx")
    graph = model.graph
    graph.initializer.append(numpy_helper.from_array(np.zeros((2, 1, 128), np.float32), "state"))
    del graph.input[1], graph.output[1]
    return Case(
        model,
        chunks(CALIBRATION, 1),
        chunks(TESTS, 2),
        decide=lambda probabilities: probabilities[:, 0] >= 0.5,
    )


ENTRY = Entry(
    title="speech in 36 ms of sound; a Fourier transform, four convolutions with ReLU, LSTM",
    licence="MIT",
    data="vowels of pulses through formants, and noise",
    load=load,
    changes="the state is a constant zero, and the new state is not computed",
)
