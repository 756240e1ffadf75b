"""The choice of polynomials, the fit report, and the guard of ranges."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from keywright import compiler, runtime
from keywright.compiler import approximating
from keywright.compiler.activations import polynomial_choice
from keywright.compiler.graph.graph import Graph
from keywright.compiler.graph.piecewise import PiecewiseLinear, composed, summed
from keywright.errors import ModelRefusedError, OutOfRangeError, RefusalError
from keywright.program.fit_report import FitReport
from keywright.runtime import run_clear
from onnx import helper

Build = Callable[..., onnx.ModelProto]
node = helper.make_node
TARGET = compiler.Target(slots=64, levels=40)


@pytest.fixture(scope="module")
def mlp(build: Build) -> onnx.ModelProto:
    """Ten features, two hidden layers with ReLU, three classes."""
    rng = np.random.default_rng(5)
    sizes = [(10, 12), (12, 8), (8, 3)]
    weights = {f"w{k}": rng.normal(size=size).astype(np.float32) for k, size in enumerate(sizes)}
    return build(
        [
            node("MatMul", ["x", "w0"], ["a"], "first"),
            node("Relu", ["a"], ["b"], "inner"),
            node("MatMul", ["b", "w1"], ["c"], "second"),
            node("Relu", ["c"], ["d"], "outer"),
            node("MatMul", ["d", "w2"], ["y"], "scores"),
        ],
        (10,),
        weights,
    )


SAMPLES = np.random.default_rng(7).normal(size=(300, 10)).astype(np.float32)


def report_of(program: compiler.Program) -> FitReport:
    assert program.fit_report is not None
    return program.fit_report


def test_choices_that_are_too_coarse_cost_a_few_samples(
    mlp: onnx.ModelProto, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a search takes hardly grows with the calibration data: the first samples refuse most choices."""
    rows: list[int] = []
    run, replaced = Graph.runs, polynomial_choice._Search.replaced

    def counted(graph: Graph, samples: np.ndarray) -> Iterator[tuple[slice, dict[int, np.ndarray]]]:
        rows.append(len(samples))
        return run(graph, samples)

    tries: list[int] = []

    def tried(search: Any, methods: Any) -> Any:
        tries.append(len(rows))
        return replaced(search, methods)

    monkeypatch.setattr(Graph, "runs", counted)
    monkeypatch.setattr(polynomial_choice._Search, "replaced", tried)
    model = compiler.approximate(mlp, compiler.Fit(calibration=SAMPLES))
    spent = [sum(rows[first:last]) for first, last in itertools.pairwise([*tries, len(rows)])]
    assert len(spent) > 4
    assert spent[-1] == len(SAMPLES)
    assert np.median(spent) <= len(SAMPLES) / 8
    assert model.largest[model.graph.output] == np.abs(model.approximate_outputs).max()
    assert sum(rows[tries[0] :]) == sum(spent), "what the choice measured is measured again"


def test_by_default_no_prediction_is_lost(mlp: onnx.ModelProto) -> None:
    chosen = compiler.compile_program(mlp, TARGET, compiler.Fit(calibration=SAMPLES))
    checked = compiler.check(chosen, SAMPLES, mlp)
    second, best = np.sort(checked.expected, axis=1)[:, -2:].T
    decided = best - second > np.abs(checked.expected).max() / 256
    assert decided.mean() > 0.95
    equal = checked.outputs.argmax(1) == checked.expected.argmax(1)
    assert equal[decided].all()
    # The choice matters: degree 7 changes some predictions.
    coarse = compiler.compile_program(
        mlp, TARGET, compiler.Fit(calibration=SAMPLES, activations={"relu": "chebyshev:7"})
    )
    assert compiler.check(coarse, SAMPLES, mlp).agreement < 1.0
    assert report_of(coarse).outputs.agreement is not None
    assert report_of(chosen).outputs.largest_change < report_of(coarse).outputs.largest_change


def test_the_report_is_of_held_out_samples(mlp: onnx.ModelProto) -> None:
    program = compiler.compile_program(
        mlp, TARGET, compiler.Fit(calibration=SAMPLES, activations={"relu": "chebyshev:15"})
    )
    report = report_of(program)
    held = SAMPLES[4::5]
    assert (report.samples, report.held_out, report.compared) == (300, 60, 60)
    checked = compiler.check(program, held, mlp)
    assert report.outputs.agreement == checked.agreement
    assert report.outputs.largest_change == pytest.approx(checked.max_abs_error, rel=1e-3)
    assert report.outputs.mean_change == pytest.approx(
        np.abs(checked.outputs - checked.expected).mean(), rel=1e-3
    )
    assert report.outputs.largest_output == pytest.approx(np.abs(checked.expected).max(), rel=1e-5)
    assert [fitted.label for fitted in report.activations] == ["Relu at 'inner'", "Relu at 'outer'"]
    assert program.input.range is not None
    low, high = program.input.range
    assert low < SAMPLES.min() < SAMPLES.max() < high


@pytest.mark.parametrize("method", ["minimax:7", "minimax:10", "chebyshev:31"])
def test_errors_are_within_what_is_stated(mlp: onnx.ModelProto, method: str) -> None:
    program = compiler.compile_program(
        mlp, TARGET, compiler.Fit(calibration=SAMPLES, activations={"relu": method})
    )
    inner, outer = report_of(program).activations
    weights = {w.name: np.abs(onnx.numpy_helper.to_array(w)) for w in mlp.graph.initializer}
    entering = inner.max_error * weights["w1"].sum(0).max()
    # ReLU is 1-Lipschitz: it does not amplify the error of the first layer.
    bound = (entering + 2 * outer.max_error) * weights["w2"].sum(0).max()
    assert compiler.check(program, SAMPLES, mlp).max_abs_error <= bound
    levels = {"minimax:7": 7, "minimax:10": 11, "chebyshev:31": 5}[method]
    assert program.depth == 3 + 2 * levels


def test_an_accuracy_is_reached_or_refused(mlp: onnx.ModelProto) -> None:
    loose = compiler.compile_program(mlp, TARGET, compiler.Fit(calibration=SAMPLES, accuracy=0.9))
    within = compiler.approximate(mlp, compiler.Fit(calibration=SAMPLES, error=0.05))
    tight = compiler.compile_program(within, TARGET)
    assert compiler.check(loose, SAMPLES, mlp).agreement >= 0.9
    assert compiler.check(tight, SAMPLES[:100], mlp).max_abs_error <= 0.05
    assert loose.depth < tight.depth
    with pytest.raises(
        ModelRefusedError, match="outputs within 1e-09, of which encryption has a sixteenth; the finest"
    ) as caught:
        compiler.compile_program(mlp, TARGET, compiler.Fit(calibration=SAMPLES, error=1e-9))
    (reason,) = caught.value.exceptions
    assert isinstance(reason, RefusalError)
    assert reason.code == "accuracy"
    assert reason.details["change"] > 1e-9
    with pytest.raises(ModelRefusedError) as caught:
        compiler.compile_program(within, compiler.Target(slots=64, levels=8))
    (reason,) = caught.value.exceptions
    assert isinstance(reason, RefusalError)
    assert reason.code == "depth"
    assert reason.needed == tight.depth


def test_a_default_never_breaks_its_own_rule(mlp: onnx.ModelProto) -> None:
    """Too few levels are no reason for coarser polynomials: the target is refused, with the levels needed."""
    holds = compiler.compile_program(mlp, TARGET, compiler.Fit(calibration=SAMPLES))
    with pytest.raises(ModelRefusedError, match="polynomials that follow the model") as caught:
        compiler.compile_program(
            mlp, compiler.Target(slots=64, levels=holds.depth - 1), compiler.Fit(calibration=SAMPLES)
        )
    (reason,) = caught.value.exceptions
    assert isinstance(reason, RefusalError)
    assert reason.code == "depth"
    assert (reason.needed, reason.available) == (holds.depth, holds.depth - 1)


@pytest.mark.parametrize("unit", [1.0, 1000.0])
def test_by_default_every_label_of_several_is_kept(build: Build, unit: float) -> None:
    """Each is decided by its own outputs, whatever those of the others are."""
    rng = np.random.default_rng(11)
    weights = {"w": rng.normal(size=(6, 10)) / 2, "v": rng.normal(size=(10, 2)) / 3, "k": [1e-3, -1e-3]}
    nodes = [
        node("MatMul", ["x", "w"], ["a"], "first"),
        node("Relu", ["a"], ["b"], "inner"),
        node("MatMul", ["b", "v"], ["c"]),
        node("Add", ["c", "k"], ["d"]),
        node("Mul", ["d", "unit"], ["e"]),
        node("ArgMax", ["c"], ["l"], axis=1, keepdims=0),
        node("ArgMax", ["e"], ["m"], axis=1, keepdims=0),
    ]
    constants = {name: np.asarray(array, np.float32) for name, array in (weights | {"unit": unit}).items()}
    model = build([*nodes, node("Identity", ["c"], ["y"])], (6,), constants)
    del model.graph.output[:], model.graph.node[-1]
    labels = [helper.make_tensor_value_info(name, onnx.TensorProto.INT64, ["batch"]) for name in "lm"]
    model.graph.output.extend(labels)
    samples = np.random.default_rng(12).normal(size=(400, 6)).astype(np.float32)
    chosen = approximating.approximate(model, compiler.Fit(calibration=samples))
    for first in (0, 2):
        own, exact = (each[:, first : first + 2] for each in (chosen.approximate_outputs, chosen.outputs))
        others = own.argmax(axis=1) != exact.argmax(axis=1)
        apart = np.abs(np.diff(exact, axis=1))[others]
        assert apart.max(initial=0.0) <= polynomial_choice.UNDECIDED * np.abs(exact).max()


@pytest.mark.parametrize("operator", ["Tanh", "Sigmoid", "Exp", "Softsign"])
def test_a_function_of_a_constant_has_a_range(build: Build, operator: str) -> None:
    """Dead units, whose values are 0 on all samples."""
    nodes = [node("MatMul", ["x", "w"], ["h"]), node(operator, ["h"], ["f"]), node("Add", ["f", "x"], ["y"])]
    model = build(nodes, (10,), {"w": np.zeros((10, 10), np.float32)})
    program = compiler.compile_program(model, TARGET, compiler.Fit(calibration=SAMPLES))
    expected = SAMPLES[:2] + {"Sigmoid": 0.5, "Exp": 1.0}.get(operator, 0.0)
    assert run_clear(program, SAMPLES[:2]) == pytest.approx(expected, abs=1e-3)


def test_a_default_that_nothing_reaches_is_refused(build: Build) -> None:
    """A jump in the middle of the data: no polynomial follows it."""
    model = build([node("ThresholdedRelu", ["x"], ["y"], "jump", alpha=0.5)], (10,))
    with pytest.raises(ModelRefusedError, match="ThresholdedRelu at 'jump', chebyshev:") as caught:
        compiler.compile_program(model, TARGET, compiler.Fit(calibration=SAMPLES))
    (reason,) = caught.value.exceptions
    assert isinstance(reason, RefusalError)
    assert reason.code == "accuracy"
    assert reason.details["change"] > np.maximum(SAMPLES, 0).max() / 16
    assert "the default on calibration data" in str(reason)


def test_requested_polynomials_that_miss_the_default_are_warned_of(mlp: onnx.ModelProto) -> None:
    fit = compiler.Fit(calibration=SAMPLES, activations={"relu": "chebyshev:2"})
    report = report_of(compiler.compile_program(mlp, TARGET, fit))
    assert report.outputs.largest_change > report.outputs.largest_output / 16
    assert f"changes by {report.outputs.largest_change:.3g}" in report.warnings[0]
    assert "chebyshev:2 on" in report.warnings[0]
    loose = report_of(compiler.compile_program(mlp, TARGET, compiler.Fit(calibration=SAMPLES, accuracy=0.8)))
    assert loose.outputs.largest_change <= loose.outputs.largest_output


def test_polynomials_that_overflow_are_named(mlp: onnx.ModelProto) -> None:
    """Held-out samples are far outside the ranges, which a given margin does not widen for them."""
    samples = SAMPLES.copy()
    samples[4::5] *= 100
    fit = compiler.Fit(
        calibration=samples, activations={"relu": "chebyshev:63"}, ranges=compiler.Ranges(margin=0.0)
    )
    with pytest.raises(ModelRefusedError, match="first because of Relu at 'inner'") as caught:
        compiler.compile_program(mlp, TARGET, fit)
    (reason,) = caught.value.exceptions
    assert isinstance(reason, RefusalError)
    assert reason.code == "overflow"
    assert (reason.details["layer"], reason.details["method"]) == ("Relu at 'inner'", "chebyshev:63")
    entering = SAMPLES[np.arange(300) % 5 != 4] @ onnx.numpy_helper.to_array(mlp.graph.initializer[0])
    assert (reason.details["low"], reason.details["high"]) == pytest.approx(
        (entering.min(), entering.max()), rel=2e-3
    )
    assert reason.details["change"] > 1e20


def test_ranges_of_positive_values_stay_near_the_data(build: Build) -> None:
    """Values over ten decades: a range widened by deviations of logarithms would be thirty decades wide."""
    samples = 10.0 ** np.random.default_rng(4).uniform(-6, 4, (300, 10))
    model = build([node("Sqrt", ["x"], ["y"], "root")], (10,))
    fit = compiler.Fit(calibration=samples, activations={"sqrt": "chebyshev:63"})
    (fitted,) = report_of(compiler.compile_program(model, TARGET, fit)).activations
    assert 0 < samples.min() / 8 < fitted.low < samples.min()
    assert samples.max() < fitted.high < 4 * samples.max()


def test_one_choice_serves_many_targets(mlp: onnx.ModelProto) -> None:
    approximated = compiler.approximate(mlp, compiler.Fit(calibration=SAMPLES))
    programs = [
        compiler.compile_program(approximated, compiler.Target(slots=slots, levels=40)) for slots in (16, 256)
    ]
    assert programs[0].fit_report == programs[1].fit_report
    for program in programs:
        assert compiler.check(program, SAMPLES[:5], mlp).agreement == 1.0
    with pytest.raises(TypeError, match="has its fit"):
        compiler.compile_program(approximated, TARGET, compiler.Fit(calibration=SAMPLES))


def test_single_nodes_have_their_method(mlp: onnx.ModelProto) -> None:
    methods = {"relu": "chebyshev:15", "outer": "minimax:8"}
    program = compiler.compile_program(mlp, TARGET, compiler.Fit(calibration=SAMPLES, activations=methods))
    chosen = [(fitted.method, fitted.degrees) for fitted in report_of(program).activations]
    assert chosen == [("chebyshev:15", (15,)), ("minimax:8", (7, 15))]
    for name in ("hidden", "tanh"):
        fit = compiler.Fit(calibration=SAMPLES, activations={name: "chebyshev:8"})
        with pytest.raises(ModelRefusedError, match=f"no activation is called '{name}'; use one of relu, "):
            compiler.compile_program(mlp, TARGET, fit)


def test_compositions_are_for_straight_pieces(build: Build) -> None:
    model = build([node("Tanh", ["x"], ["y"], "squash")], (10,))
    with pytest.raises(ModelRefusedError, match=r"Tanh at 'squash'.*chebyshev:DEGREE") as caught:
        compiler.compile_program(
            model, TARGET, compiler.Fit(calibration=SAMPLES, activations={"tanh": "minimax:8"})
        )
    assert isinstance(caught.value.exceptions[0], RefusalError)
    assert caught.value.exceptions[0].code == "method"


@pytest.mark.parametrize(
    ("nodes", "kinks"),
    [
        ([node("Abs", ["x"], ["y"])], 1),
        ([node("LeakyRelu", ["x"], ["y"], alpha=0.1)], 1),
        ([node("Clip", ["x", "low", "high"], ["y"])], 2),
        ([node("Relu", ["x"], ["r"]), node("Mul", ["r", "low"], ["s"]), node("Add", ["s", "x"], ["y"])], 1),
    ],
)
@pytest.mark.parametrize("method", ["minimax:9", "chebyshev:63"])
def test_straight_pieces(build: Build, nodes: list[onnx.NodeProto], kinks: int, method: str) -> None:
    constants = {"low": np.float32(-1), "high": np.float32(0.5)}
    model = build(nodes, (10,), constants)
    operator = nodes[0].op_type.lower()
    program = compiler.compile_program(
        model, TARGET, compiler.Fit(calibration=SAMPLES, activations={operator: method})
    )
    (fitted,) = report_of(program).activations
    error = compiler.check(program, SAMPLES, model).max_abs_error
    assert 0.02 * fitted.max_error < error <= fitted.max_error + 1e-6
    assert fitted.max_error < 0.1 * np.abs(SAMPLES).max()
    polynomials = [step.opcode for step in program.instructions].count("polynomial")
    assert polynomials == (2 * kinks if method == "minimax:9" else 1)


def test_straight_pieces_compose() -> None:
    relu, x = PiecewiseLinear.through((0.0,), (0.0, 1.0), 0.0), np.linspace(-3, 3, 61)
    inner = composed(relu, PiecewiseLinear(-2.0, 1.0))
    assert isinstance(inner, PiecewiseLinear)
    assert np.allclose(inner(x), np.maximum(1 - 2 * x, 0))
    both = summed(inner, composed(PiecewiseLinear(3.0, -1.0), relu))
    assert isinstance(both, PiecewiseLinear)
    assert np.allclose(both(x), np.maximum(1 - 2 * x, 0) + 3 * np.maximum(x, 0) - 1)
    twice = composed(relu, relu)
    assert isinstance(twice, PiecewiseLinear)
    assert len(twice.kinks) == 1
    assert np.allclose(twice(x), np.maximum(x, 0))


def test_any_straight_pieces_compose() -> None:
    rng, x = np.random.default_rng(6), np.linspace(-9, 9, 1801)
    for _ in range(200):
        pieces = []
        for _ in range(2):
            places = np.sort(rng.choice(np.arange(-6, 7), rng.integers(0, 4), replace=False)).astype(float)
            slopes = rng.integers(-2, 3, len(places) + 1).astype(float)
            whole = PiecewiseLinear(float(slopes[0]), float(rng.integers(-3, 4)))
            cornered = PiecewiseLinear.through(tuple(places), tuple(slopes), 1.0) if len(places) else whole
            pieces.append(cornered)
        outer, inner = pieces
        both = composed(outer, inner)
        assert np.allclose(both(x), outer(inner(x)), rtol=0, atol=1e-9)
        assert isinstance(both, PiecewiseLinear) or not inner.kinks


def test_ranges_cover_held_out_samples(build: Build) -> None:
    """A sample far out is held out: the range is widened for it and the report says so."""
    model = build([node("Relu", ["x"], ["y"])], (10,))
    samples = np.clip(SAMPLES, -2, 2)
    samples[4] *= 10
    fit = compiler.Fit(calibration=samples, activations={"relu": "chebyshev:7"})
    report = report_of(compiler.compile_program(model, TARGET, fit))
    (fitted,) = report.activations
    assert report.escaped == 1
    assert any("1 of 60 held-out samples left" in warning for warning in report.warnings)
    assert fitted.low < samples.min() < samples.max() < fitted.high
    fixed = report_of(
        compiler.compile_program(model, TARGET, replace(fit, ranges=compiler.Ranges(margin=0.1)))
    )
    assert fixed.activations[0].high == pytest.approx(2.4, rel=1e-6)


def test_too_few_samples_are_said(mlp: onnx.ModelProto) -> None:
    methods = {"relu": "minimax:13"}
    few = report_of(
        compiler.compile_program(mlp, TARGET, compiler.Fit(calibration=SAMPLES[:20], activations=methods))
    )
    assert (few.held_out, few.compared) == (0, 20)
    assert "too few to hold some out" in few.warnings[0]
    one = report_of(
        compiler.compile_program(mlp, TARGET, compiler.Fit(calibration=SAMPLES[:1], activations=methods))
    )
    assert one.unseen_risk == 1.0
    assert any("only 1 calibration sample for 2 activations" in warning for warning in one.warnings)
    assert (
        report_of(
            compiler.compile_program(mlp, TARGET, compiler.Fit(calibration=SAMPLES, activations=methods))
        ).warnings
        == ()
    )


def test_a_model_without_activations_is_its_program(build: Build) -> None:
    model = build([node("Mul", ["x", "x"], ["y"])], (10,))
    report = report_of(compiler.compile_program(model, TARGET, compiler.Fit(calibration=SAMPLES)))
    assert (report.activations, report.outputs.largest_change, report.outputs.agreement) == ((), 0.0, 1.0)
    assert compiler.compile_program(model, TARGET).fit_report is None


@pytest.mark.parametrize("method", ["chebyshev:2", "chebyshev:15", "minimax:8"])
def test_samples_that_leave_a_range_are_refused(mlp: onnx.ModelProto, method: str) -> None:
    program = compiler.compile_program(
        mlp, TARGET, compiler.Fit(calibration=SAMPLES, activations={"relu": method})
    )
    runtime.guard(program, SAMPLES)
    runtime.guard(program, SAMPLES[0])
    with pytest.raises(OutOfRangeError, match="Relu at 'inner'") as caught:
        runtime.guard(program, np.concatenate((SAMPLES[:3], 100 * SAMPLES[3:4])))
    weight = onnx.numpy_helper.to_array(mlp.graph.initializer[0])
    entering = 100 * SAMPLES[3] @ weight
    assert np.abs(entering - caught.value.value).min() < 1e-3 * abs(caught.value.value)
    inner = report_of(program).activations[0]
    assert caught.value.low <= inner.low
    assert caught.value.high >= inner.high
    # Without the guard the result looks like any other.
    assert run_clear(program, SAMPLES[3]).shape == (3,)


def test_an_output_that_its_ciphertext_cannot_hold(build: Build) -> None:
    model = build([node("Mul", ["x", "x"], ["y"])], (10,))
    program = compiler.compile_program(model, TARGET, compiler.Fit(calibration=SAMPLES))
    runtime.guard(program, SAMPLES, largest_output=64.0)
    with pytest.raises(OutOfRangeError, match="the output") as caught:
        runtime.guard(program, 40 * SAMPLES[:1], largest_output=64.0)
    assert caught.value.value == pytest.approx((40 * SAMPLES[0]).max() ** 2, rel=0.5)


def test_a_report_is_stored(mlp: onnx.ModelProto, tmp_path: Path) -> None:
    program = compiler.compile_program(
        mlp, TARGET, compiler.Fit(calibration=SAMPLES, activations={"relu": "minimax:7"})
    )
    compiler.save(program, tmp_path / "mlp.kwp")
    loaded = compiler.load(tmp_path / "mlp.kwp")
    assert loaded.fit_report == program.fit_report
    assert loaded.ranges == program.ranges
    with pytest.raises(OutOfRangeError):
        runtime.guard(loaded, 100 * SAMPLES[:1])


def test_calibration_data_run_once_for_all_targets(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[int] = []
    run = Graph.runs

    def counted(graph: Graph, samples: Any) -> Iterator[tuple[slice, dict[int, Any]]]:
        runs.append(len(samples))
        return run(graph, samples)

    monkeypatch.setattr(Graph, "runs", counted)
    weights = {"w": np.ones((4, 4), np.float32)}
    nodes = [node("MatMul", ["x", "w"], ["a"]), node("Mul", ["a", "a"], ["y"])]
    samples = np.random.default_rng(3).normal(size=(7, 4))
    model = compiler.approximate(build(nodes, (4,), weights), compiler.Fit(calibration=samples))
    programs = [compiler.compile_program(model, compiler.Target(slots=slots, levels=3)) for slots in (8, 16)]
    assert runs == [7]
    assert {program.output.scale for program in programs} == {programs[0].output.scale}


@pytest.mark.parametrize("factor", [1e-9, 1e-3, 1.0, 1e6])
@pytest.mark.parametrize("operator", ["Sigmoid", "Tanh", "Relu", "Softplus"])
def test_a_factor_behind_a_function_changes_no_share(build: Build, operator: str, factor: float) -> None:
    """It becomes a part of the function, whose errors are then judged by its values."""
    rng = np.random.default_rng(4)
    nodes = [
        node("MatMul", ["x", "w"], ["h"]),
        node(operator, ["h"], ["f"]),
        node("Mul", ["f", "factor"], ["y"]),
    ]
    weights = 2 * rng.normal(size=(4, 3)).astype(np.float32)
    model = build(nodes, (4,), {"w": weights, "factor": np.float32(factor)})
    fitted = approximating.approximate(model, compiler.Fit(calibration=rng.normal(size=(80, 4))))
    exact, run = fitted.run.outputs, fitted.run
    changes = np.abs(polynomial_choice.outputs_of(fitted.graph, run.samples) - exact).max(axis=0)
    assert (changes <= np.ptp(exact, axis=0) / 2 / 16).all()


def test_a_smooth_function_is_fitted_until_its_methods_end(build: Build) -> None:
    model = build([node("Sigmoid", ["x"], ["y"], "f")], (10,))
    program = compiler.compile_program(model, TARGET, compiler.Fit(calibration=SAMPLES, error=1e-7))
    (fitted,) = report_of(program).activations
    assert fitted.max_error < 1e-7
