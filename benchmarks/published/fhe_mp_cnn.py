"""FHE-MP-CNN's ResNet-20 (Lee et al., ICML 2022), from the list of its rotations in program order."""

from collections.abc import Mapping
from typing import Any

from keywright.plan.cost.ephemeral import EphemeralSwitch
from keywright.plan.ring.chain import Chain
from keywright.plan.ring.galois import AutomorphismGroup
from keywright.plan.workload.factors import factor_alternatives
from keywright.plan.workload.open_workload import Alternative, Choice, OpenWorkload
from keywright.plan.workload.workload import CommonWork, Group, Relinearizations, Workload, make_group

from published.convfhe import BOUND

INDEPENDENT = ("channel_sum", "place", "replicate", "select", "sum", "fc")
"""Sites whose rotations are of different ciphertexts: running sums, or one product each. The shifts of a
convolution are of one."""

FACTORS = (
    ("cts part1", 30, "part1"),
    ("cts part2", 29, "part2"),
    ("cts part3", 28, "part3"),
    ("stc part3", 19, "part3"),
    ("stc part2", 18, "part2"),
    ("stc part1e", 17, "part1e"),
)
"""The transforms of a bootstrapping: name, level, and how the list calls their steps."""

REDUCTION_LEVEL = 27
"""Where the reduction of a bootstrapping begins: the first products of two ciphertexts."""

WEIGHT = 32
"""Hamming weight of the ephemeral secret, as in the shipped sets."""


def convert(data: Mapping[str, Any]) -> Workload:
    """The network with its bootstrappings as published.

    Sites state their level and steps; a bootstrapping has its stages at levels 30 to 28 and 19 to 17, baby
    steps of one ciphertext and giant steps of one each. Relinearizations of the activations and of the
    reduction are not in the list; one at the highest level at which there are any stands for them.

    Args:
        data: the parsed file.
    """
    return convert_open(data).published


def convert_open(data: Mapping[str, Any], special: tuple[float, ...] | None = None) -> OpenWorkload:
    """The network; how the factors of its bootstrappings' transforms are evaluated is open.

    Args:
        data: the parsed file.
        special: bits of special primes under a uniform ternary secret, with an ephemeral secret of weight 32
            for the time at which the modulus is raised; None for the parameters of the program, one special
            prime and a secret of weight 192.
    """
    q = (51, *[46] * 16, *[51] * 14)
    chain = Chain(int(data["params"]["logN"]), q, (51,), BOUND) if special is None else Chain(16, q, special)
    group = AutomorphismGroup(chain.log_n)
    out: list[Group] = []
    places: dict[str, list[int]] = {}

    def note(name: str, level: int, steps: list[int], count: int = 1) -> None:
        out.append(make_group(group, name, level, steps, count))

    for site in data["sites_in_program_order"]:
        name = str(site["site"])
        if "bootstrap_logn" in site:
            log_slots = str(site["bootstrap_logn"])
            for step in data["bootstrap_steps_by_logn"][log_slots]["subsum"]:
                note(f"{name}/subsum", 30, [step])
            places.setdefault(log_slots, []).append(len(out))
            continue
        steps, count = site["direct_steps"], int(site["count"])
        if name.rpartition("/")[2] in INDEPENDENT:
            for step in steps:
                note(name, int(site["level"]), [step], max(1, count // len(steps)))
        else:
            note(name, int(site["level"]), steps)
    choices = []
    for log_slots, rotations in places.items():
        stages = data["bootstrap_steps_by_logn"][log_slots]
        for factor, level, part in FACTORS:
            babies, giants = stages[f"{part}_baby"], stages[f"{part}_giant"]
            name = f"bootstrap 2^{log_slots} {factor}"
            published = [make_group(group, f"{name} baby", level, babies)]
            published += [make_group(group, f"{name} giant", level, [step]) for step in giants]
            signed = [_signed(group, a) for a in (0, *babies)]
            diagonals = [baby + _signed(group, giant) for baby in signed for giant in (0, *giants)]
            ways = factor_alternatives(group, name, level, diagonals)
            choices.append(
                Choice(name, tuple(rotations), (Alternative("published", tuple(published)), *ways))
            )
    bootstraps = sum(len(rotations) for rotations in places.values())
    ephemeral = () if special is None else _encapsulation(chain, bootstraps)
    workload = Workload(
        "FHE-MP-CNN ResNet-20",
        chain,
        tuple(out),
        (Relinearizations(REDUCTION_LEVEL, 1),),
        common=CommonWork(ephemeral),
    )
    return OpenWorkload(workload, tuple(choices))


def _encapsulation(chain: Chain, count: int) -> tuple[EphemeralSwitch, ...]:
    """To the ephemeral secret modulo q_0, and back from it when the modulus has been raised."""
    return (EphemeralSwitch(WEIGHT, 0, 1, count), EphemeralSwitch(WEIGHT, chain.max_level, 1, count))


def _signed(group: AutomorphismGroup, step: int) -> int:
    return step - group.slots if step > group.slots // 2 else step
