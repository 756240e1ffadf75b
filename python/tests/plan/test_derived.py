"""Prices of master keys against what the engine does with them."""

import random

import keywright as kw
import pytest
from keywright.plan import (
    STRATEGIES,
    Automorphism,
    AutomorphismGroup,
    Chain,
    CostModel,
    DerivationPlanner,
    InfeasibleBudgetError,
    KeyPolicy,
    Relinearizations,
    Workload,
    WorkloadError,
    make_group,
    smallest_basis,
)

Q, P = (55, 40, 40, 40), (55, 55)
CHAIN = Chain(11, Q, P, 700)
MODEL = CostModel()


def workload(seed: int, count: int, levels: tuple[int, ...] = (3,)) -> Workload:
    rng = random.Random(seed)
    group = AutomorphismGroup(CHAIN.log_n)
    groups = [
        make_group(group, f"at {level}", level, [rng.randrange(1, 1024) for _ in range(count)], 2)
        for level in levels
    ]
    return Workload(f"random {seed}", CHAIN, tuple(groups), (Relinearizations(3, 1),))


@pytest.mark.parametrize("seed", range(3))
def test_what_is_priced_can_be_derived(seed: int) -> None:
    plan = STRATEGIES["kds"].plan(workload(seed, 12, (3, 1)), MODEL)
    planner = DerivationPlanner(plan, MODEL)
    group = plan.workload.automorphisms
    assert len(planner.priced) > 1
    cheapest = planner.priced[0]
    for price in planner.priced[1:]:
        assert price.sent_bytes > cheapest.sent_bytes
        assert price.server_seconds < cheapest.server_seconds
        cheapest = price
    parameters = kw.Parameters.from_bits(11, Q, P, 35, insecure=True)
    secret = kw.SecretKey.generate(parameters, bytes(32))
    for price in (planner.priced[0], planner.priced[-1]):
        assert not any(a.conjugate for a in price.masters)
        masters = kw.MasterKeys.generate(
            secret, [a.step for a in price.masters], price.extra_bits, price.shape.level - len(P)
        )
        # The engine's choice is never larger: it weighs the same special primes.
        assert masters.bytes <= price.master_bytes
        p = range(4, 6)
        specs = [
            kw.KeySpec.galois(
                parameters,
                group.galois_element(key.automorphism),
                level=key.shape.level,
                alpha=key.shape.alpha,
                special=[*p, *range(3, key.shape.level, -1)][: key.shape.special],
            )
            for key in plan.keys
            if key.automorphism is not None and key not in price.direct
        ]
        derivation = masters.derivation(specs)
        assert len(derivation) == len(specs)
        assert (derivation.derived, derivation.depth) == (price.derived, price.depth)
        held = sum(key.bytes for key in derivation)
        direct = sum(key.shape.stored_bytes for key in price.direct)
        assert price.stored_bytes == held + direct
        assert any(key.automorphism is None for key in price.direct)


def test_more_bytes_are_never_slower() -> None:
    plan = STRATEGIES["all-required"].plan(workload(7, 30), MODEL, KeyPolicy("dynamic", "needed"))
    planner = DerivationPlanner(plan, MODEL)
    least = planner.priced[0].sent_bytes
    before = float("inf")
    for factor in (1, 1.5, 3):
        best = planner.best(factor * least)
        assert best.sent_bytes <= factor * least
        assert best.server_seconds <= before
        before = best.server_seconds
        assert best.noise_bits >= plan.noise_bits(MODEL)
    with pytest.raises(InfeasibleBudgetError, match=r"The least is .* for 2 master keys, and .* not derived"):
        planner.best(least - 1)


def test_the_two_hop_basis_is_weighed() -> None:
    group = AutomorphismGroup(CHAIN.log_n)
    kernel = [32 * i + j for i in range(-2, 3) for j in range(-2, 3) if (i, j) != (0, 0)]
    convolution = Workload("5x5", CHAIN, (make_group(group, "5x5", 3, kernel),))
    planner = DerivationPlanner(STRATEGIES["kds"].plan(convolution, MODEL), MODEL)
    reach = next(reach for reach in planner.reaches if not reach.direct)
    found = [planner.price(masters, reach) for masters in planner.candidates(reach)]
    basis = smallest_basis(group, map(group.rotation, kernel))
    assert len(basis.keys) == 7
    assert any(price.masters == basis.keys for price in found if price is not None)


def test_conjugations_have_a_master() -> None:
    targets = [Automorphism(3, True), Automorphism(5)]
    both = Workload("both", CHAIN, (make_group(AutomorphismGroup(11), "g", 3, targets),))
    planner = DerivationPlanner(STRATEGIES["kds"].plan(both, MODEL), MODEL)
    assert planner.priced
    assert planner.price([]) is None
    reached = planner.price([Automorphism(1)])
    assert reached is not None
    assert [key.automorphism for key in reached.direct] == [Automorphism(3, True)]


def test_plans_that_leave_nothing_to_derive_or_no_room() -> None:
    relinearizations = Workload("none", CHAIN, (), (Relinearizations(3, 1),))
    with pytest.raises(WorkloadError, match="no Galois keys"):
        DerivationPlanner(STRATEGIES["kds"].plan(relinearizations, MODEL), MODEL)
    full = Chain(11, Q, P, 290)
    tight = Workload("tight", full, (make_group(AutomorphismGroup(11), "g", 3, [1, 2]),))
    with pytest.raises(WorkloadError, match="no room"):
        DerivationPlanner(STRATEGIES["kds"].plan(tight, MODEL), MODEL)
