"""Calibration data beside the thresholds of a model: what is refused, what is warned of, and what clients
refuse."""

import dataclasses
import json
from pathlib import Path

import keywright as kw
import numpy as np
import pytest
from keywright import compiler
from keywright.compiler.trees.bins import private_bins
from keywright.compiler.trees.quantising import quantise
from keywright.errors import FormatError, ModelRefusedError
from keywright.errors.network import OutOfRangeError
from keywright.model.served.manifest import Manifest
from sklearn import tree
from sklearn.ensemble import HistGradientBoostingRegressor

from .fitted import Array, answers, ensemble_of, random_ensemble

RNG = np.random.default_rng(35)
SAMPLES = RNG.normal(size=(500, 4))
LABELS = (SAMPLES[:, 0] + SAMPLES[:, 1] ** 2 / 2 > 0.3).astype(int)
MODEL = tree.DecisionTreeClassifier(max_depth=4, random_state=0).fit(SAMPLES, LABELS)


def warnings(samples: Array, bins: int | None = None) -> str:
    report = quantise(ensemble_of(MODEL), compiler.Fit(calibration=samples, bins=bins)).report
    assert report is not None
    return "; ".join(report.warnings)


def test_data_like_the_models_are_taken_without_a_word() -> None:
    assert warnings(SAMPLES, bins=256) == ""
    assert len(quantise(ensemble_of(MODEL), compiler.Fit(calibration=SAMPLES)).binning.limited) == 0


@pytest.mark.parametrize(
    "samples",
    [
        SAMPLES[:1],
        np.repeat(SAMPLES[:1], 100, axis=0),
        SAMPLES + 50,
        SAMPLES / 100,
        SAMPLES[SAMPLES[:, 0] < 0],
    ],
    ids=["one", "copies of one", "shifted", "narrow", "one side"],
)
def test_data_unlike_the_models_are_refused(samples: Array) -> None:
    source = ensemble_of(MODEL)
    with pytest.raises(ModelRefusedError, match="on one side of") as caught:
        quantise(source, compiler.Fit(calibration=samples))
    assert caught.value.codes == {"ranges"}
    allowed = quantise(source, compiler.Fit(calibration=samples, bins=16))
    assert allowed.report is not None
    assert any("clients refuse samples outside the range" in text for text in allowed.report.warnings)
    wrong = answers(allowed, SAMPLES)["label"] != MODEL.predict(SAMPLES)
    assert wrong.any()
    for sample in SAMPLES[wrong]:  # none of the wrong answers is given for a sample outside
        try:
            allowed.binning.require_limits(sample[None])
        except OutOfRangeError:
            continue
        assert (sample[allowed.binning.limited] <= allowed.binning.high).all()
        assert (sample[allowed.binning.limited] >= allowed.binning.low).all()


def test_few_wide_and_one_sided_data_are_warned_of() -> None:
    spread = np.argsort(SAMPLES[:, 0])[:: len(SAMPLES) // 30]
    few = np.concatenate((SAMPLES[spread], SAMPLES[[0]]))
    assert "distinct calibration samples are too few" in warnings(few, bins=16)
    assert "close together beside the calibration data" in warnings(SAMPLES * 100)
    assert "no calibration sample has label 0" in warnings(SAMPLES[MODEL.predict(SAMPLES) == 1], bins=64)


def test_a_feature_without_a_value_is_refused() -> None:
    gaps = SAMPLES.copy()
    gaps[RNG.random(gaps.shape) < 0.1] = np.nan
    model = HistGradientBoostingRegressor(max_iter=3).fit(gaps, SAMPLES[:, 0])
    empty = gaps.copy()
    empty[:, 0] = np.nan
    source = ensemble_of(model)
    with pytest.raises(ModelRefusedError, match="feature 0, which is missing in all") as caught:
        quantise(source, compiler.Fit(calibration=empty))
    assert caught.value.codes == {"ranges"}


def test_copies_of_a_sample_are_held_out_together() -> None:
    samples = np.repeat(SAMPLES[:100], 3, axis=0)[np.random.default_rng(1).permutation(300)]
    held = quantise(ensemble_of(MODEL), compiler.Fit(calibration=samples, bins=16)).held_out
    assert 0 < held.sum() < 300
    out = {tuple(sample) for sample in samples[held]}
    assert not out & {tuple(sample) for sample in samples[~held]}


def test_whole_numbers_between_those_of_the_calibration_data_have_bins_too() -> None:
    trees = random_ensemble(RNG, 5, 4, 2)
    samples = np.asarray([[0.0, 3.0], [9.0, 4.0], [2.0, 11.0]])
    bins = private_bins(trees, samples, 16)
    unseen = np.asarray([[5.0, 7.0], [1.0, 10.0]])
    assert np.array_equal(bins.quantised(unseen)[:, bins.binning.used], unseen[:, bins.binning.used])


def test_clients_refuse_samples_outside(tmp_path: Path) -> None:
    inside = SAMPLES[SAMPLES[:, 0] < 0.2]
    model = kw.compile(MODEL, calibration=inside, bins=16, batch=4)
    binning = model.program.input.steps.binning
    assert binning is not None
    limited = len(binning.limited)
    assert limited
    outside = inside[:2].copy()
    outside[1, binning.limited[0]] = binning.high[0] + 1
    with pytest.raises(OutOfRangeError, match=f"feature {binning.limited[0]} of the trees") as caught:
        model.predict(outside)
    assert caught.value.value == outside[1, binning.limited[0]].astype(np.float32)
    model.predict(inside[:2])
    assert f"the ranges of {limited} of them" in model.report.lines["the client gets"]
    model.save(tmp_path / "model")
    stored = kw.load_client(tmp_path / "model")
    with pytest.raises(OutOfRangeError):
        stored.encrypt(outside)
    manifest = stored._executable.interface
    read = Manifest.read(manifest.encoded)
    with pytest.raises(OutOfRangeError):
        read.require_range(outside)
    read.require_range(inside)
    assert json.loads(manifest.encoded)["version"] == 8


@pytest.mark.parametrize(
    "limits",
    [
        {"features": [0], "low": [1.0], "high": [0.0]},
        {"features": [0], "low": [1.0], "high": []},
        {"features": [1, 0], "low": [0.0, 0.0], "high": [1.0, 1.0]},
        {"features": [9], "low": [0.0], "high": [1.0]},
        {"features": [0], "low": [0], "high": [1.0]},
        {"features": [0], "low": ["0"], "high": [1.0]},
        [],
    ],
)
def test_limits_of_a_server_are_checked(limits: object, tmp_path: Path) -> None:
    model = kw.compile(MODEL, calibration=SAMPLES, bins=4, batch=4)
    model.save(tmp_path / "model")
    entry = json.loads(kw.load_client(tmp_path / "model")._executable.interface.encoded)
    entry["binning"]["limits"] = limits
    with pytest.raises(FormatError):
        Manifest.read(json.dumps(entry).encode())


def test_limits_that_contradict_each_other_are_refused() -> None:
    binning = quantise(ensemble_of(MODEL), compiler.Fit(calibration=SAMPLES)).binning
    none = np.zeros(1, np.int64)
    limited = dataclasses.replace(binning, limited=none, limits=np.zeros((1, 2)))
    assert limited.to_json()["limits"]["features"] == [0]
    for limits in ([[1.0, 0.0]], [[0.0, np.nan]], [[0.0, 1.0], [0.0, 1.0]]):
        with pytest.raises(ValueError, match="limits"):
            dataclasses.replace(binning, limited=none, limits=np.asarray(limits))
