"""A compiled network, with its bootstraps, as a program of the planner."""

from collections import Counter
from collections.abc import Sequence
from math import log2

from keywright import BootstrapperPlan, Parameters
from keywright.errors import PlanMismatchError
from keywright.nn import Program as Network
from keywright.plan.chain import Chain
from keywright.plan.galois import Automorphism
from keywright.plan.program import Group, Program, Relinearizations

UNBOUNDED = 1 << 20
"""Bits of the modulus of a key of parameters that promise no security."""


def chain_of(parameters: Parameters) -> Chain:
    """The primes of parameters.

    Raises:
        PlanMismatchError: the secret is not ternary, for which no bound on keys is known here.
    """
    if parameters.secret_distribution != "ternary" and not parameters.insecure:
        raise PlanMismatchError(
            f"keys are planned for ternary secrets, these parameters have a secret that is "
            f"{parameters.secret_distribution}"
        )
    return Chain(
        parameters.log_n,
        tuple(log2(modulus) for modulus in parameters.q),
        tuple(log2(modulus) for modulus in parameters.p),
        UNBOUNDED if parameters.insecure else None,
    )


def convert(
    network: Network, parameters: Parameters, name: str, bootstraps: Sequence[BootstrapperPlan] = ()
) -> Program:
    """Every key switch of a network at its level.

    Rotations of one ciphertext by one instruction share it. Key switches to and from an ephemeral secret have
    one way to be made and are left out.

    Args:
        network: the compiled network.
        parameters: those that it was compiled for.
        name: what to call it.
        bootstraps: plans of its bootstraps, in order; without them they are left out.
    """
    chain = chain_of(parameters)
    program = Program(name, chain, ())
    groups: list[Group] = []
    relinearizations: Counter[int] = Counter()
    for listed, used in steps(network, program, bootstraps):
        groups += listed
        relinearizations += used
    uses = tuple(Relinearizations(level, count) for level, count in sorted(relinearizations.items()))
    return Program(name, chain, tuple(groups), uses)


def convert_bootstrap(plan: BootstrapperPlan, name: str) -> Program:
    """Every key switch of one bootstrap, but those to and from an ephemeral secret."""
    chain = chain_of(plan.parameters)
    groups, relinearizations = _bootstrap(plan, Program(name, chain, ()), name)
    uses = tuple(Relinearizations(level, count) for level, count in sorted(relinearizations.items()))
    return Program(name, chain, tuple(groups), uses)


def steps(
    network: Network, program: Program, bootstraps: Sequence[BootstrapperPlan] = ()
) -> list[tuple[list[Group], Counter[int]]]:
    """The groups, and the levels of relinearisations, of each instruction that switches keys, in order."""
    slots = program.automorphisms.slots
    sources: dict[tuple[int, str, int], set[Automorphism]] = {}
    relinearizations: dict[int, Counter[int]] = {}
    for switch in network.key_switches:
        if switch.kind == "relinearisation":
            relinearizations.setdefault(switch.instruction, Counter())[switch.level] += switch.count
        else:
            target = Automorphism(switch.step % slots, switch.kind == "conjugation")
            sources.setdefault((switch.instruction, switch.source, switch.level), set()).add(target)
    groups: dict[int, list[Group]] = {}
    for (index, source, level), targets in sources.items():
        groups.setdefault(index, []).append(Group(source, level, tuple(sorted(targets)), 1))
    out = []
    for index, step in enumerate(network.instructions):
        found = groups.get(index, []), relinearizations.get(index, Counter())
        if step.operation == "bootstrap" and bootstraps:
            found = _bootstrap(bootstraps[step.argument], program, f"c{step.result}")
        if found[0] or found[1]:
            out.append(found)
    return out


def _bootstrap(plan: BootstrapperPlan, program: Program, name: str) -> tuple[list[Group], Counter[int]]:
    groups: list[Group] = []
    relinearizations: Counter[int] = Counter()
    read = program.automorphisms.from_galois_element
    for stage, level, elements, count in plan.key_groups:
        if elements:
            targets = tuple(sorted(read(element) for element in elements))
            groups.append(Group(f"{name}/{stage}", level, targets, count))
        else:
            relinearizations[level] += count
    return groups, relinearizations
