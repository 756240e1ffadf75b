"""Export, polynomials and encryption together: 10 % of the spread of a value, and of the range of a
probability, is refused, whatever it comes from."""

import functools
import itertools
import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import keywright as kw
import numpy as np
import pytest
from keywright.compiler import Fit, approximate
from keywright.compiler.activations import polynomial_choice
from keywright.compiler.activations.approximation.method import Method
from keywright.compiler.activations.spread import spread_of
from keywright.errors import ModelRefusedError, RefusalError
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


def largest(error: Any) -> float:
    """The largest share of the spread of a value, or of the range of an answer."""
    return float(max({**error.whole, **({} if error.answers is None else error.answers.shares)}.values()))


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
        slope = 1e-3 / largest(predicted(kind, 1e-3, 0.0, monkeypatch))
        unit = 1e-3 / largest(predicted(kind, 0.0, 1e-3, monkeypatch))
    error = predicted(kind, slope * polynomials, unit * encryption, monkeypatch)
    # Of labels, agreement counts; `noise` bounds the error of encryption alone.
    refused = unit * encryption > 0.1 or (kind != "labels" and polynomials + encryption > 0.1)
    assert (error.excess(Fit()) is not None) == refused
    if not error.share > 0.1:
        assert error.excess(Fit(error=1e9)) is None
        assert error.excess(Fit(accuracy=0.01)) is None
        assert error.excess(Fit(activations={"tanh": "chebyshev:3"})) is None
        assert error.excess(Fit(noise=0.5)) is None
        if refused:
            text = error.excess(Fit())
            assert re.search(r"together change (output \d|output_probability behind)", text)
            allowed = re.search(r"noise=([\d.e+-]+) allows this", text)
            assert allowed is not None
            assert error.excess(Fit(noise=float(allowed[1]))) is None


@pytest.mark.parametrize("activation", ["tanh", "logistic", "relu"])
@pytest.mark.parametrize("kind", ["plain outputs", "probability", "probabilities"])
def test_defaults_choose_finer_polynomials(kind: str, activation: str) -> None:
    """A probability was off by up to 0.15, and outputs of a plain network by a quarter of their spread."""
    model, x = model_of(kind, activation), samples()
    result = kw.compile(model, x)
    error, network = result.encrypted_error, result.approximated
    assert error is not None
    assert network is not None
    change = np.abs(network.approximate_outputs - network.outputs).max(axis=0)
    if kind == "plain outputs":
        assert (change <= 0.1 * spread_of(network.outputs)).all()
        assert max(error.whole.values()) <= 0.1
    else:
        expected = model.predict_proba(x)
        given = result.answers(network.approximate_outputs)["output_probability"]
        assert np.abs(given - expected).max() <= 0.1 * np.ptp(expected, axis=0).max()
        assert largest(error) <= 0.1


@pytest.mark.parametrize("kind", KINDS)
def test_polynomials_that_cannot_follow_are_refused(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for methods in ("SMOOTH", "POSITIVE"):
        monkeypatch.setattr(polynomial_choice, methods, [Method("chebyshev", 1)])
    with pytest.raises(ModelRefusedError, match="a tenth of the range of an answer") as caught:
        kw.compile(model_of(kind), samples())
    assert [getattr(reason, "code", "") for reason in caught.value.exceptions] == ["accuracy"]
    if kind.startswith("value"):
        assert kw.compile(model_of(kind), samples(), error=100.0).encrypted_error is not None
    else:
        assert kw.compile(model_of(kind), samples(), accuracy=0.3).encrypted_error is not None


def network(seed: int) -> tuple[Any, Any]:
    """A small network without a last step, whose outputs have units and offsets of their own, and samples."""
    rng = np.random.default_rng(seed)
    operator = rng.choice(["Tanh", "Sigmoid", "Relu", "Softplus", "Elu", "LeakyRelu", "Erf", "Sin", "Exp"])
    sizes = [
        int(rng.integers(2, 7)),
        *rng.integers(3, 9, int(rng.integers(1, 4))).tolist(),
        int(rng.integers(2, 6)),
    ]
    nodes, constants, last = [], {}, "x"
    for number, (rows, columns) in enumerate(itertools.pairwise(sizes)):
        ends = number == len(sizes) - 2
        unit = 10 ** rng.uniform(-3, 3, columns) if ends else 1.0
        constants[f"w{number}"] = rng.normal(size=(rows, columns)) / np.sqrt(rows) * unit
        constants[f"b{number}"] = rng.normal(size=columns) * (10 ** rng.uniform(-3, 3) if ends else 0.5)
        nodes.append(helper.make_node("MatMul", [last, f"w{number}"], [f"h{number}"]))
        nodes.append(helper.make_node("Add", [f"h{number}", f"b{number}"], ["y" if ends else f"s{number}"]))
        last = f"a{number}"
        if not ends:
            nodes.append(helper.make_node(operator, [f"s{number}"], [last], f"layer{number}"))
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.DOUBLE, (None, sizes[0]))],
        [helper.make_tensor_value_info("y", TensorProto.DOUBLE, None)],
        [numpy_helper.from_array(each, name) for name, each in constants.items()],
    )
    samples = rng.normal(size=(120, sizes[0]))
    if rng.random() < 0.4:
        samples[rng.integers(0, 120, 3)] *= 6  # outliers
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), samples


@pytest.mark.parametrize("seed", range(24))
def test_several_outputs_are_within_a_tenth_of_their_spread_or_refused(seed: int) -> None:
    """They could be scores of labels, and were off by up to a quarter of it with only a warning."""
    model, x = network(seed)
    small = kw.Parameters.from_bits(11, [55, *[45] * 20], [60], 45, insecure=True)
    try:
        result = kw.compile(model, x, parameters=small)
    except kw.errors.EncodeError:
        # The exponential of an exponential.
        assert sum(node.op_type == "Exp" for node in model.graph.node) > 1
        return
    except ModelRefusedError as refused:
        (reason,) = refused.exceptions
        assert isinstance(reason, RefusalError)
        if reason.code == "accuracy":
            allowed = re.search(
                r"default on calibration data is output \d within .* \(error=([\d.e+-]+), or", str(reason)
            )
            assert allowed is not None
            result = kw.compile(model, x, parameters=small, error=float(allowed[1]))
            assert result.encrypted_error is not None
        elif reason.code == "depth":
            # The compiler's own choice has enough levels, or bootstraps.
            approximated = approximate(model, Fit(calibration=x))
            require_close(approximated.approximate_outputs, approximated.outputs)
        else:
            assert reason.code == "precision"
        return
    assert result.approximated is not None
    expected = result.approximated.outputs
    require_close(result.approximated.approximate_outputs, expected)
    require_close(result.predict(x[:8], force=True), expected, 0.11)
    report = result.program.fit_report
    assert report is not None
    stated = any("change an output by up to" in text for text in report.warnings)
    assert stated == (report.outputs.of_spread > 0.01)


def require_close(outputs: Any, expected: Any, share: float = 0.1) -> None:
    """Check that no output is off by a larger share of its spread."""
    errors = np.abs(outputs - expected[: len(outputs)]).max(axis=0)
    assert (errors <= share * spread_of(expected)).all()
