"""Predicted costs of master keys compared with the engine's work."""

import random
from collections import Counter
from math import log2

import keywright as kw
import pytest
from keywright._core import ERROR_DEVIATION, DerivationTree, PrimeWidths
from keywright.errors import InfeasibleBudgetError, WorkloadError
from keywright.plan import (
    STRATEGIES,
    AutomorphismGroup,
    Chain,
    CostModel,
    DerivationPlanner,
    KeyPlan,
    KeyPolicy,
    Relinearizations,
    Workload,
    make_group,
    smallest_basis,
)
from keywright.plan.cost.model import Weights
from keywright.plan.keys.derivation import DerivationDesign
from keywright.plan.ring.galois import Automorphism
from tests.plan.predictions.test_prediction import counted

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


@pytest.mark.parametrize(
    ("seed", "count"), [(0, 5), *(pytest.param(seed, 12, marks=pytest.mark.full) for seed in (0, 1, 2))]
)
def test_what_is_priced_can_be_derived(seed: int, count: int) -> None:
    plan = STRATEGIES["kds"].plan(workload(seed, count, (3, 1)), MODEL)
    planner = DerivationPlanner(plan, MODEL)
    group = plan.workload.automorphisms
    assert len(planner.priced) > 1
    cheapest = planner.priced[0]
    for price in planner.priced[1:]:
        assert price.sent_bytes > cheapest.sent_bytes
        assert price.costs.server_seconds < cheapest.costs.server_seconds
        cheapest = price
    parameters = kw.Parameters.from_bits(11, Q, P, 35, insecure=True)
    secret = kw.SecretKey.generate(parameters, bytes(32))
    for price in (planner.priced[0], planner.priced[-1]):
        assert not any(a.conjugate for a in price.masters)
        masters = kw.keys.MasterKeys.generate(
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
        assert (derivation.derived, derivation.depth) == (price.costs.derived, price.costs.depth)
        keys = {(key.spec.galois_element, key.spec.level): key for key in derivation}
        held = sum(key.bytes for key in keys.values())
        for planned, variance in price.error_variances.items():
            assert planned.automorphism is not None
            derived_key = keys[group.galois_element(planned.automorphism), planned.shape.level]
            # Widths are planned as whole bits.
            assert derived_key.error_variance == pytest.approx(variance * ERROR_DEVIATION**2, rel=0.1)
        assert len(price.error_variances) == len(keys)
        direct = sum(key.shape.stored_bytes for key in price.direct)
        assert price.stored_bytes == held + direct
        assert any(key.automorphism is None for key in price.direct)


def wide_tree() -> tuple[KeyPlan, tuple[Automorphism, ...]]:
    """Return keys and masters: eight keys derived from the key of 1, and one more from each of the eight."""
    inner = [3**i for i in range(6)] + [486, 972]
    targets = [*inner, *(step + 300 for step in inner)]
    group = AutomorphismGroup(CHAIN.log_n)
    wide = Workload("wide", CHAIN, (make_group(group, "wide", 3, targets),))
    plan = STRATEGIES["all-required"].plan(wide, MODEL, KeyPolicy("dynamic", "needed"))
    return plan, tuple(group.rotation(step) for step in (*inner, 300))


def wide_price(model: CostModel) -> DerivationDesign:
    plan, masters = wide_tree()
    planner = DerivationPlanner(plan, model)
    price = planner.price(masters, next(reach for reach in planner.reaches if not reach.direct))
    assert price is not None
    return price


def wide_derivation() -> kw.keys.Derivation:
    """Return the same keys for the engine."""
    price = wide_price(MODEL)
    parameters = kw.Parameters.from_bits(11, Q, P, 35, insecure=True)
    secret = kw.SecretKey.generate(parameters, bytes(32))
    steps = [master.step for master in price.masters]
    masters = kw.keys.MasterKeys.generate(secret, steps, price.extra_bits, price.shape.level - len(P))
    shape = price.plan.keys[0].shape
    specs = [
        kw.KeySpec.rotation(
            parameters, key.automorphism.step, 3, shape.alpha, special=list(shape.special_primes)
        )
        for key in price.plan.keys
        if key.automorphism is not None
    ]
    return masters.derivation(specs)


def test_the_engine_decomposes_as_often_as_is_priced() -> None:
    price = wide_price(CostModel(Weights(transform=1.0, product=0.0, conversion=0.0, key_limb=0.0)))
    group = price.plan.workload.automorphisms
    expected = [group.galois_element(a) for a in price.plan.workload.groups[0].targets]
    tree = DerivationTree(CHAIN.log_n, [group.galois_element(a) for a in price.masters], expected)
    parents = Counter(parent for _, parent, _, _ in tree.steps)
    # Of eight inner keys two are made at a time.
    assert sorted(parents.values()) == [1] * 8 + [8]
    rows = len(price.plan.keys[0].shape.digits)
    assert tree.decompositions(rows, price.shape.level + 1) == 8 + 4
    transforms = sum(counted()["derived"]["transforms"])
    assert price.costs.server_seconds * 2**16 * 16 / CHAIN.log_n == pytest.approx(transforms)


def test_the_engine_states_the_noise_of_derivations() -> None:
    parameters = kw.Parameters.from_bits(11, Q, P, 35, insecure=True)
    masters = kw.keys.MasterKeys.generate(
        kw.SecretKey.generate(parameters, bytes(32)), [1, 4, 16], [55, 55], entropy=bytes(32)
    )
    own = [log2(prime) for prime in (*parameters.p, *parameters.q)]
    widths = PrimeWidths(11, own, [log2(prime) for prime in masters.extra])
    (shape,) = {shape[1:] for shape in masters.shapes}
    key_level, alpha, special = shape
    candidates = widths.special_candidates(key_level, 1000)
    for level in (3, 1):
        steps = (1, 2, 5, 21, 40)
        specs = [kw.KeySpec.rotation(parameters, step, level) for step in steps]
        targets = [AutomorphismGroup(11).galois_element(Automorphism(step)) for step in steps]
        tree = DerivationTree(11, masters.galois_elements, targets)
        hops = {element: depth for element, _, _, depth in tree.steps}
        noise = widths.derivation_noise(key_level, alpha, candidates[:special], len(P) + level)
        assert noise is not None
        first, other = noise
        assert first < other
        for key in masters.derivation(specs):
            assert key.spec.galois_element is not None
            stated = (first + (hops[key.spec.galois_element] - 1) * other) * ERROR_DEVIATION**2
            assert key.error_variance == pytest.approx(stated, rel=1e-9)


def test_more_bytes_are_never_slower() -> None:
    plan = STRATEGIES["all-required"].plan(workload(7, 30), MODEL, KeyPolicy("dynamic", "needed"))
    planner = DerivationPlanner(plan, MODEL)
    least = planner.priced[0].sent_bytes
    before = float("inf")
    for factor in (1, 1.5, 3):
        best = planner.best(factor * least)
        assert best.sent_bytes <= factor * least
        assert best.costs.server_seconds <= before
        before = best.costs.server_seconds
        assert best.costs.noise_bits >= plan.noise_bits(MODEL)
    with pytest.raises(InfeasibleBudgetError, match=r"The least is .* for 2 master keys, and .* not derived"):
        planner.best(least - 1)


def test_the_two_hop_basis_is_weighed() -> None:
    group = AutomorphismGroup(CHAIN.log_n)
    kernel = [32 * i + j for i in range(-2, 3) for j in range(-2, 3) if (i, j) != (0, 0)]
    convolution = Workload("5x5", CHAIN, (make_group(group, "5x5", 3, kernel),))
    planner = DerivationPlanner(STRATEGIES["kds"].plan(convolution, MODEL), MODEL)
    reach = next(reach for reach in planner.reaches if not reach.direct)
    layouts = [planner.price(masters, reach) for masters in planner.candidates(reach)]
    basis = smallest_basis(group, map(group.rotation, kernel))
    assert len(basis.keys) == 7
    assert any(price.masters == basis.keys for price in layouts if price is not None)


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
