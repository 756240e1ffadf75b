"""Where encryption begins: the first steps of ONNX models, several inputs, ids, texts, open axes."""

import copy
import pickle
import zipfile
from pathlib import Path
from typing import Any

import keywright as kw
import numpy as np
import onnx
import onnxruntime
import pytest
from keywright import compiler
from keywright.errors import EncodeError, FormatError, ModelRefusedError
from keywright.model.served.manifest import Manifest
from keywright.runtime import run_clear
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from tests.compiler.conftest import build_model

node = helper.make_node
RNG = np.random.default_rng(5)
TARGET = compiler.Target(slots=512, levels=30)
COUNT = 60
SECRET = {
    "w": RNG.normal(size=(4, 3)).astype(np.float32),
    "v": RNG.normal(size=(6, 3)).astype(np.float32),
}
PUBLIC: dict[str, NDArray[Any]] = {
    "table": RNG.normal(size=(20, 4)).astype(np.float32),
    "positions": RNG.normal(size=(5, 4)).astype(np.float32),
    "kinds": RNG.permutation(20),
    "own": np.asarray([1, 5]),
    "depth": np.asarray([6]),
    "spread": np.asarray([1, 1, 6]),
    "all": np.arange(6)[None, None],
    "values": np.asarray([0, 1], np.float32),
    "edges": np.asarray([-1.0, 0.0, 1.0, 2.0], np.float32),
    "mean": np.asarray([0.5, 1.0, 1.5, 2.0], np.float32),
    "last": np.asarray([-1]),
    "first": np.asarray([1]),
    "start": np.asarray([0]),
    "end": np.asarray([5]),
}
NUMBERS = RNG.normal(size=(COUNT, 4)).astype(np.float32)
GAPS = np.where(RNG.random((COUNT, 4)) < 0.2, np.nan, NUMBERS).astype(np.float32)
IDS = RNG.integers(0, 20, (COUNT, 5))
LEVELS = RNG.integers(0, 6, COUNT)
WORDS = np.asarray(["red", "green", "blue", "grey"], object)[RNG.integers(0, 4, (COUNT, 1))]
FLOAT, INT, TEXT, DOUBLE = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING, TensorProto.DOUBLE

Case = tuple[list[onnx.NodeProto], dict[str, tuple[int, list[Any]]], Any]
LABELS = node(
    "LabelEncoder",
    ["t"],
    ["i"],
    domain="ai.onnx.ml",
    keys_strings=["red", "green", "blue"],
    values_int64s=[0, 1, 2],
    default_int64=3,
)
STARTS: dict[str, Case] = {
    "look-up by ids": (
        [
            node("Gather", ["table", "x"], ["e"]),
            node("ReduceMean", ["e"], ["m"], axes=[1], keepdims=0),
            node("MatMul", ["m", "w"], ["y"]),
        ],
        {"x": (INT, ["batch", 5])},
        IDS,
    ),
    "ids that an exporter expands to the shape that they have": (
        [
            node("Gather", ["kinds", "x"], ["k"]),
            node("Expand", ["k", "own"], ["same"]),
            node("Gather", ["table", "same"], ["e"]),
            node("ReduceMean", ["e"], ["m"], axes=[1], keepdims=0),
            node("MatMul", ["m", "w"], ["y"]),
        ],
        {"x": (INT, ["batch", 5])},
        IDS,
    ),
    "one-hot vectors as exporters of JAX write them": (
        [
            node("Unsqueeze", ["x", "last"], ["i"]),
            node("Expand", ["i", "spread"], ["s"]),
            node("Equal", ["s", "all"], ["q"]),
            node("Cast", ["q"], ["h"], to=FLOAT),
            node("MatMul", ["h", "v"], ["e"]),
            node("ReduceMean", ["e"], ["y"], axes=[1], keepdims=0),
        ],
        {"x": (INT, ["batch", 1])},
        LEVELS[:, None],
    ),
    "look-up, and positions that follow from the shape": (
        [
            node("Gather", ["table", "x"], ["e"]),
            node("Shape", ["x"], ["s"]),
            node("Slice", ["s", "first", "last_end"], ["n"]),
            node("Slice", ["positions", "start", "n"], ["p"]),
            node("Add", ["e", "p"], ["a"]),
            node("MatMul", ["a", "w"], ["y"]),
        ],
        {"x": (INT, ["batch", "time"])},
        IDS,
    ),
    "one-hot of ids": (
        [
            node("OneHot", ["x", "depth", "values"], ["h"], axis=-1),
            node("MatMul", ["h", "v"], ["y"]),
        ],
        {"x": (INT, ["batch"])},
        LEVELS,
    ),
    "imputer": (
        [
            node(
                "Imputer",
                ["x"],
                ["f"],
                domain="ai.onnx.ml",
                imputed_value_floats=[0.5, 1.5, 2.5, 3.5],
                replaced_value_float=float("nan"),
            ),
            node("MatMul", ["f", "w"], ["y"]),
        ],
        {"x": (FLOAT, ["batch", 4])},
        GAPS,
    ),
    "imputing by standard operators": (
        [
            node("IsNaN", ["x"], ["n"]),
            node("Where", ["n", "mean", "x"], ["f"]),
            node("MatMul", ["f", "w"], ["y"]),
        ],
        {"x": (FLOAT, ["batch", 4])},
        GAPS,
    ),
    "binning": (
        [
            node("Greater", ["x", "edges"], ["b"]),
            node("Cast", ["b"], ["c"], to=INT),
            node("Cast", ["c"], ["d"], to=FLOAT),
            node("MatMul", ["d", "w"], ["y"]),
        ],
        {"x": (FLOAT, ["batch", 4])},
        NUMBERS,
    ),
    "rounding": (
        [node("Round", ["x"], ["r"]), node("MatMul", ["r", "w"], ["y"])],
        {"x": (FLOAT, ["batch", 4])},
        NUMBERS,
    ),
    "texts": (
        [
            node("StringNormalizer", ["x"], ["t"], case_change_action="LOWER", locale="C"),
            LABELS,
            node("OneHot", ["i", "four", "values"], ["h"]),
            node("MatMul", ["h", "w"], ["u"]),
            node("Squeeze", ["u", "first"], ["y"]),
        ],
        {"x": (TEXT, [1, 1])},
        np.asarray([["Red"], ["GREEN"], ["blue"], ["no"]] * (COUNT // 4), object),
    ),
    "one-hot encoder of texts": (
        [
            node(
                "OneHotEncoder",
                ["x"],
                ["h"],
                domain="ai.onnx.ml",
                cats_strings=["red", "green", "blue", "grey"],
            ),
            node("Flatten", ["h"], ["f"]),
            node("MatMul", ["f", "w"], ["y"]),
        ],
        {"x": (TEXT, ["batch", 1])},
        WORDS,
    ),
    "two inputs": (
        [node("Mul", ["x", "z"], ["p"]), node("MatMul", ["p", "w"], ["y"])],
        {"x": (FLOAT, ["batch", 4]), "z": (FLOAT, ["batch", 4])},
        {"x": NUMBERS, "z": 1 + NUMBERS**2},
    ),
    "numbers and ids": (
        [
            node("Gather", ["table", "i"], ["e"]),
            node("Add", ["e", "x"], ["a"]),
            node("MatMul", ["a", "w"], ["y"]),
        ],
        {"x": (FLOAT, ["batch", 4]), "i": (INT, ["batch"])},
        {"x": NUMBERS, "i": LEVELS},
    ),
    "one and two precisions": (
        [
            node("Cast", ["x"], ["c"], to=FLOAT),
            node("Concat", ["c", "z"], ["k"], axis=1),
            node("MatMul", ["k", "v"], ["y"]),
        ],
        {"x": (DOUBLE, ["batch", 4]), "z": (FLOAT, ["batch", 2])},
        {"x": NUMBERS.astype(np.float64), "z": NUMBERS[:, :2]},
    ),
}


def built(name: str) -> onnx.ModelProto:
    nodes, inputs, _ = STARTS[name]
    arrays: dict[str, NDArray[Any]] = {**SECRET, **PUBLIC}
    arrays |= {"last_end": np.asarray([2]), "four": np.asarray([4])}
    read = {each for entry in nodes for each in entry.input}
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(key, kind, shape) for key, (kind, shape) in inputs.items()],
        [helper.make_tensor_value_info("y", FLOAT, ["batch", *("?" * (2 if "positions" in read else 1))])],
        [numpy_helper.from_array(array, key) for key, array in arrays.items() if key in read],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def rows(samples: Any, index: Any) -> Any:
    if isinstance(samples, dict):
        return {key: array[index] for key, array in samples.items()}
    return samples[index]


def exact(model: onnx.ModelProto, samples: Any) -> NDArray[np.float64]:
    """What onnxruntime gives, one sample at a time."""
    given = samples if isinstance(samples, dict) else {model.graph.input[0].name: samples}
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    features = []
    for row in range(len(next(iter(given.values())))):
        (result,) = session.run(None, {key: array[row : row + 1] for key, array in given.items()})
        features.append(np.asarray(result)[0])
    return np.asarray(features, np.float64)


@pytest.mark.parametrize("name", STARTS)
def test_first_steps_give_what_the_model_gives_and_take_no_secret_weight(name: str) -> None:
    model, samples = built(name), STARTS[name][2]
    program = compiler.compile_program(model, TARGET, compiler.Fit(calibration=samples))
    steps = program.input.steps.first
    assert steps is not None
    few = rows(samples, slice(0, 7))
    features, single = program.features(few)
    assert not single
    expected = exact(model, few)
    np.testing.assert_allclose(run_clear(program, features).reshape(expected.shape), expected, atol=1e-4)
    one, single = program.features(rows(samples, 3))
    assert single
    assert np.array_equal(one[0], features[3])
    inside = {float(v) for t in _floats(steps.data) for v in t.ravel()}
    assert not inside & {float(v) for t in SECRET.values() for v in t.ravel()}


def _floats(data: bytes) -> list[NDArray[Any]]:
    arrays = [numpy_helper.to_array(t) for t in onnx.load_model_from_string(data).graph.initializer]
    return [array for array in arrays if array.dtype.kind == "f"]


@pytest.mark.parametrize("name", STARTS)
def test_programs_and_manifests_hold_first_steps(name: str, tmp_path: Path) -> None:
    model, samples = built(name), STARTS[name][2]
    compiled = kw.compile(model, calibration=samples)
    compiled.save(tmp_path / "model")
    loaded = kw.Model.load(tmp_path / "model")
    features, _ = compiled.program.features(samples)
    assert np.array_equal(loaded.program.features(samples)[0], features)
    assert loaded.manifest.encoded == compiled.manifest.encoded
    read = Manifest.read(compiled.manifest.encoded)
    assert np.array_equal(read.features(samples)[0], features)
    assert "first steps" in compiled.report.lines["the client gets"]


def test_an_encrypted_run_takes_samples() -> None:
    model = built("numbers and ids")
    samples = STARTS["numbers and ids"][2]
    compiled = kw.compile(model, calibration=samples)
    few = rows(samples, slice(0, 2))
    np.testing.assert_allclose(compiled.predict(few), exact(model, few), atol=1e-2)
    client, server = compiled.client(), compiled.server()
    server.load_keys(client.keys())
    answer = client.decrypt(server.run(client.encrypt(rows(samples, 3))))
    np.testing.assert_allclose(answer, exact(model, rows(samples, slice(3, 4)))[0], atol=1e-2)


@pytest.mark.parametrize(
    ("name", "samples", "text"),
    [
        ("look-up by ids", np.full((2, 5), 20), "'x' holds the id 20, and the ids of its table are 0 to 19"),
        ("look-up by ids", np.full((2, 5), 0.5), "whole numbers, such as ids"),
        ("look-up by ids", np.zeros((2, 4), int), r"\(count, 5\)"),
        ("two inputs", NUMBERS, "give a mapping with the arrays of 'x', 'z'"),
        ("two inputs", {"x": NUMBERS}, "takes the inputs 'x', 'z', got 'x'"),
        ("two inputs", {"x": NUMBERS, "z": NUMBERS[:3]}, "one count"),
        ("texts", np.asarray([[3]], object), "takes texts"),
        ("rounding", np.asarray([["a", "b", "c", "d"]], object), "takes numbers"),
        ("binning", np.full((1, 4), np.inf), "input 'x' has values that are not finite"),
        ("rounding", np.full((1, 4), np.nan), "4 features that are no numbers: a value"),
    ],
)
def test_samples_that_first_steps_do_not_take_are_refused(name: str, samples: Any, text: str) -> None:
    compiled = kw.compile(built(name), calibration=STARTS[name][2])
    client = compiled.client()
    with pytest.raises(EncodeError, match=text, check=lambda error: error.code == "samples"):
        client.encrypt(samples)
    with pytest.raises(EncodeError, match=text, check=lambda error: error.code == "samples"):
        compiled.predict(samples)


def test_foreign_first_steps(tmp_path: Path) -> None:
    path = tmp_path / "program.kwp"
    program = compiler.compile_program(built("rounding"), TARGET, compiler.Fit(calibration=NUMBERS))
    compiler.save(program, path)
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    for old, new, text in [
        (b'"kind": "x"', b"", ""),
        (b'"numbers"]', b'"others"]', "kind"),
        (b'"together": true', b'"together": 7', "together"),
        (b'"together": true, "columns": []', b'"together": true, "columns": [[]]', "first steps"),
        (b'[["x", [4]', b'[["z", [4]', "other inputs"),
        (b'[["x", [4]', b'[["x", [-4]', "a shape is"),
    ]:
        description = entries["program.json"].replace(old, new)
        if not text:
            assert description == entries["program.json"]
            continue
        assert description != entries["program.json"]
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in (entries | {"program.json": description}).items():
                archive.writestr(name, data)
        with pytest.raises(FormatError, match=text, check=lambda error: error.code == "program"):
            compiler.load(path)


def test_some_inputs_may_be_fixed() -> None:
    both = STARTS["two inputs"][2]
    factor = both["z"][7]
    compiled = kw.compile(built("two inputs"), calibration=both["x"], inputs={"z": factor})
    repeated = {"x": both["x"][:3], "z": np.repeat(factor[None], 3, axis=0)}
    outputs = compiled.simulate(both["x"][:3]).outputs
    np.testing.assert_allclose(outputs, exact(built("two inputs"), repeated), atol=1e-2)
    named = kw.compile(built("two inputs"), calibration={"x": both["x"]}, inputs={"z": factor})
    np.testing.assert_array_equal(named.simulate(both["x"][:3]).outputs, outputs)
    with pytest.raises(ModelRefusedError, match="fixes 'q', and the model has the inputs 'x', 'z'"):
        kw.compile(built("two inputs"), calibration=both["x"], inputs={"q": 1})


@pytest.mark.parametrize("calibration", [None, NUMBERS])
def test_a_model_without_a_batch_axis_is_refused_with_the_shape_to_export(calibration: Any) -> None:
    graph = helper.make_graph(
        [node("MatMul", ["x", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", FLOAT, [4])],
        [helper.make_tensor_value_info("y", FLOAT, [3])],
        [numpy_helper.from_array(SECRET["w"], "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    with pytest.raises(ModelRefusedError, match=r"for inputs of shape \(batch, 4\)") as caught:
        kw.compile(model, calibration=calibration)
    assert "MatMul" not in str(caught.value)


def test_models_are_copied_and_say_how_they_reach_a_worker() -> None:
    model = kw.compile(built("rounding"), calibration=NUMBERS)
    for each in (model, model.program):
        assert copy.deepcopy(each) is each
        assert copy.copy(each) is each
    for other, text in [
        (model, r"save\(\) it, .*keywright.load_server"),
        (model.program, "keywright.compiler.load"),
        (model.client(), "keywright.load_client"),
        (model.server(), "keywright.load_server"),
    ]:
        with pytest.raises(TypeError, match=text):
            pickle.dumps(other)


def test_large_negative_features_are_no_mask() -> None:
    """Values of at most -10,000 are a mask only if the program can compute it by itself."""
    node = onnx.helper.make_node
    weights = np.ones((3, 2), np.float32)
    model = build_model(
        [node("Round", ["x"], ["r"]), node("MatMul", ["r", "w"], ["y"])], (3,), {"w": weights}
    )
    samples = 3e4 * np.random.default_rng(0).normal(size=(60, 3))
    program = compiler.compile_program(
        model, compiler.Target(slots=1024, levels=4), compiler.Fit(calibration=samples)
    )
    features, _ = program.features(samples)
    assert features.min() < -1e4
    assert np.array_equal(features, np.round(samples.astype(np.float32)))
