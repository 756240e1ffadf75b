"""A compiled network, with its bootstraps, as a program of the planner."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import log2

from keywright import BootstrapperPlan, KeySpec, Parameters
from keywright._core import maximum_log_qp
from keywright.nn import Program as Network
from keywright.plan.chain import Chain
from keywright.plan.cost import Form
from keywright.plan.galois import Automorphism
from keywright.plan.operations import Operation
from keywright.plan.program import Group, Program, Relinearizations

from .arithmetic import bootstrap_operations, network_operations

UNBOUNDED = 1 << 20
"""Bits of the modulus of a key of parameters that promise no security."""


def chain_of(parameters: Parameters) -> Chain:
    """The primes of parameters, with the bound on the modulus of a key that is secure for their secret.

    Raises:
        keywright.errors.SecurityError: no bound for that secret and degree is known.
    """
    sparse = re.fullmatch(r"ternary of weight (\d+)", parameters.secret_distribution)
    if parameters.insecure or sparse is None:
        bound = UNBOUNDED if parameters.insecure else None
    else:
        bound = maximum_log_qp(parameters.log_n, int(sparse[1]))
    return Chain(
        parameters.log_n,
        tuple(log2(modulus) for modulus in parameters.q),
        tuple(log2(modulus) for modulus in parameters.p),
        bound,
    )


def convert(
    network: Network, parameters: Parameters, name: str, bootstraps: Sequence[BootstrapperPlan] = ()
) -> Program:
    """Every key switch of a network at its level, and what it computes beside.

    Rotations of one ciphertext by one instruction share it. Key switches to and from an ephemeral secret have
    one way to be made and are left out.

    Args:
        network: the compiled network.
        parameters: those that it was compiled for.
        name: what to call it.
        bootstraps: plans of its bootstraps, in order; without them they are left out.
    """
    chain = chain_of(parameters)
    listed = steps(network, Program(name, chain, ()), bootstraps)
    return _program(name, chain, listed, network_operations(network, bootstraps))


def convert_bootstrap(plan: BootstrapperPlan, name: str) -> Program:
    """Every key switch of one bootstrap, and what it computes beside. Those to and from an ephemeral secret
    are among the latter."""
    chain = chain_of(plan.parameters)
    listed = bootstrap_steps(plan, Program(name, chain, ()), "b")
    return _program(name, chain, listed, bootstrap_operations(plan, "b"))


@dataclass(frozen=True)
class Step:
    """Key switches that are done together.

    Attributes:
        groups: automorphisms of ciphertexts.
        relinearizations: how many at each level.
        fixed: keys to and from an ephemeral secret.
    """

    groups: tuple[Group, ...] = ()
    relinearizations: Mapping[int, int] = field(default_factory=dict)
    fixed: tuple[KeySpec, ...] = ()


def steps(network: Network, program: Program, bootstraps: Sequence[BootstrapperPlan] = ()) -> list[Step]:
    """The key switches of each instruction, in order; of a bootstrap, of each of its parts."""
    slots = program.automorphisms.slots
    sources: dict[tuple[int, str, int], set[Automorphism]] = {}
    transforms = {i for i, s in enumerate(network.instructions) if s.operation == "linear_transform"}
    relinearizations: dict[int, Counter[int]] = {}
    for switch in network.key_switches:
        if switch.kind == "relinearisation":
            relinearizations.setdefault(switch.instruction, Counter())[switch.level] += switch.count
        else:
            target = Automorphism(switch.step % slots, switch.kind == "conjugation")
            sources.setdefault((switch.instruction, switch.source, switch.level), set()).add(target)
    groups: dict[int, list[Group]] = {}
    for (index, source, level), targets in sources.items():
        form: Form = "whole"
        if index in transforms:
            # "c7" is an input, "c7/64" the sum of a giant step.
            form = "giant" if "/" in source else "baby"
        groups.setdefault(index, []).append(Group(source, level, tuple(sorted(targets)), 1, form))
    out: list[Step] = []
    for index, step in enumerate(network.instructions):
        if step.operation == "bootstrap" and bootstraps:
            out += bootstrap_steps(bootstraps[step.argument], program, f"c{step.result}")
        elif index in groups or index in relinearizations:
            out.append(Step(tuple(groups.get(index, ())), relinearizations.get(index, {})))
    return out


def bootstrap_steps(plan: BootstrapperPlan, program: Program, name: str) -> list[Step]:
    """The key switches of one bootstrap, in the order of its stages."""
    read = program.automorphisms.from_galois_element
    out: list[Step] = []
    before = None
    fixed = tuple(plan.fixed_keys)
    for stage, form, level, elements, count in plan.key_groups:
        if stage == "coeffs_to_slots" != before and fixed:
            out.append(Step(fixed=fixed))
        before = stage
        if elements:
            targets = tuple(sorted(read(element) for element in elements))
            out.append(Step((Group(f"{name}/{stage}", level, targets, count, form),)))
        else:
            out.append(Step(relinearizations={level: count}))
    return out


def _program(name: str, chain: Chain, listed: Sequence[Step], operations: Sequence[Operation]) -> Program:
    relinearizations: Counter[int] = Counter()
    for step in listed:
        relinearizations.update(step.relinearizations)
    return Program(
        name,
        chain,
        tuple(group for step in listed for group in step.groups),
        tuple(Relinearizations(level, count) for level, count in sorted(relinearizations.items())),
        operations=tuple(operations),
    )
