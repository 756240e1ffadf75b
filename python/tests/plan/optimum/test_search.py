"""The basis of the search for key sets: sums of automorphisms, changes and their undoing, points and
plans."""

import math
import random
from itertools import product

import pytest
from keywright import BootstrapperPlan
from keywright._core import ERROR_DEVIATION
from keywright.plan import (
    AutomorphismGroup,
    Chain,
    CostModel,
    KeyPlan,
    OpenWorkload,
    Relinearizations,
    Workload,
    make_group,
)
from keywright.plan.cost.error_budget import error_budget
from keywright.plan.keys.key_plan import PlannedKey, tree_seconds
from keywright.plan.search.cheapest_routes import CheapestRoutes, automorphism_of, code_of
from keywright.plan.search.frontier import candidate_shapes, descend, fastest_keys, fastest_state
from keywright.plan.search.recombination import Recombination, frontier
from keywright.plan.search.search_state import INFINITY, FrontierPoint, SearchState
from keywright.plan.search.serving import CandidateKeys
from keywright.plan.workload import Choice
from keywright.plan.workload.open_workload import Alternative

CHAIN = Chain(12, (30, 25, 25), (30,), 140)
GROUP = AutomorphismGroup(12)
MODEL = CostModel()


def random_workload(seed: int) -> OpenWorkload:
    """Single automorphisms, hoisted and chained groups, steps of transforms, and a part with two ways."""
    rng = random.Random(seed)

    def groups(name: str, number: int, most: int) -> list:  # type: ignore[type-arg]
        return [
            make_group(
                GROUP,
                f"{name}{order}",
                rng.choice((0, 1, 2)),
                rng.sample(range(1, 60), rng.randrange(1, most)),
                rng.randrange(1, 5),
            )
            for order in range(number)
        ]

    ways = [Alternative(f"way {way}", tuple(groups(f"way {way} ", 2, 6))) for way in range(2)]
    workload = Workload(
        f"random {seed}", CHAIN, tuple(groups("g", 12, 5)), (Relinearizations(2, 3), Relinearizations(1, 1))
    )
    return OpenWorkload(workload, (Choice("part", (3, 7), tuple(ways)),))


def start(workload: OpenWorkload) -> SearchState:
    return SearchState(workload, MODEL, fastest_keys(workload.every(), MODEL), max_hops=3)


@pytest.mark.parametrize("seed", range(4))
def test_the_cheapest_sums_against_all_of_them(seed: int) -> None:
    group, rng = AutomorphismGroup(5), random.Random(seed)
    every = range(2 * group.slots)
    for hops in (1, 2, 3, 4):
        routes = CheapestRoutes(group, hops)
        prices = {code: rng.choice((1.0, 1.5, 2.0, 7.0)) for code in rng.sample(every[1:], 5)}
        for code, price in prices.items():
            routes.set(code, price)
        gone = rng.choice(list(prices))
        routes.cheapest(1)
        routes.set(gone, INFINITY)
        del prices[gone]
        least: dict[int, float] = {}
        for number in range(1, hops + 1):
            for terms in product(prices, repeat=number):
                total = automorphism_of(0)
                for term in terms:
                    total = group.add(total, automorphism_of(term))
                price = sum(prices[term] for term in terms)
                least[code_of(total)] = min(price, least.get(code_of(total), INFINITY))
        for target in every[1:]:
            cheapest = routes.cheapest(target)
            assert sum(prices[term] for term in cheapest) == least.get(target, 0)
            assert len(cheapest) <= hops
            place = 0
            for term in cheapest:
                place = routes.add(place, term)
            assert place == target or not cheapest


def snapshot(state: SearchState) -> tuple[object, ...]:
    users = {key: frozenset(kinds) for key, kinds in state.users.items() if kinds}
    return (
        set(state.keys),
        list(state.servings),
        users,
        state.kind_seconds.tolist(),
        state.seconds,
        state.point(),
    )


@pytest.mark.parametrize("seed", range(6))
def test_changes_are_undone_exactly_and_points_are_their_plans(seed: int) -> None:
    rng = random.Random(seed)
    opened = random_workload(seed)
    state = start(opened)
    for _ in range(60):
        present = sorted(state.keys, key=repr)
        removed = rng.sample(present, min(len(present), rng.choice((0, 1, 1, 2))))
        level = rng.choice((0, 1, 2))
        shape = rng.choice(candidate_shapes(opened.workload.chain, MODEL, level))
        expected = rng.choice(
            (None, GROUP.rotation(rng.randrange(1, 60)), GROUP.rotation(1 << rng.randrange(11)))
        )
        added = [key for key in [PlannedKey(expected, shape)] if key not in present and rng.random() < 0.6]
        before = snapshot(state)
        undo = state.change(removed, added)
        broken = state.seconds == INFINITY
        if not broken:
            check(state, state.point())
        if broken or rng.random() < 0.5:
            state.undo(undo)
            assert snapshot(state) == before


def check(state: SearchState, point: FrontierPoint) -> None:
    plan = state.plan("point", point)
    assert plan.seconds(MODEL) == pytest.approx(point.seconds, rel=1e-12)
    assert plan.stored_bytes == point.stored_bytes
    assert set(plan.keys) == point.keys
    assert plan.noise_bits(MODEL) == pytest.approx(point.noise_bits)
    assert plan.max_hops <= state.max_hops


@pytest.mark.parametrize("seed", range(2))
def test_recombined_points_are_never_worse_than_one_descent(seed: int) -> None:
    opened = random_workload(seed)
    search = Recombination(opened, MODEL, max_hops=3)
    points = search.search(work=2000)
    assert points == frontier(points)
    for point in points:
        check(start(opened), point)
    for point in descend(fastest_state(opened, MODEL, max_hops=3)):
        assert any(
            other.stored_bytes <= point.stored_bytes and other.seconds <= point.seconds for other in points
        )
    again = Recombination(opened, MODEL, max_hops=3).search(work=2000)
    assert [(p.stored_bytes, p.seconds, p.keys) for p in again] == [
        (p.stored_bytes, p.seconds, p.keys) for p in points
    ]


def test_the_error_budget_is_that_of_an_encryption() -> None:
    """A fresh encryption with a public key: e_0 + e_1 s + e v of variance sigma^2 (1 + 4 N / 3), compared
    with the rounding of a division, (1 + 2 N / 3) / 12. For a bootstrap an eighth of its bits, if that is
    less."""
    n = 1 << 14
    encryption = ERROR_DEVIATION**2 * (1 + 4 * n / 3) / ((1 + 2 * n / 3) / 12)
    assert error_budget() == pytest.approx(0.5 * math.log2(encryption), abs=1e-3)
    for name in BootstrapperPlan.presets():
        plan = BootstrapperPlan.preset(name)
        bits = plan.predicted_bits()
        least = math.inf if bits is None else bits[0] / 8
        assert error_budget([plan]) == pytest.approx(min(error_budget(), least))


def test_points_above_the_error_budget_are_left_out() -> None:
    opened = random_workload(9)
    every = Recombination(opened, MODEL, max_hops=3).search(work=2000)
    bits = sorted(point.noise_bits for point in every)
    limit = (bits[0] + bits[-1]) / 2
    assert bits[0] < limit < bits[-1]
    quiet = Recombination(opened, MODEL, max_hops=3, noise_bits=limit).search(work=2000)
    assert quiet
    assert all(point.noise_bits <= limit for point in quiet)
    assert Recombination(opened, MODEL, max_hops=3, noise_bits=-1.0).search(work=2000) == []


@pytest.mark.parametrize("hops", [2, 4])
def test_more_keys_never_refuse_a_group(hops: int) -> None:
    """The union of two sets serves what each serves, although results of one may obstruct the other."""
    rng = random.Random(hops)
    shape = candidate_shapes(CHAIN, MODEL, 2)[0]
    for _ in range(150):
        steps = rng.sample(range(1, 40), 12)
        keys = [PlannedKey(GROUP.rotation(step), shape) for step in steps]
        targets = make_group(GROUP, "g", 2, rng.sample(range(1, 60), 6))
        few = CandidateKeys(GROUP, MODEL, keys[:6], max_hops=hops).serve(targets)
        all_of_them = CandidateKeys(GROUP, MODEL, keys, max_hops=hops).serve(targets)
        if few is not None:
            assert all_of_them is not None
        if all_of_them is not None:
            plan = KeyPlan("x", Workload("", CHAIN, (targets,)), (all_of_them.hops,))
            plan.check()
            assert plan.max_hops <= hops
            assert all_of_them.seconds == pytest.approx(tree_seconds(MODEL, 2, all_of_them.hops))


def test_workloads_without_rotations() -> None:
    for workload in (Workload("none", CHAIN, ()), Workload("one", CHAIN, (), (Relinearizations(2, 1),))):
        (point,) = Recombination(workload, MODEL).search()
        assert point.stored_bytes == sum(key.shape.stored_bytes for key in point.keys)
        assert len(point.keys) == len(workload.relinearizations)


def test_keys_of_automorphisms_that_nothing_needs() -> None:
    """Sums of two of eight powers of two: eight keys make all 28, which targets alone do not."""
    sums = [(1 << a) + (1 << b) for a in range(8) for b in range(a)]
    workload = Workload("sums", CHAIN, tuple(make_group(GROUP, f"g{step}", 2, [step]) for step in sums))
    alone = descend(fastest_state(workload, MODEL, max_hops=2))[-1]
    smallest = Recombination(workload, MODEL, max_hops=2).search()[0]
    targets = {GROUP.rotation(step) for step in sums}
    assert not {key.automorphism for key in smallest.keys} <= targets
    assert smallest.stored_bytes < alone.stored_bytes
    assert len(smallest.keys) <= 8
