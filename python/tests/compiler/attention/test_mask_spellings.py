"""Masks as people and exporters write them, of bits that clients encrypt: exact in every spelling."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from keywright.compiler.front_ends.onnx_importer import import_model
from keywright.program.arrays import Vector
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from tests.compiler.conftest import build_model

node = helper.make_node
TOKENS, WIDTH = 4, 3
BIAS = np.random.default_rng(2).normal(size=(1, TOKENS, TOKENS)).astype(np.float32)
CONSTANTS: dict[str, Any] = {
    "zero": np.array([0]),
    "width": np.array([WIDTH]),
    "end": np.array([WIDTH + 1]),
    "last": np.array([2]),
    "row": np.array([0, 1, TOKENS]),
    "square": np.array([1, TOKENS, TOKENS]),
    "past": np.tri(TOKENS, dtype=bool)[None],
    "future": ~np.tri(TOKENS, dtype=bool)[None],
    "causal": np.where(np.tri(TOKENS, dtype=bool), 0, -np.inf)[None].astype(np.float32),
    "bias": BIAS,
    "least": np.float32(np.finfo(np.float32).min),
    "leasts": np.full((1, 1, TOKENS), -1e9, np.float32),
    "infinity": np.float32(-np.inf),
} | {
    name: np.float32(number)
    for name, number in {"none": 0, "half": 0.5, "one": 1, "two": 2, "big": 1e9, "small": 1e-9}.items()
}

BITS, HIDDEN = node("Cast", ["m"], ["b"], to=TensorProto.BOOL), node("Not", ["b"], ["h"])
INVERSE = node("Sub", ["one", "m"], ["i"])
SUM, MASKED = node("Add", ["scores", "g"], ["s"]), node("Where", ["h", "infinity", "scores"], ["s"])

SPELLINGS: dict[str, list[onnx.NodeProto]] = {
    "0 or infinity": [BITS, node("Where", ["b", "none", "infinity"], ["g"]), SUM],
    "0 or a row": [BITS, node("Where", ["b", "none", "leasts"], ["g"]), SUM],
    "(1 - m) least": [INVERSE, node("Mul", ["i", "least"], ["g"]), SUM],
    "(1 - m) -big": [INVERSE, node("Neg", ["big"], ["n"]), node("Mul", ["n", "i"], ["g"]), SUM],
    "(m - 1) big": [node("Sub", ["m", "one"], ["i"]), node("Mul", ["i", "big"], ["g"]), SUM],
    "(m - 1) / small": [node("Sub", ["m", "one"], ["i"]), node("Div", ["i", "small"], ["g"]), SUM],
    "m big - big": [node("Mul", ["m", "big"], ["i"]), node("Sub", ["i", "big"], ["g"]), SUM],
    "(1 - m) least / 2": [INVERSE, node("Mul", ["i", "least"], ["j"]), node("Div", ["j", "two"], ["g"]), SUM],
    "the inverse, filled": [
        INVERSE,
        node("Cast", ["i"], ["h"], to=TensorProto.BOOL),
        node("Where", ["h", "least", "i"], ["g"]),
        SUM,
    ],
    "no less than least": [
        BITS,
        node("Where", ["b", "none", "infinity"], ["j"]),
        node("Max", ["j", "least"], ["g"]),
        SUM,
    ],
    "a bias or least": [BITS, node("Where", ["b", "bias", "least"], ["g"]), SUM],
    "a causal mask or infinity": [BITS, node("Where", ["b", "causal", "infinity"], ["g"]), SUM],
    "bits or the future": [
        BITS,
        HIDDEN,
        node("Or", ["h", "future"], ["o"]),
        node("Where", ["o", "least", "none"], ["g"]),
        SUM,
    ],
    "bits and the past": [
        BITS,
        node("And", ["b", "past"], ["a"]),
        node("Where", ["a", "none", "infinity"], ["g"]),
        SUM,
    ],
    "a comparison": [
        node("Less", ["m", "half"], ["h"]),
        node("Where", ["h", "infinity", "none"], ["g"]),
        SUM,
    ],
    "filled logits": [BITS, HIDDEN, MASKED],
    "kept logits": [BITS, node("Where", ["b", "scores", "infinity"], ["s"])],
    "finite in logits": [node("Equal", ["m", "none"], ["h"]), node("Where", ["h", "least", "scores"], ["s"])],
    "spread, in logits": [
        node("Equal", ["m", "none"], ["e"]),
        node("Expand", ["e", "square"], ["h"]),
        MASKED,
    ],
    "in logits, and a bias": [
        BITS,
        HIDDEN,
        node("Where", ["h", "least", "scores"], ["f"]),
        node("Add", ["f", "bias"], ["s"]),
    ],
    "in logits, and causal": [
        BITS,
        HIDDEN,
        node("Where", ["h", "least", "scores"], ["f"]),
        node("Add", ["f", "causal"], ["s"]),
    ],
    "causal, and a bias or least": [
        BITS,
        node("Where", ["b", "bias", "least"], ["g"]),
        node("Add", ["scores", "causal"], ["f"]),
        node("Add", ["g", "f"], ["s"]),
    ],
    "a bias or least, twice": [
        BITS,
        node("Where", ["b", "bias", "least"], ["g"]),
        node("Where", ["b", "bias", "infinity"], ["j"]),
        node("Add", ["scores", "g"], ["f"]),
        node("Add", ["f", "j"], ["s"]),
    ],
}
"""Nodes from the bits "m" and the logits "scores" to what the softmax reads, "s"."""


def require_exact(nodes: Sequence[onnx.NodeProto], more: dict[str, Any] | None = None) -> None:
    """Compare the imported graph, with exact functions, and ONNX's reference for sentences of all lengths."""
    nodes = [
        node("Slice", ["x", "zero", "width", "last"], ["tokens"]),
        node("Slice", ["x", "width", "end", "last"], ["feature"]),
        node("Reshape", ["feature", "row"], ["m"]),
        node("Transpose", ["tokens"], ["columns"], perm=[0, 2, 1]),
        node("MatMul", ["tokens", "columns"], ["scores"]),
        *nodes,
        node("Softmax", ["s"], ["p"], axis=-1),
        node("MatMul", ["p", "tokens"], ["y"]),
    ]
    read = {name for each in nodes for name in each.input}
    known = {name: array for name, array in (CONSTANTS | (more or {})).items() if name in read}
    model = build_model(nodes, (TOKENS, WIDTH + 1), known)
    samples = np.random.default_rng(1).normal(size=(TOKENS, TOKENS, WIDTH + 1)).astype(np.float32)
    samples[..., WIDTH] = np.tri(TOKENS)
    bits = np.zeros(samples.shape[1:], bool)
    bits[:, WIDTH] = True
    imported = import_model(model, bits=bits)
    assert not imported.reasons
    flat: Vector = samples.reshape(TOKENS, -1).astype(np.float64)
    outputs = imported.graph.evaluate(flat)[imported.graph.output]
    run = ReferenceEvaluator(model)
    expected = np.concatenate([np.asarray(run.run(None, {"x": each[None]})) for each in samples])
    assert np.abs(outputs.reshape(expected.shape) - expected).max() < 1e-5
    assert sorted(imported.claims.required.tolist()) == np.flatnonzero(bits).tolist()


@pytest.mark.parametrize("how", SPELLINGS)
def test_spellings_of_masks(how: str) -> None:
    require_exact(SPELLINGS[how])


@pytest.mark.parametrize("seed", range(20))
def test_any_arithmetic_of_bits_becomes_a_mask(seed: int) -> None:
    """Some steps with random numbers, then a comparison: the mask is that of the two numbers left."""
    rng = np.random.default_rng(seed)
    numbers, steps, more = np.array([0.0, 1.0], np.float32), list[onnx.NodeProto](), dict[str, Any]()
    name = "m"
    for index in range(rng.integers(1, 5)):
        operator = str(rng.choice(["Add", "Sub", "Mul", "Div", "Neg"]))
        constant = np.float32(rng.choice([-3, -1, 0.25, 1, 7]))
        operands, given = [name, f"c{index}"], [numbers, constant]
        if operator == "Neg":
            operands, given = operands[:1], given[:1]
        elif operator != "Div" and rng.random() < 0.5:
            operands, given = operands[::-1], given[::-1]
        numbers = {
            "Add": np.add,
            "Sub": np.subtract,
            "Mul": np.multiply,
            "Div": np.divide,
            "Neg": np.negative,
        }[operator](*given)
        more[f"c{index}"], name = constant, f"v{index}"
        steps.append(node(operator, operands, [name]))
    more["between"] = np.float32(numbers.mean())
    above = "Greater" if numbers[1] > numbers[0] else "Less"
    choice = [node(above, [name, "between"], ["b"]), node("Where", ["b", "none", "infinity"], ["g"]), SUM]
    require_exact([*steps, *choice], more)


KEPT = np.array([True, False, True, False])
READERS: dict[str, list[onnx.NodeProto]] = {
    "nothing": [node("Identity", ["s"], ["y"])],
    "a matrix": [node("MatMul", ["s", "sums"], ["y"])],
    "a function": [node("Relu", ["s"], ["y"])],
    "a sum": [node("Reshape", ["s", "row"], ["r"]), node("Add", ["r", "x"], ["y"])],
}
"""What reads a value "s" without a softmax."""


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("number", [-1.0, -1e4, -1e9])
@pytest.mark.parametrize("operands", [["kept", "x", "number"], ["kept", "number", "x"]])
def test_numbers_as_large_as_masks_are_numbers_without_a_softmax(
    reader: str, number: float, operands: list[str]
) -> None:
    more: dict[str, Any] = {"kept": KEPT, "number": np.float32(number), "row": np.array([-1, TOKENS])}
    more["sums"] = np.ones((TOKENS, 1), np.float32)
    nodes = [node("Where", operands, ["s"]), *READERS[reader]]
    read = {name for each in nodes for name in each.input}
    model = build_model(nodes, (TOKENS,), {name: array for name, array in more.items() if name in read})
    samples = number * np.random.default_rng(1).normal(size=(5, TOKENS)).astype(np.float32)
    imported = import_model(model)
    assert not imported.reasons
    outputs = imported.graph.evaluate(samples.astype(np.float64))[imported.graph.output]
    (expected,) = map(np.asarray, ReferenceEvaluator(model).run(None, {"x": samples}))
    assert np.abs(outputs.reshape(expected.shape) - expected).max() < 1e-5 * abs(number)
