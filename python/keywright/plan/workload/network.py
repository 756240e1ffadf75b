"""Converts a compiled network, with its bootstraps, to a workload of the planner."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from keywright._core import BootstrapperPlan, KeySpec, Parameters
from keywright.plan.cost.ephemeral import FixedKeys
from keywright.plan.cost.model import Form
from keywright.plan.cost.operations import Operation
from keywright.plan.ring.chain import Chain
from keywright.plan.ring.chain_sources import chain_of
from keywright.plan.ring.galois import Automorphism
from keywright.program.program import Program

from .arithmetic import (
    bootstrap_operations,
    factor_operations,
    network_operations,
    performed_bootstraps,
    stage_ring,
)
from .factors import COUNTS
from .open_workload import Alternative, Choice, OpenWorkload
from .ring_switches import RingSwitches
from .workload import CommonWork, Group, Relinearizations, Workload


def convert(
    network: Program,
    parameters: Parameters,
    name: str,
    bootstraps: Sequence[BootstrapperPlan] = (),
    log_n: int = 0,
) -> Workload:
    """Return every key switch of a network in one of its rings, with its level, and the other operations.

    Rotations of one ciphertext by one instruction share it. Key switches to and from an ephemeral secret have
    no choice of keys: they count as operations, and their keys are listed.

    Args:
        network: the compiled network.
        parameters: the parameters that it was compiled for.
        name: a name for it.
        bootstraps: plans of its bootstraps, in order; without them bootstraps are left out.
        log_n: the smaller ring of degree 2^log_n, or 0 for the largest.
    """
    chain = chain_of(parameters.subring(log_n) if log_n else parameters)
    listed = switch_bundles(network, Workload(name, chain, ()), bootstraps, log_n)
    used = bootstraps if any(step.opcode == "bootstrap" for step in network.instructions) else ()
    operations = network_operations(network, bootstraps, log_n)
    workload = _workload(name, chain, listed, operations, () if log_n else used)
    switches = _ring_switches(network, log_n, parameters.log_n)
    return replace(workload, common=replace(workload.common, ring_switches=switches))


def _ring_switches(network: Program, log_n: int, largest: int) -> tuple[RingSwitches, ...]:
    """Return the ciphertexts that are switched into a ring; ``largest`` is the logarithm of the degree that 0
    means."""
    table: Counter[tuple[int, int]] = Counter()
    for step in network.instructions:
        if step.opcode == "switch_ring" and step.argument == log_n:
            table[network.rings[step.operands[0]] or largest, step.level] += 1
    return tuple(RingSwitches(source, level, count) for (source, level), count in sorted(table.items()))


def convert_bootstrap(plan: BootstrapperPlan, name: str) -> Workload:
    """Return every key switch of one bootstrap, and its other operations, which include switches to and from
    an ephemeral secret."""
    chain = chain_of(plan.parameters)
    listed = bootstrap_bundles(plan, Workload(name, chain, ()), "b")
    return _workload(name, chain, listed, bootstrap_operations(plan, "b"), (plan,))


def open_bootstraps(
    plans: Sequence[BootstrapperPlan], name: str, network: Program | None = None
) -> list[OpenWorkload]:
    """Return a network, or one bootstrap, with the numbers of baby and giant steps of its bootstraps'
    transforms open. The variants differ in how layers of the Fourier transform are divided among factors and
    in the baby steps of a factor that is combined with ModRaise. For `JointPlanner`; the first variant has
    the division of the plans.

    Args:
        plans: of the network's bootstraps, in order, all for the same parameters; or one.
        name: a name for the workload.
        network: the network; None for a bootstrap alone.
    """
    return [open_factors(varied, name, network) for varied in _variants(plans)]


def open_factors(
    plans: Sequence[BootstrapperPlan], name: str, network: Program | None = None
) -> OpenWorkload:
    """Return the first of `open_bootstraps`: layers are divided among factors as in the plans."""
    labels = _labels(network)
    if network is None:
        workload = convert_bootstrap(plans[0], name)
        listed = bootstrap_bundles(plans[0], Workload(name, workload.chain, ()), labels[0])
    else:
        workload = convert(network, plans[0].parameters, name, plans)
        listed = switch_bundles(network, Workload(name, workload.chain, ()), plans)
    return _open(workload, listed, plans, labels)


def _labels(network: Program | None) -> Mapping[int, str]:
    """Return a label for the first occurrence of each bootstrap."""
    if network is None:
        return {0: "b"}
    out: dict[int, str] = {}
    for step in network.instructions:
        if step.opcode == "bootstrap":
            out.setdefault(step.argument, f"c{step.result}")
    return out


BUDGETS = 4
"""Number of byte budgets, evenly spaced on a logarithmic scale from the smallest to that of the fastest plan,
for which the engine's divisions of layers are tried."""
RAISED = (1, 4, 16)
"""Baby steps tried for a factor that is combined with ModRaise: each needs its own key."""
MOST_BABIES = 32
"""Maximum baby steps tried for other factors: more bring no gain if keys should be few."""


def _variants(plans: Sequence[BootstrapperPlan]) -> list[tuple[BootstrapperPlan, ...]]:
    """Return the plans as they are, and variants that open choices do not cover."""
    fewest = [plan.with_key_budget("fewest") for plan in plans]
    fastest = [plan.with_key_budget("fastest") for plan in plans]
    results = [tuple(plans)]
    for place in range(BUDGETS):
        share = place / (BUDGETS - 1)
        budgets = [
            int(_bytes(few) ** (1 - share) * _bytes(fast) ** share)
            for few, fast in zip(fewest, fastest, strict=True)
        ]
        results.append(tuple(plan.with_key_budget(b + 1) for plan, b in zip(plans, budgets, strict=True)))
    out: dict[object, tuple[BootstrapperPlan, ...]] = {}
    for varied in results:
        for babies in (None, *RAISED):
            changed = tuple(_with_raised(plan, babies) for plan in varied)
            out.setdefault(tuple(map(_fixed, changed)), changed)
    return list(out.values())


def _bytes(plan: BootstrapperPlan) -> int:
    return sum(spec.bytes for spec in plan.required_keys)


def _fixed(plan: BootstrapperPlan) -> object:
    """Return what a planner does not decide."""
    ways = zip(plan.factors, plan.factor_ways, strict=True)
    return tuple((layers, babies if _raised(result) else 0) for (layers, babies), (_, _, result) in ways)


Ways = Sequence[tuple[int, Sequence[tuple[Form, Sequence[int], int]], tuple[int | None, Mapping[str, int]]]]


def _raised(ways: Ways) -> bool:
    return any(special is not None for _, _, (special, _) in ways)


def _with_raised(plan: BootstrapperPlan, babies: int | None) -> BootstrapperPlan:
    """Return a plan with so many baby steps of a factor combined with ModRaise, or as many as it can have."""
    factors = list(plan.factors)
    for index, (_, _, ways) in enumerate(plan.factor_ways):
        if babies is not None and _raised(ways):
            factors[index] = (factors[index][0], max(count for count, *_ in ways if count <= babies))
    return plan.with_factors(factors)


def _open(
    workload: Workload,
    listed: Sequence["SwitchBundle"],
    plans: Sequence[BootstrapperPlan],
    labels: Mapping[int, str],
) -> OpenWorkload:
    """Return a workload without the factors of its bootstraps, and these as choices."""
    read = workload.automorphisms.from_galois_element
    choices: dict[tuple[int, int], Choice] = {}
    for index, plan in enumerate(plans):
        if index not in labels:
            continue
        operations = factor_operations(plan, labels[index])
        for factor, ((stage, level, ways), (_, now)) in enumerate(
            zip(plan.factor_ways, plan.factors, strict=True)
        ):
            if _raised(ways) or stage_ring(plan, stage):
                continue
            results = []
            tried = [way for way in ways if way[0] == now or (way[0] in COUNTS and way[0] <= MOST_BABIES)]
            for babies, listed_groups, _ in sorted(tried, key=lambda way: way[0] != now):
                switches = tuple(
                    Group(
                        f"{labels[index]}/{stage}",
                        level,
                        tuple(sorted(map(read, elements))),
                        count * plan.iterations,
                        form,
                    )
                    for form, elements, count in listed_groups
                )
                beside = (operations[factor][babies],)
                results.append(Alternative(f"{babies} baby steps", switches, beside, babies))
            where = f"bootstrap {index} " if len(plans) > 1 else ""
            choices[index, factor] = Choice(
                f"{where}{stage} at level {level}", (), tuple(results), (index, factor)
            )
    groups: list[Group] = []
    places: dict[tuple[int, int], list[int]] = {}
    before = None
    for step in listed:
        if step.factor in choices:
            if step.factor != before:
                places.setdefault(step.factor, []).append(len(groups))
        else:
            groups += step.groups
        before = step.factor
    # In the order of the workload: of several choices at one place the first comes first.
    located = {factor: replace(choices[factor], places=tuple(result)) for factor, result in places.items()}
    published = OpenWorkload(replace(workload, groups=tuple(groups), operations=()), tuple(located.values()))
    counted: Counter[Operation] = Counter()
    for operation in workload.operations:
        counted[_unnamed(operation)] += operation.count
    for choice in located.values():
        for operation in choice.alternatives[0].operations:
            counted[_unnamed(operation)] -= operation.count * len(choice.places)
    rest = tuple(replace(operation, count=count) for operation, count in counted.items() if count)
    return replace(published, workload=replace(published.workload, operations=rest))


def _unnamed(operation: Operation) -> Operation:
    return replace(operation, name="beside", count=1)


def planned_part(workload: Workload) -> Workload:
    """Return the part of a workload on which a plan depends: equal groups and operations merged, operations
    without names, and no error budget."""
    operations: Counter[Operation] = Counter()
    for operation in workload.operations:
        operations[_unnamed(operation)] += operation.count
    sums = [replace(operation, count=count) for operation, count in operations.items()]
    return replace(
        workload.merged(),
        noise_bits=None,
        operations=tuple(sorted(sums, key=lambda operation: sorted(map(repr, operation.describe().items())))),
    )


@dataclass(frozen=True)
class SwitchBundle:
    """Key switches that are done together, for one instruction or one part of a bootstrap.

    Attributes:
        groups: automorphisms of ciphertexts.
        relinearizations: number at each level.
        fixed: keys to and from an ephemeral secret.
        factor: bootstrapping and factor of its transforms; None for other parts.
        instruction: of the network; 0 for a bootstrap alone.
    """

    groups: tuple[Group, ...] = ()
    relinearizations: Mapping[int, int] = field(default_factory=dict)
    fixed: tuple[KeySpec, ...] = ()
    factor: tuple[int, int] | None = None
    instruction: int = 0


def switch_bundles(
    network: Program, workload: Workload, bootstraps: Sequence[BootstrapperPlan] = (), log_n: int = 0
) -> list[SwitchBundle]:
    """Return the key switches of each instruction in a ring (see `convert`), in order; for a bootstrap, of
    each of its parts."""
    slots = workload.automorphisms.slots
    sources: dict[tuple[int, str, int], set[Automorphism]] = {}
    transforms = {i for i, s in enumerate(network.instructions) if s.opcode == "linear_transform"}
    relinearizations: dict[int, Counter[int]] = {}
    for switch in network.key_switches:
        if switch.log_n != log_n:
            continue
        if switch.kind == "relinearization":
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
    performed = performed_bootstraps(network, bootstraps) if bootstraps else {}
    out: list[SwitchBundle] = []
    for index, step in enumerate(network.instructions):
        if index in performed:
            plan, name = performed[index], f"c{step.result}"
            bundles = bootstrap_bundles(plan, workload, name, step.argument, log_n)
            out += [replace(bundle, instruction=index) for bundle in bundles]
        elif index in groups or index in relinearizations:
            out.append(
                SwitchBundle(tuple(groups.get(index, ())), relinearizations.get(index, {}), instruction=index)
            )
    return out


def bootstrap_bundles(
    plan: BootstrapperPlan, workload: Workload, name: str, index: int = 0, log_n: int = 0
) -> list[SwitchBundle]:
    """Return the key switches of one bootstrap in one of its rings (`stage_ring`), in the order of its
    stages.

    Args:
        plan: the bootstrap.
        workload: with the automorphism group.
        name: a name for it.
        index: index of the bootstrapping in a network.
        log_n: the ring.
    """
    read = workload.automorphisms.from_galois_element
    out: list[SwitchBundle] = []
    before = None
    fixed = tuple(plan.fixed_keys) if log_n == 0 else ()
    factors = [
        (of, factor, list(switches))
        for of, factor, switches in _factor_groups(plan)
        if stage_ring(plan, of) == log_n
    ]
    for stage, form, level, elements, count in plan.key_groups:
        if stage_ring(plan, stage) != log_n:
            continue
        if stage == "coeffs_to_slots" != before and fixed:
            out.append(SwitchBundle(fixed=fixed))
        before = stage
        # Factors without a key switch come before the next ones.
        while factors and factors[0][0] == stage and not factors[0][2]:
            out.append(SwitchBundle(factor=(index, factors.pop(0)[1])))
        if not elements:
            out.append(SwitchBundle(relinearizations={level: count}))
            continue
        factor = None
        if factors and factors[0][0] == stage and factors[0][2][0] == (form, level, elements, count):
            factor = (index, factors[0][1])
            factors[0][2].pop(0)
            if not factors[0][2]:
                factors.pop(0)
        targets = tuple(sorted(read(element) for element in elements))
        out.append(SwitchBundle((Group(f"{name}/{stage}", level, targets, count, form),), factor=factor))
    out += [SwitchBundle(factor=(index, factor)) for _, factor, left in factors if not left]
    return out


@lru_cache(maxsize=16)
def _factor_groups(plan: BootstrapperPlan) -> list[tuple[str, int, list[tuple[Form, int, list[int], int]]]]:
    """Return stage, index and key switches of each factor of a bootstrap's transforms, in the order of its
    stages."""
    out = []
    for factor, ((stage, level, ways), (_, now)) in enumerate(
        zip(plan.factor_ways, plan.factors, strict=True)
    ):
        (groups,) = (result for babies, result, _ in ways if babies == now)
        switches = [(form, level, elements, count * plan.iterations) for form, elements, count in groups]
        out.append((stage, factor, switches))
    return out if plan.order == "slots_to_coeffs_first" else sorted(out, key=lambda entry: entry[0])


def _workload(
    name: str,
    chain: Chain,
    listed: Sequence[SwitchBundle],
    operations: Sequence[Operation],
    bootstraps: Sequence[BootstrapperPlan],
) -> Workload:
    relinearizations: Counter[int] = Counter()
    for step in listed:
        relinearizations.update(step.relinearizations)
    fixed = Counter((spec.level, len(spec.special)) for spec in _fixed_keys(bootstraps))
    return Workload(
        name,
        chain,
        tuple(group for step in listed for group in step.groups),
        tuple(Relinearizations(level, count) for level, count in sorted(relinearizations.items())),
        operations=tuple(operations),
        common=CommonWork(
            fixed=tuple(
                FixedKeys(level, special, count) for (level, special), count in sorted(fixed.items())
            ),
            bootstraps=tuple(tuple(plan.factors) for plan in bootstraps),
        ),
    )


def _fixed_keys(bootstraps: Sequence[BootstrapperPlan]) -> list[KeySpec]:
    return list(dict.fromkeys(spec for plan in bootstraps for spec in plan.fixed_keys))
