"""What the models of README's table take in the clear: onnxruntime on one thread, one sample at a time.

    cd benchmarks && python -m studies.clear [--runs 200] [--out FOLDER]

The digits and the LeNet are the models that come with Keywright, and the forest is that of `studies.trees`.
ResNet-20 with squares and the encoder of BERT-tiny's shape have weights at random: time does not depend on
their values. Each run is timed alone after ten that are not counted. A run is short enough that the fastest
is hardly disturbed on a machine that others use, so compare that one.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
import onnxruntime
from harness.folders import HERE, record_folder
from harness.measurement.clock import timed
from harness.measurement.machine import describe
from numpy.typing import NDArray

from studies.attention.inputs.encoder import Encoder
from studies.networks import square_resnet
from studies.trees import forest

TOKENS, WIDTH, LAYERS = 32, 128, 2
UNTIMED = 10

Array = NDArray[Any]
Subject = tuple[bytes, Array]
"""A model in ONNX and a sample of it."""


def digits() -> Subject:
    """The network of `keywright demo`."""
    package = Path(str(files("keywright")))
    return (package / "data" / "digits.onnx").read_bytes(), np.zeros((1, 1, 8, 8), np.float32)


def lenet() -> Subject:
    """The LeNet of squares of the examples."""
    path = HERE.parent / "examples" / "models" / "lenet_mnist.onnx"
    return path.read_bytes(), np.zeros((1, 1, 28, 28), np.float32)


def resnet20() -> Subject:
    """ResNet-20 with squares, the shape of ResNet-20 AESPA."""
    images = np.random.default_rng(0).random((4, 3, 32, 32), np.float32)
    with TemporaryDirectory() as folder:
        square_resnet.build(images, Path(folder) / "model.onnx")
        return (Path(folder) / "model.onnx").read_bytes(), images[:1]


def trees() -> Subject:
    """The forest of 100 trees of depth 8."""
    subject = forest()
    convert: Any = import_module("skl2onnx").to_onnx
    sample = subject.tests[:1].astype(np.float32)
    return convert(subject.model, sample, options={"zipmap": False}).SerializeToString(), sample


def bert_tiny() -> Subject:
    """The encoder of two layers on sentences of 32 tokens."""
    rng = np.random.default_rng(0)
    shapes: dict[str, tuple[int, ...]] = {"bert.embeddings.LayerNorm.weight": (WIDTH,)}
    for layer in range(LAYERS):
        part = f"bert.encoder.layer.{layer}."
        dense: dict[str, tuple[int, ...]] = {
            f"attention.self.{name}": (WIDTH, WIDTH) for name in ("query", "key", "value")
        }
        dense |= {"attention.output.dense": (WIDTH, WIDTH), "intermediate.dense": (4 * WIDTH, WIDTH)}
        for name, shape in (dense | {"output.dense": (WIDTH, 4 * WIDTH)}).items():
            shapes |= {f"{part}{name}.weight": shape, f"{part}{name}.bias": shape[:1]}
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            shapes |= {f"{part}{name}.{kind}": (WIDTH,) for kind in ("weight", "bias")}
    weights = {name: 0.05 * rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    model: onnx.ModelProto = Encoder(weights, TOKENS).model()
    model.ir_version = 10  # onnxruntime reads no newer one
    return model.SerializeToString(), rng.standard_normal((1, TOKENS, WIDTH)).astype(np.float32)


SUBJECTS: dict[str, Callable[[], Subject]] = {
    "digits": digits,
    "lenet-mnist": lenet,
    "resnet20-aespa": resnet20,
    "forest": trees,
    "bert-tiny": bert_tiny,
}


def measure(subject: Subject, runs: int) -> list[float]:
    """The wall seconds of every run."""
    model, sample = subject
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    (given,) = session.get_inputs()
    data = {given.name: sample}
    seconds = [timed(session.run, None, data)[1].wall for _ in range(UNTIMED + runs)]
    return seconds[UNTIMED:]


def main() -> None:
    """Measure and record."""
    parser = argparse.ArgumentParser(
        prog="python -m studies.clear",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--runs", type=int, default=200, help="timed runs of each model (default: 200)")
    parser.add_argument("--out", type=Path, help="folder of the record (default: record/DATE-clear)")
    options = parser.parse_args()
    folder = record_folder(options.out, "clear")
    with (folder / "clear.jsonl").open("w") as file:
        for name, subject in SUBJECTS.items():
            seconds = measure(subject(), options.runs)
            row = {
                "name": name,
                "runs": options.runs,
                "least_s": min(seconds),
                "median_s": median(seconds),
                "load": os.getloadavg()[0],
                "onnxruntime": onnxruntime.__version__,
                "machine": describe(),
            }
            file.write(json.dumps(row) + "\n")
            print(f"{name}: {1e6 * min(seconds):.1f} us, median {1e6 * median(seconds):.1f}", flush=True)


if __name__ == "__main__":
    main()
