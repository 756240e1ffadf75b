"""Parts of transformers around attention: GELU in its spellings, cross-attention, pooling and heads; and what
of transformers is refused."""

from collections.abc import Sequence
from typing import Any

import keywright as kw
import numpy as np
import onnx
import pytest
from keywright import compiler
from keywright.compiler.front_ends.onnx_importer import import_model
from keywright.compiler.graph.graph import Activation
from keywright.compiler.graph.simplify import simplify
from keywright.errors import EncodeError, ModelRefusedError
from keywright.runtime import run_clear
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from tests.compiler.conftest import build_model

TARGET = compiler.Target(slots=1 << 12, levels=60)
RNG = np.random.default_rng(72)
node = helper.make_node

GELUS: dict[str, list[onnx.NodeProto]] = {
    "Gelu": [node("Gelu", ["x"], ["y"])],
    "Gelu, tanh": [node("Gelu", ["x"], ["y"], approximate="tanh")],
    "erf, divided": [
        node("Div", ["x", "root"], ["d"]),
        node("Erf", ["d"], ["e"]),
        node("Add", ["e", "one"], ["a"]),
        node("Mul", ["x", "a"], ["m"]),
        node("Mul", ["m", "half"], ["y"]),
    ],
    "erf, half first": [
        node("Mul", ["x", "half"], ["h"]),
        node("Mul", ["x", "inverse"], ["d"]),
        node("Erf", ["d"], ["e"]),
        node("Add", ["one", "e"], ["a"]),
        node("Mul", ["a", "h"], ["y"]),
    ],
    "tanh, of Pow": [
        node("Pow", ["x", "three"], ["c"]),
        node("Mul", ["c", "small"], ["s"]),
        node("Add", ["x", "s"], ["t"]),
        node("Mul", ["t", "rate"], ["r"]),
        node("Tanh", ["r"], ["e"]),
        node("Add", ["e", "one"], ["a"]),
        node("Mul", ["x", "half"], ["h"]),
        node("Mul", ["h", "a"], ["y"]),
    ],
    "tanh, of products": [
        node("Mul", ["x", "rate"], ["r"]),
        node("Mul", ["small", "x"], ["s"]),
        node("Mul", ["s", "x"], ["q"]),
        node("Add", ["q", "one"], ["b"]),
        node("Mul", ["r", "b"], ["t"]),
        node("Tanh", ["t"], ["e"]),
        node("Add", ["one", "e"], ["a"]),
        node("Mul", ["x", "a"], ["m"]),
        node("Mul", ["half", "m"], ["y"]),
    ],
    "quick": [
        node("Mul", ["x", "fast"], ["f"]),
        node("Sigmoid", ["f"], ["s"]),
        node("Mul", ["x", "s"], ["y"]),
    ],
}
NUMBERS = {
    "root": np.sqrt(2.0),
    "inverse": np.sqrt(0.5),
    "one": 1.0,
    "half": 0.5,
    "three": 3.0,
    "small": 0.044715,
    "rate": np.sqrt(2 / np.pi),
    "fast": 1.702,
}


def outputs(model: onnx.ModelProto, samples: Any) -> Any:
    """The model's outputs by ONNX's reference implementation."""
    outputs: Any = ReferenceEvaluator(model).run(None, {"x": np.asarray(samples, np.float32)})
    return np.asarray(outputs[0], np.float64)


@pytest.mark.parametrize("spelling", GELUS)
def test_every_spelling_of_gelu_is_one_function(spelling: str) -> None:
    constants: dict[str, Any] = {name: np.float32(number) for name, number in NUMBERS.items()}
    model = build_model(GELUS[spelling], (3, 4), constants, opset=20)
    graph = simplify(import_model(model).graph)
    (function,) = [each.operator.lower() for each in graph.nodes.values() if isinstance(each, Activation)]
    samples = RNG.normal(size=(60, 3, 4)) * 2
    fit = compiler.Fit(calibration=samples, activations={function: "chebyshev:31"})
    program = compiler.compile_program(model, TARGET, fit)
    assert program.depth == 6  # the map to [-1, 1], and the polynomial
    curve = run_clear(program, samples).reshape(samples.shape)
    assert program.fit_report is not None
    (fitted,) = program.fit_report.activations
    # Single precision of the model, too: 10 operations on values below 8.
    assert np.abs(curve - outputs(model, samples)).max() <= fitted.max_error + 80 * 2**-24


CROSS: list[onnx.NodeProto] = [
    node("Slice", ["x", "none", "cut", "axis"], ["short"]),
    node("MatMul", ["short", "wq"], ["q"]),
    node("MatMul", ["x", "wk"], ["k"]),
    node("MatMul", ["x", "wv"], ["v"]),
    node("Transpose", ["k"], ["kt"], perm=[0, 2, 1]),
    node("MatMul", ["q", "kt"], ["s"]),
    node("Softmax", ["s"], ["p"], axis=-1),
    node("MatMul", ["p", "v"], ["z"]),
]
"""Attention of the first tokens to all of them."""

HEADS: dict[str, list[onnx.NodeProto]] = {
    "all": [node("Identity", ["z"], ["y"])],
    "first": [node("Gather", ["z", "none"], ["f"], axis=1), node("MatMul", ["f", "w"], ["y"])],
    "mean": [node("ReduceMean", ["z"], ["f"], axes=[1], keepdims=0), node("MatMul", ["f", "w"], ["y"])],
    "pooler": [
        node("Gather", ["z", "none"], ["f"], axis=1),
        node("MatMul", ["f", "wq"], ["d"]),
        node("Tanh", ["d"], ["t"]),
        node("MatMul", ["t", "w"], ["y"]),
    ],
}


@pytest.mark.parametrize("cut", [1, 2, 5])
@pytest.mark.parametrize("head", HEADS)
def test_cross_attention_pooling_and_heads(head: str, cut: int) -> None:
    constants: dict[str, Any] = {
        name: (RNG.normal(size=(4, 4)) / 2).astype(np.float32) for name in ("wq", "wk", "wv")
    }
    constants |= {"w": RNG.normal(size=(4, 3)).astype(np.float32), "cut": np.array([cut])}
    constants |= {"none": np.array([0]), "axis": np.array([1])}
    nodes: Sequence[onnx.NodeProto] = [*CROSS, *HEADS[head]]
    model = build_model(nodes, (5, 4), constants)
    samples = RNG.normal(size=(60, 5, 4))
    program = compiler.compile_program(model, TARGET, compiler.Fit(calibration=samples, error=0.02))
    expected = outputs(model, samples)
    assert np.abs(run_clear(program, samples).reshape(expected.shape) - expected).max() <= 0.02 + 1e-5


def test_t5_adds_a_bias_to_logits_and_normalises_by_the_mean_square() -> None:
    """A layer as its exporter writes it: no scale, no mean, and no square root of a width."""
    nodes: list[onnx.NodeProto] = []

    def normal(source: str, scale: str, result: str) -> None:
        names = [f"{result}_{letter}" for letter in "smarq"]
        chain = [("Pow", [source, "two"]), ("ReduceMean", [names[0], "last"]), ("Add", [names[1], "small"])]
        chain += [("Sqrt", [names[2]]), ("Div", ["one", names[3]])]
        nodes.extend(node(kind, given, [name]) for (kind, given), name in zip(chain, names, strict=True))
        nodes.append(node("Mul", [source, names[4]], [f"{result}_n"]))
        nodes.append(node("Mul", [scale, f"{result}_n"], [result]))

    normal("x", "s1", "n")
    for name in "qkv":
        nodes.extend(
            [
                node("MatMul", ["n", f"w{name}"], [f"{name}0"]),
                node("Reshape", [f"{name}0", "apart"], [f"{name}1"]),
                node("Transpose", [f"{name}1"], [name], perm=[0, 2, 3, 1] if name == "k" else [0, 2, 1, 3]),
            ]
        )
    nodes += [node("MatMul", ["q", "k"], ["l"]), node("Add", ["l", "bias"], ["b"])]
    nodes += [node("Softmax", ["b"], ["p"], axis=-1), node("MatMul", ["p", "v"], ["z"])]
    nodes += [
        node("Transpose", ["z"], ["z0"], perm=[0, 2, 1, 3]),
        node("Reshape", ["z0", "together"], ["z1"]),
    ]
    nodes += [node("MatMul", ["z1", "wo"], ["a"]), node("Add", ["x", "a"], ["h"])]
    normal("h", "s2", "m")
    nodes += [
        node("MatMul", ["m", "wi"], ["i"]),
        node("Relu", ["i"], ["r"]),
        node("MatMul", ["r", "wr"], ["f"]),
    ]
    nodes += [node("Add", ["h", "f"], ["y"])]
    numbers = {"two": 2.0, "one": 1.0, "small": 1e-6}
    constants: dict[str, Any] = {name: np.float32(number) for name, number in numbers.items()}
    constants |= {"last": np.array([-1]), "apart": np.array([0, 5, 2, 4]), "together": np.array([0, 5, 8])}
    constants |= {name: RNG.uniform(0.5, 1.5, 8).astype(np.float32) for name in ("s1", "s2")}
    shapes = {f"w{name}": (8, 8) for name in "qkvo"} | {"wi": (8, 16), "wr": (16, 8), "bias": (1, 2, 5, 5)}
    constants |= {name: (RNG.normal(size=size) / 3).astype(np.float32) for name, size in shapes.items()}
    model = build_model(nodes, (5, 8), constants, opset=20)
    read, samples = import_model(model), RNG.normal(size=(20, 5, 8))
    assert not read.reasons
    graph = simplify(read.graph)
    states = graph.evaluate(samples.reshape(20, -1))[graph.output]
    assert np.abs(states - outputs(model, samples).reshape(20, -1)).max() < 1e-4


def attention(
    names: Sequence[str], sizes: Sequence[Any], results: Sequence[str] = ("y",), **attributes: Any
) -> onnx.ModelProto:
    """The operator Attention of some inputs, all of one shape."""
    more = [node("Attention", [*names], [*results], q_num_heads=1, kv_num_heads=1, **attributes)]
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, sizes) for name in dict.fromkeys(names)]
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, sizes)
    graph = helper.make_graph(more, "attention", [each for each in inputs if each.name], [result])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)])


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (attention(["x", "memory", "memory"], ["N", 3, 4]), "a mapping with the arrays of 'x', 'memory'"),
        (attention(["x", "x", "x", "", "past_key", "past_value"], ["N", 3, 4]), "a mapping with the arrays"),
        (attention(["x", "x", "x", "", "x", "x"], ["N", 3, 4]), "use_cache=False"),
        (attention(["x", "x", "x"], ["N", 3, 4], ("y", "keys", "values")), "use_cache=False"),
        (attention(["x", "x", "x"], ["N", 3, 4], softcap=2.0), "softcap"),
    ],
)
def test_what_of_transformers_is_refused(model: onnx.ModelProto, reason: str) -> None:
    with pytest.raises((ModelRefusedError, EncodeError), match=reason):
        compiler.compile_program(model, TARGET, compiler.Fit(calibration=RNG.normal(size=(60, 3, 4))))


@pytest.mark.parametrize("sizes", [["N", "T", 4], [1, None, 4], ["N", 0, 4]])
def test_open_axes_come_from_the_calibration_data(sizes: Sequence[Any]) -> None:
    model = attention(["x", "x", "x"], sizes)
    samples = RNG.normal(size=(60, 3, 4)).astype(np.float32)
    program = compiler.compile_program(model, TARGET, compiler.Fit(calibration=samples, error=0.05))
    assert program.input.shape == (3, 4)
    with pytest.raises(ModelRefusedError):
        compiler.compile_program(model, TARGET)


def test_sentences_of_another_length_are_refused_before_anything_is_encrypted() -> None:
    samples = RNG.normal(size=(60, 3, 4)).astype(np.float32)
    model = build_model(
        [node("MatMul", ["x", "w"], ["h"]), node("ReduceMean", ["h"], ["y"], axes=[1])],
        (3, 4),
        {"w": np.eye(4, dtype=np.float32)},
    )
    compiled = kw.compile(model, samples)
    for shape in ((1, 4, 4), (1, 2, 4), (1, 0, 4), (0, 3, 4)):
        with pytest.raises(
            EncodeError, match=r"\(count, 3, 4\)|\(3, 4\)", check=lambda error: error.code == "samples"
        ):
            compiled.predict(np.zeros(shape))
    with pytest.raises(EncodeError, match="cut or pad them to this shape, or compile the model for theirs"):
        compiled.predict(np.zeros((1, 4, 4)))
    with pytest.raises(EncodeError, check=lambda error: error.code == "samples"):
        kw.compile(model, np.zeros((0, 3, 4)))
