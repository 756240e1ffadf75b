"""Seizures in a recording of a brain."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

from gallery.entry import Array, Case, Entry

RATE, SECONDS, STEPS = 256, 30, 4
TESTS, CALIBRATION = 2, 200


def recordings(count: int, seed: int) -> Array:
    """Recordings of 30 s at 256 Hz: pink noise, and in every second one spikes, 3 to 8 in a second, from the
    middle on."""
    rng = np.random.default_rng(seed)
    size = RATE * SECONDS
    shape = 1 / np.sqrt(np.maximum(np.fft.rfftfreq(size, 1 / RATE), 0.5))
    noise = np.fft.irfft(np.fft.rfft(rng.normal(size=(count, size))) * shape, size)
    noise /= noise.std(axis=1, keepdims=True)
    times = np.arange(size) / RATE
    for recording in noise[::2]:
        spikes = np.exp(-20 * (times * rng.uniform(3, 8) % 1)) * (times > SECONDS / 2)
        recording += rng.uniform(4, 10) * (spikes - spikes.mean())
    return noise


def load(folder: Path) -> Case:
    """The package's model A on 4 columns of its spectrogram, 2.5 s, from about the middle of a recording."""
    sys.path.insert(0, str(folder))
    from brainmaze_eeg_models.seizure._seizure_detect import preprocess_input  # type: ignore[import-not-found]

    model = onnx.load(folder / "brainmaze_eeg_models" / "seizure" / "_models" / "modelA_paper.onnx")
    graph = model.graph
    graph.input[0].type.tensor_type.shape.dim[2].dim_value = STEPS
    del graph.output[:]
    graph.node.append(helper.make_node("Transpose", ["logits"], ["scores"], perm=[1, 0, 2]))
    graph.output.append(helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", STEPS, 4]))

    def pieces(count: int, seed: int) -> Array:
        spectrograms = preprocess_input(recordings(count, seed), RATE)
        starts = np.random.default_rng(seed).integers(SECONDS - 12, SECONDS + 12, count)
        return np.stack(
            [each[:, start : start + STEPS] for each, start in zip(spectrograms, starts, strict=True)]
        )

    return Case(
        model,
        pieces(CALIBRATION, 1),
        pieces(TESTS, 2),
        options={"samples": 1},
        decide=lambda scores: scores.argmax(2),
    )


ENTRY = Entry(
    title="seizures in a recording of a brain; two convolutions with ReLU, two LSTMs in both directions",
    licence="BSD-3-Clause",
    data="made recordings of noise, half of them with spikes; labels of 4 half seconds each",
    load=load,
    changes="4 columns of a spectrogram instead of 599; the batch is the first axis of the output",
)
