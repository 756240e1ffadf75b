"""The range of all features together: it refuses what is unlike the calibration data, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable

import keywright as kw
import numpy as np
import pytest
from keywright import compiler
from keywright.errors import FormatError, OutOfRangeError
from keywright.model.served.manifest import Manifest
from keywright.program.client.joint_range import MOST_FEATURES, JointRange
from numpy.typing import NDArray

load_digits = pytest.importorskip("sklearn.datasets").load_digits

Samples = NDArray[np.float64]
Rng = np.random.Generator
MIXED = np.random.default_rng(9).normal(size=(2, 8))
UNITS = 10.0 ** np.arange(-9, 12, 2.5)[:8]


def categories(rng: Rng, count: int) -> Samples:
    return np.eye(6)[rng.choice(6, count, p=[0.5, 0.3, 0.15, 0.03, 0.015, 0.005])]


KINDS: dict[str, Callable[[Rng, int], Samples]] = {
    "normal": lambda rng, count: rng.normal(size=(count, 8)),
    "heavy tails": lambda rng, count: rng.standard_t(3, size=(count, 8)),
    "skewed": lambda rng, count: np.exp(rng.normal(size=(count, 8))),
    "correlated": lambda rng, count: rng.normal(size=(count, 2)) @ MIXED + 0.05 * rng.normal(size=(count, 8)),
    "nearly collinear": lambda rng, count: (
        np.repeat(rng.normal(size=(count, 4)), 2, axis=1) + 1e-6 * rng.normal(size=(count, 8))
    ),
    "rare categories": lambda rng, count: np.c_[rng.normal(size=(count, 3)), categories(rng, count)],
    "constant": lambda rng, count: np.c_[rng.normal(size=(count, 7)), np.full(count, 3.0)],
    "units": lambda rng, count: rng.normal(size=(count, 8)) * UNITS + 1e6,
    "sparse": lambda rng, count: rng.normal(size=(count, 8)) * (rng.random((count, 8)) < 0.03),
    "two groups": lambda rng, count: rng.normal(size=(count, 8)) + 8 * (rng.random((count, 1)) < 0.02),
}


@pytest.mark.parametrize("count", [60, 300])
@pytest.mark.parametrize("kind", KINDS)
def test_samples_like_the_calibration_data_are_inside(kind: str, count: int) -> None:
    rng = np.random.default_rng(1)
    samples = KINDS[kind](rng, count)
    joint = JointRange.of(samples)
    assert joint is not None
    low, high = samples.min(), samples.max()
    others = KINDS[kind](rng, 2000)
    others = others[((others >= low) & (others <= high)).all(axis=1)]
    assert _outside(joint, others) <= len(others) / 1000


def test_samples_between_the_ends_of_correlated_features_are_outside() -> None:
    rng = np.random.default_rng(1)
    samples = KINDS["correlated"](rng, 300)
    joint = JointRange.of(samples)
    assert joint is not None
    for each in rng.uniform(samples.min() / 2, samples.max() / 2, (100, 8)):
        with pytest.raises(OutOfRangeError, match="features together"):
            joint.require(each[None])


def images(rng: Rng, count: int) -> Samples:
    pixels = load_digits().data[rng.permutation(1797)[:count]].reshape(count, 8, 8)
    return np.kron(pixels, np.ones((2, 2))).reshape(count, 256)


def waves(rng: Rng, count: int) -> Samples:
    phases, lengths = rng.uniform(0, 2 * np.pi, (count, 1)), rng.uniform(8, 30, (count, 1))
    return rng.exponential(size=(count, 1)) * np.sin(phases + 2 * np.pi * np.arange(150) / lengths)


SPREAD = np.random.default_rng(7).normal(size=(5, 100))
STRUCTURED: dict[str, Callable[[Rng, int], Samples]] = {
    "digits": lambda rng, count: load_digits().data[rng.permutation(1797)[:count]],
    "images": images,
    "walks": lambda rng, count: rng.normal(size=(count, 200)).cumsum(axis=1),
    "waves": waves,
    "waves with noise": lambda rng, count: waves(rng, count) + 0.1 * rng.normal(size=(count, 150)),
    "counts": lambda rng, count: rng.poisson(0.03 * rng.exponential(size=(count, 300))).astype(float),
    "units": lambda rng, count: np.repeat(KINDS["units"](rng, count), 10, axis=1),
    "categories": lambda rng, count: np.hstack([categories(rng, count) for _ in range(30)]),
    "hidden values": lambda rng, count: rng.standard_t(4, size=(count, 5)) @ SPREAD,
}
FEW_HIDDEN = {"walks", "units", "hidden values"}
"""Kinds whose features depend on fewer hidden values than there are sums."""


@pytest.mark.parametrize("kind", STRUCTURED)
def test_images_and_sequences_like_the_calibration_data_are_inside(kind: str) -> None:
    """Halves of data of many features: the second is inside. Where few hidden values decide all features,
    features of different samples are outside together."""
    data = STRUCTURED[kind](np.random.default_rng(2), 1700)
    samples, others = data[::2], data[1::2]
    joint = JointRange.of(samples, one_scale=kind in ("images", "walks"))
    assert joint is not None
    assert joint.width == data.shape[1]
    assert len(json.dumps(joint.to_json())) < 64_000
    others = others[((others >= samples.min()) & (others <= samples.max())).all(axis=1)]
    assert _outside(joint, others) <= len(others) / 400
    again = JointRange.read(json.loads(json.dumps(joint.to_json())))
    assert _outside(again, others) == _outside(joint, others)
    if kind in FEW_HIDDEN:
        rng = np.random.default_rng(5)
        mixed = np.stack([rng.permutation(column) for column in samples[:200].T], axis=1)
        assert _outside(joint, mixed) >= 198


def _outside(joint: JointRange, samples: Samples) -> int:
    outside = 0
    for each in samples:
        try:
            joint.require(each[None])
        except OutOfRangeError:
            outside += 1
    return outside


def test_few_samples_and_many_features_have_none() -> None:
    rng = np.random.default_rng(0)
    assert JointRange.of(rng.normal(size=(49, 3))) is None
    assert JointRange.of(rng.normal(size=(100, 30))) is None
    assert JointRange.of(rng.normal(size=(49, MOST_FEATURES + 1))) is None
    assert JointRange.of(np.ones((100, MOST_FEATURES + 1)), one_scale=True) is None
    assert JointRange.of(np.ones((100, 3))) is None


def test_the_manifest_of_a_network_states_it() -> None:
    from sklearn.linear_model import LinearRegression
    from sklearn.neural_network import MLPRegressor

    rng = np.random.default_rng(1)
    samples = KINDS["correlated"](rng, 200)
    network = MLPRegressor(hidden_layer_sizes=(4,), solver="lbfgs", max_iter=500, random_state=0).fit(
        samples, samples[:, 0]
    )
    manifest = kw.compile(network, samples).manifest
    again = Manifest.read(manifest.encoded)
    assert again.encoded == manifest.encoded
    target = compiler.Target(slots=64, levels=12, packing="coefficients")
    thin = compiler.compile_program(
        compiler.to_onnx(network, samples), target, compiler.Fit(calibration=samples)
    )
    both = thin.input.steps.joint, manifest.input.steps.joint
    assert both[0] is not None
    assert both[1] is not None
    assert both[0].to_json() == both[1].to_json()
    again.require_range(samples)
    with pytest.raises(OutOfRangeError, match="features together"):
        again.require_range(np.where(np.arange(8) % 2, 0.5, -0.5)[None] * samples.max())
    linear = kw.compile(LinearRegression().fit(samples, samples[:, 0]), samples)
    assert linear.program.input.steps.joint is None


@pytest.mark.parametrize(
    "changes",
    [
        {"centre": [10**400]},
        {"largest": 10**400},
        {"largest": [1.0, 2.0]},
        {"largest": float("nan")},
        {"largest": 0.0},
        {"factor": [[float("inf")]]},
        {"factor": [[1.0, 2.0]]},
        {"centre": []},
        {"centre": "1"},
        {"centre": {"a": 1}},
        {"centre": [0.0] * (MOST_FEATURES + 1)},
        {"features": MOST_FEATURES},
        {"features": 1 << 20},
        {"features": 100.0},
        {"features": 100, "powers": [1], "places": [1]},
        {"features": 100, "powers": [2000] * 100, "places": [0] * 100},
        {"features": 100, "powers": [0] * 100, "places": [1 << 70] * 100},
        {"features": 100, "powers": ["0"] * 100, "places": [0] * 100},
        {"powers": 3},
    ],
)
def test_a_malformed_range_is_refused(changes: dict[str, object]) -> None:
    entry = {"centre": [1.0], "factor": [[1.0]], "largest": 1.0}
    assert JointRange.read(entry).largest == 1
    with pytest.raises(FormatError):
        JointRange.read(entry | changes)
