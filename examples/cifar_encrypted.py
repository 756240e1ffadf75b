"""Classify encrypted CIFAR-10 images with bootstraps and compare with the network in the clear.

Run with: python examples/cifar_encrypted.py FOLDER [--count 10] [--model examples/models/resnet8_cifar.onnx]

FOLDER has a folder of 32 x 32 images for each class. The calibration images are of the split that
train_cifar.py trains on, the classified ones of the other. Needs pillow and onnxruntime, and memory for 168
keys (3.7 GB), the encoded model (4.7 GB) and the matrices of the bootstrap (0.4 GB).
Exits with 1 if a prediction differs from the clear one.
"""

import argparse
import resource
import statistics
import sys
import time
from pathlib import Path

import keywright as kw
import numpy as np
import onnxruntime
from cifar import CLASSES, image_paths, read_image
from keywright import compiler

MODEL = Path(__file__).parent / "models" / "resnet8_cifar.onnx"
PRESET = "N16_QP1732_L9_S45_real"
CALIBRATION = 40


def spread(paths: list[tuple[Path, int]], count: int) -> list[tuple[Path, int]]:
    """Some of the images of all classes in turn."""
    return [paths[(i % 10) * (len(paths) // 10) + i // 10] for i in range(count)]


def main() -> int:
    """Run the comparison; the exit code says whether predictions agree."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--model", type=Path, default=MODEL)
    parser.add_argument("--threads", type=int)
    arguments = parser.parse_args()
    kw.set_threads(arguments.threads)
    chosen = spread(image_paths(arguments.folder, test=True), arguments.count)
    typical = [read_image(path) for path, _ in spread(image_paths(arguments.folder, test=False), CALIBRATION)]

    plan = kw.BootstrapperPlan.preset(PRESET)
    parameters = plan.parameters
    program = compiler.compile_program(
        arguments.model,
        compiler.Target(
            slots=plan.slots, levels=plan.output_level, bootstraps=(compiler.Bootstrap.of(plan),)
        ),
        compiler.Fit(calibration=np.stack(typical)),
    )
    bootstraps = sum(step.opcode == "bootstrap" for step in program.instructions)
    rotations = sum(layer.rotations for layer in program.layers)
    print(f"{program.depth} levels, {bootstraps} bootstraps, {rotations} rotations, {parameters}")
    model = kw.Model("cifar", program, parameters, [plan])
    client, server = model.client(), model.server()
    start = time.perf_counter()
    keys = client.keys()
    print(f"{len(model.specs)} keys of {len(keys) / 1e9:.2f} GB in {time.perf_counter() - start:.1f} s")
    server.load_keys(keys)
    runner = server.runner
    print(f"model encoded, {runner.plaintext_bytes / 1e9:.2f} GB, in {runner.prepare_seconds:.1f} s")

    session = onnxruntime.InferenceSession(str(arguments.model), providers=["CPUExecutionProvider"])
    same, right, seconds, processor = 0, 0, [], []
    for path, label in chosen:
        image = read_image(path)
        expected = session.run(None, {"image": image[None]})[0][0]
        sent = client.encrypt_batch(image[None].astype(np.float64))
        start, used = time.perf_counter(), time.process_time()
        answer = server.evaluate(sent)
        seconds.append(time.perf_counter() - start)
        processor.append(time.process_time() - used)
        scores = client.decrypt_batch(answer.objects, 1)[0]
        same += scores.argmax() == expected.argmax()
        right += expected.argmax() == label
        bound = answer.error_bound * program.output.unit
        print(
            f"{path.name} {CLASSES[label]}: {CLASSES[scores.argmax()]} encrypted, "
            f"{CLASSES[expected.argmax()]} in the clear, "
            f"largest difference {np.abs(scores - expected).max():.2e} (bound {bound:.1e}), "
            f"{seconds[-1]:.1f} s, {processor[-1]:.1f} s of the processor",
            flush=True,
        )
    for row in runner.clock.by_kind(len(chosen)):
        print(row)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    print(f"same prediction encrypted and in the clear: {same} of {len(chosen)}; {right} are right")
    print(
        f"median {statistics.median(seconds):.1f} s, {statistics.median(processor):.1f} s of the processor; "
        f"peak memory {peak:.1f} GB"
    )
    return int(same < len(chosen))


if __name__ == "__main__":
    sys.exit(main())
