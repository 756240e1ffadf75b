"""Ensembles of scikit-learn as graphs on bits, against scikit-learn itself."""

from typing import Any

import numpy as np
import pytest
from keywright import compiler
from keywright.compiler.trees.bins import private_bins, public_bins
from keywright.compiler.trees.leaves import STEP_BITS
from keywright.compiler.trees.paths import paths
from keywright.compiler.trees.quantising import quantise

from .fitted import CASES, answers, ensemble_of, fitted, own, quantised, random_ensemble, samples_of, walked

SHOWN = 200

TREES = 60
"""At most so many trees of the cases add up."""


def same(ensemble: dict[str, Any], expected: dict[str, Any]) -> None:
    """Labels are equal; values are as close as rounded leaves allow."""
    assert list(ensemble) == list(expected)
    *_, name = expected
    size = max(float(np.abs(expected[name]).max()), 1.0)
    bound = TREES * size * 2.0**-STEP_BITS
    assert np.abs(ensemble[name] - expected[name]).max() <= bound
    if "label" in expected:
        decided = np.ones(len(expected[name]), bool)
        if expected[name].shape[1] > 1:  # ties are decided by rounding, in the library as well
            second, best = np.partition(expected[name], -2, axis=1)[:, -2:].T
            decided = best - second > 2 * bound
        assert decided.mean() >= 0.98
        assert np.array_equal(ensemble["label"][decided], expected["label"][decided])


@pytest.mark.parametrize("name", CASES)
def test_public_thresholds_give_the_estimator_itself(name: str) -> None:
    model, samples = fitted(name)
    trees = quantised(model, samples, thresholds="public")
    assert trees.binning.thresholds
    same(answers(trees, samples[:SHOWN]), own(model, samples[:SHOWN]))


@pytest.mark.parametrize("name", CASES)
def test_private_thresholds_give_the_estimator_on_representatives(name: str) -> None:
    model, samples = fitted(name)
    source = ensemble_of(model)
    bins = private_bins(source, samples, 16)
    ensemble = paths(source, bins)
    shown = samples[:SHOWN]
    bits = bins.binning.apply(shown)
    scores = np.concatenate([values[ensemble.graph.output] for _, values in ensemble.graph.runs(bits)])
    step = source.last.client_part(ensemble.sums)
    same(step.run(scores), own(model, bins.quantised(shown)))


@pytest.mark.parametrize("seed", range(8))
def test_random_ensembles_are_walked_node_by_node(seed: int) -> None:
    rng = np.random.default_rng(seed)
    trees = random_ensemble(rng, trees=1 + 3 * seed, depth=seed, features=5)
    samples = samples_of(rng, 200, 5)
    expected = trees.base + np.asarray([walked(trees, sample) for sample in samples])
    assert np.allclose(trees.base + trees.sums(samples), expected)
    step = 2.0**-STEP_BITS * 4 * max(np.abs(trees.nodes.values).max(), 1) * len(trees.roots)
    model = quantise(trees, compiler.Fit(calibration=samples, thresholds="public"))
    outputs = np.concatenate([values[model.graph.output] for _, values in model.graph.runs(model.bits)])
    assert np.abs(outputs - expected).max() <= step * len(trees.roots)
    bins = private_bins(trees, samples, 8)
    rounded = paths(trees, bins)
    at = bins.quantised(samples)
    expected = trees.base + np.asarray([walked(trees, sample) for sample in at])
    bits = bins.binning.apply(samples)
    outputs = np.concatenate([values[rounded.graph.output] for _, values in rounded.graph.runs(bits)])
    assert np.abs(outputs - expected).max() <= step * len(trees.roots)


def test_every_value_is_within_its_bound() -> None:
    rng = np.random.default_rng(9)
    trees = random_ensemble(rng, trees=9, depth=6, features=5)
    model = paths(trees, public_bins(trees))
    for number, bound in model.largest.items():
        for _, values in model.graph.runs(public_bins(trees).binning.apply(samples_of(rng, 300, 5))):
            assert np.abs(values[number]).max() <= bound * (1 + 1e-9)


def test_levels_depend_on_features_of_a_path_not_on_its_comparisons() -> None:
    rng = np.random.default_rng(3)
    trees = random_ensemble(rng, trees=4, depth=12, features=3)
    model = paths(trees, public_bins(trees))
    assert model.features <= 3
    assert model.graph.depth() <= 4  # paths, a cubic, leaves


def test_the_report_says_what_rounding_changes() -> None:
    model, samples = fitted("forest of three labels")
    trees = quantised(model, samples, bins=4)
    assert trees.report is not None
    held = trees.held_out
    expected = model.predict(samples)[held] == answers(trees, samples)["label"][held]
    assert trees.report.outputs.agreement == expected.mean() < 1
    assert trees.report.bins == 4
    assert trees.report.warnings
    finer = quantised(model, samples, bins=256).report
    assert finer is not None
    assert finer.outputs.agreement is not None
    assert finer.outputs.agreement > expected.mean()
