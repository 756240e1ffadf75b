"""Edges and bits of the client's first step."""

import dataclasses
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keywright import compiler
from keywright.compiler.front_ends.model_source import to_source
from keywright.compiler.trees.bins import private_bins, public_bins
from keywright.compiler.trees.ensemble import Ensemble, Features, Nodes, exactly
from keywright.compiler.trees.last_step import LastStep
from keywright.compiler.trees.quantising import quantise
from keywright.errors import FormatError
from keywright.errors.engine import EncodeError
from keywright.program.operands.binning import Binning
from sklearn import ensemble, tree
from sklearn.base import clone

from .fitted import ensemble_of, fitted, random_ensemble, samples_of

RNG = np.random.default_rng(5)
NONE = np.zeros(0, np.int64)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("count", [2, 5, 16])
def test_edges_depend_on_samples_and_used_features_alone(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    trees = random_ensemble(rng, 5, 4, 5)
    samples = samples_of(rng, 300, 5)
    bins = private_bins(trees, samples, count)
    nodes = dataclasses.replace(trees.nodes, threshold=trees.nodes.threshold + 0.3, members={})
    moved = dataclasses.replace(trees, nodes=nodes)
    other = private_bins(moved, samples, count)
    assert np.array_equal(bins.binning.edges, other.binning.edges)
    assert np.array_equal(bins.binning.columns, other.binning.columns)
    assert np.bincount(bins.binning.columns).max() <= count - 1


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("single", [False, True])
def test_a_representative_is_in_its_bin_and_bits_are_a_thermometer(seed: int, single: bool) -> None:
    rng = np.random.default_rng(seed)
    trees = random_ensemble(rng, 5, 4, 5)
    trees = dataclasses.replace(trees, reads=dataclasses.replace(trees.reads, single=single))
    samples = rng.normal(size=(300, 5)) if seed % 2 else samples_of(rng, 300, 5)
    for bins in (private_bins(trees, samples, 7), public_bins(trees)):
        binning = bins.binning
        bits = binning.apply(samples)
        assert set(np.unique(bits)) <= {0.0, 1.0}
        for feature in binning.used:
            mine = bits[:, np.flatnonzero(binning.columns == feature)]
            assert (np.diff(mine, axis=1) <= 0).all()
            assert not mine[np.isnan(samples[:, feature])].any()
        if not (single and binning.thresholds):  # there representatives are the thresholds themselves
            assert np.array_equal(binning.apply(bins.quantised(samples)), bits)


def test_few_distinct_values_have_a_bin_each() -> None:
    trees = random_ensemble(RNG, 5, 4, 3)
    samples = RNG.integers(0, 5, size=(200, 3)).astype(float)
    bins = private_bins(trees, samples, 16)
    assert np.array_equal(bins.quantised(samples)[:, bins.binning.used], samples[:, bins.binning.used])


def test_single_precision_is_compared_in_single_precision() -> None:
    edge = float(np.float32(0.1))
    binning = Binning(1, np.zeros(1, np.int64), np.asarray([edge]), NONE, single=True)
    assert binning.apply(np.asarray([[0.1], [np.nextafter(edge, 1)]])).ravel().tolist() == [0.0, 0.0]
    double = dataclasses.replace(binning, single=False)
    assert double.apply(np.asarray([[edge], [np.nextafter(edge, 1)]])).ravel().tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("columns", "edges", "missing"),
    [
        ([0, 0], [1.0, 1.0], []),
        ([1, 0], [1.0, 2.0], []),
        ([0], [np.inf], []),
        ([0], [np.nan], []),
        ([3], [1.0], []),
        ([-1], [1.0], []),
        ([0, 1], [1.0], []),
        ([0], [1.0], [1, 1]),
        ([0], [1.0], [3]),
        ([], [], []),
    ],
)
def test_contradictions_are_refused(columns: list[int], edges: list[float], missing: list[int]) -> None:
    with pytest.raises(ValueError, match=r"edge|bit|missing"):
        Binning(3, np.asarray(columns, np.int64), np.asarray(edges, float), np.asarray(missing, np.int64))


def test_the_first_step_is_in_the_program_file(tmp_path: Path) -> None:
    model, samples = fitted("tree of three labels")
    fit = compiler.Fit(calibration=samples)
    program = compiler.compile_program(to_source(model), compiler.Target(slots=4096, levels=8), fit)
    compiler.save(program, tmp_path / "tree.kwp")
    stored = compiler.load(tmp_path / "tree.kwp")
    assert stored.input.steps.binning is not None
    assert program.input.steps.binning is not None
    for name in ("columns", "edges", "missing"):
        assert np.array_equal(
            getattr(stored.input.steps.binning, name), getattr(program.input.steps.binning, name)
        )
    assert (stored.input.steps.binning.single, stored.input.steps.binning.thresholds) == (True, False)
    assert np.array_equal(stored.pack(samples[0]), program.pack(samples[0]))
    assert stored.fit_report == program.fit_report
    assert stored.input.shape == (6,)


def test_a_damaged_first_step_is_refused(tmp_path: Path) -> None:
    model, samples = fitted("tree of three labels")
    fit = compiler.Fit(calibration=samples)
    program = compiler.compile_program(to_source(model), compiler.Target(slots=4096, levels=8), fit)
    assert program.input.steps.binning is not None
    wrong = dataclasses.replace(program.input.steps.binning)
    object.__setattr__(wrong, "edges", wrong.edges[::-1].copy())
    steps = dataclasses.replace(program.input.steps, binning=wrong)
    damaged = dataclasses.replace(program, input=dataclasses.replace(program.input, steps=steps))
    compiler.save(damaged, tmp_path / "tree.kwp")
    with pytest.raises(
        FormatError,
        match="edges are not in ascending order",
        check=lambda error: error.code == "program",
    ):
        compiler.load(tmp_path / "tree.kwp")


def test_features_that_are_not_compared_may_be_missing_too() -> None:
    one = np.ones(1, np.int64)
    absent = np.full((1, 3), np.nan)
    taken = Binning(3, one, np.zeros(1), one)
    assert taken.absent(absent).tolist() == [[True, True, True]]
    assert taken.absent(np.full((1, 3), np.inf)).tolist() == [[False] * 3]
    assert Binning(3, one, np.zeros(1), NONE).absent(absent).tolist() == [[False] * 3]
    assert Binning(3, one, np.zeros(1), 2 * one).absent(absent).tolist() == [[True, False, True]]


def test_missing_values_are_for_models_that_take_them() -> None:
    for name, taken in (("tree of depth 8 with missing values", True), ("boosting", False)):
        model, samples = fitted(name)
        fit = compiler.Fit(calibration=samples)
        target = compiler.Target(slots=8192, levels=8)
        program = compiler.compile_program(to_source(model), target, fit)
        sample = samples[0].copy()
        sample[0] = np.nan
        if taken:
            program.pack(sample)
        else:
            with pytest.raises(
                EncodeError, match="1 values that are not finite", check=lambda error: error.code == "samples"
            ):
                program.pack(sample)
        sample[0] = np.inf
        with pytest.raises(EncodeError, match="not finite", check=lambda error: error.code == "samples"):
            program.pack(sample)


@pytest.mark.parametrize(
    "model",
    [
        tree.DecisionTreeRegressor(max_depth=4, random_state=0),
        tree.DecisionTreeClassifier(max_depth=4, random_state=0),
        ensemble.RandomForestClassifier(2, max_depth=4, bootstrap=False, random_state=0),
        ensemble.GradientBoostingClassifier(n_estimators=9, max_depth=2, learning_rate=0.9, random_state=0),
        ensemble.HistGradientBoostingClassifier(max_iter=5, learning_rate=0.9, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("labels", [2, 3])
def test_a_single_sample_that_is_far_off_is_warned_of(model: Any, labels: int) -> None:
    """A mean change, and equal labels of nearly all samples, hide a leaf on the other side of a rounded
    threshold. Of values and of probabilities alike; leaves alone, with public thresholds, change little."""
    rng = np.random.default_rng(3)
    samples = rng.normal(size=(400, 2))
    values = np.where(samples[:, 0] > 0.123, 10.0, 0.0) + samples[:, 1] / 10
    if hasattr(model, "predict_proba"):
        values = np.where(samples[:, 0] > 0.123, labels - 1, (samples[:, 1] > 0) * (labels - 2))
    trees = ensemble_of(clone(model).fit(samples, values))
    private = quantise(trees, compiler.Fit(calibration=samples, bins=16)).report
    assert private is not None
    outputs = private.outputs
    assert outputs.mean_change < outputs.largest_output / 100 or private.warnings
    assert "rounding changes" in private.warnings[0]
    assert re.search(
        r" of a calibration sample by up to \d.*, \d.* times (the spread|its range)", private.warnings[0]
    )
    exact = quantise(trees, compiler.Fit(calibration=samples, thresholds="public")).report
    assert exact is not None
    assert exact.outputs.largest_change < exact.outputs.largest_output / 1000
    assert not exact.warnings


@pytest.mark.parametrize("present", [[1.0, 3.0, 4.5], [3.0], [2.0, 3.0, 5.0]])
def test_values_beside_those_that_a_node_tests_for_are_not_rounded_to_them(present: list[float]) -> None:
    children = np.asarray([[1, 2], [-1, -1], [-1, -1]])
    nodes = Nodes(
        np.asarray([0, -1, -1]), np.zeros(3), children[:, 0], children[:, 1], np.zeros(3, bool),
        np.asarray([[0.0], [1.0], [2.0]]), {0: exactly(np.asarray([3.0]))},
    )  # fmt: skip
    trees = Ensemble(
        Features(1, single=True), np.zeros(1, int), nodes, np.zeros(1), LastStep(values="variable")
    )
    bins = private_bins(trees, np.repeat(present, 9)[:, None], 16)
    values = np.linspace(present[0], present[-1], 29)[:, None]
    assert np.array_equal(trees.scores(bins.quantised(values)), trees.scores(values))
