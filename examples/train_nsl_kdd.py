"""Train an intrusion detector on NSL-KDD: a gated recurrent unit of 128, three dense layers, five classes.

    python examples/train_nsl_kdd.py FOLDER

FOLDER has KDDTrain+.txt.gz and KDDTest+.txt of NSL-KDD (Tavallaee et al., CISDA 2009). Four fifths of the
training set are trained on, one fifth is the split that papers report; KDDTest+, which has attacks that the
training set lacks, is printed beside it. Writes examples/models/gru_nsl_kdd.onnx. Three minutes on one core.
Needs numpy and onnx.

The network is that of Joo et al. (Sensors 25(14):4320, 2025), after Xu et al. (IEEE Access 6, 2018), over a
sequence. NSL-KDD has neither times nor an order of its records. So a record is itself the sequence: the four
groups of features of its description, each filled up with zeros to the width of the first. They are those of
the connection, of its content, of the last two seconds, and of the last hundred connections. The unit
multiplies its state with matrices of 128 x 128 in every step but the first, which begins with zeros. Sigmoid
and tanh are those of the model; polynomials replace them when it is compiled.
"""

import argparse
import gzip
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

Array = NDArray[np.float32]
Weights = dict[str, Array]

OUTPUT = Path(__file__).parent / "models" / "gru_nsl_kdd.onnx"
UNITS = 128
HIDDEN = (128, 64)
SYMBOLS = (1, 2, 3)
"""Columns of words: protocol, service, flag."""

FIELDS = 41
GROUPS = (range(9), range(9, 22), range(22, 31), range(31, 41))
"""Columns of each step: the connection, its content, two seconds, a hundred connections."""

CLASSES = {
    "normal": "normal",
    "dos": "back land neptune pod smurf teardrop apache2 mailbomb processtable udpstorm",
    "probe": "ipsweep nmap portsweep satan mscan saint",
    "r2l": "ftp_write guess_passwd imap multihop phf spy warezclient warezmaster httptunnel named sendmail "
    "snmpgetattack snmpguess worm xlock xsnoop",
    "u2r": "buffer_overflow loadmodule perl rootkit ps sqlattack xterm",
}
"""The five classes, each with its attacks; those of KDDTest+ alone are of the class that its authors give."""


class Records:
    """Rows of a file as words."""

    def __init__(self, path: Path) -> None:
        data = path.read_bytes()
        lines = (gzip.decompress(data) if path.suffix == ".gz" else data).decode().split()
        self.rows = [line.split(",") for line in lines]
        if any(len(row) != FIELDS + 2 for row in self.rows):
            raise ValueError(f"{path}: not rows of {FIELDS} fields, a label and a difficulty")

    def labels(self) -> NDArray[np.int64]:
        """The class of each row."""
        numbers = {attack: k for k, attacks in enumerate(CLASSES.values()) for attack in attacks.split()}
        return np.array([numbers[row[FIELDS]] for row in self.rows])


class Features:
    """Rows to steps of numbers from 0 to 1: logarithms of counts, scaled as in the training set, and words as
    ones."""

    def __init__(self, train: Records) -> None:
        self.words = {column: sorted({row[column] for row in train.rows}) for column in SYMBOLS}
        self.high = {
            column: max(float(self._logarithms(train, column).max()), 1e-9)
            for column in range(FIELDS)
            if column not in SYMBOLS
        }
        self.width = max(sum(len(self.words.get(column, "1")) for column in columns) for columns in GROUPS)

    def __call__(self, records: Records) -> Array:
        """Return an array (rows, steps, width). Values above the training set's maximum become 1; unknown
        words are all zeros."""
        out = np.zeros((len(records.rows), len(GROUPS), self.width), np.float32)
        for step, columns in enumerate(GROUPS):
            parts = [self._column(records, column) for column in columns]
            values = np.concatenate(parts, axis=1)
            out[:, step, : values.shape[1]] = values
        return out

    def _column(self, records: Records, column: int) -> NDArray[np.float64]:
        if column in self.high:
            scaled: NDArray[np.float64] = self._logarithms(records, column) / self.high[column]
            return np.asarray(np.minimum(scaled, 1.0))[:, None]
        column_values = np.array([row[column] for row in records.rows])
        ones: NDArray[np.float64] = (column_values[:, None] == np.array(self.words[column])[None]).astype(
            np.float64
        )
        return ones

    @staticmethod
    def _logarithms(records: Records, column: int) -> NDArray[np.float64]:
        return np.asarray(np.log1p([float(row[column]) for row in records.rows]))


def initial_weights(width: int, rng: np.random.Generator) -> Weights:
    """Uniform within the inverse root of the inputs; biases are 0. The unit's columns are those of its three
    gates: update, reset, new."""
    out: Weights = {}

    def dense(name: str, inputs: int, outputs: int, parts: int = 1) -> None:
        bound = (6 / (inputs + outputs)) ** 0.5
        out[f"{name}.w"] = rng.uniform(-bound, bound, (inputs, parts * outputs)).astype(np.float32)
        out[f"{name}.b"] = np.zeros(parts * outputs, np.float32)

    dense("input", width, UNITS, 3)
    dense("state", UNITS, UNITS, 3)
    sizes = (UNITS, *HIDDEN, len(CLASSES))
    for k, (inputs, outputs) in enumerate(pairwise(sizes)):
        dense(f"dense{k}", inputs, outputs)
    return out


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x))."""
    return np.asarray(1 / (1 + np.exp(-x)))


def forward(weights: Mapping[str, Array], x: Array) -> dict[str, Array]:
    """Every value of the network for samples (rows, steps, width); `scores` are those of the classes."""

    def dense(name: str, value: Array) -> Array:
        return np.asarray(value @ weights[f"{name}.w"] + weights[f"{name}.b"])

    out = {"state0": np.zeros((len(x), UNITS), np.float32)}
    for step in range(x.shape[1]):
        before = out[f"state{step}"]
        of_input, of_state = dense("input", x[:, step]), dense("state", before)
        update = out[f"update{step}"] = sigmoid(of_input[:, :UNITS] + of_state[:, :UNITS])
        reset = out[f"reset{step}"] = sigmoid((of_input + of_state)[:, UNITS : 2 * UNITS])
        kept = out[f"kept{step}"] = of_state[:, 2 * UNITS :]
        new = out[f"new{step}"] = np.tanh(of_input[:, 2 * UNITS :] + reset * kept)
        out[f"state{step + 1}"] = (1 - update) * new + update * before
    value = out[f"state{x.shape[1]}"]
    for k in range(len(HIDDEN)):
        value = out[f"hidden{k}"] = sigmoid(dense(f"dense{k}", value))
    out["scores"] = dense(f"dense{len(HIDDEN)}", value)
    return out


def gradients(weights: Weights, x: Array, labels: NDArray[np.int64]) -> tuple[Weights, float]:
    """Return the gradients of the mean cross entropy of a batch, and the entropy."""
    values = forward(weights, x)
    scores = values["scores"] - values["scores"].max(axis=1, keepdims=True)
    shares = np.exp(scores)
    shares /= shares.sum(axis=1, keepdims=True)
    rows = np.arange(len(x))
    loss = float(-np.log(np.maximum(shares[rows, labels], 1e-12)).mean())
    shares[rows, labels] -= 1
    slope: Array = shares / len(x)
    out: Weights = {name: np.zeros_like(value) for name, value in weights.items()}

    def dense(name: str, value: Array, slope: Array) -> Array:
        out[f"{name}.w"] += value.T @ slope
        out[f"{name}.b"] += slope.sum(axis=0)
        return np.asarray(slope @ weights[f"{name}.w"].T)

    for k in range(len(HIDDEN), 0, -1):
        value = values[f"hidden{k - 1}"]
        slope = dense(f"dense{k}", value, slope) * value * (1 - value)
    slope = dense("dense0", values[f"state{x.shape[1]}"], slope)
    for step in range(x.shape[1] - 1, -1, -1):
        before, update, reset, kept, new = (
            values[f"{name}{step}"] for name in ("state", "update", "reset", "kept", "new")
        )
        inner = slope * (1 - update) * (1 - new * new)
        of_update = slope * (before - new) * update * (1 - update)
        of_reset = inner * kept * reset * (1 - reset)
        dense("input", x[:, step], np.concatenate([of_update, of_reset, inner], axis=1))
        of_state = np.concatenate([of_update, of_reset, inner * reset], axis=1)
        slope = slope * update + dense("state", before, of_state)
    return out, loss


def batches(count: int, size: int, rng: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """Yield all rows in a random order, in batches of ``size``."""
    order = rng.permutation(count)
    yield from (order[k : k + size] for k in range(0, count, size))


def train(
    weights: Weights, x: Array, labels: NDArray[np.int64], epochs: int, rng: np.random.Generator
) -> Iterator[float]:
    """Adam, with a rate that falls along a cosine; yields the mean loss of each epoch."""
    first = {name: np.zeros_like(value) for name, value in weights.items()}
    second = {name: np.zeros_like(value) for name, value in weights.items()}
    size, turn = 256, 0
    turns = epochs * -(-len(x) // size)
    for _ in range(epochs):
        losses = []
        for rows in batches(len(x), size, rng):
            slopes, loss = gradients(weights, x[rows], labels[rows])
            losses.append(loss)
            rate = 2e-3 * (1 + np.cos(np.pi * turn / turns)) / 2
            turn += 1
            for name, slope in slopes.items():
                first[name] += 0.1 * (slope - first[name])
                second[name] += 0.001 * (slope * slope - second[name])
                step = first[name] / (1 - 0.9**turn)
                weights[name] -= (rate * step / (np.sqrt(second[name] / (1 - 0.999**turn)) + 1e-8)).astype(
                    np.float32
                )
        yield float(np.mean(losses))


def accuracy(weights: Weights, x: Array, labels: NDArray[np.int64]) -> float:
    """Share of the rows whose class is found."""
    accuracy = [forward(weights, x[k : k + 4096])["scores"].argmax(axis=1) for k in range(0, len(x), 4096)]
    return float((np.concatenate(accuracy) == labels).mean())


def save_onnx(weights: Weights, width: int, path: Path) -> None:
    """Write the network from ``features`` (batch, steps, width) to ``scores`` (batch, classes)."""
    gates = {"unit.w": "input.w", "unit.r": "state.w"}
    tensors = {name: np.ascontiguousarray(weights[of].T[None]) for name, of in gates.items()}
    tensors["unit.b"] = np.concatenate([weights["input.b"], weights["state.b"]])[None]
    tensors |= {name: value for name, value in weights.items() if name.startswith("dense")}
    tensors["first"] = np.zeros(1, np.int64)
    unit = ["steps", "unit.w", "unit.r", "unit.b"]
    nodes = [
        helper.make_node("Transpose", ["features"], ["steps"], perm=[1, 0, 2]),
        helper.make_node("GRU", unit, ["", "last"], "unit", hidden_size=UNITS, linear_before_reset=1),
        helper.make_node("Squeeze", ["last", "first"], ["state"]),
    ]
    value = "state"
    for k in range(len(HIDDEN) + 1):
        dense, out = f"dense{k}", f"hidden{k}" if k < len(HIDDEN) else "scores"
        ends = f"{dense}.sum" if k < len(HIDDEN) else out
        nodes.append(helper.make_node("Gemm", [value, f"{dense}.w", f"{dense}.b"], [ends], dense))
        if k < len(HIDDEN):
            nodes.append(helper.make_node("Sigmoid", [ends], [out], out))
        value = out
    graph = helper.make_graph(
        nodes,
        path.stem,
        [helper.make_tensor_value_info("features", TensorProto.FLOAT, ["batch", len(GROUPS), width])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", len(CLASSES)])],
        [numpy_helper.from_array(value, name) for name, value in tensors.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, path)


def split(count: int, rng: np.random.Generator) -> tuple[Sequence[int], Sequence[int]]:
    """Four fifths of the rows, and the others."""
    order = rng.permutation(count).tolist()
    return order[: count * 4 // 5], order[count * 4 // 5 :]


def main() -> None:
    """Train, print what is right, write the model."""
    parser = argparse.ArgumentParser(description="Train the intrusion detector of examples/models.")
    parser.add_argument("folder", type=Path, help="folder of KDDTrain+.txt.gz and KDDTest+.txt")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    arguments = parser.parse_args()

    rng = np.random.default_rng(arguments.seed)
    records, test = Records(arguments.folder / "KDDTrain+.txt.gz"), Records(arguments.folder / "KDDTest+.txt")
    features = Features(records)
    x, labels = features(records), records.labels()
    rows, held = split(len(x), rng)
    weights = initial_weights(features.width, rng)
    print(f"{len(rows)} rows of {x.shape[1]} steps of {features.width}, {len(held)} held out")
    for epoch, loss in enumerate(train(weights, x[rows], labels[rows], arguments.epochs, rng)):
        print(f"epoch {epoch + 1}: loss {loss:.4f}, held out {accuracy(weights, x[held], labels[held]):.4f}")
    print(f"held out {accuracy(weights, x[held], labels[held]):.4f}")
    print(f"KDDTest+ {accuracy(weights, features(test), test.labels()):.4f}")
    save_onnx(weights, features.width, arguments.output)
    print(f"{arguments.output}: {arguments.output.stat().st_size} bytes")


if __name__ == "__main__":
    main()
