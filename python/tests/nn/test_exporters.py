"""Models of other libraries, exported by the libraries themselves."""

import io
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from keywright import nn
from keywright.nn.front_ends.client_end import load_parts
from keywright.nn.front_ends.onnx_importer import import_model
from keywright.nn.graph.simplify import simplify
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

RNG = np.random.default_rng(11)
SAMPLES = RNG.normal(size=(80, 5)).astype(np.float32)


def run(model: Any, samples: np.ndarray) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    results: list[np.ndarray] = session.run(None, {session.get_inputs()[0].name: samples})
    return results


def test_a_pipeline_of_scikit_learn() -> None:
    labels = np.where(SAMPLES[:, 0] > 0, "up", "down")
    pipeline = make_pipeline(StandardScaler(), LogisticRegression()).fit(SAMPLES, labels)
    predicted = run(nn.to_onnx(pipeline, SAMPLES), SAMPLES)[0]
    assert predicted.tolist() == pipeline.predict(SAMPLES).tolist()


def test_a_perceptron_of_scikit_learn_compiles() -> None:
    network = MLPRegressor(hidden_layer_sizes=(6,), activation="identity", max_iter=2000)
    network.fit(SAMPLES, SAMPLES[:, 0])
    model = nn.to_onnx(network, SAMPLES)
    found = run(model, SAMPLES[:1])[0]
    # Single precision: 6 products of 5 products, and the inputs and weights are below 8.
    assert abs(found.item() - network.predict(SAMPLES[:1]).item()) < 2**-24 * 48 * 64


def test_a_module_of_torch() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed: no module is exported here")
    pytest.importorskip("onnxscript", reason="onnxscript is not installed: no module is exported here")
    torch.manual_seed(1)
    module = torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.Dropout(), torch.nn.ReLU())
    module.append(torch.nn.Linear(4, 3))
    model = nn.to_onnx(module, SAMPLES)
    assert module.training
    module.eval()
    expected = module(torch.as_tensor(SAMPLES[:1])).detach().numpy()
    np.testing.assert_allclose(run(model, SAMPLES[:1])[0], expected, rtol=0, atol=2**-20)


NAMES = (
    "activations",
    "double",
    "convolution of one axis",
    "images",
    "decoder",
    "normalisations",
    "shapes",
    "RNN",
    "GRU",
    "LSTM",
)
EXPORTS = ("new", "old, any batch", "old, batch of 8")


def exported(module: Any, shape: tuple[int, ...], way: str) -> onnx.ModelProto:
    import torch

    if way == "new":
        return nn.to_onnx(module, np.zeros((2, *shape)))
    file, dtype = io.BytesIO(), next((each.dtype for each in module.parameters()), torch.float32)
    options: dict[str, Any] = {"opset_version": 13}
    if way == "old, any batch":
        options = {"opset_version": 17, "input_names": ["x"], "dynamic_axes": {"x": {0: "n"}}}
    torch.onnx.export(module, (torch.zeros(8, *shape, dtype=dtype),), file, dynamo=False, **options)
    return onnx.load_model_from_string(file.getvalue())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", EXPORTS)
@pytest.mark.parametrize("name", NAMES)
def test_modules_of_torch_are_read_as_they_are(name: str, way: str) -> None:
    """The graph with exact functions, and what the client does, compute the module."""
    torch = pytest.importorskip("torch", reason="torch is not installed: no module is exported here")
    from tests.nn.torch_modules import modules

    torch.manual_seed(2)
    module, shape = modules()[name]
    server, client = load_parts(exported(module.eval(), shape, way))
    read = import_model(server)
    assert not read.reasons
    samples, graph = RNG.normal(size=(3, *shape)), simplify(read.graph)
    outputs = graph.evaluate(samples.reshape(3, -1))[graph.output]
    if client is not None:
        (outputs,) = replace(client, shape=read.result_shape).run(outputs).values()
    dtype = next((each.dtype for each in module.parameters()), torch.float32)
    expected = module(torch.as_tensor(samples).to(dtype)).detach().numpy()
    # Values are below 8, and single precision rounds each of at most 1,000 operations on the way to one.
    np.testing.assert_allclose(outputs.reshape(expected.shape), expected, rtol=0, atol=1000 * 8 * 2**-24)


def test_what_is_no_model() -> None:
    with pytest.raises(TypeError, match=r"numpy\.ndarray"):
        nn.to_onnx(SAMPLES)
    with pytest.raises(TypeError, match="with an example"):
        nn.to_onnx(LogisticRegression())
    with pytest.raises(nn.InvalidSamplesError):
        nn.to_onnx(LogisticRegression(), np.zeros(5))


def test_an_estimator_that_is_not_fitted() -> None:
    with pytest.raises(nn.ModelRefusedError) as caught:
        nn.to_onnx(LogisticRegression(), SAMPLES)
    (reason,) = caught.value.exceptions
    assert isinstance(reason, nn.NotExportedError)
    assert "skl2onnx cannot export LogisticRegression" in str(reason)


def test_an_exporter_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "skl2onnx", None)
    with pytest.raises(nn.ExporterMissingError, match=r"pip install 'keywright\[sklearn\]'"):
        nn.to_onnx(LogisticRegression(), SAMPLES)
