"""Ensembles under encryption: labels are those of the quantised model."""

from pathlib import Path
from typing import Any

import keywright as kw
import numpy as np
import pytest
from keywright.compiler.activations.fit import Thresholds
from keywright.compiler.trees.leaves import STEP_BITS
from keywright.runtime import run_clear
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from .fitted import answers, fitted, quantised

COUNT = 24


@pytest.mark.parametrize("thresholds", ["private", "public"])
@pytest.mark.parametrize("name", ["tree of depth 8 with missing values", "forest of three labels"])
def test_labels_are_those_of_the_quantised_model(name: str, thresholds: Thresholds) -> None:
    model, samples = fitted(name)
    fit: dict[str, Any] = {"thresholds": thresholds} | ({"bins": 32} if thresholds == "private" else {})
    compiled = kw.compile(model, calibration=samples, batch=4, **fit)
    outputs = compiled.predict(samples[:COUNT])
    expected = answers(quantised(model, samples, **fit), samples[:COUNT])
    answer = compiled.answers(outputs)
    # The client's rounding removes the error of encryption.
    for key, values in expected.items():
        assert np.array_equal(answer[key], values)


def test_a_thousand_labels_in_the_clear_and_simulated() -> None:
    model, samples = fitted("forest")
    compiled = kw.compile(model, calibration=samples, bins=32, batch=8)
    expected = answers(quantised(model, samples, bins=32), samples)
    clear = np.concatenate(
        [run_clear(compiled.program, batch) for batch in compiled.program.batches(samples)]
    )
    answer = compiled.answers(clear)
    assert np.array_equal(answer["label"], expected["label"])
    assert np.array_equal(answer["probabilities"], expected["probabilities"])
    simulated = compiled.simulate(samples[:8])
    assert simulated.worst_error < 0.5 * 2.0**-STEP_BITS


def test_client_and_server_from_a_folder(tmp_path: Path) -> None:
    model, samples = fitted("histogram boosting of three labels")
    compiled = kw.compile(model, calibration=samples, bins=16)
    assert "15 edges" not in str(compiled.report)
    assert "quantiles of the calibration data" in compiled.report.lines["the client gets"]
    assert "rounded to the edges of at most 16 bins" in compiled.report.lines["fit"]
    compiled.save(tmp_path / "model")
    client, server = kw.load_client(tmp_path / "model"), kw.load_server(tmp_path / "model")
    server.load_keys(client.keys())
    labels: dict[str, Any] = client.answers(client.decrypt(server.run(client.encrypt(samples[:3]))))
    expected = answers(quantised(model, samples, bins=16), samples[:3])
    assert np.array_equal(labels["label"], expected["label"])


def test_public_thresholds_need_no_calibration_data() -> None:
    model, samples = fitted("boosting of three labels")
    compiled = kw.compile(model, thresholds="public", batch=4)
    assert "the model's thresholds" in compiled.report.lines["the client gets"]
    outputs = compiled.answers(compiled.predict(samples[:4]))
    assert np.array_equal(outputs["label"], model.predict(samples[:4]))


@pytest.mark.parametrize("thresholds", ["private", "public"])
@pytest.mark.parametrize(("offset", "scale"), [(1.7e9, 3600.0), (-1e12, 1.0), (0.0, 1e-3)])
def test_values_far_from_zero_differ_under_encryption_as_in_the_clear(
    offset: float, scale: float, thresholds: Thresholds
) -> None:
    samples = np.random.default_rng(5).normal(size=(300, 3))
    values = np.stack((samples @ [1.0, 2.0, -1.0], 1e-6 * samples[:, 0]), axis=1)
    model = RandomForestRegressor(4, max_depth=4, random_state=0).fit(samples, offset + scale * values)
    fit: dict[str, Any] = {"thresholds": thresholds} | ({"bins": 64} if thresholds == "private" else {})
    compiled = kw.compile(model, calibration=samples, batch=4, **fit)
    answer = compiled.answers(compiled.predict(samples[:COUNT]))["variable"]
    expected = answers(quantised(model, samples, **fit), samples[:COUNT])["variable"]
    assert np.abs(answer - expected).max() <= 4 * np.spacing(abs(offset))
    if thresholds == "public":
        exact = model.predict(samples[:COUNT])
        room = 2.0**-16 * np.ptp(exact, axis=0) + 8 * np.spacing(abs(offset))
        assert (np.abs(answer - exact) <= room).all()
        assert len(np.unique(answer[:, 0])) > 4


def test_ties_of_a_forest_are_decided_as_its_library_does() -> None:
    samples = np.random.default_rng(6).normal(size=(400, 4))
    labels = (np.random.default_rng(7).random(400) < 0.5).astype(int)
    model = RandomForestClassifier(6, random_state=0).fit(samples[:200], labels[:200])
    tied = samples[model.predict_proba(samples)[:, 0] == 0.5]
    assert len(tied) > 20
    result = answers(quantised(model, samples, thresholds="public"), tied)
    assert np.array_equal(result["label"], model.predict(tied))
