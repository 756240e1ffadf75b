"""Is a word said that wakes a device?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx

from gallery.entries.voice2gender import RATE, voices
from gallery.entry import Array, Case, Entry

FRAMES, STEP, COLUMNS = 76, 8, 100
"""Columns of a spectrum in an embedding, from one to the next, in a second."""
TESTS, CALIBRATION = 8, 120


def embeddings(models: Path, steps: int, count: int, seed: int) -> Array:
    """Embeddings (count, steps, 96) of sound, as the package computes them: vowels that begin and end, of
    several voices, with noise."""
    import onnxruntime as ort

    spectrum, embedding = (
        ort.InferenceSession(models / f"{name}.onnx", providers=["CPUExecutionProvider"])
        for name in ("melspectrogram", "embedding_model")
    )
    rng = np.random.default_rng(seed)
    vowels = [np.frombuffer(sound, "<i2") for sound in voices(24, seed)[0]]
    length, embeddings = (FRAMES + STEP * steps) * RATE // COLUMNS, []
    for _ in range(count):
        sound = rng.uniform(30, 400) * rng.normal(size=length)
        for start in range(0, length - 4000, 4000):
            vowel = vowels[rng.integers(len(vowels))][: rng.integers(1500, 3500)]
            sound[start : start + len(vowel)] += rng.uniform(0, 0.6) * vowel * np.hanning(len(vowel))
        (columns,) = spectrum.run(None, {"input": sound[None].astype(np.float32)})
        columns = columns.reshape(-1, 32) / 10 + 2
        starts = range(0, STEP * steps, STEP)
        windows = np.stack([columns[start : start + FRAMES, :, None] for start in starts])
        embeddings.append(embedding.run(None, {"input_1": windows})[0].reshape(steps, 96))
    return np.stack(embeddings)


def head(folder: Path, name: str) -> Case:
    """A network for words, as shipped, on embeddings that the client computes."""
    models = folder / "openwakeword" / "resources" / "models"
    model = onnx.load(models / f"{name}.onnx")
    steps = model.graph.input[0].type.tensor_type.shape.dim[1].dim_value
    return Case(
        model,
        embeddings(models, steps, CALIBRATION, 1),
        embeddings(models, steps, TESTS, 2),
        decide=lambda outputs: outputs.argmax(1) if outputs.shape[1] > 1 else outputs[:, 0] >= 0.5,
    )


def load(folder: Path) -> Case:
    """The network for the word Alexa."""
    return head(folder, "alexa_v0.1")


ENTRY = Entry(
    title="is the word Alexa said in 2 s of sound, by its embeddings; three layers with ReLU",
    licence="Apache-2.0",
    data="vowels of several voices with noise, none of them the word",
    load=load,
)
