"""Operators into which onnxruntime's optimisers fuse others, in ONNX's own, beside onnxruntime's."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import keywright as kw
import numpy as np
import onnx
import onnxruntime
import pytest
from keywright import compiler
from keywright.compiler.front_ends.model_file import load_model
from keywright.compiler.front_ends.rewriting.fused_operators import RULES
from keywright.errors import ModelRefusedError, RefusalError
from keywright.runtime import run_clear
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

Array = NDArray[Any]
TOKENS, WIDTH, WORDS, COUNT = 3, 4, 7, 40
RNG = np.random.default_rng(3636)
SHAPES = {
    "w3": (WIDTH, 3 * WIDTH),
    "square": (WIDTH, WIDTH),
    "b3": (3 * WIDTH,),
    "b": (WIDTH,),
    "scale": (WIDTH,),
    "bias": (WIDTH,),
    "words": (WORDS, WIDTH),
    "places": (8, WIDTH),
    "kinds": (2, WIDTH),
    "logits": (1, 2, TOKENS, TOKENS),
    "kernel": (WIDTH, WIDTH, 1),
    "wide": (WIDTH, 8),
    "offset": (8,),
}
CONSTANTS: dict[str, Any] = {
    name: RNG.normal(size=shape).astype(np.float32) for name, shape in SHAPES.items()
} | {
    "none": np.array([0]),
    "one": np.array([1]),
    "two": np.array([2]),
    "shown": np.array([[1, 1, 0]] * COUNT, np.int32),
}
SENTENCES: dict[str, Array] = {
    "ids": RNG.integers(0, WORDS, (COUNT, TOKENS)),
    "types": RNG.integers(0, 2, (COUNT, TOKENS)),
    "mask": (np.arange(TOKENS) < RNG.integers(1, TOKENS + 1, (COUNT, 1))).astype(np.int64),
    "x": RNG.normal(size=(COUNT, TOKENS, WIDTH)).astype(np.float32),
    "pairs": RNG.integers(0, 2, (COUNT, TOKENS, TOKENS)) | np.eye(TOKENS, dtype=np.int64)[0],
    "split": RNG.normal(size=(COUNT, TOKENS, TOKENS, WIDTH)).astype(np.float32),
}


def node(operator: str, sources: str, results: str = "y", domain: str = "", **given: Any) -> onnx.NodeProto:
    """A node, with its operands separated by spaces; a dot is an absent one."""
    names = ["" if each == "." else each for each in sources.split()]
    outputs = ["" if each == "." else each for each in results.split()]
    return helper.make_node(operator, names, outputs, f"{operator}/{results}", domain=domain, **given)


def fused(operator: str, sources: str, results: str = "y", **given: Any) -> onnx.NodeProto:
    """A node of onnxruntime's own operators."""
    return node(operator, sources, results, "com.microsoft", **given)


def model_of(nodes: Sequence[onnx.NodeProto], opset: int, outputs: Sequence[str] = ("y",)) -> onnx.ModelProto:
    """A model of the sentences or embedded sentences that the nodes read."""
    read = {name for each in nodes for name in each.input}
    kinds = {name: helper.np_dtype_to_tensor_dtype(array.dtype) for name, array in SENTENCES.items()}
    graph = helper.make_graph(
        list(nodes),
        "sentences",
        [
            helper.make_tensor_value_info(name, kinds[name], ["N", *array.shape[1:]])
            for name, array in SENTENCES.items()
            if name in read
        ],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", None, None]) for name in outputs],
        [numpy_helper.from_array(np.asarray(a), name) for name, a in CONSTANTS.items() if name in read],
    )
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def run(model: onnx.ModelProto, samples: dict[str, Array]) -> list[Array]:
    """The outputs by onnxruntime, as the model is."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    providers = ["CPUExecutionProvider"]
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=providers)
    taken = {value.name for value in session.get_inputs()}
    return list(session.run(None, {name: each for name, each in samples.items() if name in taken}))


MASK = node("Cast", "mask", "m", to=TensorProto.INT32)
NUMBERS = [node("Cast", name, name[0], to=TensorProto.INT32) for name in ("ids", "types")]
EMBEDDING = "i t words places kinds scale bias"
CASES: dict[str, list[onnx.NodeProto]] = {
    "Gelu": [fused("Gelu", "x")],
    "BiasGelu": [fused("BiasGelu", "x b")],
    "FastGelu": [fused("FastGelu", "x")],
    "FastGelu, bias": [fused("FastGelu", "x b")],
    "QuickGelu": [fused("QuickGelu", "x")],
    "QuickGelu, alpha": [fused("QuickGelu", "x", alpha=1.0)],
    "FusedMatMul": [fused("FusedMatMul", "x square", alpha=0.5)],
    "FusedMatMul, second": [fused("FusedMatMul", "x x", transB=1, alpha=0.25)],
    "FusedMatMul, first": [fused("FusedMatMul", "x x", transA=1)],
    "FusedMatMul, both": [fused("FusedMatMul", "square x", "p", transA=1, transB=1), node("Identity", "p")],
    "FusedGemm": [
        node("Gather", "x none", "g", axis=1),
        node("Flatten", "g", "f"),
        fused("FusedGemm", "f wide offset", "h", activation="Tanh"),
        node("Unsqueeze", "h one", "y"),
    ],
    "FusedGemm, LeakyRelu": [
        node("Gather", "x none", "g", axis=1),
        node("Flatten", "g", "f"),
        fused("FusedGemm", "f wide offset", "h", activation="LeakyRelu", activation_alpha=0.1),
        node("Unsqueeze", "h one", "y"),
    ],
    **{
        f"FusedGemm, {activation}": [
            node("Gather", "x none", "g", axis=1),
            node("Flatten", "g", "f"),
            fused("FusedGemm", "f wide offset", "h", activation=activation, **given),
            node("Unsqueeze", "h one", "y"),
        ]
        for activation, given in {
            "Elu": {"activation_alpha": 0.3},
            "HardSigmoid": {"activation_alpha": 0.3, "activation_beta": 0.4},
            "Selu": {"activation_alpha": 1.2, "activation_gamma": 0.7},
            "ThresholdedRelu": {"activation_alpha": 0.5},
        }.items()
    },
    "FusedConv": [
        node("Transpose", "x", "t", perm=[0, 2, 1]),
        fused("FusedConv", "t kernel b", activation="Relu"),
    ],
    "FusedConv, Clip, and a sum": [
        node("Transpose", "x", "t", perm=[0, 2, 1]),
        fused("FusedConv", "t kernel b t", activation="Clip", activation_params=[-0.5, 0.5]),
    ],
    "LayerNormalization": [node("LayerNormalization", "x scale bias", axis=-1, epsilon=1e-6)],
    "SimplifiedLayerNormalization": [node("SimplifiedLayerNormalization", "x scale", axis=-1, epsilon=0.1)],
    "SkipLayerNormalization": [
        node("MatMul", "x square", "z"),
        fused("SkipLayerNormalization", "x z scale bias b", epsilon=0.1),
    ],
    "SkipLayerNormalization, sum": [
        node("MatMul", "x square", "z"),
        fused("SkipLayerNormalization", "x z scale bias", "n . . s", epsilon=0.1),
        node("Add", "n s"),
    ],
    "SkipSimplifiedLayerNormalization": [
        node("MatMul", "x square", "z"),
        fused("SkipSimplifiedLayerNormalization", "x z scale b", "n . . s", epsilon=0.1),
        node("Add", "n s"),
    ],
    "EmbedLayerNormalization": [
        *NUMBERS,
        fused("EmbedLayerNormalization", EMBEDDING, "e j", epsilon=1e-6),
        node("MatMul", "e square"),
    ],
    "Attention": [fused("Attention", "x w3 b3", num_heads=2)],
    "Attention, sizes": [fused("Attention", "x w3 b3", num_heads=2, qkv_hidden_sizes=[2, 2, 8], scale=0.3)],
    "Attention, causal": [fused("Attention", "x w3 b3", num_heads=2, unidirectional=1)],
    "Attention, bias": [fused("Attention", "x w3 b3 . . logits", num_heads=2)],
    "Attention, constant mask": [fused("Attention", "x w3 b3 shown", num_heads=2)],
    "Attention, mask": [
        *NUMBERS,
        fused("EmbedLayerNormalization", EMBEDDING, "e j"),
        MASK,
        fused("Attention", "e w3 b3 m", num_heads=2),
    ],
    "Attention, numbers of tokens": [
        MASK,
        *NUMBERS,
        fused("EmbedLayerNormalization", f"{EMBEDDING} m", "e j"),
        fused("Attention", "e w3 b3 j", num_heads=2),
    ],
    "Attention, counted tokens": [
        *NUMBERS,
        fused("EmbedLayerNormalization", EMBEDDING, "e j"),
        MASK,
        node("ReduceSum", "m one", "n", keepdims=0),
        fused("Attention", "e w3 b3 n", num_heads=2),
    ],
    "Attention, sums of a mask for each pair": [
        node("Cast", "pairs", "m", to=TensorProto.INT32),
        node("ReduceSum", "m two", "n", keepdims=0),
        fused("Attention", "x w3 b3 n", num_heads=2),
    ],
    "MultiHeadAttention": [
        *(node("MatMul", "x square", letter) for letter in "qkv"),
        fused("MultiHeadAttention", "q k v b3", num_heads=2),
    ],
}
"""By operator. Their outputs are those of onnxruntime for the model as it is."""


def test_every_fused_operator_has_a_case() -> None:
    assert {case.split(",")[0] for case in CASES} == RULES.keys()


@pytest.mark.parametrize("case", CASES)
def test_fused_operators_in_onnxs_own(case: str) -> None:
    for opset in (14, 20):
        model = model_of(CASES[case], opset)
        if opset == 20 and case == "LayerNormalization":
            continue  # ONNX's own
        standard = load_model(model)
        assert all(each.domain == "" for each in standard.graph.node)
        for own, other in zip(run(standard, SENTENCES), run(model, SENTENCES), strict=True):
            np.testing.assert_allclose(own, other, rtol=0, atol=2e-5)


@pytest.mark.parametrize("case", ["Attention, mask", "Attention, counted tokens"])
def test_an_optimised_model_compiles(case: str) -> None:
    model = model_of(CASES[case], 14)
    names = [value.name for value in model.graph.input]
    sentences = {name: SENTENCES[name] for name in names}
    compiled = kw.compile(model, sentences, error=0.1)
    first = compiled.program.input.steps.first
    assert first is not None
    assert "LayerNormalization" in first.operators
    features, _ = compiled.program.features(sentences)
    expected = run(model, sentences)[0]
    assert np.abs(run_clear(compiled.program, features).reshape(expected.shape) - expected).max() < 0.1


REFUSED: dict[str, tuple[onnx.NodeProto, str]] = {
    "cache": (fused("Attention", "x w3 b3 .", "y present", num_heads=2), "use_cache=False"),
    "rotary": (fused("Attention", "x w3 b3", num_heads=2, do_rotary=1), "do_rotary = 1"),
    "packed": (fused("MultiHeadAttention", "x", num_heads=2), "operands of their own"),
    "split": (fused("MultiHeadAttention", "x split split", num_heads=3), "of 3 axes"),
    "no heads": (fused("Attention", "x w3 b3", num_heads=0), "num_heads = 0"),
    "limits": (fused("FusedConv", "x kernel b", activation="Clip", activation_params=[1.0]), "shorter"),
    "numbers": (fused("FusedConv", "x kernel b", activation="Relu", activation_params=[1.0]), "longer"),
    "lengths": (fused("Attention", "x w3 b3 one", num_heads=2), "1 for tokens and 0 for padding"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_fused_operators_that_are_refused(case: str) -> None:
    refused, reason = REFUSED[case]
    with pytest.raises(RefusalError, match=reason):
        load_model(model_of([refused], 20))


@pytest.mark.parametrize("operator", sorted(RULES))
def test_malformed_operators_are_refused(operator: str) -> None:
    """ONNX's checker does not know these operators: whatever they lack is refused, or has no effect."""
    (whole,) = (each for each in CASES[operator] if each.op_type == operator)
    malformed = []
    for count in range(len(whole.input)):
        for sources in (whole.input[:count], ["", *whole.input[1:]], [*whole.input[:count], ""]):
            malformed.append(onnx.NodeProto())
            malformed[-1].CopyFrom(whole)
            malformed[-1].input[:] = sources
    for given in (b"\xff", 3, [2**62] * 2, numpy_helper.from_array(np.ones(3))):
        for place in range(len(whole.attribute)):
            malformed.append(onnx.NodeProto())
            malformed[-1].CopyFrom(whole)
            malformed[-1].attribute[place].CopyFrom(helper.make_attribute(whole.attribute[place].name, given))
    for outputs in ([], [""]):
        malformed.append(onnx.NodeProto())
        malformed[-1].CopyFrom(whole)
        malformed[-1].output[:] = outputs
    for each in malformed:
        for opset in (14, 20):
            with contextlib.suppress(RefusalError):
                load_model(model_of([each], opset))


def test_a_mask_that_is_computed_from_itself_is_refused() -> None:
    turns = [node("Cast", "n", "m", to=TensorProto.INT32), node("Cast", "m", "n", to=TensorProto.INT32)]
    attention = fused("Attention", "x w3 b3 m", num_heads=2)
    for nodes in (turns, turns[::-1], [node("Cast", "m", "m", to=TensorProto.INT32)]):
        for order in ([*nodes, attention], [attention, *nodes]):
            with pytest.raises(RefusalError):
                load_model(model_of(order, 20))


@pytest.mark.parametrize("operator", ["GroupQueryAttention", "QAttention", "NhwcConv"])
def test_other_operators_of_a_runtime_are_refused_with_the_way_out(operator: str) -> None:
    model = model_of([fused(operator, "x x x")], 20)
    with pytest.raises(ModelRefusedError, match=f"{operator}.*without optimisations for a runtime"):
        compiler.compile_program(model, compiler.Target(slots=64, levels=20))
