"""The tensors of Chem's paper, table 1: MNIST, and stand-ins with shape and share of zeros of the others."""

from __future__ import annotations

import io
import tarfile
import wave
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
from harness.idx import read_idx
from numpy.typing import NDArray

RECORDING = "pysptk-1.0.1/pysptk/example_audio_data/arctic_a0007.wav"
"""A sentence of CMU ARCTIC in the source distribution of pysptk 1.0.1 on PyPI."""

DISTRIBUTION = "78b1c9338bf795a41cdc3ff03fcd4699c401c323f54630bb71a19710078d0b3f"
"""SHA-256 of that file, pysptk-1.0.1.tar.gz."""


@dataclass(frozen=True)
class Tensors:
    """Some samples of one data set as unsigned integers of `bits` bits, one row per sample."""

    name: str
    bits: int
    samples: NDArray[np.int64]
    drawn: bool
    """Whether the values are synthetic, with only the shape and the share of zeros of the data set."""

    @property
    def nonzero(self) -> float:
        """Share of values that are not zero."""
        return float(np.count_nonzero(self.samples) / self.samples.size)


def mnist(folder: Path, count: int) -> Tensors:
    """The first images of MNIST's test set.

    Raises:
        SystemExit: the file is missing or is no such file.
    """
    path = folder / "t10k-images-idx3-ubyte.gz"
    images = read_idx(path)
    if images.ndim != 3:
        raise SystemExit(f"{path} has {images.ndim} dimensions, which images have not")
    if count > len(images):
        raise SystemExit(f"{path} has {len(images)} images, {count} are asked for")
    pixels = images[:count].reshape(count, -1)
    return Tensors("MNIST", 8, pixels.astype(np.int64), drawn=False)


def cars(count: int) -> Tensors:
    """Images of StanfordCars' shape: smooth, 360 x 640, 8 bits, 98.73 % of the values not zero."""
    rng = np.random.default_rng(1)
    y, x = np.mgrid[0:360, 0:640]
    samples = []
    for _ in range(count):
        waves = sum(
            rng.uniform(10, 60) * np.sin(y * rng.uniform(0.002, 0.05) + x * rng.uniform(0.002, 0.05))
            for _ in range(4)
        )
        image = np.clip(128 + waves + rng.normal(0, 4, y.shape), 1, 255).round()
        samples.append(np.where(rng.random(y.shape) < 0.9873, image, 0).ravel())
    return Tensors("as StanfordCars", 8, np.array(samples).astype(np.int64), drawn=True)


def recording(path: Path) -> Tensors:
    """The recording of CMU ARCTIC in pysptk's source distribution: magnitudes of 64,000 samples of 16 bits.

    Raises:
        SystemExit: it is another file.
    """
    data = path.read_bytes()
    if sha256(data).hexdigest() != DISTRIBUTION:
        raise SystemExit(f"{path} is not pysptk-1.0.1.tar.gz: pip download pysptk==1.0.1 --no-binary :all:")
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        member = archive.extractfile(RECORDING)
        assert member is not None
        with wave.open(io.BytesIO(member.read())) as audio:
            samples = np.frombuffer(audio.readframes(audio.getnframes()), "<i2")
    return Tensors("CMUARCTIC, one recording", 16, np.abs(samples.astype(np.int64))[None], drawn=False)


def speech(count: int) -> Tensors:
    """Audio of CMUARCTIC's length: magnitudes of 64,321 samples of 16 bits, 99.72 % of them not zero."""
    rng = np.random.default_rng(2)
    envelope = 1500 * (1 + np.sin(np.linspace(0, 40, 64_321)))
    audio = np.clip(np.abs(rng.laplace(0, 1, (count, envelope.size)) * envelope), 1, 32_767).round()
    samples = np.where(rng.random(audio.shape) < 0.9972, audio, 0)
    return Tensors("as CMUARCTIC", 16, samples.astype(np.int64), drawn=True)
