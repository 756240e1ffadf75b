"""The cost of a sample if 1, 2, 4, ... samples share ciphertexts.

    cd benchmarks && python -m studies.batches [--most 256] [--runs 3] [--out FOLDER]

The network is a perceptron 30-32-16-2 with ReLU, trained by scikit-learn on its breast cancer data; the
activations are Chebyshev polynomials of degree 31. Every batch of every run is decrypted and compared:
results must be within the ciphertexts' bound of the polynomials in the clear, and labels are compared with
those of the network itself. Times are of the evaluation, without keys and encoding: medians of runs, with the
minimum and the maximum in brackets. On a machine that others use, compare processor times.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import keywright as kw
import numpy as np
import onnx
from harness.folders import record_folder
from harness.measurement.clock import Seconds, timed
from keywright import compiler
from keywright.compiler.checking import run_onnxruntime
from keywright.model import Model
from keywright.runtime import run_clear
from keywright.runtime.encrypted.backend import EncryptedBackend
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler

PRESET = "N15_QP830_S45"
ACTIVATION = "chebyshev:31"
OUTPUT_LEVEL = 1
HIDDEN = (32, 16)

HEADINGS = (
    "samples at a time",
    "wall, ms a sample",
    "processor, ms a sample",
    "sent, kB a sample",
    "returned, kB a sample",
    "keys, MB",
    "largest error",
    "same labels",
)

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Row:
    """A batch: wall and processor seconds of every evaluation, bytes of its ciphertexts."""

    batch: int
    samples: int
    wall_s: list[float]
    processor_s: list[float]
    sent_bytes: int
    returned_bytes: int
    key_bytes: int
    error: float
    bound: float
    same_labels: float


def perceptron() -> tuple[onnx.ModelProto, Vector, Vector]:
    """The network, calibration samples and test samples."""
    samples, labels = load_breast_cancer(return_X_y=True)
    typical, tests, known, _ = train_test_split(samples, labels, test_size=0.25, random_state=0)
    scaler = StandardScaler().fit(typical)
    typical, tests = scaler.transform(typical), scaler.transform(tests)
    trained = MLPClassifier(HIDDEN, alpha=1e-2, max_iter=400, random_state=1).fit(typical, known)
    nodes, tensors, value = [], [], "x"
    for number, (weights, bias) in enumerate(zip(trained.coefs_, trained.intercepts_, strict=True)):
        if weights.shape[1] == 1:  # one output for two classes
            weights, bias = np.hstack([-weights, weights]) / 2, np.hstack([-bias, bias]) / 2
        for letter, array in (("w", weights), ("b", bias)):
            tensors.append(numpy_helper.from_array(array.astype(np.float32), f"{letter}{number}"))
        names = [value, f"w{number}", f"b{number}"]
        nodes.append(helper.make_node("Gemm", names, [f"h{number}"], f"dense{number}"))
        value = f"h{number}"
        if number < len(HIDDEN):
            nodes.append(helper.make_node("Relu", [value], [f"r{number}"], f"relu{number}"))
            value = f"r{number}"
    source = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 30])
    target = helper.make_tensor_value_info(value, TensorProto.FLOAT, ["batch", 2])
    graph = helper.make_graph(nodes, "perceptron", [source], [target], tensors)
    opset = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opset, ir_version=8), typical, tests


def measure(model: onnx.ModelProto, typical: Vector, tests: Vector, batch: int, runs: int) -> Row:
    """One size of batch."""
    parameters = kw.Parameters.preset(PRESET)
    target = compiler.Target(
        slots=parameters.max_slots, levels=parameters.max_level, output_level=OUTPUT_LEVEL, batch=batch
    )
    program = compiler.compile_program(
        model, target, compiler.Fit(calibration=typical, activations={"relu": ACTIVATION})
    )
    execution = Model("batches", program, parameters).execution
    secret = kw.SecretKey.generate(parameters)
    client = kw.Decryptor(secret)
    specs = execution.key_specs
    keys = kw.KeyGenerator(secret).evaluation_keys(specs=specs, relinearization=False)
    server = EncryptedBackend(kw.Evaluator(parameters, execution.follow(keys)), plan=execution)
    server.prepare(program)
    seconds: list[Seconds] = []
    error = bound = 0.0
    sent = returned = same = count = 0
    for run in range(runs):
        samples = np.roll(tests, -run * batch, axis=0)[:batch]
        level, magnitude = program.input.level, program.input.magnitude
        rows = program.pack(samples)
        message = [client.encrypt(row, len(row), level, None, magnitude).to_bytes() for row in rows]
        inputs = [kw.SeededCiphertext.from_bytes(data, parameters).expand() for data in message]
        outputs, taken = timed(server.run, program, inputs)
        seconds.append(taken)
        results = program.unpack(np.asarray([client.decrypt(each) for each in outputs]), len(samples))
        error = max(error, float(np.abs(results - run_clear(program, samples)).max()))
        bound = max(bound, *(output.error_bound * program.output.unit for output in outputs))
        same += int((results.argmax(1) == run_onnxruntime(model, samples).argmax(1)).sum())
        count += len(samples)
        sent = sum(map(len, message))
        returned = sum(len(output.to_bytes()) for output in outputs)
    if error > bound:
        raise SystemExit(f"batch {batch}: an error of {error:.3g} is above its bound, {bound:.3g}")
    return Row(
        batch,
        min(batch, len(tests)),
        [each.wall for each in seconds],
        [each.cpu for each in seconds],
        sent,
        returned,
        sum(spec.bytes for spec in specs),
        error,
        bound,
        same / count,
    )


def table(rows: list[Row]) -> list[str]:
    """A line of Markdown for each batch."""
    lines = [f"| {' | '.join(HEADINGS)} |", "|---" * len(HEADINGS) + "|"]
    for row in rows:
        times = [spread([1e3 * second / row.samples for second in row.wall_s])]
        times.append(spread([1e3 * second / row.samples for second in row.processor_s]))
        sizes = [f"{size / 1e3 / row.samples:.4g}" for size in (row.sent_bytes, row.returned_bytes)]
        rest = [f"{row.key_bytes / 1e6:.0f}", f"{row.error:.1e}", f"{row.same_labels:.1%}"]
        lines.append(f"| {' | '.join([str(row.batch), *times, *sizes, *rest])} |")
    return lines


def spread(values: list[float]) -> str:
    """Median, least and most."""
    return f"{median(values):.4g} [{min(values):.4g}, {max(values):.4g}]"


def main() -> None:
    """Measure and record every size of batch."""
    parser = argparse.ArgumentParser(
        prog="python -m studies.batches",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--most", type=int, default=256, help="samples at a time (default: 256)")
    parser.add_argument("--runs", type=int, default=3, help="evaluations of each (default: 3)")
    parser.add_argument("--out", type=Path, help="folder of the record (default: record/DATE-batches)")
    options = parser.parse_args()
    model, typical, tests = perceptron()
    folder = record_folder(options.out, "batches")
    path, rows = folder / "batches.jsonl", []
    if path.is_file():  # goes on where it was cut off
        rows = [Row(**json.loads(line)) for line in path.read_text().splitlines()]
    batch = 1
    with path.open("a") as file:
        while batch <= options.most:
            if all(row.batch != batch for row in rows):
                rows.append(measure(model, typical, tests, batch, options.runs))
                file.write(json.dumps(asdict(rows[-1])) + "\n")
                file.flush()
                print(table(rows)[-1], flush=True)
            batch *= 2
    (folder / "table.md").write_text("\n".join(table(sorted(rows, key=lambda row: row.batch))) + "\n")


if __name__ == "__main__":
    main()
