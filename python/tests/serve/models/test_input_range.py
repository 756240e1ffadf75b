"""Standardised numbers, some far above 1, with thin clients."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keywright as kw
import numpy as np
import onnx
import pytest
from keywright import compiler
from keywright.client import RemoteModel
from keywright.errors import OutOfRangeError
from keywright.model import Entry, Model
from keywright.model.served.manifest import Manifest
from keywright.runtime import run_clear
from keywright.serve import Server, Service
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler
from tests.serve.network import ENTRY, Q_BITS, listening

Numbers = np.ndarray[Any, np.dtype[np.float64]]
BATCH = 16


@dataclass(frozen=True, eq=False)
class Network:
    """A classifier of standardised numbers, with its training and test data."""

    source: onnx.ModelProto
    train: Numbers
    test: Numbers


@pytest.fixture(scope="module")
def network() -> Network:
    """Breast cancer: 30 numbers, 8 hidden ones, ReLU, two outputs; 143 samples to classify."""
    data = load_breast_cancer()
    train, test, target, _ = train_test_split(data.data, data.target, random_state=0)
    scaler = StandardScaler().fit(train)
    train, test = scaler.transform(train), scaler.transform(test)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        mlp = MLPClassifier((8,), max_iter=40, random_state=0).fit(train, target)
    (first, second), (bias, last) = mlp.coefs_, mlp.intercepts_
    # Logits of both classes, from that of the second.
    tensors = {
        "a": first,
        "b": bias,
        "c": np.hstack([-second, second]) / 2,
        "d": np.array([-last[0], last[0]]) / 2,
    }
    nodes = [
        helper.make_node("Gemm", ["x", "a", "b"], ["h"]),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("Gemm", ["r", "c", "d"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "cancer",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 30])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 2])],
        [numpy_helper.from_array(tensor.astype(np.float32), name) for name, tensor in tensors.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return Network(model, train, test)


def compiled(network: Network) -> Model:
    """The network for thin clients in a small ring."""
    parameters = kw.Parameters.from_bits(10, Q_BITS, [50, 50, 50], 45, insecure=True)
    plan = kw.BootstrapperPlan(parameters, **ENTRY)
    target = compiler.Target(
        slots=plan.slots,
        levels=plan.output_level,
        output_level=plan.input_level,
        packing="coefficients",
        batch=BATCH,
    )
    fit = compiler.Fit(calibration=network.train, activations={"relu": "chebyshev:2"})
    return Model(
        "cancer", compiler.compile_program(network.source, target, fit), parameters, (), Entry(plan, ENTRY)
    )


@pytest.fixture(scope="module")
def model(network: Network) -> Model:
    return compiled(network)


@pytest.fixture(scope="module")
def server(model: Model, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    service = Service(model, tmp_path_factory.mktemp("state"))
    with listening(service) as server:
        yield server
    service.close()


def test_all_standardised_samples_get_their_answers(server: Server, model: Model, network: Network) -> None:
    assert len(network.test) == 143
    assert (np.abs(network.test).max(axis=1) <= 1).sum() == 8
    remote = RemoteModel(server.url, insecure=True)
    manifest = remote.manifest
    assert manifest.input.scale == model.program.input.scale >= 8
    assert manifest.input.range == model.program.input.range
    assert remote.check(network.test).shape == (143, 30)
    with remote.session() as session:
        session.upload_keys()
        values = session.infer(network.test)
    expected = run_clear(model.program, network.test)
    # The error decides no sample's class.
    margins = np.abs(expected[:, 0] - expected[:, 1])
    assert 2 * np.abs(values - expected).max() < margins.min()
    assert (values.argmax(1) == expected.argmax(1)).all()


def test_samples_out_of_range_are_refused_before_keys_exist(server: Server, network: Network) -> None:
    remote = RemoteModel(server.url, insecure=True)
    low, high = remote.manifest.input.range or (0, 0)
    sample = network.test[0].copy()
    for value in (low - 0.01, high + 0.01, 100.0, -100.0):
        sample[3] = value
        with pytest.raises(OutOfRangeError, match="the model's input takes values") as refused:
            remote.check(sample)
        assert (refused.value.value, refused.value.low, refused.value.high) == (value, low, high)
    for value in (low, high):
        sample[3] = value
        assert remote.check(sample)[3] == value


def test_features_of_very_different_ranges(network: Network) -> None:
    """Clients normalise them, so that no feature loses bits, and refuse what is far above its range."""
    factors = 10.0 ** np.linspace(-2, 4, 30)
    source = onnx.ModelProto()
    source.CopyFrom(network.source)
    first = source.graph.initializer[0]
    first.CopyFrom(
        numpy_helper.from_array((numpy_helper.to_array(first).T / factors).T.astype(np.float32), "a")
    )
    model = compiled(Network(source, network.train * factors, network.test))
    manifest = Manifest.read(model.interface.encoded)
    assert manifest.input.normalisation is not None
    sent = manifest.input.entering(network.train * factors)
    assert 1 / 64 < np.abs(sent).max(axis=0).min() <= np.abs(sent).max() <= 1 / 16
    samples = network.test[:BATCH]
    errors = model.predict(samples * factors) - run_clear(model.program, samples * factors)
    assert np.abs(errors).max() < 0.01
    sample = samples[0] * factors
    sample[0] = 50
    assert manifest.input.range is not None
    assert manifest.input.range[1] > 50
    with pytest.raises(OutOfRangeError):
        model.predict(sample)


@pytest.mark.parametrize("weight", [1.0, 2.0**10, 2.0**13])
def test_a_client_with_the_program_refuses_what_its_owner_refuses(weight: float, tmp_path: Path) -> None:
    """The case: a program without ranges inside, of which an output wraps around the modulus."""
    parameters = kw.Parameters.from_bits(11, [50, 45], [50], 45, insecure=True)
    node = helper.make_node("Gemm", ["x", "a"], ["y"])
    graph = helper.make_graph(
        [node],
        "linear",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 1])],
        [numpy_helper.from_array(np.full((4, 1), weight, np.float32), "a")],
    )
    source = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    program = compiler.compile_program(source, compiler.Target(slots=parameters.max_slots, levels=1))
    model, refused = Model("linear", program, parameters), []
    client, service = model.client(), Service(model, tmp_path)
    with listening(service) as server:
        remote = RemoteModel(server.url, program=program, insecure=True)
        for size in 2.0 ** np.arange(-14, 4):
            for check in (client.guard, remote.check):
                try:
                    check(np.full(4, size))
                    refused.append(False)
                except OutOfRangeError:
                    refused.append(True)
            assert refused[-2] == refused[-1], size
    service.close()
    assert {True, False} == set(refused)
