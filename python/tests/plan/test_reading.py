"""Workloads, plans and calibrations in JSON with arbitrary values in every place."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from keywright.errors import KeywrightError
from keywright.plan import (
    STRATEGIES,
    AutomorphismGroup,
    Chain,
    CostModel,
    DerivationPlanner,
    Relinearizations,
    Workload,
    make_group,
)
from keywright.plan.cost.calibration import Calibration
from keywright.plan.cost.ephemeral import EphemeralSwitch, FixedKeys
from keywright.plan.cost.operations import Operation
from keywright.plan.keys import plan_file
from keywright.plan.keys.time_prediction import predict_plan
from keywright.plan.workload.workload import CommonWork

MODEL = CostModel()
CHAIN = Chain(12, (40, 30, 30), (40,), 240)
PROGRAM = Workload(
    "everything",
    CHAIN,
    (make_group(AutomorphismGroup(12), "one", 2, [1, 2, 3, 5, 8, 40]),),
    (Relinearizations(2, 1),),
    9.0,
    (Operation("sum", 2, 1, visits=2),),
    CommonWork((EphemeralSwitch(32, 1, 1, 1),), (FixedKeys(1, 1, 2),), (((1, 2), (2, 1)),)),
)
PLAN = DerivationPlanner(STRATEGIES["all-required"].plan(PROGRAM, MODEL), MODEL).priced[0].planned

NAN, INFINITY = float("nan"), float("inf")
ANYTHING: list[Any] = [NAN, INFINITY, -INFINITY, -1, 0, 255, 1 << 31, 1 << 63, 10**30, -(10**30), 10**4000]
ANYTHING += [1e308, 1.5, True, None, "", "x", [], [1], [[1, 2, 3]], {}]
DELETED = object()


def places(node: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield every place of an object; of a list the first two."""
    entries: list[tuple[Any, Any]] = []
    if isinstance(node, dict):
        entries = list(node.items())
    elif isinstance(node, list):
        entries = list(enumerate(node[:2]))
    for key, value in entries:
        yield (*at, key)
        yield from places(value, (*at, key))


def changed(text: str) -> Iterator[str]:
    """Yield the text with each place changed to arbitrary values, or left out."""
    for at in places(json.loads(text)):
        for value in (*ANYTHING, DELETED):
            data = json.loads(text)
            node = data
            for key in at[:-1]:
                node = node[key]
            if value is DELETED:
                del node[at[-1]]
            else:
                node[at[-1]] = value
            yield json.dumps(data)


def use_workload(text: str) -> None:
    workload = Workload.from_json(text)
    assert Workload.from_json(workload.to_json()) == workload
    predict_plan(STRATEGIES["all-required"].plan(workload, MODEL), MODEL)


def use_plan(text: str) -> None:
    plan = plan_file.from_json(text)
    assert plan_file.from_json(plan_file.to_json(plan)) == plan
    assert predict_plan(plan, MODEL).seconds < INFINITY
    assert 0 < plan.sent_bytes < 1 << 60


def use_calibration(text: str) -> None:
    calibration = Calibration.from_json(text)
    assert Calibration.from_json(calibration.to_json()) == calibration


def recorded() -> str:
    """A measurement of each kind."""
    data = json.loads((Path(__file__).parent / "calibration.json").read_text())
    kinds = {entry["what"]: entry for entry in data["measured"]}
    order = sorted(kinds.values(), key=lambda entry: entry["operation"] is None)
    # One ring with weights.
    rings = {name: dict(list(data[name].items())[:1]) for name in ("weights", "gauges")}
    return json.dumps({**data, "measured": order, **rings})


@pytest.mark.parametrize(
    ("text", "use"),
    [
        pytest.param(PROGRAM.to_json(), use_workload, id="program"),
        pytest.param(plan_file.to_json(PLAN), use_plan, id="plan"),
        pytest.param(recorded(), use_calibration, id="calibration"),
    ],
)
def test_anything_else_is_refused_or_is_one(text: str, use: Callable[[str], None]) -> None:
    use(text)
    lengths, accepted = list[int](), 0
    for other in changed(text):
        try:
            use(other)
        except KeywrightError as error:
            lengths.append(len(str(error)))
        else:
            accepted += 1
    assert len(lengths) > accepted
    assert max(lengths) < 300
    for cut in range(0, len(text), 1 + len(text) // 50):
        with pytest.raises(KeywrightError, match="not JSON"):
            use(text[:cut])
    for garbled in ("[" * 100_000, "null", "[]", "7", "{}", text + "x", "\x00\x01", "9" * 5000):
        with pytest.raises(KeywrightError, match=r"not JSON|100000 deep|\"format\" must be"):
            use(garbled)


def test_files_are_not_read_above_their_size(tmp_path: Path) -> None:
    path = tmp_path / "huge.json"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    for read in (plan_file.load, Calibration.load):
        with pytest.raises(KeywrightError, match=r"at most .* are read"):
            read(path)
