"""The results of every operator that clients run are no larger than what is known before it runs, whatever
its operands and attributes are: a model comes from a server or a file, and it would otherwise take any
memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from keywright.errors import FormatError
from keywright.program.client import small_model
from keywright.program.client.first_steps import BEFORE
from keywright.program.client.last_steps import ALLOWED
from keywright.program.client.small_model import SmallModel
from onnx import helper, numpy_helper

RNG = np.random.default_rng(36)
SHAPES = ((), (1,), (3,), (4,), (1, 1), (1, 4), (3, 1), (3, 4), (4, 3), (2, 3, 4), (3, 1, 4), (0, 3))
KINDS = ("float32", "int64", "bool")
NUMBERS = (1, 0, 2, -1, 5)
ATTRIBUTES: dict[str, list[dict[str, Any]]] = {
    "Binarizer": [{"threshold": 0.0}],
    "Cast": [{"to": 1}, {"to": 7}, {"to": 8}],
    "Concat": [{"axis": axis} for axis in (0, 1, -1)],
    "Constant": [{"value_floats": [1.0] * 9}, {"value_ints": [1] * 9}, {"value_int": 3}],
    "CumSum": [{}, {"exclusive": 1}],
    "FeatureVectorizer": [{"inputdimensions": widths} for widths in ([1], [4], [3, 4], [7, 7])],
    "Gather": [{"axis": axis} for axis in (0, 1, -1)],
    "GatherElements": [{"axis": axis} for axis in (0, 1, -1)],
    "Imputer": [
        {"imputed_value_floats": [1.0] * count, "replaced_value_float": 0.0} for count in (1, 3, 4, 40)
    ],
    "LabelEncoder": [{"keys_int64s": [0, 1], "values_strings": ["a", "b"], "default_string": "c"}],
    "LayerNormalization": [{"axis": axis} for axis in (0, 1, -1)],
    "LinearClassifier": [
        {"coefficients": [1.0] * 12, "intercepts": [0.0] * 3, "classlabels_ints": [0, 1, 2]}
    ],
    "LpNormalization": [{"axis": axis} for axis in (0, 1, -1)],
    "Normalizer": [{"norm": norm} for norm in ("L1", "L2", "MAX")],
    "OneHot": [{"axis": axis} for axis in (-1, 0)],
    "OneHotEncoder": [{"cats_int64s": list(range(count))} for count in (1, 5, 50)],
    "Scaler": [{"offset": [0.0] * count, "scale": [1.0] * count} for count in (1, 3, 4, 40)],
    "Split": [{"num_outputs": count} for count in (1, 2)],
    "SVMClassifier": [
        {
            "classlabels_ints": [0, 1],
            "coefficients": [1.0, -1.0],
            "kernel_params": [0.5, 0.0, 3.0],
            "kernel_type": "LINEAR",
            "post_transform": "NONE",
            "rho": [0.1],
            "support_vectors": [1.0] * 8,
            "vectors_per_class": [1, 1],
        }
    ],
    "TopK": [{"axis": axis} for axis in (0, -1)],
    "Transpose": [{}],
}
LEARNING = frozenset(
    [
        "ArrayFeatureExtractor",
        "Binarizer",
        "FeatureVectorizer",
        "Imputer",
        "LabelEncoder",
        "LinearClassifier",
        "Normalizer",
        "OneHotEncoder",
        "SVMClassifier",
        "Scaler",
    ]
)
MOST = {
    "Clip": 3,
    "LayerNormalization": 3,
    "OneHot": 3,
    "Slice": 3,
    "Where": 3,
    "Concat": 4,
    "Sum": 4,
    "Max": 4,
}
"""The most operands that are tried; two of others."""

OTHER = {"Constant": 0}
LEFT_OUT = frozenset(["StringNormalizer"])
"""It is of texts, and keeps their number."""

TRIES = 400


def operands(name: str) -> list[str]:
    """Return names of operands, of which some are equal."""
    most = OTHER.get(name, MOST.get(name, 2))
    return [f"o{RNG.integers(most)}" for _ in range(RNG.integers(1, most + 1))] if most else []


def value() -> Any:
    shape = SHAPES[RNG.integers(len(SHAPES))]
    kind = np.dtype(KINDS[RNG.integers(len(KINDS))])
    return np.asarray(RNG.choice(NUMBERS, shape)).astype(kind)


def step(name: str, attributes: dict[str, Any], names: list[str], values: dict[str, Any]) -> SmallModel:
    """Return a model of one node."""
    count = 2 if name in ("Split", "TopK", "LinearClassifier", "SVMClassifier") else 1
    count = 3 if name == "LayerNormalization" else count
    results = [f"r{index}" for index in range(count)]
    domain = "ai.onnx.ml" if name in LEARNING else ""
    node = helper.make_node(name, names, results, domain=domain, **attributes)
    sources = [
        helper.make_tensor_value_info(each, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for each, array in values.items()
    ]
    graph = helper.make_graph([node], "step", sources, [onnx.ValueInfoProto(name=each) for each in results])
    versions = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)]
    data = helper.make_model(graph, opset_imports=versions, ir_version=9).SerializeToString()
    return SmallModel(data, "a step", BEFORE | ALLOWED, 1 << 20)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", sorted((BEFORE | ALLOWED) - LEFT_OUT))
def test_no_result_is_larger_than_its_bound(name: str) -> None:
    ran = 0
    for _ in range(TRIES):
        attributes = ATTRIBUTES.get(name, [{}])
        chosen, names = attributes[RNG.integers(len(attributes))], operands(name)
        values = {each: value() for each in dict.fromkeys(names)}
        if name == "OneHot":
            names = ["o0", "o1", "o2"]
            values = {"o0": value(), "o1": RNG.integers(1, 20, (1,)), "o2": np.array([0, 1])}
        model = step(name, chosen, names, values)
        try:
            outcome = model.run(values)
        except FormatError:
            continue
        ran += 1
        size = sum(np.asarray(outcome[each]).size for each in model.outputs)
        most = small_model.bound(model.model.graph.node[0], values)
        assert size <= most, (name, chosen, names, {each: array.shape for each, array in values.items()})
    assert ran


def of(nodes: list[onnx.NodeProto], stored: dict[str, Any] | None = None) -> SmallModel:
    tensors = [numpy_helper.from_array(array, name) for name, array in (stored or {}).items()]
    source = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "steps", [source], [onnx.ValueInfoProto(name="y")], tensors)
    versions = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)]
    data = helper.make_model(graph, opset_imports=versions, ir_version=9).SerializeToString()
    return SmallModel(data, "the steps", BEFORE, 1 << 20)


LARGE = {
    "an operand many times": of([helper.make_node("Concat", ["x"] * 100_000, ["y"], axis=0)]),
    "two equal operands": of(
        [helper.make_node("ArrayFeatureExtractor", ["x", "x"], ["y"], domain="ai.onnx.ml")]
    ),
    "a scale of many numbers": of(
        [
            helper.make_node("Reshape", ["x", "shape"], ["z"]),
            helper.make_node("LayerNormalization", ["z", "scale"], ["y"], axis=1),
        ],
        {"shape": np.array([-1, 1]), "scale": np.ones(1 << 17, np.float32)},
    ),
    "numbers as texts": of(
        [
            helper.make_node("Reshape", ["x", "shape"], ["z"]),
            helper.make_node("Add", ["z", "row"], ["w"]),
            helper.make_node("Cast", ["w"], ["y"], to=onnx.TensorProto.STRING),
        ],
        {"shape": np.array([-1, 1]), "row": np.ones(1 << 9, np.float32)},
    ),
}


@pytest.mark.parametrize("case", LARGE)
def test_steps_with_large_results_are_not_run(case: str) -> None:
    """A manifest of a megabyte let its client allocate any number of gigabytes."""
    with pytest.raises(FormatError, match="too large"):
        LARGE[case].run({"x": np.zeros((1, 8192), np.int64 if "equal" in case else np.float32)})
