"""The work of workloads, predicted and counted during a run. Nothing is timed here."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import keywright as kw
import pytest
from keywright import plan as planning
from keywright.errors import WorkloadError
from keywright.plan import predict_plan
from keywright.plan.cost.calibration import Measurement, measured_work
from keywright.plan.cost.measuring import cases
from keywright.plan.cost.model import TYPICAL_WEIGHTS, Work, engine_use
from keywright.plan.cost.operations import Operation
from keywright.plan.keys.key_plan import Hop, PlannedKey
from keywright.plan.keys.time_prediction import part_work, removed_primes, rest_work, switch_parts
from keywright.plan.ring.chain import shapes
from keywright.plan.ring.galois import Automorphism
from keywright.plan.workload.network import convert, convert_bootstrap
from tests.plan.test_execution import EXAMPLES, bootstrapping, digits, mnist

if TYPE_CHECKING:
    from tests.plan.test_execution import Side

MODEL = planning.CostModel()
BOOTSTRAPS = {"apart": (True, "complex"), "fused": (False, "complex"), "pair": (False, "pair")}
"""Whether stages are apart, and the values."""
CHAIN = planning.Chain(16, (60, 45, 45, 45, 45), (60, 60))


def plan_work(plan: planning.KeyPlan) -> Work:
    """Return all work of the engine to run a workload with a plan."""
    removed = removed_primes(plan)
    total = rest_work(plan, removed)
    for (shape, level, part), count in switch_parts(plan, removed).items():
        total = total.plus(part_work(shape, level, part), count)
    return total


def planned_network(side: Side) -> planning.KeyPlan:
    return planning.STRATEGIES["kds"].plan(convert(side.program, side.parameters, "network"), MODEL)


def planned_bootstrap(plan: kw.BootstrapperPlan) -> planning.KeyPlan:
    return planning.STRATEGIES["kds"].plan(convert_bootstrap(plan, "bootstrap"), MODEL)


@cache
def counted() -> dict[str, dict[str, list[int]]]:
    """Return the counts by workload and kernel: words modulo narrow primes and modulo wide ones."""
    command = [sys.executable, "-m", "tests.plan.predictions.counting"]
    folder = Path(__file__).parents[3]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    counters: dict[str, dict[str, list[int]]] = json.loads(done.stdout)
    return counters


@pytest.mark.skipif(not EXAMPLES.is_dir(), reason=f"no {EXAMPLES}: the examples are in the repository only")
@pytest.mark.parametrize("name", ["digits", "mnist", "apart", "fused", "pair"])
def test_counts_are_those_of_the_execution(name: str) -> None:
    if name in ("digits", "mnist"):
        plan = planned_network(digits() if name == "digits" else mnist())
    else:
        plan = planned_bootstrap(bootstrapping(*BOOTSTRAPS[name])[0])
    log_n = plan.workload.chain.log_n
    # The engine adds constants without a kernel.
    uses = plan.workload.operations
    constants = sum(use.count * use.constants * (use.level + 1) << log_n for use in uses)
    require_counts(plan_work(plan), log_n, counted()[name], constants)


@pytest.mark.skipif(not EXAMPLES.is_dir(), reason=f"no {EXAMPLES}: the examples are in the repository only")
@pytest.mark.parametrize("log_n", [13, 14])
def test_counts_are_those_of_what_is_calibrated(log_n: int) -> None:
    for place, case in enumerate([*cases(log_n), *cases(log_n, held_out=True)]):
        what = "switch" if case.count == 1 else "hoisted"
        each = measured_work(Measurement(what, case.shape, case.level, case.count))
        work = Work().plus(each, case.count)
        require_counts(work, log_n, counted()[f"{log_n} {place}"])


def require_counts(work: Work, log_n: int, counters: dict[str, list[int]], constants: int = 0) -> None:
    """Check that predicted work equals the counts, except for words of constants, which no kernel adds."""

    def words(count: float) -> int:
        return round(count * 2**16)

    by_width = {
        "transforms": [words(count * 16 / log_n) for count in work.transforms],
        "conversions": [words(count) for count in work.conversions],
        "seeded_products": [words(count) for count in work.products],
    }
    assert by_width == {kernel: counters[kernel] for kernel in by_width}
    altogether = {
        "stored_products": words(work.diagonals + work.stored_products),
        "products": words(work.multiplications),
        "visits": words(work.visits) - constants,
    }
    assert altogether == {kernel: sum(counters[kernel]) for kernel in altogether}


def test_an_operation_is_counted_by_hand() -> None:
    operation = Operation(
        "", 3, products=2, visits=1, diagonals=5, lifted=1, divided=2, rescaled=1, embeddings=1
    )
    # Four primes of Q, the first of them wide, two wide special ones.
    work = operation.work(CHAIN, (5, 6))
    assert work.transforms == pytest.approx((3 * 2 + 3 * 1, 3 * 2 + 1))
    assert work.conversions == pytest.approx(((2 * 3 + 1) * 2, (2 * 3 + 1) * 1))
    assert (work.diagonals, work.multiplications, work.embeddings) == (5 * 6 + 4, 8, 1)
    assert work.visits == 4 + 3 * 3
    raising = Operation("", 4, special=1, raised=1, decomposed=1, key_rows=1, lowered=2).work(CHAIN, (5, 6))
    assert raising.products == pytest.approx((4, 2))
    assert raising.transforms == pytest.approx((4 + 4 + 2 * 4, 1 + 2 + 2 * 2))
    assert raising.conversions == pytest.approx((4 + 4 + 2 * 4, 1 + 2))
    # Dividing two halves by P q_3 instead of P: one more source for three targets, not four.
    merged = Operation("", 3, merged=1).work(CHAIN, (5, 6), (5,))
    assert merged.conversions == pytest.approx((2 * (2 * 2 - 3), 2 * (2 - 1)))
    assert merged.transforms == pytest.approx((0, 0))
    half = replace(CHAIN, log_n=15)
    assert operation.work(half, (5, 6)).visits == work.visits / 2
    assert operation.work(half, (5, 6)).transforms[0] == pytest.approx(work.transforms[0] * 15 / 32)


def test_steps_of_a_transform_save_divisions() -> None:
    group = planning.AutomorphismGroup(16)
    steps = planning.make_group(group, "babies", 4, [1, 2, 3])
    workload = planning.Workload("p", CHAIN, (steps, planning.make_group(group, "giant", 4, [4], 3)))
    plan = planning.STRATEGIES["kds"].plan(workload, MODEL)
    whole = predict_plan(plan, MODEL)
    assert whole.rest == 0
    assert whole.seconds == pytest.approx(plan.seconds(MODEL))
    forms = (replace(workload.groups[0], form="baby"), replace(workload.groups[1], form="giant"))
    formed = replace(workload, groups=forms, operations=(Operation("sum", 2, 7, visits=2),))
    model = planning.CostModel(replace(TYPICAL_WEIGHTS, visit=1e-6))
    predicted = predict_plan(replace(plan, workload=formed), model)
    shape = plan.keys[0].shape
    use = engine_use(shape, 4)
    assert use is not None
    assert {key.shape for key in plan.keys} == {shape}
    assert removed_primes(plan)[4] == use.removed
    expected = use.shared.plus(use.baby, 3).plus(use.shared, 3).plus(use.giant, 3)
    assert predicted.switches == pytest.approx(expected.seconds(model.of_degree(16)))
    assert predicted.rest == pytest.approx(7 * (2 * 3 * 1e-6 + TYPICAL_WEIGHTS.call))
    # Diagonals for other primes: most automorphisms of the level remove them.
    other = planning.make_group(group, "others", 4, [100], 100)
    crowd = planning.Workload("c", CHAIN, (*forms, other))
    mixed_shapes = [s for s in shapes(CHAIN, 4) if s.special != shape.special]
    key = PlannedKey(other.targets[0], mixed_shapes[0])
    hops = (*plan.hops, (Hop(Automorphism(0), other.targets[0], key),))
    mixed = planning.KeyPlan("", crowd, hops)
    alone = model.switch(mixed_shapes[0], 4)
    assert alone is not None
    dividing = predict_plan(mixed, model).switches - 100 * alone.alone
    all_whole = use.shared.plus(use.own, 3).plus(use.shared, 3).plus(use.own, 3)
    assert dividing == pytest.approx(all_whole.seconds(model.of_degree(16)))


def test_rotating_again_divides() -> None:
    group = planning.AutomorphismGroup(16)
    pair = replace(planning.make_group(group, "babies", 4, [1, 2]), form="baby")
    workload = planning.Workload("p", CHAIN, (pair,))
    (one, two) = pair.targets
    key = PlannedKey(one, shapes(CHAIN, 4)[0])
    chain = (Hop(Automorphism(0), one, key), Hop(one, two, key))
    use = engine_use(key.shape, 4)
    assert use is not None
    expected = use.shared.plus(use.own).plus(use.shared).plus(use.baby)
    plan = planning.KeyPlan("", workload, (chain,))
    assert plan_work(plan).features == pytest.approx(expected.features)
    giant = planning.KeyPlan("", replace(workload, groups=(replace(pair, form="giant"),)), (chain,))
    expected = use.shared.plus(use.own).plus(use.shared).plus(use.own)
    assert plan_work(giant).features == pytest.approx(expected.features)


def test_workloads_keep_their_operations() -> None:
    workload = convert_bootstrap(bootstrapping(apart=False)[0], "bootstrap")
    assert workload.operations
    assert {group.form for group in workload.groups} == {"whole", "baby", "giant"}
    assert planning.Workload.from_json(workload.to_json()) == workload
    assert workload.merged().operations == workload.operations
    data = json.loads(workload.to_json())
    for entry in (
        {"name": "", "level": 1, "count": 1, "naps": 1},
        {"name": "", "level": 1, "count": 1, "visits": 1.5},
        {"name": "", "level": 1, "count": True},
        {"level": 1, "count": 1},
        {"name": "", "level": 99, "count": 1},
        {"name": "", "level": 1, "count": 0},
        {"name": "", "level": 1, "count": 1, "visits": -1},
        {"name": "", "level": 1, "count": 1, "visits": 1 << 31},
        {"name": "", "level": 1, "count": 1, "special": 40},
        {"name": "", "level": 0, "count": 1, "rescaled": 1},
        7,
    ):
        with pytest.raises(WorkloadError):
            planning.Workload.from_json(json.dumps({**data, "operations": [entry]}))
    data["groups"][0]["form"] = "small"
    with pytest.raises(WorkloadError, match="form"):
        planning.Workload.from_json(json.dumps(data))
