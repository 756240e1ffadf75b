"""The rotation lists of published networks: their workloads' own keys, and `optimal` compared with every
strategy.

With the whole search they take minutes: `pytest -m large`.
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from keywright.cli import main
from keywright.plan import STRATEGIES, Chain, CostModel, KeyPolicy, Planner, make_group
from keywright.plan.keys.key_plan import PlannedKey
from keywright.plan.ring.galois import Automorphism, AutomorphismGroup
from keywright.plan.search.recombination import WORK
from keywright.plan.strategies.policy import largest_alpha
from keywright.plan.workload.workload import Workload
from published import convfhe, fhe_mp_cnn
from studies.network_keys.beside_optimal import compare
from studies.network_keys.rotation_lists import read, workloads

MODEL = CostModel()


def test_default_keys_are_those_of_the_programs() -> None:
    """Every key has the bytes that its list states; both halves are stored there."""
    theirs, mp_cnn, low = read("convfhe_resnet"), read("fhe_mp_cnn_resnet20"), read("lowmemory_fhe_resnet20")
    stated = {"FHE-MP-CNN": mp_cnn["params"]["one_full_key_bytes"]}
    stated |= dict.fromkeys(theirs["settings"], theirs["params"]["one_full_key_bytes"])
    stated |= {name: entry["params"]["one_key_bytes_estimate"] for name, entry in low["experiments"].items()}
    for name, workload in workloads().items():
        plan = STRATEGIES["all-required"].plan(workload, MODEL)
        assert {replace(key.shape, seeded=False).stored_bytes for key in plan.keys} == {stated[name]}, name


def test_keys_of_convfhe() -> None:
    theirs = read("convfhe_resnet")
    for name, entry in theirs["settings"].items():
        keys, stored = convfhe.made_keys(theirs, name)
        estimate = entry["key_bytes_estimate"]
        assert stored == estimate["evaluator"] + estimate["bootstrap"] + estimate["pack"]
        assert keys > entry["distinct_steps_generated_total"]
    workload = workloads()["3-20-1"]
    own = convfhe.with_own_keys(STRATEGIES["all-required"].plan(workload, MODEL))
    sizes = [key.shape.stored_bytes for key in own.keys]
    assert set(sizes) == {theirs["params"]["one_full_key_bytes"], theirs["params"]["one_pack_key_bytes"]}
    assert sizes.count(theirs["params"]["one_pack_key_bytes"]) == theirs["params"]["pack_keys_count"]
    used = theirs["settings"]["3-20-1"]["distinct_steps_used_total"]
    assert sizes.count(theirs["params"]["one_full_key_bytes"]) == used


def test_digits_are_what_the_special_primes_hold() -> None:
    for q, p, alpha in (
        ((60,) * 6, (50,) * 5, 4),  # 250 bits hold four primes of 60, not five
        ((50,) * 6, (50,), 1),
        ((30,) * 6, (61,), 2),
        ((55, 40, 40, 40), (50,), 1),  # not even one: the first digit is larger
        ((52, *[48] * 23), (60,) * 10, 12),  # OpenFHE, dnum = 2
    ):
        chain = Chain(16, q, p, 4000)
        assert largest_alpha(chain) == alpha
        top = chain.max_level
        workload = Workload("p", chain, (make_group(AutomorphismGroup(16), "g", min(2, top), [1]),))
        if max(q) > sum(p):
            continue
        uses: dict[Automorphism | None, list[int]] = {Automorphism(1): [min(2, top)]}
        for policy, level in (
            (KeyPolicy("maximum", "all"), top),
            (KeyPolicy("maximum", "needed"), min(2, top)),
        ):
            (key,) = policy.keys(workload, MODEL, uses).values()
            assert isinstance(key, PlannedKey)
            assert key.shape.level == level
            assert key.shape.digits == tuple(range(0, level + 1, alpha))
            # The fewest special primes that hold them.
            held = sum((*q, *p)[prime] for prime in key.shape.special_primes)
            widest = max(sum(q[start : min(start + alpha, level + 1)]) for start in key.shape.digits)
            assert widest <= held
            last = key.shape.special_primes[-1]
            assert held - (*q, *p)[last] < widest


@pytest.mark.parametrize(
    ("name", "work"),
    [("exp3", 1), *(pytest.param(name, WORK, marks=pytest.mark.large) for name in workloads())],
)
def test_optimal_is_never_worse_than_a_published_strategy(name: str, work: int) -> None:
    comparison = compare(Planner(workloads()[name], MODEL, max_hops=4, work=work))
    assert comparison.compared >= 16
    assert not comparison.worse


@pytest.mark.parametrize(
    ("name", "groups"), [("exp3", 4), pytest.param("FHE-MP-CNN", None, marks=pytest.mark.large)]
)
def test_lists_are_planned_by_the_command_twice_alike(
    name: str, groups: int | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "list.json"
    workload = workloads()[name]
    path.write_text(replace(workload, groups=workload.groups[:groups]).to_json())
    outputs = []
    for _ in range(2):
        assert main(["plan", str(path), "--time", "1.05x", "--json"]) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1]
    (record,) = [row for row in map(json.loads, outputs[0].splitlines()) if "plan" in row]
    rows = {row["name"]: row for row in record["strategies"]}
    assert rows["optimal"]["predicted_s"] <= 1.05 * rows["all-required"]["predicted_s"] * (1 + 1e-9)
    assert rows["optimal"]["stored_bytes"] <= rows["all-required"]["stored_bytes"]


def test_open_lists_resolve_to_the_published_ones() -> None:
    data = read("fhe_mp_cnn_resnet20")
    assert fhe_mp_cnn.convert_open(data).published == workloads()["FHE-MP-CNN"]
