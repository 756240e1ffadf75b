"""A BERT encoder of two heads as `transformers` stores it: its weights, what it reads, and its ONNX model."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

HEADS = 2
EPSILON = 1e-12
FAR = 1e9
"""How far the logits of padding are below the others."""

Array = NDArray[Any]


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
    """The encoder of sentences of one length as an ONNX model. That of padded ones reads one more feature of
    each token: 1, or 0 for padding, which is hidden from all tokens."""

    def __init__(self, weights: dict[str, Array], tokens: int, *, padded: bool = False) -> None:
        self.weights, self.tokens, self.padded = weights, tokens, padded
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
        value, mask = self._unpadded() if self.padded else ("x", None)
        for layer in range(self.layers):
            value = self._layer(f"bert.encoder.layer.{layer}.", value, mask)
        read: list[str | int | None] = ["N", self.tokens, self.width + self.padded]
        states: list[str | int | None] = ["N", self.tokens, self.width]
        graph = helper.make_graph(
            self.nodes,
            "encoder",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, read)],
            [helper.make_tensor_value_info(value, TensorProto.FLOAT, states)],
            [numpy_helper.from_array(array, name) for name, array in self.constants.items()],
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])

    def _unpadded(self) -> tuple[str, str]:
        """The tokens' states, and what is added to their logits: a large negative number for padding."""
        numbers = {"begin": [0], "width": [self.width], "end": [self.width + 1], "features": [2]}
        numbers |= {"row": [0, 1, 1, self.tokens]}
        self.constants |= {name: np.array(each) for name, each in numbers.items()}
        self.constants |= {"one": np.array(1, np.float32), "far": np.array(FAR, np.float32)}
        states = self._node("Slice", ["x", "begin", "width", "features"])
        bits = self._node("Reshape", [self._node("Slice", ["x", "width", "end", "features"]), "row"])
        return states, self._node("Mul", [self._node("Sub", [bits, "one"]), "far"])

    def _layer(self, part: str, value: str, mask: str | None) -> str:
        heads = [self._head(part, value, name) for name in ("query", "key", "value")]
        scores = self._node("Mul", [self._node("MatMul", heads[:2]), "scale"])
        if mask is not None:
            scores = self._node("Add", [scores, mask])
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
