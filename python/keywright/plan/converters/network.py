"""A compiled network as a program of the planner."""

from keywright import Parameters
from keywright.nn import Program as Network
from keywright.plan.chain import Chain
from keywright.plan.galois import Automorphism
from keywright.plan.program import Group, Program, Relinearizations


def convert(network: Network, parameters: Parameters, name: str) -> Program:
    """Every key switch of a network at its level. Uses of one source share a ciphertext.

    Args:
        network: the compiled network.
        parameters: those that it was compiled for.
        name: what to call it.
    """
    sources: dict[tuple[str, int], dict[Automorphism, int]] = {}
    relinearizations: dict[int, int] = {}
    for switch in network.key_switches:
        if switch.kind == "relinearisation":
            relinearizations[switch.level] = relinearizations.get(switch.level, 0) + switch.count
        else:
            target = Automorphism(switch.step % parameters.max_slots, switch.kind == "conjugation")
            sources.setdefault((switch.source, switch.level), {})[target] = switch.count
    groups: list[Group] = []
    for (source, level), targets in sources.items():
        count = max(targets.values())
        groups.append(Group(source, level, tuple(sorted(targets)), count))
    chain = Chain(
        parameters.log_n,
        tuple(modulus.bit_length() for modulus in parameters.q),
        tuple(modulus.bit_length() for modulus in parameters.p),
    )
    used = tuple(Relinearizations(level, count) for level, count in sorted(relinearizations.items()))
    return Program(name, chain, tuple(groups), used)
