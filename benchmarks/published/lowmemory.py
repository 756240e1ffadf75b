"""LowMemoryFHEResNet20 (Rovida and Leporati, ePrint 2024/998), from the keys that each of its stages
loads."""

from collections.abc import Mapping
from typing import Any

from keywright.plan.ring.chain import Chain
from keywright.plan.ring.galois import AutomorphismGroup
from keywright.plan.workload.workload import Group, Workload, make_group


def convert(data: Mapping[str, Any], experiment: str) -> Workload:
    """One of its experiments.

    The list says which keys are resident in a stage, not how often each is used: every rotation of a stage
    counts once, at the top level, at which the program makes all its keys; the rotations of a transform's
    factor share their ciphertext.

    Args:
        data: the parsed file.
        experiment: "exp1" to "exp4".
    """
    entry = data["experiments"][experiment]
    params = entry["params"]
    scale, count = int(params["scale"]), int(params["q_primes"])
    special = [60] * int(params["p_primes_estimate"])
    chain = Chain(
        int(params["logN"]), (int(params["first_mod"]), *[scale] * (count - 1)), tuple(special), 4000
    )
    group = AutomorphismGroup(chain.log_n)
    out: list[Group] = []

    def note(name: str, level: int, steps: list[int]) -> None:
        group_of_keys = make_group(group, name, level, steps)
        if group_of_keys.targets:
            out.append(group_of_keys)

    for stage in entry["stages"]:
        name = str(stage["stage"])
        for step in stage["app_rotations"]:
            note(name, chain.max_level, [step])
        bootstrap = stage.get("bootstrap")
        if bootstrap:
            for step in bootstrap["sparse"]:
                note(f"{name}/sparse", chain.max_level, [step])
            for transform in ("cts", "stc"):
                for steps in bootstrap[transform]:
                    note(f"{name}/{transform}", chain.max_level, steps)
    return Workload(f"LowMemoryFHEResNet20 {experiment}", chain, tuple(out))
