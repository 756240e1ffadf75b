"""Models of other libraries, exported by the libraries themselves."""

import contextlib
import re
from pathlib import Path
from typing import Any

import keywright as kw
import numpy as np
import onnxruntime
import pytest
from keywright import compiler
from keywright.compiler.front_ends.exporters.samples import one_sample
from keywright.compiler.front_ends.exporters.torch_module import require_outputs
from keywright.compiler.front_ends.model_file import UNCOMPARED
from keywright.errors import EncodeError, ModelRefusedError, PackageMissingError, RefusalError
from keywright.runtime import run_clear
from onnx import helper
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import LinearSVC

RNG = np.random.default_rng(11)
SAMPLES = RNG.normal(size=(80, 5)).astype(np.float32)


def run(model: Any, samples: np.ndarray) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    results: list[np.ndarray] = session.run(None, {session.get_inputs()[0].name: samples})
    return results


def test_a_pipeline_of_scikit_learn() -> None:
    labels = np.where(SAMPLES[:, 0] > 0, "up", "down")
    pipeline = make_pipeline(StandardScaler(), LogisticRegression()).fit(SAMPLES, labels)
    predicted = run(compiler.to_onnx(pipeline, SAMPLES), SAMPLES)[0]
    assert predicted.tolist() == pipeline.predict(SAMPLES).tolist()


def test_a_perceptron_of_scikit_learn_compiles() -> None:
    network = MLPRegressor(hidden_layer_sizes=(6,), activation="identity", max_iter=2000)
    network.fit(SAMPLES, SAMPLES[:, 0])
    model = compiler.to_onnx(network, SAMPLES)
    outputs = run(model, SAMPLES[:1].astype(np.float64))[0]
    # Regressors are exported in double precision.
    assert abs(outputs.item() - network.predict(SAMPLES[:1].astype(np.float64)).item()) < 2**-44


def test_a_module_of_torch() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed: no module is exported here")
    pytest.importorskip("onnxscript", reason="onnxscript is not installed: no module is exported here")
    torch.manual_seed(1)
    module = torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.Dropout(), torch.nn.ReLU())
    module.append(torch.nn.Linear(4, 3))
    model = compiler.to_onnx(module, SAMPLES)
    assert module.training
    module.eval()
    expected = module(torch.as_tensor(SAMPLES[:1])).detach().numpy()
    np.testing.assert_allclose(run(model, SAMPLES[:1])[0], expected, rtol=0, atol=2**-20)


def test_fixed_inputs_of_a_module_of_torch() -> None:
    """Calibration data hold the others: as a mapping, or as the array of the only one."""
    torch = pytest.importorskip("torch", reason="torch is not installed: no module is exported here")
    pytest.importorskip("onnxscript", reason="onnxscript is not installed: no module is exported here")

    class Scaled(torch.nn.Module):  # type: ignore[misc,name-defined]
        def forward(self, x: Any, rate: Any, added: Any) -> Any:
            return x * (rate / 16000) + added

    fixed = {"rate": 8000, "added": np.arange(5, dtype=np.float32)}
    for calibration in (SAMPLES, {"x": SAMPLES}):
        compiled = kw.compile(Scaled(), calibration=calibration, inputs=fixed)
        outputs = compiled.simulate(SAMPLES[:3]).outputs
        np.testing.assert_allclose(outputs, SAMPLES[:3] / 2 + np.arange(5), atol=1e-3)
    with pytest.raises(ModelRefusedError, match="fixes 'speed', and the model has"):
        kw.compile(torch.nn.Linear(5, 2), calibration=SAMPLES, inputs={"speed": 2})


@pytest.mark.parametrize("batch_first", [True, False])
def test_a_transformer_of_torch(batch_first: bool) -> None:
    """Without ``batch_first`` the first axis is that of tokens, and samples attend to each other."""
    torch = pytest.importorskip("torch", reason="torch is not installed: no module is exported here")
    pytest.importorskip("onnxscript", reason="onnxscript is not installed: no module is exported here")
    torch.manual_seed(1)
    module = torch.nn.TransformerEncoder(
        torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=batch_first), 1, enable_nested_tensor=False
    )
    samples = RNG.normal(size=(60, 5, 8)).astype(np.float32)
    if not batch_first:
        with pytest.raises(ModelRefusedError, match="batch_first=True") as caught:
            compiler.to_onnx(module, samples)
        assert caught.value.exceptions[0].code == "batch"  # type: ignore[union-attr]
        return
    program = compiler.compile_program(
        compiler.to_onnx(module, samples),
        compiler.Target(slots=1024, levels=80),
        compiler.Fit(calibration=samples),
    )
    expected = module.eval()(torch.as_tensor(samples[:4])).detach().numpy()
    outputs = run_clear(program, samples[:4]).reshape(expected.shape)
    assert np.abs(outputs - expected).max() <= np.abs(expected).max() / 16


@pytest.mark.parametrize("nested", [True, False])
def test_a_transformer_of_torch_with_padding(nested: bool) -> None:
    """In its fast path, the module sets outputs at padding to 0, and its export does not."""
    torch = pytest.importorskip("torch", reason="torch is not installed: no module is exported here")
    pytest.importorskip("onnxscript", reason="onnxscript is not installed: no module is exported here")
    torch.manual_seed(1)
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    module = torch.nn.TransformerEncoder(layer, 1, enable_nested_tensor=nested)
    shown = np.arange(5) < RNG.integers(1, 6, (60, 1))
    samples = {"src": RNG.normal(size=(60, 5, 8)).astype(np.float32), "src_key_padding_mask": ~shown}
    program = compiler.compile_program(
        compiler.to_onnx(module, samples),
        compiler.Target(slots=1024, levels=80),
        compiler.Fit(calibration=samples),
    )
    few = {name: torch.as_tensor(each[:4]) for name, each in samples.items()}
    expected = module.eval()(**few).detach().numpy()
    features, _ = program.features({name: each[:4] for name, each in samples.items()})
    outputs = run_clear(program, features).reshape(expected.shape)
    assert np.abs((outputs - expected)[shown[:4]]).max() <= np.abs(expected).max() / 16
    assert torch.backends.mha.get_fastpath_enabled()


@pytest.mark.parametrize("lost", [1.0, 4 / 3])
def test_an_exporter_that_leaves_an_argument_of_a_layer_out(lost: float) -> None:
    """The case: nn.AvgPool2d(2, divisor_override=3) was compiled without its divisor."""
    node = helper.make_node("AveragePool", ["x"], ["y"], kernel_shape=[2, 2], strides=[2, 2])
    values = [helper.make_tensor_value_info(name, 1, ["n", 1, s, s]) for name, s in (("x", 4), ("y", 2))]
    model = helper.make_model(helper.make_graph([node], "pool", values[:1], values[1:]))
    image = RNG.normal(size=(1, 1, 4, 4)).astype(np.float32)
    own = lost * image.reshape(1, 1, 2, 2, 2, 2).mean(axis=(3, 5)).astype(np.float64)
    for inputs in ({0: image}, {"x": image}):
        if lost == 1.0:
            require_outputs("AvgPool2d", model, inputs, [own])
            continue
        with pytest.raises(ModelRefusedError) as refused:
            require_outputs("AvgPool2d", model, inputs, [own])
        assert "torch.onnx.export writes another function than AvgPool2d" in str(refused.value)


@pytest.mark.parametrize(("own", "same"), [(np.nan, False), (np.inf, False), (1.0, True)])
def test_outputs_that_are_no_numbers_differ_from_those_that_are(own: float, same: bool) -> None:
    values = [helper.make_tensor_value_info(name, 1, ["n", 2]) for name in "xy"]
    model = helper.make_model(
        helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", values[:1], values[1:])
    )
    image = np.asarray([[1.0, np.inf]], np.float32)
    outputs = [np.asarray([[own, np.inf]])]
    with contextlib.nullcontext() if same else pytest.raises(ModelRefusedError):
        require_outputs("Own", model, {"x": image}, outputs)


REASONS = {
    "no evaluator": ("Unknown", [(1, 2)], "no output was compared.*no evaluator"),
    "all": ("Identity", [(1, 2)], "^$"),
}


@pytest.mark.parametrize("case", REASONS)
def test_an_export_that_is_not_compared_says_why(case: str) -> None:
    operator, shapes, reason = REASONS[case]
    values = [helper.make_tensor_value_info(name, 1, ["n", 2]) for name in "xy"]
    node = helper.make_node(operator, ["x"], ["y"])
    model = helper.make_model(helper.make_graph([node], "g", values[:1], values[1:]))
    image = np.ones((1, 2), np.float32)
    assert re.search(reason, require_outputs("Own", model, {"x": image}, [np.ones(s) for s in shapes]))


@pytest.mark.parametrize("shapes", [[(1, 3)], [], [(1, 2), (1, 2)]])
def test_outputs_of_other_shapes_are_another_function(shapes: list[tuple[int, ...]]) -> None:
    values = [helper.make_tensor_value_info(name, 1, ["n", 2]) for name in "xy"]
    node = helper.make_node("Identity", ["x"], ["y"])
    model = helper.make_model(helper.make_graph([node], "g", values[:1], values[1:]))
    image, own = np.ones((1, 2), np.float32), re.escape(", ".join(map(str, shapes)) or "none")
    with pytest.raises(ModelRefusedError, match=rf"have the shapes \(1, 2\), and those of Own have {own};"):
        require_outputs("Own", model, {"x": image}, [np.ones(each) for each in shapes])


def test_whole_numbers_among_the_outputs_are_compared() -> None:
    image = helper.make_tensor_value_info("x", 1, ["n", 2])
    numbers = helper.make_tensor_value_info("i", 7, ["n", 1])
    node = helper.make_node("ArgMax", ["x"], ["i"], axis=1)
    model = helper.make_model(helper.make_graph([node], "g", [image], [numbers]))
    samples = np.asarray([[0.0, 1.0]], np.float32)
    require_outputs("Own", model, {"x": samples}, [np.ones((1, 1))])
    with pytest.raises(ModelRefusedError, match="writes another function than Own"):
        require_outputs("Own", model, {"x": samples}, [np.zeros((1, 1))])


def test_the_report_says_which_outputs_of_an_export_were_not_compared(tmp_path: Path) -> None:
    values = [helper.make_tensor_value_info(name, 1, ["n", 2]) for name in "xy"]
    nodes = [helper.make_node("Neg", ["x"], ["y"])]
    samples = RNG.normal(size=(60, 2)).astype(np.float32)
    reason = "no output was compared with the module's: onnx has no evaluator for it"
    model = helper.make_model(
        helper.make_graph(nodes, "g", values[:1], values[1:]),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )
    for text in ("", reason):
        model.metadata_props.add(key=UNCOMPARED, value=text)
        program = compiler.compile_program(
            model, compiler.Target(slots=64, levels=2), compiler.Fit(calibration=samples)
        )
        compiler.save(program, tmp_path / "p.kwp")
        report = compiler.load(tmp_path / "p.kwp").fit_report
        assert report is not None
        assert str(report).endswith(f"; of the ONNX model, {reason}") == bool(text)
        del model.metadata_props[:]


@pytest.mark.parametrize("divisor", [None, 3])
def test_a_pool_of_torch_with_a_divisor(divisor: int | None) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed: no module is exported here")
    pytest.importorskip("onnxscript", reason="onnxscript is not installed: no module is exported here")
    images = RNG.normal(size=(4, 2, 6, 6)).astype(np.float32)
    module = torch.nn.AvgPool2d(2, divisor_override=divisor)
    if divisor is None:
        compiler.to_onnx(module, images)
        return
    with pytest.raises(ModelRefusedError, match="another function than AvgPool2d"):
        compiler.to_onnx(module, images)


def test_a_pipeline_that_ends_in_a_linear_svc() -> None:
    labels = np.digitize(SAMPLES[:, 0], [-0.4, 0.4])
    inner = make_pipeline(StandardScaler(), LinearSVC())
    pipeline = make_pipeline(MinMaxScaler(), inner).fit(SAMPLES, labels)
    predicted = run(compiler.to_onnx(pipeline, SAMPLES), SAMPLES)[0]
    assert predicted.tolist() == pipeline.predict(SAMPLES).tolist()


def test_what_is_no_model() -> None:
    with pytest.raises(TypeError, match=r"numpy\.ndarray"):
        compiler.to_onnx(SAMPLES)
    with pytest.raises(TypeError, match="needs an example"):
        compiler.to_onnx(LogisticRegression())
    with pytest.raises(EncodeError, check=lambda error: error.code == "samples"):
        compiler.to_onnx(LogisticRegression(), np.zeros(5))


def test_an_estimator_that_is_not_fitted() -> None:
    with pytest.raises(ModelRefusedError) as caught:
        compiler.to_onnx(LogisticRegression(), SAMPLES)
    (reason,) = caught.value.exceptions
    assert isinstance(reason, RefusalError)
    assert reason.code == "export"
    assert "LogisticRegression cannot be compiled: it is not fitted" in str(reason)


def test_an_exporter_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "skl2onnx", None)
    with pytest.raises(PackageMissingError, match=r"pip install 'keywright\[sklearn\]'"):
        compiler.to_onnx(LogisticRegression(), SAMPLES)


def test_one_number_a_sample_names_its_input() -> None:
    with pytest.raises(EncodeError, match=r"input 'a' .*as \(60, 1\), which the model reads as a\[:, 0\]"):
        one_sample(np.zeros(60), "a module", "a")
