"""Layers of ConvFHE and the keys of their packings."""

from __future__ import annotations

from math import prod

import pytest
from keywright.plan import STRATEGIES, CostModel
from keywright.plan.keys import plan_file
from keywright.plan.ring.chain_sources import chain_of
from studies.coefficient_convolution import (
    LAYERS,
    Layer,
    chain,
    change_of_width,
    key_sets,
    lines,
    measured_width,
    pack_workload,
    packings,
    width_parameters,
    width_workload,
)


def test_a_packing_pairs_ciphertexts_until_one_is_left() -> None:
    small = Layer("3-20-1", 3, 8, 64)
    counts = [packings(layer, 16) for layer in (*LAYERS, small)]
    assert counts[0] == {2**11 + 1: 8, 2**12 + 1: 4, 2**13 + 1: 2, 2**14 + 1: 1}
    assert [sum(count.values()) for count in counts] == [15, 63, 63]


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: f"{layer.setting}, {layer.width}")
def test_ways_make_their_automorphisms_with_keys_that_there_are(layer: Layer) -> None:
    workload = pack_workload(layer, chain(16))
    names = []
    for name, plan, _ in key_sets(workload, CostModel()):
        names.append(name)
        words = [line.split() for line in lines(layer, plan, 1)]
        keys = {int(line[1]) for line in words if line[0] == "key"}
        ways = {int(line[1]): list(map(int, line[2:])) for line in words if line[0] == "way"}
        assert set(ways) == set(packings(layer, 16))
        for target, way in ways.items():
            assert prod(way) % 2**17 == target
            assert set(way) <= keys
        assert len(keys) <= len(ways)
    assert names == ["convfhe", "ark-memory", "ark-time", "lowmem", "level-aware", "optimal"]


def test_the_change_of_width_has_the_rotations_of_the_list() -> None:
    level, (first, second) = change_of_width("3-20-1", 0, 16)
    assert level == 4
    assert first == [8 * k for k in range(1, 16)]
    assert second == [384 * k for k in range(1, 32)]
    _, wide = change_of_width("5-8-3", 0, 16)
    assert [len(steps) for steps in wide] == [15, 63]


def test_a_change_of_width_runs_under_the_keys_of_a_plan() -> None:
    workload = width_workload("3-20-1", 0, chain_of(width_parameters(13)))
    plan = STRATEGIES["ark-memory"].plan(workload, CostModel())
    row = measured_width("3-20-1", 0, plan_file.to_json(plan), 1)
    assert row["automorphisms"] == sum(len(group.targets) for group in workload.groups)
    assert row["keys"] == len(plan.keys) < row["automorphisms"]
    assert row["error"] < 2**-10
    assert row["peak_rss_bytes"] > row["key_bytes"]
