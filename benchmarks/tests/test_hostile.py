"""A short form of the study that attacks a server and measures an honest client."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest
from keywright.model import Model
from studies.service import hostile, malformed
from studies.service.attacks import ATTACKS, Target, named, token
from studies.service.hostile import KINDS, WITHIN, Attacker, Measured, line, measure


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    folder = tmp_path_factory.mktemp("model")
    malformed.make_model(folder)
    return Model.load(folder)


def test_an_attack_is_measured(model: Model, tmp_path: Path) -> None:
    measurement = measure(["bodies", "unknown"], model, tmp_path, 4.0, 2.0)
    assert measurement["faults"] == []
    assert min(measurement["begun"].values()) > 100
    assert measurement["evaluation"]["quiet_count"] > 0
    assert measurement["evaluation"]["attacked_count"] > 0
    assert json.loads(json.dumps(measurement)) == measurement or "nan" in str(measurement).lower()
    assert line(measurement).startswith("bodies+unknown: evaluation median ")


@pytest.mark.full
@pytest.mark.parametrize("name", ATTACKS)
def test_an_honest_client_is_served_beside_every_attack(model: Model, tmp_path: Path, name: str) -> None:
    measurement = measure([name], model, tmp_path, 12.0, 6.0)
    assert measurement["faults"] == []
    assert measurement["begun"][name] > 0
    assert measurement["evaluation"]["median_ratio"] <= WITHIN
    # Some ten uploads: their median is noisy.
    assert measurement["upload"]["median_ratio"] <= 2 * WITHIN


def test_a_slower_client_and_faults_are_not_within() -> None:
    fast, slow = Measured([[0.1] * 200], [[0.15] * 200]), Measured([[0.1] * 200], [[0.15] * 180 + [0.9] * 20])
    assert fast.summary()["median_ratio"] == pytest.approx(1.5)
    assert slow.summary()["p95_ratio"] == pytest.approx(9)
    for measured, faults, within in ((fast, [], True), (slow, [], False), (fast, ["a wrong answer"], False)):
        summaries = {kind: measured.summary() for kind in KINDS}
        assert hostile.passes(summaries, faults) is within


def test_an_attack_that_does_not_exist_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["hostile", "bodies", "nothing"])
    with pytest.raises(SystemExit):
        hostile.main()
    assert "there is no attack nothing" in capsys.readouterr().err
    assert all(text.endswith(".") for _, text in named())


def test_tokens_name_different_keys() -> None:
    assert token(1).split(".")[0] != token(2).split(".")[0]


def test_an_attacker_survives_a_server_that_is_not_there() -> None:
    attacker = Attacker("bodies", Target("127.0.0.1", 9, "0" * 64))
    attacker.begin()
    time.sleep(1)
    assert attacker.end() == 0
