"""Models that a default compile once answered wrongly: the answer is right, or the refusal names the layer
and the number."""

from typing import Any

import keywright as kw
import numpy as np
import onnx
import pytest
from keywright.errors import ModelRefusedError, RefusalError
from keywright.model import Model
from keywright.program.operands.normalisation import HEADROOM
from onnx import TensorProto, helper, numpy_helper
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.naive_bayes import BernoulliNB
from sklearn.neural_network import MLPClassifier, MLPRegressor
from tests.matrices import cells

Array = np.ndarray[Any, np.dtype[Any]]


def small(levels: int = 26) -> kw.Parameters:
    return kw.Parameters.from_bits(11, [55, *[45] * levels], [60], 45, insecure=True)


def built(
    nodes: list[onnx.NodeProto], shape: tuple[int, ...], outputs: int, **constants: Any
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "case",
        [helper.make_tensor_value_info("x", TensorProto.DOUBLE, ["batch", *shape])],
        [helper.make_tensor_value_info("y", TensorProto.DOUBLE, ["batch", outputs])],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def require_default(compiled: Model, samples: Array, expected: Array) -> None:
    """Check encrypted outputs against the default rule: within a sixteenth, and a warning states the change
    above a hundredth of the spread, and nothing else."""
    report = compiled.program.fit_report
    assert report is not None
    require_stated(compiled)
    outputs = compiled.predict(samples).reshape(expected.shape)
    assert np.abs(outputs - expected).max() <= report.outputs.largest_output / 16


def require_stated(compiled: Model) -> None:
    """Check that there is one warning if polynomials change an output by more than a hundredth of its spread,
    with that share, and else none."""
    report = compiled.program.fit_report
    assert report is not None
    share = report.outputs.of_spread
    stated = (f"polynomials change an output by up to {share:.2g} times its spread",) if share > 0.01 else ()
    assert tuple(text.partition(";")[0] for text in compiled.report.warnings) == stated


@pytest.mark.filterwarnings("ignore:Stochastic Optimizer")
@pytest.mark.parametrize(("activation", "noise"), cells(["tanh", "logistic", "relu"], [0.0, 0.5, 3.0]))
def test_values_are_off_by_a_tenth_of_their_spread_at_most(activation: str, noise: float) -> None:
    """A perceptron was off by 0.064 of it without a word, and could be by a quarter; with outliers, the range
    of its values says little."""
    rng = np.random.default_rng(35)
    samples = rng.normal(size=(400, 4))
    values = samples @ [1.0, -0.5, 0.3, 0.1] + noise * samples[:, 0] ** 5
    model = MLPRegressor(hidden_layer_sizes=(8,), activation=activation, max_iter=50, random_state=1).fit(
        samples, values
    )
    compiled = kw.compile(model, samples)
    require_stated(compiled)
    expected = model.predict(samples)
    low, high = np.quantile(expected, [0.16, 0.84])
    spread = min(expected.std(), (high - low) / 2)
    assert np.abs(compiled.predict(samples[:64])[:, 0] - expected[:64]).max() <= 0.11 * spread
    report = kw.compile(model, samples, error=spread / 200).program.fit_report
    assert report is not None
    assert not any("spread" in text for text in report.warnings)


@pytest.mark.parametrize("binary", [True, False], ids=["0 and 1", "numbers"])
def test_features_that_are_compared_with_a_number(binary: bool) -> None:
    """Bernoulli's naive Bayes kept 77 % of its predictions."""
    rng = np.random.default_rng(35)
    samples = rng.normal(size=(200, 6))
    samples = (samples > 0).astype(np.float64) if binary else samples
    labels = (samples[:, 0] + samples[:, 1] ** 2 > 1).astype(int)
    model = BernoulliNB().fit(samples, labels)
    compiled = kw.compile(model, samples, parameters=small())
    report = compiled.program.fit_report
    assert report is not None
    assert report.outputs.agreement is not None
    assert report.outputs.agreement > 0.98
    answers = compiled.answers(compiled.predict(samples[:16]))
    assert np.array_equal(answers["output_label"].ravel(), model.predict(samples[:16]))
    if binary:
        assert np.abs(answers["output_probability"] - model.predict_proba(samples[:16])).max() < 0.1


@pytest.mark.filterwarnings("ignore:Stochastic Optimizer")
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("factor", [100.0, 1e4])
def test_outliers_do_not_widen_what_a_classifier_may_change(classes: int, factor: float) -> None:
    """One row, 10,000 times as large as others, made every margin a small one, and every probability seem to
    jump: 62 % of the labels differed, with a warning alone."""
    rng = np.random.default_rng(35)
    samples = rng.normal(size=(200, 4))
    labels = np.digitize(samples @ [1.0, -0.5, 2.0, 0.3], [0.0, 2.0][: classes - 1])
    model = MLPClassifier(hidden_layer_sizes=(6,), max_iter=60, random_state=1).fit(samples, labels)
    calibration = samples.copy()
    calibration[7] *= factor
    if factor > 1000:
        with pytest.raises(ModelRefusedError) as caught:
            kw.compile(model, calibration)
        assert caught.value.codes == {"accuracy"}
        return
    compiled = kw.compile(model, calibration)
    answers = compiled.answers(compiled.simulate(samples).outputs)
    assert np.abs(answers["output_probability"] - model.predict_proba(samples)).max() < 0.1


def test_means_of_steps_that_are_no_padding() -> None:
    """The mean of values above 0, whose number a comparison counts, was off by half."""
    rng = np.random.default_rng(35)
    samples = np.abs(rng.normal(size=(200, 6))) + 0.3
    lengths = rng.integers(1, 7, 200)
    samples[np.arange(6) >= lengths[:, None]] = 0
    node = helper.make_node
    nodes = [
        node("Greater", ["x", "zero"], ["m"], "mask"),
        node("Where", ["m", "one", "zero"], ["f"]),
        node("ReduceSum", ["x", "axis"], ["s"]),
        node("ReduceSum", ["f", "axis"], ["n"]),
        node("Div", ["s", "n"], ["y"], "mean"),
    ]
    model = built(nodes, (6,), 1, zero=0.0, one=1.0, axis=np.array([1]))
    compiled = kw.compile(model, samples, parameters=small())
    require_default(compiled, samples[:8], samples[:8].sum(axis=1) / lengths[:8])


def test_a_convolution_with_the_largest_of_windows() -> None:
    """It was off by more than half of the largest output."""
    rng = np.random.default_rng(35)
    kernel, weights = rng.normal(size=(2, 1, 3, 3)) / 3, rng.normal(size=(8, 3))
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "k"], ["c"], "conv"),
        node("Relu", ["c"], ["r"], "relu"),
        node("MaxPool", ["r"], ["m"], "pool", kernel_shape=[2, 2], strides=[2, 2]),
        node("Flatten", ["m"], ["f"]),
        node("MatMul", ["f", "w"], ["y"], "out"),
    ]
    model = built(nodes, (1, 6, 6), 3, k=kernel, w=weights)
    samples = rng.normal(size=(100, 1, 6, 6))
    windows = np.lib.stride_tricks.sliding_window_view(samples[:, 0], (3, 3), axis=(1, 2))
    convolved = np.maximum(np.einsum("nijab,oab->noij", windows, kernel[:, 0]), 0)
    pooled = convolved.reshape(100, 2, 2, 2, 2, 2).max(axis=(3, 5))
    compiled = kw.compile(model, samples, parameters=small())
    require_default(compiled, samples[:4], pooled.reshape(100, 8)[:4] @ weights)


def test_levels_that_are_too_few_are_named() -> None:
    """A perceptron of six layers in few levels: no default gives it polynomials that do not follow it."""
    rng = np.random.default_rng(35)
    node, nodes, last, constants = helper.make_node, [], "x", {}
    for layer in range(6):
        constants[f"w{layer}"] = rng.normal(size=(8, 8)) * np.sqrt(2 / 8)
        nodes.append(node("MatMul", [last, f"w{layer}"], [f"h{layer}"], f"dense{layer}"))
        last = "y" if layer == 5 else f"r{layer}"
        nodes.append(node("Relu" if layer < 5 else "Identity", [f"h{layer}"], [last], f"relu{layer}"))
    model = built(nodes, (8,), 8, **constants)
    with pytest.raises(ModelRefusedError) as caught:
        kw.compile(model, rng.normal(size=(100, 8)), parameters=small(levels=16))
    (reason,) = caught.value.exceptions
    assert "16 are available" in str(reason)
    assert "levels" in str(reason)


def test_a_function_that_no_polynomial_follows_is_named() -> None:
    """Values on both sides of a jump, and as close to it as double precision has them."""
    rng = np.random.default_rng(35)
    node = helper.make_node
    nodes = [node("Greater", ["x", "zero"], ["m"], "mask"), node("Where", ["m", "one", "zero"], ["f"])]
    nodes += [node("MatMul", ["f", "w"], ["y"])]
    model = built(nodes, (4,), 2, zero=0.0, one=1.0, w=rng.normal(size=(4, 2)))
    samples = rng.choice([-1.0, 1.0], (100, 4)) * 10.0 ** rng.uniform(-6, 0, (100, 4))
    with pytest.raises(ModelRefusedError) as caught:
        kw.compile(model, samples, parameters=small())
    (reason,) = caught.value.exceptions
    assert isinstance(reason, RefusalError)
    assert reason.code == "accuracy"
    assert "Greater at 'mask'" in str(reason)
    assert "off by" in str(reason)


def test_a_value_far_from_zero_is_judged_by_what_it_varies() -> None:
    """A regression with an offset of a thousand: a sixteenth of that is no answer."""
    rng = np.random.default_rng(35)
    first, last, samples = rng.normal(size=(3, 8)), rng.normal(size=(8, 1)), rng.normal(size=(100, 3))
    node = helper.make_node
    nodes = [node("MatMul", ["x", "a"], ["h"]), node("Tanh", ["h"], ["t"], "tanh")]
    nodes += [node("MatMul", ["t", "b"], ["u"]), node("Add", ["u", "c"], ["y"])]
    compiled = kw.compile(
        built(nodes, (3,), 1, a=first, b=last, c=1000.0), samples, parameters=small(levels=12)
    )
    expected = 1000 + np.tanh(samples @ first) @ last
    outputs = compiled.predict(samples[:12])
    assert np.abs(outputs - expected[:12]).max() <= np.ptp(expected) / 32


def test_a_range_far_beyond_the_samples_has_constants_that_fit() -> None:
    """The widened range of an exponential reached values 10,000 times the samples': its coefficients did not
    fit the last level, and the first encrypted run raised an EncodeError."""
    rng = np.random.default_rng(5)
    columns = [rng.uniform(20, 80, 200), rng.normal(27, 4, 200), rng.normal(130, 15, 200)]
    samples = np.column_stack([*columns, rng.normal(200, 30, 200)])
    weights, node = np.array([[0.08], [0.12], [0.04], [0.008]]), helper.make_node
    nodes = [
        node("MatMul", ["x", "w"], ["h"]),
        node("Sub", ["h", "b"], ["g"]),
        node("Exp", ["g"], ["e"], "link"),
    ]
    nodes += [node("Mul", ["e", "k"], ["y"])]
    model = built(nodes, (4,), 1, w=weights, b=12.0, k=30000.0)
    compiled = kw.compile(model, samples, parameters=small())
    expected = 30000 * np.exp(samples @ weights - 12)
    outputs = compiled.predict(samples[:6])
    assert np.abs(outputs - expected[:6]).max() <= np.ptp(expected) / 32


@pytest.mark.parametrize("scaled", [False, True])
def test_probabilities_of_a_discriminant_are_its_own(scaled: bool) -> None:
    """The exporter's were those of twice the score."""
    rng = np.random.default_rng(35)
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    samples = rng.normal(size=(120, 4))
    labels = np.where(samples @ np.array([1.0, 0.5, 0.0, -1.0]) + rng.normal(size=120) > 0, "up", "down")
    model: Any = LinearDiscriminantAnalysis()
    model = (make_pipeline(StandardScaler(), model) if scaled else model).fit(samples, labels)
    compiled = kw.compile(model, samples, parameters=small(3))
    answers = compiled.answers(compiled.predict(samples[:8]))
    assert np.abs(answers["output_probability"] - model.predict_proba(samples[:8])).max() < 1e-5


def test_an_export_that_computes_something_else_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(35)
    from sklearn.linear_model import LinearRegression

    samples = rng.normal(size=(60, 3))
    model = LinearRegression().fit(samples, samples.sum(axis=1))
    monkeypatch.setattr(LinearRegression, "predict", lambda self, x: 1.1 * (x @ self.coef_) + self.intercept_)
    with pytest.raises(ModelRefusedError, match=r"off by .* from predict"):
        kw.compile(model, samples, parameters=small(3))


def test_samples_that_are_no_numbers_are_refused() -> None:
    """Strings in a column of a pipeline raised what numpy says."""
    from sklearn.linear_model import LinearRegression

    samples = np.array([[1.0, "a"], [2.0, "b"]], object)
    model = LinearRegression().fit(np.eye(2), [0.0, 1.0])
    with pytest.raises(ModelRefusedError, match="column 1', which holds texts; encode it before"):
        kw.compile(model, samples)


def test_blocks_of_a_published_pitch_network_bootstrap() -> None:
    """Convolution, ReLU, normalisation and the largest of windows, as in CREPE, which kept 13 % of its
    predictions within 26 levels."""
    rng = np.random.default_rng(35)
    node, nodes, last, channels = helper.make_node, [], "x", 1
    constants: dict[str, Any] = {}
    for layer in range(3):
        constants |= {
            f"w{layer}": rng.normal(size=(4, channels, 3)) * np.sqrt(2 / (3 * channels)),
            f"s{layer}": rng.uniform(0.5, 2, 4),
            f"b{layer}": rng.normal(size=4),
            f"m{layer}": rng.uniform(0, 0.5, 4),
            f"v{layer}": rng.uniform(0.3, 1, 4),
        }
        nodes += [
            node("Conv", [last, f"w{layer}"], [f"c{layer}"], f"conv{layer}", pads=[1, 1]),
            node("Relu", [f"c{layer}"], [f"r{layer}"], f"relu{layer}"),
            node("BatchNormalization", [f"r{layer}", *(f"{part}{layer}" for part in "sbmv")], [f"n{layer}"]),
            node("MaxPool", [f"n{layer}"], [f"p{layer}"], f"pool{layer}", kernel_shape=[2], strides=[2]),
        ]
        last, channels = f"p{layer}", 4
    constants["last"] = rng.normal(size=(8, 5)) / np.sqrt(8)
    nodes += [node("Flatten", [last], ["f"]), node("MatMul", ["f", "last"], ["y"], "out")]
    compiled = kw.compile(built(nodes, (1, 16), 5, **constants), rng.normal(size=(200, 1, 16)))
    report = compiled.program.fit_report
    assert report is not None
    assert report.outputs.largest_change <= report.outputs.largest_output / 16
    assert compiled.report.run.bootstraps
    assert report.outputs.agreement == 1 or "of the predictions differ" in compiled.report.warnings[0]


@pytest.mark.parametrize("outliers", [False, True])
def test_every_output_of_a_network_is_judged_by_itself(outliers: bool) -> None:
    """Of three outputs, one is far from 0 and one has another unit; beside the largest, both were lost."""
    rng = np.random.default_rng(35)
    first, last = rng.normal(size=(4, 6)) / 2, rng.normal(size=(6, 3)) / 2
    units, offsets = np.array([1.0, 1.0, 1e-3]), np.array([0.0, 1e3, 0.0])
    nodes = [helper.make_node("MatMul", ["x", "first"], ["h"])]
    nodes += [helper.make_node("Tanh", ["h"], ["t"]), helper.make_node("MatMul", ["t", "last"], ["l"])]
    nodes += [helper.make_node("Add", ["l", "b"], ["y"])]
    model = built(nodes, (4,), 3, first=first, last=last * units, b=offsets)
    samples = rng.normal(size=(200, 4))
    calibration = samples.copy()
    if outliers:
        calibration[7] = 30.0
    compiled = kw.compile(model, calibration)
    expected = np.tanh(samples @ first) @ (last * units) + offsets
    errors = np.abs(compiled.predict(samples[:16]) - expected[:16])
    assert (errors.max(axis=0) <= np.ptp(expected, axis=0) / 32).all()
    require_stated(compiled)
    rough = kw.compile(model, calibration, activations={"tanh": "chebyshev:1"})
    assert "times half of its range" in rough.report.warnings[0]


@pytest.mark.parametrize("size", [1e-3, 1.0, 70.0, 1e4, 1e9])
def test_outputs_are_divided_no_more_than_they_must_be(size: float) -> None:
    """The digits' unit was 128 with calibration data and 1 without, at equal parameters."""
    rng = np.random.default_rng(4)
    samples = rng.uniform(-1, 1, (50, 4))
    weights = rng.normal(size=(4, 2))
    weights *= size / np.abs(samples @ weights).max()
    graph = built([helper.make_node("MatMul", ["x", "w"], ["y"])], (4,), 2, w=weights)
    output = kw.compile(graph, samples, parameters=small(2)).program.output
    most = 2.0 ** (55 - 45 - 1)  # half of the last prime over the scale
    peak = np.abs(samples @ weights).max()
    if output.normalisation is not None:
        peak = np.abs(output.normalisation.apply(samples @ weights)).max()
    assert peak * HEADROOM <= output.scale * most
    assert output.scale == 1 or 2 * 1.25 * peak * HEADROOM > output.scale * most / 1.25
