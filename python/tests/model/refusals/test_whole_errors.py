"""Export, polynomials and encryption together: 10 % of the spread of a value, and of the range of a
probability, is refused, whatever it comes from."""

import functools
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import keywright as kw
import numpy as np
import pytest
from keywright.compiler import Fit
from keywright.compiler.activations import polynomial_choice
from keywright.compiler.activations.approximation.method import Method
from keywright.compiler.activations.spread import spread_of
from keywright.errors import ModelRefusedError
from keywright.model import Model
from keywright.model.report import encrypted_error
from keywright.program.fit_report import ExportDifferences
from onnx import TensorProto, helper, numpy_helper
from sklearn.neural_network import MLPClassifier, MLPRegressor

pytestmark = pytest.mark.filterwarnings("ignore:Stochastic Optimizer")

KINDS = ("value", "values", "plain outputs", "labels", "probability", "probabilities")


def samples() -> Any:
    return np.random.default_rng(35).normal(size=(300, 4))


def model_of(kind: str, activation: str = "tanh") -> Any:
    """A perceptron with outputs of this kind."""
    rng, x = np.random.default_rng(36), samples()
    target = x @ rng.normal(size=(4, 3)) + x[:, :1] * x[:, 1:2]
    options: Any = {"hidden_layer_sizes": (6,), "activation": activation, "max_iter": 60, "random_state": 1}
    if kind in ("value", "values"):
        return MLPRegressor(**options).fit(x, target[:, 0] if kind == "value" else target)
    if kind in ("probability", "probabilities"):
        labels = target[:, 0] > 0 if kind == "probability" else target.argmax(axis=1)
        return MLPClassifier(**options).fit(x, labels.astype(int))
    labelled, operator = kind == "labels", {"tanh": "Tanh", "logistic": "Sigmoid", "relu": "Relu"}[activation]
    nodes = [helper.make_node("MatMul", ["x", "a"], ["h"]), helper.make_node(operator, ["h"], ["t"], "layer")]
    nodes += [helper.make_node("MatMul", ["t", "b"], ["s" if labelled else "y"])]
    nodes += [helper.make_node("ArgMax", ["s"], ["y"], axis=1)] if labelled else []
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, (None, 4))
    y = helper.make_tensor_value_info("y", TensorProto.INT64 if labelled else TensorProto.FLOAT, None)
    constants = {"a": rng.normal(size=(4, 6)), "b": rng.normal(size=(6, 3))}
    arrays = [numpy_helper.from_array(each.astype(np.float32), name) for name, each in constants.items()]
    graph = helper.make_graph(nodes, "g", [given], [y], arrays)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])


@functools.cache
def compiled(kind: str) -> Model:
    return kw.compile(model_of(kind), samples())


def predicted(kind: str, polynomials: float, encryption: float, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The error where both change outputs of the program by these shares of their spread."""
    model = compiled(kind)
    approximated = model.approximated
    assert approximated is not None
    spread, count = spread_of(approximated.outputs), len(approximated.outputs)
    signs = np.where(np.arange(count) % 2, 1.0, -1.0)[:, None] * [1.0, -1.0, 1.0][: len(spread)]
    run = replace(
        approximated.run,
        export=ExportDifferences(),
        outputs=approximated.approximate_outputs + polynomials * spread * signs,
    )
    errors = encryption * spread[None, None]
    monkeypatch.setattr(encrypted_error, "simulate", lambda *_, **__: SimpleNamespace(errors=errors))
    return encrypted_error.predict_error(replace(approximated, run=run), model.program, model.execution)


SOURCES = [(0.15, 0.0), (0.0, 0.15), (0.075, 0.075), (0.095, 0.02), (0.03, 0.03), (0.06, 0.0), (0.0, 0.06)]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_whole_error_counts(
    kind: str, source: tuple[float, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each was held to a tenth, their sum was not; nor was a probability."""
    polynomials, encryption = source
    unit = slope = 1.0
    if kind.startswith("probabilit"):
        # Shares are of its range, which small errors of the scores change in proportion.
        slope = 1e-3 / predicted(kind, 1e-3, 0.0, monkeypatch).answers.share
        unit = 1e-3 / predicted(kind, 0.0, 1e-3, monkeypatch).answers.share
    error = predicted(kind, slope * polynomials, unit * encryption, monkeypatch)
    # Of labels, agreement counts; `noise` bounds the error of encryption alone.
    refused = unit * encryption > 0.1 or (
        kind not in ("labels", "plain outputs") and polynomials + encryption > 0.1
    )
    assert (error.excess(Fit()) is not None) == refused
    if not error.share > 0.1:
        assert error.excess(Fit(error=1e9)) is None
        assert error.excess(Fit(accuracy=0.01)) is None
        assert error.excess(Fit(activations={"tanh": "chebyshev:3"})) is None
        assert error.excess(Fit(noise=0.5)) is None
        if refused:
            assert "together change an output" in error.excess(Fit())


@pytest.mark.parametrize("activation", ["tanh", "logistic", "relu"])
@pytest.mark.parametrize("kind", ["values", "probability", "probabilities"])
def test_defaults_choose_finer_polynomials(kind: str, activation: str) -> None:
    """A probability was off by up to 0.15,"""
    model, x = model_of(kind, activation), samples()
    result = kw.compile(model, x)
    error, network = result.encrypted_error, result.approximated
    assert error is not None
    assert network is not None
    change = np.abs(network.approximate_outputs - network.outputs).max(axis=0)
    if kind == "values":
        assert (change <= 0.1 * spread_of(network.outputs)).all()
        assert error.whole <= 0.1
    else:
        expected = model.predict_proba(x)
        given = result.answers(network.approximate_outputs)["output_probability"]
        assert np.abs(given - expected).max() <= 0.1 * np.ptp(expected, axis=0).max()
        assert error.answers is not None
        assert error.answers.share <= 0.1


@pytest.mark.parametrize("kind", KINDS)
def test_polynomials_that_cannot_follow_are_refused(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for methods in ("SMOOTH", "POSITIVE"):
        monkeypatch.setattr(polynomial_choice, methods, [Method("chebyshev", 1)])
    with pytest.raises(ModelRefusedError, match="a tenth of their range") as caught:
        kw.compile(model_of(kind), samples())
    assert [getattr(reason, "code", "") for reason in caught.value.exceptions] == ["accuracy"]
    if kind.startswith("value"):
        assert kw.compile(model_of(kind), samples(), error=100.0).encrypted_error is not None
    else:
        assert kw.compile(model_of(kind), samples(), accuracy=0.3).encrypted_error is not None
