"""Refusals say what to do: their numbers are numbers, their arguments are those of `keywright.compile`, and a
model that follows the advice is compiled."""

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import keywright as kw
import numpy as np
import onnx
import pytest
from keywright import compiler
from keywright.errors import ModelRefusedError
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_wine, make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

PACKAGE = Path(kw.__file__).parent
SOURCES = [PACKAGE / "errors" / "network.py", PACKAGE / "program" / "fit_report.py"]
SOURCES += sorted((PACKAGE / "compiler").rglob("*.py")) + sorted((PACKAGE / "model" / "report").rglob("*.py"))

ARGUMENT = re.compile(r"(?<![\w.-])([a-z]+(?:_[a-z]+)*)=(?!=)")
NUMBER = re.compile(r"(?<![\w.])-?(?:inf\b|nan\b|\d+(?:\.\d+)?e\+\d+)")
MOST = 1e15
"""Numbers of calibration data here are below; nothing that is said of them is far above."""

ELSEWHERE = {
    "batch_first", "binarize", "ensemble", "func", "handle_unknown", "inverse_func", "is_causal", "kernel",
    "linear_tree", "loss", "norm", "solver", "stack_method", "track_running_stats", "transformer", "unroll",
    "use_cache", "zero_as_missing",
}  # fmt: skip
"""Arguments of other libraries, from which models come."""


def arguments() -> set[str]:
    """Return the arguments that `keywright.compile`, `compiler.Ranges` and `compiler.to_onnx` take."""
    known = set(inspect.signature(kw.compile).parameters) | set(
        inspect.signature(compiler.to_onnx).parameters
    )
    known -= {"fit"}
    return known | {each.name for kind in (compiler.Fit, compiler.Ranges) for each in fields(kind)}


def texts(path: Path) -> Iterator[str]:
    """Yield the texts of a file other than docstrings."""
    tree = ast.parse(path.read_text())
    docs = {id(each.value) for each in ast.walk(tree) if isinstance(each, ast.Expr)}
    for each in ast.walk(tree):
        if isinstance(each, ast.Constant) and isinstance(each.value, str) and id(each) not in docs:
            yield each.value


def test_refusals_name_arguments_that_exist() -> None:
    named = {name for path in SOURCES for text in texts(path) for name in ARGUMENT.findall(text)}
    assert {"accuracy", "bins", "ranges", "parameters"} <= named
    assert named - ELSEWHERE <= arguments()


@dataclass(frozen=True)
class Refusal:
    """A model that is refused, and what its refusal advises.

    Attributes:
        model, samples, options: of `keywright.compile`.
        advice: in the message.
        followed: the model that follows it; the same by default.
        more: options that follow it.
        without: options that are left out.
    """

    model: Any
    samples: Any
    advice: str
    options: dict[str, Any] = field(default_factory=dict)
    followed: Any = None
    more: dict[str, Any] = field(default_factory=dict)
    without: tuple[str, ...] = ()


def small(levels: int) -> kw.Parameters:
    """Return parameters without security, which are quick."""
    return kw.Parameters.from_bits(11, [55] + levels * [45], [60], 45, insecure=True)


def graph(*nodes: onnx.NodeProto, batch: int | str = "N", kind: int = TensorProto.FLOAT) -> onnx.ModelProto:
    """Return a model of four features."""
    weights = np.random.default_rng(2).normal(size=(4, 4)).astype(np.float32)
    constants = [numpy_helper.from_array(weights, "w"), numpy_helper.from_array(np.array([3]), "three")]
    body = helper.make_graph(
        list(nodes),
        "refused",
        [helper.make_tensor_value_info("x", kind, [batch, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [batch, "outputs"])],
        constants,
    )
    return helper.make_model(body, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


SAMPLES = np.random.default_rng(1).normal(size=(60, 4))
X, Y = make_classification(150, 6, n_informative=4, random_state=0)
MATRIX = helper.make_node("MatMul", ["x", "w"], ["t"])
RELU, MEAN = helper.make_node("Relu", ["t"], ["y"]), helper.make_node("Softmax", ["t"], ["y"], axis=0)
CAST = helper.make_node("Cast", ["x"], ["c"], to=TensorProto.FLOAT)


def fees(number: float, weight: float) -> list[onnx.NodeProto]:
    """Return (x number) (weight I)."""
    values = {"number": np.float32(number), "i": weight * np.eye(4, dtype=np.float32)}
    stored = [
        helper.make_node("Constant", [], [name], value=numpy_helper.from_array(np.asarray(value, np.float32)))
        for name, value in values.items()
    ]
    last = helper.make_node("MatMul", ["fee", "i"], ["y"])
    return [*stored, helper.make_node("Mul", ["x", "number"], ["fee"]), last]


def machine(scale: float) -> SVC:
    """Return a machine of radial kernels."""
    return SVC(gamma="auto").fit(X * scale, Y)


def scaled(scale: float) -> Any:
    """Return the machine behind a scaler."""
    return make_pipeline(StandardScaler(), SVC(gamma="auto")).fit(X * scale, Y)


def wine() -> Refusal:
    """A model of features up to 1680, which thin clients divide. Other ranges are 200 times smaller."""
    samples, labels = load_wine(return_X_y=True)
    ranges = np.ptp(samples, axis=0)
    samples *= np.maximum(1, ranges.max() / (200 * ranges))
    return Refusal(
        make_pipeline(StandardScaler(), LogisticRegression()).fit(samples, labels),
        samples,
        "clients divide inputs by 4096 because of their range",
        {"client": "thin", "parameters": None, "noise": 1e-3},
        more={"parameters": "N16_QP1732_L9_S45_real"},
    )


CASES: dict[str, Callable[[], Refusal]] = {
    "features of a large range for thin clients": wine,
    "a machine of large features": lambda: Refusal(
        machine(1e5), X * 1e5, "normalise before activations of large values", followed=scaled(1e5)
    ),
    "too few levels": lambda: Refusal(
        graph(MATRIX, RELU), SAMPLES, "parameters=", {"parameters": small(2)}, more={"parameters": small(12)}
    ),
    "too small an error": lambda: Refusal(
        graph(MATRIX, RELU), SAMPLES, "accuracy=, error=", {"error": 1e-12}, more={"error": 0.5}
    ),
    "no calibration data": lambda: Refusal(
        graph(MATRIX, RELU), None, "calibration=", more={"calibration": SAMPLES}
    ),
    "an activation that is not there": lambda: Refusal(
        graph(MATRIX, RELU), SAMPLES, "use one of", {"activations": {"tahn": "chebyshev:3"}},
        more={"activations": {"relu": "chebyshev:3"}},
    ),
    "errors of encryption": lambda: Refusal(
        graph(MATRIX, RELU), SAMPLES, "noise=", {"noise": 1e-12}, more={"noise": 1.0}
    ),
    "few bins": lambda: Refusal(
        DecisionTreeClassifier(random_state=0).fit(X, Y), X, "thresholds=", {"bins": 2, "accuracy": 1.0},
        more={"thresholds": "public"}, without=("bins",),
    ),
    "an axis of samples": lambda: Refusal(
        graph(MATRIX, MEAN), SAMPLES, "batch of 1", followed=graph(MATRIX, MEAN, batch=1)
    ),
    "numbers of bits as large as a mask": lambda: Refusal(
        graph(*fees(-2e4, 1.0)), np.float64(SAMPLES > 0), "smaller constant and larger weights",
        followed=graph(*fees(-200.0, 100.0)),
    ),
    "integers that are divided": lambda: Refusal(
        graph(helper.make_node("Div", ["x", "three"], ["q"]), helper.make_node("Cast", ["q"], ["y"], to=1),
              kind=TensorProto.INT64),
        np.round(SAMPLES * 9),
        "from a Cast before it",
        followed=graph(CAST, helper.make_node("MatMul", ["c", "w"], ["y"]), kind=TensorProto.INT64),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_advice_that_is_followed_helps(name: str) -> None:
    case = CASES[name]()
    options = {"parameters": small(12), **case.options}
    with pytest.raises(ModelRefusedError) as caught:
        kw.compile(case.model, case.samples, **options)
    text = str(caught.value)
    assert case.advice in text
    named = re.search(r"use parameters='(\w+)'", text)
    assert named is None or named[1] == case.more["parameters"]
    assert set(ARGUMENT.findall(text)) - ELSEWHERE <= arguments()
    for number in NUMBER.findall(text):
        assert abs(float(number)) < MOST, text
    options = {key: value for key, value in (options | case.more).items() if key not in case.without}
    samples = options.pop("calibration", case.samples)
    kw.compile(case.model if case.followed is None else case.followed, samples, **options)
