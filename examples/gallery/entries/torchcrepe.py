"""Pitch of sound."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from cifar import OnnxWriter
from torch_files import read_tensors

from gallery.entry import Array, Case, Entry

RATE, WINDOW, BINS = 16000, 1024, 360
EPSILON = 0.0010000000474974513
LAYERS = 6
TESTS = 8
NEAR = 2  # bins, 40 cents


def sounds(count: int, seed: int) -> tuple[Array, Array]:
    """Frames (count, 1024) of a voiced sound of ten harmonics with noise, normalised as torchcrepe does, and
    their pitches in Hz, 60 to 1,000."""
    rng = np.random.default_rng(seed)
    pitches = np.exp(rng.uniform(np.log(60), np.log(1000), count))
    times = np.arange(WINDOW) / RATE
    frames = np.zeros((count, WINDOW))
    for harmonic in range(1, 11):
        phases, loud = rng.uniform(0, 2 * np.pi, (count, 1)), rng.uniform(0.3, 1, (count, 1)) / harmonic
        audible = (pitches * harmonic < RATE / 2)[:, None]
        frames += audible * loud * np.sin(2 * np.pi * harmonic * pitches[:, None] * times + phases)
    frames += 0.02 * rng.normal(size=frames.shape)
    frames -= frames.mean(1, keepdims=True)
    return frames / frames.std(1, keepdims=True, ddof=1), pitches


def bins(pitches: Array) -> Array:
    """The bin of a pitch: 20 cents each, the first at 1997.3794084376191 cents above 10 Hz."""
    return np.round((1200 * np.log2(pitches / 10) - 1997.3794084376191) / 20).astype(np.int64)


def load(folder: Path) -> Case:
    """The network ``tiny`` as `torchcrepe.Crepe` has it, on frames of 1,024 samples at 16 kHz."""
    tensors = read_tensors(folder / "torchcrepe" / "assets" / "tiny.pth")
    writer = OnnxWriter()
    value = writer.node("Reshape", "frame", writer.constant(np.array([-1, 1, WINDOW, 1], np.int64)))
    for layer in range(1, LAYERS + 1):
        name = f"conv{layer}"
        operands = [writer.constant(tensors[f"{name}.{part}"]) for part in ("weight", "bias")]
        pads, stride = ((254, 254), 4) if layer == 1 else ((31, 32), 1)
        value = writer.node(
            "Conv", value, *operands, name=name, strides=[stride, 1], pads=[pads[0], 0, pads[1], 0]
        )
        value = writer.node("Relu", value, name=f"relu{layer}")
        norm = ("weight", "bias", "running_mean", "running_var")
        operands = [writer.constant(tensors[f"{name}_BN.{part}"]) for part in norm]
        value = writer.node("BatchNormalization", value, *operands, epsilon=EPSILON)
        value = writer.node("MaxPool", value, name=f"pool{layer}", kernel_shape=[2, 1], strides=[2, 1])
    value = writer.node("Flatten", writer.node("Transpose", value, perm=[0, 2, 1, 3]))
    operands = [writer.constant(tensors[f"classifier.{part}"]) for part in ("weight", "bias")]
    value = writer.node("Gemm", value, *operands, name="scores", transB=1)
    result = writer.node("Sigmoid", value, name="pitch")
    calibration, _ = sounds(300, 1)
    tests, pitches = sounds(TESTS, 2)
    return Case(
        writer.model("frame", (WINDOW,), result, BINS),
        calibration,
        tests,
        agree=lambda one, other: np.abs(one - other) <= NEAR,
        truth=bins(pitches),
    )


ENTRY = Entry(
    title="CREPE tiny: pitch of 64 ms of sound; six convolutions with ReLU and MaxPool, 360 bins",
    licence="MIT",
    data="sounds of ten harmonics with noise; pitches agree within 40 cents",
    load=load,
)
