"""FHE-MP-CNN's ResNet-20 (Lee et al., ICML 2022), from the list of its rotations in program order."""

from collections.abc import Mapping
from typing import Any

from keywright.plan.chain import Chain
from keywright.plan.galois import AutomorphismGroup
from keywright.plan.program import Group, Program, Relinearizations, make_group

INDEPENDENT = ("channel_sum", "place", "replicate", "select", "sum", "fc")
"""Sites whose rotations are of different ciphertexts: running sums, or one product each. The shifts of a
convolution are of one."""


def convert(data: Mapping[str, Any]) -> Program:
    """The network with its bootstrappings.

    Sites state their level and steps; a bootstrapping has its stages at levels 30 to 28 and 19 to 17, baby
    steps of one ciphertext and giant steps of one each. Relinearisations of the activations and of the
    reduction are not in the list.

    Args:
        data: the parsed file.
    """
    chain = Chain(int(data["params"]["logN"]), (51, *[46] * 16, *[51] * 14), (51,), 1553)
    group = AutomorphismGroup(chain.log_n)
    out: list[Group] = []

    def note(name: str, level: int, steps: list[int], count: int = 1) -> None:
        out.append(make_group(group, name, level, steps, count))

    for site in data["sites_in_program_order"]:
        name = str(site["site"])
        if "bootstrap_logn" in site:
            stages = data["bootstrap_steps_by_logn"][str(site["bootstrap_logn"])]
            for step in stages["subsum"]:
                note(f"{name}/subsum", 30, [step])
            for part, level in (("part1", 30), ("part2", 29), ("part3", 28)):
                note(f"{name}/cts {part} baby", level, stages[f"{part}_baby"])
                for step in stages[f"{part}_giant"]:
                    note(f"{name}/cts {part} giant", level, [step])
            for part, level in (("part3", 19), ("part2", 18), ("part1e", 17)):
                note(f"{name}/stc {part} baby", level, stages[f"{part}_baby"])
                for step in stages[f"{part}_giant"]:
                    note(f"{name}/stc {part} giant", level, [step])
            continue
        steps, count = site["direct_steps"], int(site["count"])
        if name.rpartition("/")[2] in INDEPENDENT:
            for step in steps:
                note(name, int(site["level"]), [step], max(1, count // len(steps)))
        else:
            note(name, int(site["level"]), steps)
    return Program("FHE-MP-CNN ResNet-20", chain, tuple(out), (Relinearizations(chain.max_level, 1),))
