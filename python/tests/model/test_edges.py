"""Edge cases of the whole interface of a model: nothing, zero, one, unused, largest."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import keywright as kw
import numpy as np
import onnx
import pytest
from keywright import compiler
from keywright.cli import main
from keywright.compiler import check
from keywright.errors import EncodeError, FolderError, ModelRefusedError, OutOfRangeError
from keywright.errors.engine import FormatError, ParameterError
from keywright.model import Model, ModelClient
from keywright.model.served.manifest import Manifest
from keywright.runtime.range_guard import guard
from keywright.serve import serve
from onnx import TensorProto, helper, numpy_helper

Case = Callable[[], onnx.ModelProto]


def linear(weights: Any, bias: Any = None) -> onnx.ModelProto:
    """A matrix, and a constant."""
    weights = np.asarray(weights, np.float64)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h" if bias is not None else "y"], "matrix")]
    tensors = [numpy_helper.from_array(weights, "w")]
    if bias is not None:
        nodes.append(helper.make_node("Add", ["h", "b"], ["y"], "constant"))
        tensors.append(numpy_helper.from_array(np.asarray(bias, np.float64), "b"))
    return built(nodes, weights.shape[0], weights.shape[1], tensors)


def built(
    nodes: list[onnx.NodeProto], inputs: int, outputs: int, tensors: list[onnx.TensorProto]
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "edge",
        [helper.make_tensor_value_info("x", TensorProto.DOUBLE, ["batch", inputs])],
        [helper.make_tensor_value_info("y", TensorProto.DOUBLE, ["batch", outputs])],
        tensors,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


MODELS: dict[str, tuple[onnx.ModelProto, int]] = {
    "one by one": (linear([[2.0]], [1.0]), 1),
    "all zero": (linear(np.zeros((3, 2)), [1.0, -2.0]), 3),
    "all zero without constant": (linear(np.zeros((3, 2))), 3),
    "diagonal": (linear(np.diag([1.0, -2.0, 3.0])), 3),
    "unused input": (linear([[1.0], [0.0], [0.0]]), 3),
    "difference with itself": (built([helper.make_node("Sub", ["x", "x"], ["y"])], 3, 3, []), 3),
    "itself": (built([helper.make_node("Identity", ["x"], ["y"])], 3, 3, []), 3),
    "square": (built([helper.make_node("Mul", ["x", "x"], ["y"])], 3, 3, []), 3),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_whole_interface_with_small_models(name: str, tmp_path: Path) -> None:
    """Every step that a user can take, also for models that need no keys."""
    model, width = MODELS[name]
    samples = np.random.default_rng(1).normal(size=(60, width))
    compiled = kw.compile(model, samples)
    expected = check(compiled.program, samples[:4], model).expected
    report = compiled.report
    assert report.sizes.keys == len(compiled.specs)
    assert (report.sizes.key_bytes == 0) == (report.sizes.keys == 0)
    assert "levels" in str(report)
    assert compiled.encrypted_error is not None
    assert compiled.encrypted_error.share < 1e-3
    assert np.isfinite(compiled.simulate(samples[:4]).worst_error)
    assert np.abs(compiled.predict(samples[:4]) - expected).max() < 1e-4
    compiled.save(tmp_path / "model")
    client, server = kw.load_client(tmp_path / "model"), kw.load_server(tmp_path / "model")
    server.load_keys(client.keys())
    for chosen in (samples[0], samples[:3]):
        outputs = client.decrypt(server.run(client.encrypt(chosen)))
        assert np.abs(outputs - (expected[0] if chosen.ndim == 1 else expected[:3])).max() < 1e-4
    onnx.save(model, tmp_path / "model.onnx")
    np.save(tmp_path / "x.npy", samples)
    given = ["--calibration", str(tmp_path / "x.npy")]
    slots = ["compile", str(tmp_path / "model.onnx"), "--out", str(tmp_path / "slots"), *given]
    assert main(slots) == 0
    assert main(["info", str(tmp_path / "slots" / "program.kwp")]) == 0
    planned = main(["plan", str(tmp_path / "model.onnx"), *given, "--key-memory", "1GiB"])
    assert planned == (0 if report.sizes.keys else 2)
    assert main(["infer", str(tmp_path / "model.onnx"), "--explain", *given]) == 0


@pytest.fixture(scope="module")
def model() -> Model:
    return kw.compile(MODELS["diagonal"][0], np.random.default_rng(1).normal(size=(60, 3)))


@pytest.mark.parametrize(
    "samples",
    [
        np.float64(3),
        np.zeros(0),
        np.zeros((0, 3)),
        np.zeros((2, 4)),
        np.zeros((1, 2, 3)),
        np.full((2, 3), np.nan),
    ],
    ids=["number", "nothing", "no samples", "wide", "nested", "not finite"],
)
@pytest.mark.parametrize("method", ["predict", "simulate", "encrypt", "encrypt_batch", "guard"])
def test_samples_of_no_use_are_refused_alike(model: Model, method: str, samples: Any) -> None:
    caller = model if method in ("predict", "simulate") else ModelClient(model)
    with pytest.raises(EncodeError, check=lambda error: error.code == "samples"):
        getattr(caller, method)(samples)


@pytest.mark.parametrize(
    "array", [np.float64(3), np.zeros(0), np.zeros((0, 3))], ids=["number", "empty", "none"]
)
@pytest.mark.parametrize("option", ["--input", "--calibration"])
def test_files_without_samples_are_refused(
    array: Any, option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    onnx.save(MODELS["diagonal"][0], tmp_path / "model.onnx")
    np.save(tmp_path / "good.npy", np.eye(3))
    np.save(tmp_path / "bad.npy", array)
    files = {"--input": "good", "--calibration": "good"} | {option: "bad"}
    arguments = [part for name, file in files.items() for part in (name, str(tmp_path / f"{file}.npy"))]
    assert main(["infer", str(tmp_path / "model.onnx"), *arguments]) == 2
    assert "which is not a sample" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["", " ", "a\x1b[31m", "\n"])
def test_names_that_nobody_can_read_are_refused(
    model: Model, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(FolderError, match="neither a name nor a label"):
        model.save(tmp_path / "folder", name)
    with pytest.raises(FolderError, match="neither a name nor a label"):
        kw.compile(MODELS["diagonal"][0], labels=["a", "b", name])
    # Before the model is read.
    assert main(["compile", "absent.onnx", "--out", str(tmp_path / "folder"), "--name", name]) == 2
    assert "neither a name nor a label" in capsys.readouterr().err
    assert not (tmp_path / "folder").exists()


CURVES = ["Sqrt", "Exp", "Sigmoid", "Tanh", "Softplus", "Log", "Reciprocal", "HardSwish"]


@pytest.mark.parametrize("width", [3, 4, 5, 7])
@pytest.mark.parametrize("curve", CURVES)
def test_calibration_samples_are_accepted_in_any_width(curve: str, width: int, tmp_path: Path) -> None:
    """Values far from the vertex of their parabola: unused slots hold 0, which is outside the range."""
    rng = np.random.default_rng(width)
    samples = 2 + 0.05 * rng.normal(size=(120, width))
    nodes = [
        helper.make_node(curve, ["x"], ["h"], "curve"),
        helper.make_node("MatMul", ["h", "w"], ["y"], "sum"),
    ]
    model = built(nodes, width, 3, [numpy_helper.from_array(np.ones((width, 3)), "w")])
    fit = compiler.Fit(calibration=samples, activations={curve.lower(): "chebyshev:2"})
    for batch in (1, 4):
        program = compiler.compile_program(model, compiler.Target(slots=64, levels=9, batch=batch), fit)
        guard(program, samples)
        with pytest.raises(OutOfRangeError, match="curve"):
            guard(program, samples[:1] + 2.0)
        compiler.save(program, tmp_path / f"{batch}.kwp")
        loaded = compiler.load(tmp_path / f"{batch}.kwp")
        assert loaded.ranges == program.ranges
        guard(loaded, samples[:8])


def test_a_manifest_states_normalisations() -> None:
    """Clients that have no program get them from the server; those of older releases refuse its version."""
    rng = np.random.default_rng(2)
    samples = np.array([1.7e9, 0.0, -3e-6]) + np.array([1e5, 1.0, 1e-7]) * rng.normal(size=(60, 3))
    weights = rng.normal(size=(3, 2)) / np.array([[1e5], [1.0], [1e-7]]) * np.array([1e6, 1e-3])
    model = kw.compile(linear(weights, -np.array([1.7e9, 0.0, -3e-6]) @ weights), samples)
    manifest = model.manifest
    entry = json.loads(manifest.encoded)
    assert entry["version"] == 5
    stated = Manifest.read(manifest.encoded)
    packed = stated.input.entering(samples)
    assert np.abs(packed).max() <= 1
    slots = np.stack([row for batch in model.program.batches(samples) for row in model.program.pack(batch)])
    assert np.array_equal(slots[: len(samples), :3].ravel()[:3], packed.ravel()[:3])
    values = rng.normal(size=(4, 2))
    normal = model.program.output.normalisation
    assert normal is not None
    assert np.array_equal(stated.output.leaving(values), normal.invert(values * model.program.output.scale))
    changes: list[Any] = [{"input": {"offset": [0.0] * 3, "scale": [1.0, 0.0, 1.0]}}]
    changes += [
        {"output": {"offset": [0.0] * 3, "scale": [1.0] * 3}},
        {"input": {"offset": [1.0], "scale": [1]}},
    ]
    changes += [{"input": []}, {"input": {"offset": [0.0], "scale": [1.0, 1.0]}}]
    for change in changes:
        with pytest.raises(FormatError, check=lambda error: error.code == "manifest"):
            Manifest.read(json.dumps(entry | {"normalised": change}).encode())


def test_a_plain_model_has_a_manifest_of_the_version_before(model: Model) -> None:
    manifest = model.manifest
    assert json.loads(manifest.encoded)["version"] == 4
    assert "normalised" not in json.loads(manifest.encoded)


def test_no_sample_is_beyond_the_places_of_a_batch(model: Model) -> None:
    """A fifth sample in ciphertexts of four had the answer of other numbers, without a word."""
    four = model.for_batch(4)
    client, samples = four.client(), np.ones((5, 3))
    for batch in (samples, samples[0]):
        with pytest.raises(EncodeError, check=lambda error: error.code == "samples"):
            client.encrypt_batch(batch)
    server = four.server()
    server.load_keys(client.keys())
    answer = server.evaluate(client.encrypt_batch(samples[:4])).objects
    assert client.decrypt_batch(answer, np.int64(4)).shape == (4, 3)  # type: ignore[arg-type]
    for count in (5, 0, -1):
        with pytest.raises(EncodeError, match=f"count {count} is out of range"):
            client.decrypt_batch(answer, count)


@pytest.mark.parametrize("number", [np.int64(4), np.uint8(4), np.array(4)])
def test_integers_of_numpy_are_integers(number: Any, tmp_path: Path) -> None:
    samples = np.random.default_rng(1).normal(size=(60, 3))
    compiled = kw.compile(MODELS["diagonal"][0], samples, batch=number)
    compiled.save(tmp_path / "model")
    assert kw.load(tmp_path / "model").program.batch == 4
    assert kw.compile(MODELS["diagonal"][0], samples, samples=number).program.batch == 4
    assert compiled.plan_batches(number)[1].memory.total > 0


@pytest.mark.parametrize(
    "arguments",
    [{name: value} for name in ("batch", "samples") for value in (0, -1, 1.5, "1", np.bool_(True), [2])]
    + [{"labels": value} for value in ("abc", [1, 2, 3])],
    ids=str,
)
def test_arguments_of_no_use_are_refused(arguments: dict[str, Any]) -> None:
    samples = np.random.default_rng(1).normal(size=(60, 3))
    with pytest.raises(ParameterError, match=next(iter(arguments))):
        kw.compile(MODELS["diagonal"][0], samples, **arguments)


def test_numbers_of_no_use_are_refused(model: Model) -> None:
    samples = np.ones((1, 3))
    for call in (
        lambda: model.plan_batches(0),
        lambda: model.simulate(samples, seed=-1),
        lambda: model.simulate(samples, repetitions=1.5),  # type: ignore[arg-type]
    ):
        with pytest.raises(ParameterError):
            call()
    assert model.predict(samples, memory=2**100).shape == (1, 3)


def test_arguments_of_another_kind_are_refused_as_such() -> None:
    network, samples = linear([[2.0]], [1.0]), np.linspace(-1, 1, 20)[:, None]
    arguments: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
        "activations": ({"activations": "relu"}, ParameterError, "by its name"),
        "too many labels": ({"labels": ["a", "b"]}, ParameterError, "2 labels were given for 1 outputs"),
        "ranges": ({"ranges": (-1, 1)}, ParameterError, r"Ranges\(input_range=\(low, high\)\)"),
        "accuracy": ({"accuracy": "high"}, ParameterError, "accuracy is 'high'; use a number"),
        "error": ({"error": [1]}, ParameterError, r"error is \[1\]; use a number"),
        "noise": ({"noise": "low"}, ParameterError, "noise is 'low'"),
        "no noise": ({"noise": None}, ParameterError, "noise is None; use a number"),
        "bins without trees": ({"bins": 32}, ParameterError, "bins= is for trees, and the model has none"),
        "bins of public thresholds": ({"bins": 32, "thresholds": "public"}, ParameterError, "bins= is for"),
        "thresholds without trees": ({"thresholds": "public"}, ParameterError, "thresholds= is for trees"),
        "an unknown name": ({"acuracy": 0.9}, TypeError, "'acuracy'; did you mean 'accuracy'"),
        "an unknown name of its own": ({"sample": 3}, TypeError, "'sample'; did you mean 'samples'"),
        "a strange name": ({"quux": 3}, TypeError, "'quux'; use one of them"),
        "an empty array": ({"calibration": samples[:0]}, EncodeError, "calibration data hold no samples"),
        "an empty list": ({"calibration": []}, EncodeError, "calibration data hold no samples"),
        "an empty column": ({"calibration": {"x": samples[:0]}}, EncodeError, "hold no samples"),
    }
    for name, (options, kind, text) in arguments.items():
        with pytest.raises(kind, match=text):
            pytest.fail(f"{name} gives {kw.compile(network, **({'calibration': samples} | options))}")
    # Nor does what is below `compile` ignore them, which takes trees and others alike.
    target, known = compiler.Target(slots=512, levels=3), {field.name for field in fields(compiler.Fit)}
    for name, (options, kind, text) in arguments.items():
        if options.keys() <= known and "empty" not in name:
            with pytest.raises(kind, match=text):
                compiler.compile_program(
                    network, target, compiler.Fit(**({"calibration": samples} | options))
                )


def test_fixed_inputs_of_another_kind_are_refused_as_such() -> None:
    class Module:
        """What compile reads of a module before anything is exported."""

        def forward(self, a: Any, b: Any) -> Any:
            return a + b

    samples, one = np.ones((4, 3)), {"b": np.ones(1)}
    several = linear([[2.0]], [1.0])
    (name,) = (value.name for value in several.graph.input)
    arguments: list[tuple[Any, Any, Any, type[Exception], str]] = [
        (Module(), 5, one, EncodeError, "calibration data of input 'a' are one value"),
        (Module(), {"a": 3.0}, one, EncodeError, "calibration data of input 'a' are one value"),
        (Module(), iter([1]), one, EncodeError, "calibration data of input 'a' are one value"),
        (Module(), [[1], [1, 2]], one, EncodeError, "calibration data"),
        (Module(), samples, {"b": [[1], [1, 2]]}, EncodeError, "inputs of 'b'"),
        (Module(), samples, {"a": 1, "b": 2}, ModelRefusedError, "fixes every input of the model, 'a', 'b'"),
        (Module(), {"a": samples}, {"a": 1, "b": 2}, ModelRefusedError, "fixes every input of the model"),
        (Module(), samples, 5, ParameterError, "inputs is int; use a mapping"),
        (several, samples[:, :1], {name: 1.0}, ModelRefusedError, "fixes every input of the model"),
    ]
    for model, calibration, fixed, kind, text in arguments:
        with pytest.raises(kind, match=text):
            pytest.fail(f"{fixed} gives {kw.compile(model, calibration, inputs=fixed)}")


def test_defaults_about_trees_are_no_refusal_without_trees() -> None:
    network, samples = linear([[2.0]], [1.0]), np.linspace(-1, 1, 20)[:, None]
    assert kw.compile(network, samples, thresholds="private", bins=None).program.depth == 1


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"input_range": 3}, "input_range=3 is no range"),
        ({"input_range": (1, 2, 3)}, "is no range"),
        ({"input_range": ("a", "b")}, "an end of input_range is 'a'"),
        ({"margin": "wide"}, "margin is 'wide'"),
        ({"headroom": None}, "headroom is None"),
    ],
)
def test_ranges_of_another_kind_are_refused_as_such(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(ParameterError, match=text):
        compiler.Ranges(**arguments)


@pytest.mark.parametrize("kind", [str, Path])
def test_a_folder_is_no_model(kind: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ModelRefusedError, match=r"is a folder, and a model is an ONNX file.*keywright\.load"):
        kw.compile(kind(tmp_path))
    for command in (["compile", "--out", str(tmp_path / "out")], ["infer", "--explain"], ["info"]):
        assert main([command[0], str(tmp_path), *command[1:]]) == 2
        assert "Traceback" not in (shown := capsys.readouterr().err)
        assert "folder" in shown, command


@pytest.mark.parametrize("folder", ["folder", Path("folder")])
def test_a_folder_is_no_served_model(folder: Any) -> None:
    with pytest.raises(ParameterError, match=r"keywright\.load\(folder\)"), serve(folder):
        pass
