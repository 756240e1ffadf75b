"""Classify encrypted MNIST images and compare with the network in the clear.

Run with: python examples/mnist_encrypted.py FOLDER [--count 200]

FOLDER holds the idx.gz files of MNIST's test images and labels. Needs onnxruntime (the extra `check`).
Exits with 1 if more than one prediction in 200 differs from the clear one.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

import keywright as kw
import numpy as np
import onnxruntime
from keywright import compiler
from train_mnist import read_idx

MODEL = Path(__file__).parent / "models" / "lenet_mnist.onnx"
PRESET = "N14_QP426_S33"


def main() -> int:
    """Run the comparison; the exit code says whether predictions agree."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=200)
    arguments = parser.parse_args()
    images = read_idx(arguments.folder / "t10k-images-idx3-ubyte.gz")[: arguments.count]
    labels = read_idx(arguments.folder / "t10k-labels-idx1-ubyte.gz")[: arguments.count]
    samples = (images[:, None] / 255.0).astype(np.float32)

    session = onnxruntime.InferenceSession(str(MODEL), providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    clear = np.concatenate([session.run(None, {name: sample[None]})[0] for sample in samples]).argmax(1)

    parameters = kw.Parameters.preset(PRESET)
    program = compiler.compile_program(
        MODEL, compiler.Target(slots=parameters.max_slots, levels=parameters.max_level)
    )
    model = kw.Model("mnist", program, parameters)
    client, server = model.client(), model.server()
    server.load_keys(client.keys())

    encrypted = np.zeros(len(samples), np.int64)
    seconds = []
    for i, sample in enumerate(samples):
        sent = client.encrypt_batch(sample[None])
        start = time.perf_counter()
        answer = server.evaluate(sent)
        seconds.append(time.perf_counter() - start)
        encrypted[i] = client.decrypt_batch(answer.objects, 1).argmax()
        print(f"\r{i + 1} of {len(samples)} images", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)

    agree, total = int((encrypted == clear).sum()), len(samples)
    right = [int((predictions == labels).sum()) / total for predictions in (clear, encrypted)]
    print(f"same prediction encrypted and in the clear: {agree} of {total}")
    print(f"accuracy: {right[0]:.3f} in the clear, {right[1]:.3f} encrypted")
    print(f"evaluation: median {statistics.median(seconds):.3f} s, at most {max(seconds):.3f} s")
    print(f"keys: {len(server.keys)} of {server.keys.bytes / 1e6:.0f} MB, {parameters}")
    return int(agree * 200 < total * 199)


if __name__ == "__main__":
    sys.exit(main())
