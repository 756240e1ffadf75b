"""ConvFHE's ResNets (Kim and Guyot, "Optimized privacy-preserving CNN inference"), from the lists in its
source."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from keywright.plan.keys.key_plan import KeyPlan, PlannedKey
from keywright.plan.ring.chain import Chain, Shape
from keywright.plan.ring.galois import AutomorphismGroup
from keywright.plan.strategies.policy import largest_alpha
from keywright.plan.workload.workload import Group, Workload, make_group

BOUND = 1553
"""Bits of the largest modulus at a secret of weight 192 and N = 2^16 that the published chains keep to.
`keywright security` estimates 122 bits of security for it; keys made here are held to 1474
(docs/reference/parameters.md)."""


def convert(data: Mapping[str, Any], setting: str) -> Workload:
    """One of its networks.

    Each convolution is followed by its packing, log2(N) automorphisms X -> X^(2^i + 1) of one ciphertext
    each at level 1, and by a bootstrapping for the packing of its block; the two changes of width repack at
    level 4. In the transforms of a bootstrapping all rotations of a factor are taken to be of one ciphertext
    for the eight smallest, and of one each for the others (baby and giant steps). How often a convolution
    packs is not in the list: once is assumed.

    Args:
        data: the parsed file.
        setting: kernel width, depth and wideness, as "3-20-1".
    """
    chain = Chain(16, (55, 49, 60, 60, 42, *[30] * 11, *[55] * 8, *[53] * 4), (61, 61, 61, 61, 61), None)
    group = AutomorphismGroup(chain.log_n)
    entry = data["settings"][setting]
    levels = data["levels"]
    packs = [group.from_galois_element(int(a["galois"])) for a in data["pack_automorphisms"]]
    out: list[Group] = []

    def note(name: str, level: int, steps: list[Any]) -> None:
        group_of_keys = make_group(group, name, level, steps)
        if group_of_keys.targets:
            out.append(group_of_keys)

    def transform(name: str, level: int, steps: list[int]) -> None:
        babies = sorted(steps)[:8]
        note(f"{name} baby", level, babies)
        for step in sorted(steps)[8:]:
            note(f"{name} giant", level, [step])

    def layer(name: str, log_slots: int) -> None:
        for automorphism in packs:
            note(f"{name}/pack", 1, [automorphism])
        stages = data["bootstrap_by_logslots"][str(log_slots)]
        for step in stages["subsum"]:
            note(f"{name}/subsum", int(levels["subsum"]), [step])
        for level, steps in zip(levels["cts"], stages["cts"], strict=True):
            transform(f"{name}/cts", int(level), steps)
        for level, steps in zip(levels["stc"], stages["stc"], strict=True):
            transform(f"{name}/stc", int(level), steps)

    sparse = entry["log_sparse_per_block"]
    for block, count in enumerate(entry["conv_layers_per_block"], start=1):
        for index in range(int(count)):
            layer(f"block {block}.{index + 1}", 15 - int(sparse[f"block{block}"]))
        if block < len(entry["conv_layers_per_block"]):
            site = entry["strided_repack"][block - 1]
            note(f"{site['site']}/repack m", int(site["level"]), site["stage_m"])
            for step in site["stage_r"]:
                note(f"{site['site']}/repack r", int(site["level"]), [step])
            layer(f"stride {block}", 15 - int(sparse[f"stride{block}"]))
    return Workload(f"ConvFHE {setting}", chain, tuple(out))


def with_own_keys(plan: KeyPlan) -> KeyPlan:
    """The hops of a plan for a converted network, with keys as the source makes them: both halves stored.

    All are for the top level. Rotations divide it into six digits over five special primes; the packings
    have keys of their own, one prime a digit and one special prime, also of automorphisms that are rotations
    elsewhere. With `all-required` it is the program's own plan.
    """
    chain = plan.workload.chain
    top = chain.max_level
    full = Shape(chain, top, largest_alpha(chain), len(chain.p), seeded=False)
    pack = Shape(chain, top, 1, 1, seeded=False)
    hops = tuple(
        tuple(
            replace(hop, key=PlannedKey(hop.key.automorphism, pack if _packs(group) else full))
            for hop in tree
        )
        for group, tree in zip(plan.workload.groups, plan.hops, strict=True)
    )
    keys = replace(plan, hops=hops)
    keys.check()
    return keys


def made_keys(data: Mapping[str, Any], setting: str) -> tuple[int, int]:
    """How many keys the source makes for a setting, used or not, and their bytes.

    Evaluator and bootstrapping make their rotation keys separately, the latter with one for conjugation.
    """
    entry, params = data["settings"][setting], data["params"]
    full = int(entry["evaluator_rotation_count"]) + int(entry["bootstrap_rotations_generated_count"]) + 1
    packs = int(params["pack_keys_count"])
    sizes = int(params["one_full_key_bytes"]), int(params["one_pack_key_bytes"])
    return full + packs, full * sizes[0] + packs * sizes[1]


def _packs(group: Group) -> bool:
    return group.name.endswith("/pack")
