"""Networks under key sets: one is run whole, in a small ring."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import keywright as kw
import pytest
from harness.folders import HERE
from keywright.plan import STRATEGIES, CostModel
from keywright.plan.keys.execution import PlanExecution
from keywright.plan.workload.network import convert, convert_bootstrap
from studies.executed_keys import __main__ as study
from studies.executed_keys import picture
from studies.executed_keys.key_sets import NAMES, formula_bytes, of_bootstrap, planned, published
from studies.executed_keys.resident import segments
from studies.executed_keys.subjects import SUBJECTS, Compiled, compile_subject
from studies.ledger.records import records


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    subject = SUBJECTS["digits"]
    assert subject.model is not None
    calibration, _ = subject.samples(None, 1)
    return compile_subject(subject, subject.model, calibration)


@pytest.mark.full
def test_key_sets_differ_as_they_are_named(compiled: Compiled) -> None:
    workload = convert(compiled.program, compiled.parameters, "digits")
    model = CostModel()
    plans = {name: published(workload, model, name) for name in NAMES if not name.startswith("optimal")}
    plans |= dict(planned(workload, model, ["optimal-1.0", "optimal-1.05"]))
    assert all(key.shape.alpha == 1 for name in ("pot-p1", "all-p1-top") for key in plans[name].keys)
    assert {key.shape.level for key in plans["all-p1-top"].keys} == {compiled.parameters.max_level}
    assert len(plans["pot-p1"].keys) < len(plans["all-p1"].keys) < len(plans["all-pdyn"].keys)
    assert plans["pot-p1"].switches > plans["all-p1"].switches
    assert formula_bytes(plans["all-p1"]) < formula_bytes(plans["all-p1-top"])
    assert plans["optimal-1.05"].stored_bytes <= plans["optimal-1.0"].stored_bytes
    assert plans["optimal-1.0"].stored_bytes <= plans["all-pdyn"].stored_bytes


def test_rotations_of_a_bootstrap_keep_keys_of_their_own() -> None:
    workload = convert_bootstrap(kw.BootstrapperPlan.preset("N15_QP858_L5_S32_real"), "c7")
    assert all(of_bootstrap(group) for group in workload.groups)
    plan = published(workload, CostModel(), "pot-p1")
    assert plan.max_hops == 1
    assert plan.hops == published(workload, CostModel(), "all-p1").hops
    assert STRATEGIES["signed-power-of-two"].plan(workload, CostModel()).max_hops > 1


def test_a_group_like_one_of_a_bootstrap_has_its_keys() -> None:
    workload = convert_bootstrap(kw.BootstrapperPlan.preset("N15_QP858_L5_S32_real"), "c7")
    group = max(workload.groups, key=lambda group: len(group.targets))
    both = replace(workload, groups=(*workload.groups, replace(group, name="c9")))
    plan = published(both, CostModel(), "pot-pdyn")
    assert plan.hops[-1] == plan.hops[workload.groups.index(group)]


def test_segments_have_the_keys_of_their_instructions(compiled: Compiled) -> None:
    workload = convert(compiled.program, compiled.parameters, "digits")
    execution = PlanExecution(
        published(workload, CostModel(), "all-pdyn"), compiled.parameters, compiled.program
    )
    keys = execution.instruction_keys
    everything = {spec for steps in keys.values() for step in steps for spec in step}
    assert everything == set(execution.key_specs)
    (whole,) = segments(execution, sum(spec.bytes for spec in everything))
    assert whole.instructions == set(keys)
    assert set(whole.specs) == everything
    parts = segments(execution, whole.bytes // 3)
    assert len(parts) > 2
    assert sorted(i for part in parts for i in part.instructions) == sorted(keys)
    for part in parts:
        needed = {spec for i in part.instructions for step in keys[i] for spec in step}
        assert set(part.specs) == needed
        assert part.bytes <= whole.bytes // 3 or len(part.instructions) == 1


def test_a_network_runs_with_keys_that_are_made_when_they_are_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = [
        "studies.executed_keys",
        "--network",
        "digits",
        "--rounds",
        "1",
        "--sets",
        "pot-p1,all-pdyn,arkmemory-pdyn",
    ]
    command += ["--key-memory", "4MB", "--out", str(tmp_path), "--work", str(tmp_path / "work")]
    monkeypatch.setattr(sys, "argv", command)
    assert study.main() == 0
    path = tmp_path / "digits.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["set"] for line in lines] == ["pot-p1", "all-pdyn", "arkmemory-pdyn"]
    for line in lines:
        assert line["segments"] > 1
        assert 0 < line["error"] <= 4 * line["predicted_error"]
        assert line["seconds"] == pytest.approx(sum(line["wall"].values()))
        assert line["label"] == line["clear_label"]
        assert line["peak_bytes"] > line["largest_segment_bytes"]
    assert study.main() == 0
    assert len(path.read_text().splitlines()) == 3, "what is recorded is not run again"


def test_a_wrong_result_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = ["studies.executed_keys", "--network", "digits", "--rounds", "1", "--sets", "all-p1"]
    command += ["--out", str(tmp_path), "--work", str(tmp_path / "work")]
    monkeypatch.setattr(sys, "argv", command)
    real = study.Study.run
    monkeypatch.setattr(study.Study, "run", lambda self, name, _: real(self, name, 1e-300))
    with pytest.raises(SystemExit, match="status 1"):
        study.main()


def test_the_picture_has_the_figures_of_the_records() -> None:
    written = Counter(re.findall(r">([\d.]+)</text>", picture.PAGE.read_text()))
    for title, panel in picture.panels().items():
        assert f">{title}<" in picture.PAGE.read_text()
        for bar in panel.values():
            assert sum(bar.parts) == pytest.approx(bar.seconds, rel=0.05)
    expected = Counter(
        f"{value:.1f}"
        for panel in picture.panels().values()
        for bar in panel.values()
        for value in (bar.seconds, bar.gigabytes)
    )
    assert not expected - written, "run `python -m studies.executed_keys.picture` in benchmarks"


def test_no_key_set_can_change_a_label() -> None:
    folders = ("2026-11-23-networks", "2026-11-26-labels")
    lines = [
        json.loads(line)
        for folder in folders
        for line in (HERE / "record" / folder / "resnet20-aespa-batch8.jsonl").read_text().splitlines()
    ]
    scores = [sorted(line["scores"]) for line in lines if "scores" in line]
    assert len(scores) == 500
    closest = min(first - second for *_, second, first in scores)
    errors = [
        max(value for row in records()[name].lines if isinstance(value := row["error"], float))
        for name in ("executed_aespa", "executed_ark")
    ]
    assert closest > 1000 * max(errors)
