"""A plan: its keys, and how each automorphism is served."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from math import log2

from keywright._copies import Stated
from keywright.errors import WorkloadError
from keywright.plan.cost.model import CostModel, Form, SwitchCost, engine_use
from keywright.plan.ring.chain import Shape
from keywright.plan.ring.galois import Automorphism
from keywright.plan.workload.workload import Group, Workload

IDENTITY = Automorphism(0)


@dataclass(frozen=True)
class PlannedKey(Stated):
    """A switching key.

    Attributes:
        automorphism: its automorphism; None for relinearization.
        shape: level, digits and special primes.
    """

    automorphism: Automorphism | None
    shape: Shape

    @cached_property
    def _hash(self) -> int:
        return hash((self.automorphism, self.shape))

    def __hash__(self) -> int:
        """Return the hash, which is computed once."""
        return self._hash


@dataclass(frozen=True)
class Hop:
    """One rotation inside a group.

    Attributes:
        parent: the automorphism applied to the ciphertext before; the identity for the ciphertext itself.
        child: the automorphism applied after this hop.
        key: the key of the difference.
    """

    parent: Automorphism
    child: Automorphism
    key: PlannedKey


@dataclass(frozen=True)
class Masters:
    """Master keys, from which the server derives Galois keys of a plan.

    Attributes:
        automorphisms: of the master keys.
        extra_bits: widths of the extra primes.
        shape: of every master key, over the special primes and the ciphertext primes as one chain, with the
            extra primes as special primes.
        max_hops: maximum number of derivations for a key.
        sent: keys that the client makes although the server could derive them.
    """

    automorphisms: tuple[Automorphism, ...]
    extra_bits: tuple[int, ...]
    shape: Shape
    max_hops: int
    sent: tuple[PlannedKey, ...] = ()

    @property
    def stored_bytes(self) -> int:
        """Bytes of the master keys, uniform halves as seeds."""
        return len(self.automorphisms) * self.shape.stored_bytes


def master_level(shape: Shape) -> int:
    """Return the level of the chain of master keys that has all primes of a key."""
    chain = shape.chain
    dropped = shape.special > len(chain.p)
    return len(chain.p) + (chain.max_level if dropped else shape.level)


@dataclass(frozen=True)
class KeyPlan(Stated):
    """Keys, and for each group of a workload the hops that make its targets.

    Attributes:
        strategy: the strategy that made it.
        workload: its workload.
        hops: for each group of `workload.groups`, a tree: every parent is the identity or a child before it.
        relinearization: for each level of `workload.relinearizations` its key.
        gap: how much better the best plan could be, as a share, if the strategy is an optimisation; None
            otherwise.
        masters: master keys, if the server derives the keys that they reach; None if the client makes all.
        subrings: plans for the network's operations in smaller rings, by falling degree.
    """

    strategy: str
    workload: Workload
    hops: tuple[tuple[Hop, ...], ...]
    relinearization: Mapping[int, PlannedKey] = field(default_factory=dict)
    gap: float | None = None
    masters: Masters | None = None
    subrings: tuple["KeyPlan", ...] = ()

    @property
    def rings(self) -> tuple["KeyPlan", ...]:
        """This plan and the plans of smaller rings."""
        return (self, *self.subrings)

    def derives(self, key: PlannedKey) -> bool:
        """Whether the server derives a key: a Galois key whose primes the master keys contain, unless it is
        sent."""
        masters = self.masters
        return (
            masters is not None
            and key.automorphism is not None
            and master_level(key.shape) <= masters.shape.level
            and key not in masters.sent
        )

    @cached_property
    def keys(self) -> tuple[PlannedKey, ...]:
        """All used keys, each once: relinearization first, then by automorphism and level."""
        used = {hop.key for tree in self.hops for hop in tree} | set(self.relinearization.values())
        return tuple(sorted(used, key=_key_order))

    @property
    def stored_bytes(self) -> int:
        """Bytes of all keys, uniform halves as seeds: stored, and, without derived keys, sent.

        This includes the keys to and from an ephemeral secret and the keys of smaller rings.
        """
        own = sum(key.shape.stored_bytes for key in self.keys) + self.workload.ephemeral_bytes
        return own + sum(plan.stored_bytes for plan in self.subrings)

    @property
    def sent_bytes(self) -> int:
        """Bytes that the client makes and sends: master keys, and the keys that are not derived."""
        result = sum(key.shape.stored_bytes for key in self.keys if not self.derives(key))
        masters = 0 if self.masters is None else self.masters.stored_bytes
        own = result + masters + self.workload.ephemeral_bytes
        return own + sum(plan.sent_bytes for plan in self.subrings)

    @property
    def max_hops(self) -> int:
        """Maximum number of key switches between a ciphertext and a rotation of it."""
        own = max((depth for tree in self.hops for depth in _depths(tree).values()), default=0)
        return max([own, *(plan.max_hops for plan in self.subrings)])

    @property
    def switches(self) -> int:
        """Number of rotations performed, with repetitions."""
        own = sum(
            group.count * len(tree) for group, tree in zip(self.workload.groups, self.hops, strict=True)
        )
        return own + sum(plan.switches for plan in self.subrings)

    def seconds(self, model: CostModel) -> float:
        """Return the predicted time of all key switches on one thread."""
        groups = zip(self.workload.groups, self.hops, strict=True)
        total = sum(
            group.count * tree_seconds(model, group.level, tree, group.form) for group, tree in groups
        )
        for use in self.workload.relinearizations:
            total += use.count * _require(model, self.relinearization[use.level], use.level).alone
        total += self.workload.ephemeral_seconds(model)
        return total + sum(plan.seconds(model) for plan in self.subrings)

    def residency(self, model: CostModel) -> dict["PlannedKey", list[float]]:
        """Return the predicted times of the uses of each Galois key of the largest ring since the start of
        the program, without the time of relinearizations, whose positions a program does not record."""
        uses: dict[PlannedKey, list[float]] = {}
        now = 0.0
        for group, tree in zip(self.workload.groups, self.hops, strict=True):
            for hop in tree:
                uses.setdefault(hop.key, []).append(now)
            now += group.count * tree_seconds(model, group.level, tree, group.form)
        return uses

    def noise_bits(self, model: CostModel) -> float:
        """Return log2 of the largest error of a served automorphism, in units of the rounding error of one
        key switch."""
        worst = max((2.0 ** (2 * plan.noise_bits(model)) for plan in self.subrings), default=1.0)
        for group, tree in zip(self.workload.groups, self.hops, strict=True):
            sums = {IDENTITY: 0.0}
            for hop in tree:
                sums[hop.child] = sums[hop.parent] + 1.0 + _require(model, hop.key, group.level).noise
                worst = max(worst, sums[hop.child])
        return 0.5 * log2(worst)

    def is_quiet(self, model: CostModel) -> bool:
        """Whether the noise of each ring is within the error budget of its workload."""
        budget = self.workload.noise_bits
        own = budget is None or replace(self, subrings=()).noise_bits(model) <= budget
        return own and all(plan.is_quiet(model) for plan in self.subrings)

    def check(self) -> None:
        """Check that the plan makes its workload's targets.

        Raises:
            WorkloadError: no hop makes a target; a hop's key has another automorphism or is too low; a parent
                is missing.
        """
        add = self.workload.automorphisms.add
        for group, tree in zip(self.workload.groups, self.hops, strict=True):
            members = {IDENTITY}
            for hop in tree:
                if hop.parent not in members:
                    raise WorkloadError(f"{group.name}: a hop from {hop.parent}, which is not made before")
                if hop.key.automorphism is None or add(hop.parent, hop.key.automorphism) != hop.child:
                    raise WorkloadError(
                        f"{group.name}: the key of {hop.key.automorphism} does not lead to {hop.child}"
                    )
                if hop.key.shape.level < group.level:
                    raise WorkloadError(
                        f"{group.name}: a key of level {hop.key.shape.level} is used at the higher level "
                        f"{group.level}"
                    )
                members.add(hop.child)
            for target in group.targets:
                if target not in members:
                    raise WorkloadError(f"{group.name}: nothing makes {target}")
        if self.masters is not None and not any(map(self.derives, self.keys)):
            raise WorkloadError(f"{self.workload.name}: the master keys reach none of the keys")
        for use in self.workload.relinearizations:
            key = self.relinearization.get(use.level)
            if key is None or key.shape.level < use.level:
                raise WorkloadError(f"no relinearization key for level {use.level}")
        degrees = [plan.workload.chain.log_n for plan in self.rings]
        if any(above <= below for above, below in pairwise(degrees)):
            raise WorkloadError(f"plans of rings of degrees 2^{degrees}; each must be smaller than the last")
        for plan in self.subrings:
            plan.check()


def tree_seconds(model: CostModel, level: int, tree: Sequence[Hop], form: Form = "whole") -> float:
    """Return the predicted time of the hops of one group. Hops from one ciphertext whose keys have the same
    digits and remove the same primes share the decomposition. A result that is rotated again takes a whole
    key switch, and so does a giant step of several hops.

    Diagonals of a linear transform are assumed to be encoded for the primes that its keys remove;
    `predict_plan` checks that.
    """
    again = {hop.parent for hop in tree}
    shared: dict[tuple[Automorphism, Digits], float] = {}
    own = 0.0
    for hop in tree:
        cost = _require(model, hop.key, level)
        last = hop.child not in again and (form != "giant" or hop.parent == IDENTITY)
        own += cost.of_form(form) if last else cost.own
        shared[hop.parent, digits_of(hop.key.shape, level)] = cost.shared
    return own + sum(shared.values())


Digits = tuple[tuple[tuple[int, int], ...], tuple[int, ...]]
"""The digits with which a key is used at a level, and the primes that it then removes."""


def digits_of(shape: Shape, level: int) -> Digits:
    """Return the property that keys must share to share a decomposition at a level.

    Raises:
        WorkloadError: the key is too low.
    """
    use = engine_use(shape, level)
    if use is None:
        raise WorkloadError(f"a key of level {shape.level} cannot be used at level {level}")
    return use.digits, use.removed


def tree_of_routes(
    group: Group,
    routes: Mapping[Automorphism, Sequence[PlannedKey]],
    add: Callable[[Automorphism, Automorphism], Automorphism],
) -> tuple[Hop, ...]:
    """Return the hops of a group from one route for each target; routes share common intermediate results."""
    hops: dict[Automorphism, Hop] = {}
    for target in sorted(group.targets, key=lambda target: len(routes[target])):
        place = IDENTITY
        for key in routes[target]:
            if key.automorphism is None:
                raise WorkloadError(f"{group.name}: a relinearization key on the way to {target}")
            child = add(place, key.automorphism)
            if child != IDENTITY and child not in hops:
                hops[child] = Hop(place, child, key)
            place = child
    return _in_order(hops)


def _in_order(hops: Mapping[Automorphism, Hop]) -> tuple[Hop, ...]:
    children: defaultdict[Automorphism, list[Hop]] = defaultdict(list)
    for hop in hops.values():
        children[hop.parent].append(hop)
    out: list[Hop] = []
    ready = [IDENTITY]
    while ready:
        below = sorted(children[ready.pop(0)], key=lambda hop: hop.child)
        out += below
        ready += [hop.child for hop in below]
    return tuple(out)


def _depths(tree: Iterable[Hop]) -> dict[Automorphism, int]:
    depths = {IDENTITY: 0}
    for hop in tree:
        depths[hop.child] = depths[hop.parent] + 1
    return depths


def _require(model: CostModel, key: PlannedKey, level: int) -> SwitchCost:
    cost = model.switch(key.shape, level)
    if cost is None:
        raise WorkloadError(f"a key of level {key.shape.level} cannot be used at level {level}")
    return cost


def _key_order(key: PlannedKey) -> tuple[bool, Automorphism, int, int, int]:
    return (
        key.automorphism is not None,
        key.automorphism or IDENTITY,
        key.shape.level,
        key.shape.alpha,
        key.shape.special,
    )
