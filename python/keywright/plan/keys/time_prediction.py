"""Predicts the time of a workload with the keys of a plan: its key switches, and all other operations."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from keywright.errors import WorkloadError
from keywright.plan.cost.model import CostModel, Form, KeyUse, Work, engine_use
from keywright.plan.ring.chain import Shape
from keywright.plan.workload.workload import Group

from .key_plan import IDENTITY, Hop, KeyPlan, PlannedKey

Part = Literal["shared"] | Form
"""A part of a key switch: the decomposition, or the unshared rest in a form."""


@dataclass(frozen=True)
class TimePrediction:
    """Seconds on one thread.

    Attributes:
        switches: key switches.
        rest: the other operations of the workload.
    """

    switches: float
    rest: float

    @property
    def seconds(self) -> float:
        """All seconds."""
        return self.switches + self.rest


def predict_plan(plan: KeyPlan, model: CostModel) -> TimePrediction:
    """Predict how long the engine takes to run a workload with a plan.

    Raises:
        WorkloadError: a key of the plan is too low for its use.
    """
    weights, removed = model.of_degree(plan.workload.chain.log_n), removed_primes(plan)
    switches = sum(
        count * part_work(shape, level, part).seconds(weights)
        for (shape, level, part), count in switch_parts(plan, removed).items()
    )
    # Switches to and from an ephemeral secret that the workload lists are the same in every plan.
    rest = rest_work(plan, removed).seconds(weights) + plan.workload.ephemeral_seconds(model)
    smaller = [predict_plan(subring, model) for subring in plan.subrings]
    return TimePrediction(
        switches + sum(prediction.switches for prediction in smaller),
        rest + sum(prediction.rest for prediction in smaller),
    )


def rest_work(plan: KeyPlan, removed: Mapping[int, tuple[int, ...]]) -> Work:
    """Return the work besides the key switches for which plans choose keys.

    Diagonals are products over the primes that they are encoded for, ``removed`` (`removed_primes`).
    """
    workload = plan.workload
    merged = {
        use.level: _use(plan.relinearization[use.level].shape, use.level).removed
        for use in workload.relinearizations
    }
    total = Work()
    for operation in workload.operations:
        level = operation.level
        work = operation.work(workload.chain, removed[level], merged.get(level, ()))
        total = total.plus(work, operation.count)
    return total


def switch_parts(
    plan: KeyPlan, removed: Mapping[int, tuple[int, ...]]
) -> Mapping[tuple[Shape, int, Part], int]:
    """Count each part of a key switch, by shape of the key and level.

    The diagonals of linear transforms are encoded for the primes that most key switches of their level
    remove, ``removed`` (`removed_primes`). Baby and giant steps whose keys remove others divide as whole key
    switches do, and so does every hop that is rotated again.
    """
    workload = plan.workload
    out: Counter[tuple[Shape, int, Part]] = Counter()
    for group, tree in zip(workload.groups, plan.hops, strict=True):
        for part, count in _tree_parts(plan, group, tree, removed[group.level]).items():
            out[part] += group.count * count
    for use in workload.relinearizations:
        shape = used_shape(plan, plan.relinearization[use.level])
        out[shape, use.level, "shared"] += use.count
        out[shape, use.level, "whole"] += use.count
    return out


def part_work(shape: Shape, level: int, part: Part) -> Work:
    """Return the work of a part of a key switch."""
    use = _use(shape, level)
    return use.shared if part == "shared" else use.of_form(part)


def removed_primes(plan: KeyPlan) -> Mapping[int, tuple[int, ...]]:
    """Return the primes that most automorphisms at each level remove, for which diagonals are encoded; the
    special primes if there are none."""
    chain = plan.workload.chain
    special = tuple(range(chain.max_level + 1, chain.max_level + 1 + len(chain.p)))
    counts: defaultdict[int, Counter[tuple[int, ...]]] = defaultdict(Counter)
    for group, tree in zip(plan.workload.groups, plan.hops, strict=True):
        for hop in tree:
            counts[group.level][_use(hop.key.shape, group.level).removed] += group.count
    most = {level: max(count, key=lambda one: (count[one], one)) for level, count in counts.items()}
    return defaultdict(lambda: special, most)


def used_shape(plan: KeyPlan, key: PlannedKey) -> Shape:
    """Return the shape of a key in memory: derived keys have no seed."""
    return replace(key.shape, seeded=False) if plan.derives(key) else key.shape


def _tree_parts(
    plan: KeyPlan, group: Group, tree: Sequence[Hop], removed: tuple[int, ...]
) -> Mapping[tuple[Shape, int, Part], int]:
    """Count the parts of the hops of a group: hops of one ciphertext whose keys have the same digits and
    special primes there share the decomposition."""
    out: Counter[tuple[Shape, int, Part]] = Counter()
    rotated_again = {hop.parent for hop in tree}
    decomposed = set()
    for hop in tree:
        shape = used_shape(plan, hop.key)
        use = _use(shape, group.level)
        if (hop.parent, use.digits, use.removed) not in decomposed:
            decomposed.add((hop.parent, use.digits, use.removed))
            out[shape, group.level, "shared"] += 1
        last = hop.child not in rotated_again and use.removed == removed
        # A giant step of several hops divides both halves before each further hop, and not after the last.
        direct = group.form != "giant" or hop.parent == IDENTITY
        out[shape, group.level, group.form if last and direct else "whole"] += 1
    return out


def _use(shape: Shape, level: int) -> KeyUse:
    use = engine_use(shape, level)
    if use is None:
        raise WorkloadError(f"a key of level {shape.level} cannot be used at level {level}")
    return use
