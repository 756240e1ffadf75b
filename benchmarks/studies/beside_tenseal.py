"""Small models with Keywright and TenSEAL, sample by sample in turns: `python -m studies.beside_tenseal`.

A matrix-vector product of 64 x 64, a logistic regression of 30 features and a perceptron 30-32-16-2 of
squares, both of breast cancer data: both libraries compute the same function. One sample at a time, one
thread each, 128 bits each, messages as bytes. Every result is compared with the function in the clear and its
label with the model's; a wrong one ends the run. Writes raw.jsonl and table.md.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import keywright as kw
import numpy as np
import onnx
from harness.console import Console
from harness.folders import BUILD, record_folder
from harness.measurement.clock import timed
from harness.pages.table import heading, markdown, quotients, spread
from harness.programs.process import PeerProcess
from harness.programs.schedule import pin
from harness.programs.targets import Unavailable
from keywright.compiler.checking import run_onnxruntime
from keywright.runtime import run_clear
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

LARGEST_ERROR = 1e-4
"""Largest accepted error of a result, as a share of the largest output of all samples: wrong results exceed
it."""

SCALE_BITS = 45
"""Bits of TenSEAL's scale and of a level's prime: Keywright's presets here have 38 and 45."""

ENDS_BITS = 60
"""Bits of TenSEAL's first and last prime, as in its own examples."""

EPOCHS, RATE, DECAY = 400, 0.05, 1e-3
"""Of the perceptron's training."""

BOUNDS = {13: 218, 14: 438, 15: 881}
"""SEAL's maximum bits of a modulus at 128-bit security, by ring."""

FIGURES = ("encrypt_s", "evaluate_s", "decrypt_s")
HEADINGS = ("work", "", "TenSEAL", "Keywright", "ratio")

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Layer:
    """Weights (inputs, outputs) and a bias; `square`: whether squares follow."""

    weights: Vector
    bias: Vector
    square: bool = False

    def __call__(self, values: Vector) -> Vector:
        """(count, inputs) to (count, outputs)."""
        linear = values @ self.weights + self.bias
        return linear**2 if self.square else linear


@dataclass(frozen=True)
class Work:
    """One model: as ONNX, as layers for TenSEAL, and samples, (count, inputs)."""

    name: str
    model: onnx.ModelProto
    layers: Sequence[Layer]
    samples: Vector

    def request(self) -> dict[str, Any]:
        """Return the request for the peer, with the smallest sufficient parameters. Biases are weights of an
        additional input of 1: TenSEAL adds a bias to the first slots only, and a following product would be
        wrong.

        Raises:
            SystemExit: no parameters suffice.
        """
        bits = [
            ENDS_BITS,
            *[SCALE_BITS] * (len(self.layers) + sum(layer.square for layer in self.layers)),
            ENDS_BITS,
        ]
        rings = [log_n for log_n, bound in BOUNDS.items() if sum(bits) <= bound]
        if not rings:
            raise SystemExit(f"{self.name}: SEAL has no ring for {sum(bits)} bits")
        layers = []
        for number, layer in enumerate(self.layers):
            weights = np.vstack([layer.weights, layer.bias])
            if number + 1 < len(self.layers):  # the one goes on to the next bias
                weights = np.column_stack([weights, np.eye(len(weights))[-1]])
            layers.append({"weights": weights.tolist(), "square": layer.square})
        return {
            "setup": self.name,
            "log_n": rings[0],
            "log_q": bits,
            "log_scale": SCALE_BITS,
            "layers": layers,
        }

    def clear(self) -> Vector:
        """What the layers give in the clear, (count, outputs)."""
        values = self.samples
        for layer in self.layers:
            values = layer(values)
        return values


def made_of(name: str, layers: Sequence[Layer], samples: Vector) -> Work:
    """The layers in single precision, as ONNX has them."""
    nodes, tensors, value = [], [], "x"
    for number, layer in enumerate(layers):
        for letter, array in (("w", layer.weights), ("b", layer.bias)):
            tensors.append(numpy_helper.from_array(np.asarray(array, np.float32), f"{letter}{number}"))
        nodes.append(helper.make_node("Gemm", [value, f"w{number}", f"b{number}"], [f"h{number}"]))
        value = f"h{number}"
        if layer.square:
            nodes.append(helper.make_node("Mul", [value, value], [f"s{number}"]))
            value = f"s{number}"
    source = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", layers[0].weights.shape[0]])
    target = helper.make_tensor_value_info(value, TensorProto.FLOAT, ["batch", layers[-1].weights.shape[1]])
    graph = helper.make_graph(nodes, "layers", [source], [target], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    exact = [numpy_helper.to_array(tensor).astype(np.float64) for tensor in tensors]
    single = [Layer(exact[2 * i], exact[2 * i + 1], layer.square) for i, layer in enumerate(layers)]
    return Work(name, model, single, samples)


def matrix() -> Work:
    """A dense matrix of 64 x 64."""
    rng = np.random.default_rng(1)
    layer = Layer(rng.uniform(-1, 1, (64, 64)), np.zeros(64))
    return made_of("matrix 64 x 64", [layer], rng.uniform(-1, 1, (100, 64)))


def patients() -> tuple[Vector, NDArray[np.int64], Vector]:
    """Return breast cancer data, standardised: training samples and labels, test samples."""
    samples, labels = load_breast_cancer(return_X_y=True)
    typical, tests, known, _ = train_test_split(samples, labels, test_size=0.25, random_state=0)
    scaler = StandardScaler().fit(typical)
    return scaler.transform(typical), known, scaler.transform(tests)


def logistic() -> Work:
    """A logistic regression: the score, of which both clients take the sigmoid in the clear."""
    typical, known, tests = patients()
    fitted = LogisticRegression().fit(typical, known)
    return made_of("logistic regression", [Layer(fitted.coef_.T, fitted.intercept_)], tests)


def network() -> Work:
    """A perceptron 30-32-16-2 of squares, trained by gradient descent on softmax and cross entropy."""
    typical, known, tests = patients()
    rng = np.random.default_rng(1)
    weights = [rng.normal(size=shape) / np.sqrt(shape[0]) / 2 for shape in pairwise((30, 32, 16, 2))]
    biases = [np.zeros(matrix.shape[1]) for matrix in weights]
    expected = np.eye(2)[known]
    for _ in range(EPOCHS):
        layers = [Layer(*pair, square=i < 2) for i, pair in enumerate(zip(weights, biases, strict=True))]
        values, inputs = typical, []
        for layer in layers:
            inputs.append(values)
            values = layer(values)
        powers = np.exp(values - values.max(1, keepdims=True))
        slope = (powers / powers.sum(1, keepdims=True) - expected) / len(typical)
        for i in reversed(range(3)):
            if layers[i].square:
                slope = 2 * slope * (inputs[i] @ weights[i] + biases[i])
            back = slope @ weights[i].T
            step = np.clip(inputs[i].T @ slope + DECAY * weights[i], -1, 1)
            weights[i] -= RATE * step
            biases[i] -= RATE * np.clip(slope.sum(0), -1, 1)
            slope = back
    layers = [Layer(*pair, square=i < 2) for i, pair in enumerate(zip(weights, biases, strict=True))]
    return made_of("perceptron of squares", layers, tests)


class Own:
    """Keywright's client and server for one work.

    Args:
        work: is compiled as `keywright.compile` chooses.
    """

    def __init__(self, work: Work) -> None:
        self.model = kw.compile(work.model, batch=1)
        sides, seconds = timed(self._sides)
        self.client, self.server = sides
        self.facts = {
            "setup_s": seconds.wall,
            "key_bytes": self.model.report.sizes.key_bytes,
            "parameters": repr(self.model.parameters),
        }
        self.clear = run_clear(self.model.program, work.samples)

    def _sides(self) -> tuple[Any, Any]:
        client, server = self.model.client(), self.model.server()
        server.load_keys(client.keys())
        return client, server

    def run(self, sample: Vector) -> dict[str, Any]:
        """Run one sample in the same way as the peer."""
        message, encrypting = timed(self.client.encrypt, sample)
        reply, evaluating = timed(self.server.run, message)
        result, decrypting = timed(self.client.decrypt, reply)
        return {
            "encrypt_s": encrypting.wall,
            "evaluate_s": evaluating.wall,
            "evaluate_cpu_s": evaluating.cpu,
            "decrypt_s": decrypting.wall,
            "sent_bytes": len(message),
            "returned_bytes": len(reply),
            "result": result.ravel().tolist(),
        }


def check(name: str, line: dict[str, Any], expected: Vector, scores: Vector, largest: float) -> None:
    """Note the error of a result and whether its label is that of the model.

    Raises:
        SystemExit: the result is wrong.
    """
    outputs = np.asarray(line["result"])[: expected.size]
    line["error"] = float(np.abs(outputs - expected).max())
    line["same_label"] = label(outputs) == label(scores)
    if not line["error"] <= LARGEST_ERROR * largest:
        raise SystemExit(f"{name}: a result is off by {line['error']:.3g}")


def label(scores: Vector) -> int:
    """The largest score, or the sign of the only one."""
    return int(scores.argmax()) if scores.size > 1 else int(scores.item() > 0)


def lines_of(
    name: str, peer: list[dict[str, Any]], own: list[dict[str, Any]], facts: dict[str, Any]
) -> list[list[str]]:
    """Lines of a work."""
    rows = []
    for figure in FIGURES:
        seconds = [[1e3 * line[figure] for line in lines] for lines in (peer, own)]
        rows.append([f"{figure.removesuffix('_s')}, ms", *map(spread, seconds), spread(quotients(*seconds))])
    for what, values in (
        ("set up, once, s", [facts[side]["setup_s"] for side in ("tenseal", "keywright")]),
        ("keys, MB", [facts[side]["key_bytes"] / 1e6 for side in ("tenseal", "keywright")]),
        ("sent, kB", [lines[-1]["sent_bytes"] / 1e3 for lines in (peer, own)]),
        ("returned, kB", [lines[-1]["returned_bytes"] / 1e3 for lines in (peer, own)]),
        ("largest error", [max(line["error"] for line in lines) for lines in (peer, own)]),
    ):
        rows.append([what, *(f"{value:.3g}" for value in values), f"{values[0] / values[1]:.3g}"])
    same = [f"{sum(line['same_label'] for line in lines)} of {len(lines)}" for lines in (peer, own)]
    if "matrix" not in name:
        rows.append(["labels as the model's", *same, ""])
    return [[name if number == 0 else "", *row] for number, row in enumerate(rows)]


def turns(
    work: Work, peer: PeerProcess, rounds: int, keep: Callable[[dict[str, Any]], None]
) -> list[list[str]]:
    """Run both on samples of a work; lines of the table. `keep` gets everything as it is measured.

    Raises:
        SystemExit: a result is wrong.
    """
    own = Own(work)
    facts = {"work": work.name, "tenseal": peer.ask(work.request()), "keywright": own.facts}
    keep(facts)
    clear = {"tenseal": work.clear(), "keywright": own.clear}
    scores, largest = run_onnxruntime(work.model, work.samples), float(np.abs(own.clear).max())
    lines: dict[str, list[dict[str, Any]]] = {side: [] for side in clear}
    for turn in range(-1, rounds):  # the first is not counted: tables and caches are filled by it
        place = max(turn, 0)
        sample = work.samples[place]
        for side in clear if turn % 2 else reversed(clear):
            if side == "keywright":
                line = own.run(sample)
            else:
                line = peer.ask({"run": work.name, "sample": [*sample.tolist(), 1.0]})
            expected = clear[side][place].ravel()
            check(f"{side}, {work.name}", line, expected, scores[place].ravel(), largest)
            if turn >= 0:
                lines[side].append(line)
                keep({"side": side, "work": work.name, "round": turn, **line})
    return lines_of(work.name, lines["tenseal"], lines["keywright"], facts)


def main() -> None:
    """Run all works, compare, write."""
    parser = argparse.ArgumentParser(prog="python -m studies.beside_tenseal", description=__doc__)
    parser.add_argument("--rounds", type=int, default=20, help="samples of each work (default: 20)")
    parser.add_argument("--build", type=Path, default=BUILD, help="folder of the peers' builds")
    parser.add_argument("--out", type=Path, help="folder of the record (default: record/DATE-tenseal)")
    options = parser.parse_args()
    if not 1 <= options.rounds <= 100:
        parser.error("--rounds is 1 to 100")
    kw.set_threads(1)
    pin(1)
    try:
        peer = PeerProcess("tenseal", "peers.tenseal.models", options.build.resolve(), Console())
    except Unavailable as unavailable:
        raise SystemExit(f"tenseal: {unavailable}") from unavailable
    folder = record_folder(options.out, "tenseal")
    rows: list[list[str]] = []
    with (folder / "raw.jsonl").open("w") as raw:
        for work in (matrix(), logistic(), network()):
            rows += turns(
                work, peer, options.rounds, lambda line: print(json.dumps(line), file=raw, flush=True)
            )
    title = "Small models beside TenSEAL"
    text = [*heading(title, "one thread each, one sample at a time, in turns"), *markdown(HEADINGS, rows)]
    (folder / "table.md").write_text("\n".join(text) + "\n")
    print("\n".join(text))


if __name__ == "__main__":
    main()
