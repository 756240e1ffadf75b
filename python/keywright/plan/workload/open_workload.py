"""Workloads with open parts: alternatives that need different rotations.

A factor of a bootstrapping's transforms is an example: with n1 baby steps and a chain of giant steps it needs
the rotations by g, .., (n1 - 1) g of one ciphertext and n1 g of one after the other, for any n1. Because the
best keys depend on n1, and the best n1 on the other keys, the planner chooses both together.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from keywright.errors import WorkloadError
from keywright.plan.cost.operations import Operation

from .workload import Group, Workload


@dataclass(frozen=True)
class Alternative:
    """One alternative of a part of a workload.

    Attributes:
        name: a name.
        groups: its key switches, in order.
        operations: its other operations.
        babies: baby steps of a factor of a compiled network's bootstrapping.
    """

    name: str
    groups: tuple[Group, ...]
    operations: tuple[Operation, ...] = ()
    babies: int = 1


@dataclass(frozen=True)
class Choice:
    """A part of a workload with several alternatives.

    Attributes:
        name: a name.
        places: for each occurrence, the number of groups of the workload before it; ascending.
        alternatives: the alternatives, the published one first.
        factor: for a compiled network, the index of the bootstrapping and of its factor.
    """

    name: str
    places: tuple[int, ...]
    alternatives: tuple[Alternative, ...]
    factor: tuple[int, int] | None = None


@dataclass(frozen=True)
class OpenWorkload:
    """A workload and its open parts.

    Attributes:
        workload: everything else.
        choices: the parts; of several at one place the first one comes first.
    """

    workload: Workload
    choices: tuple[Choice, ...] = ()

    def __post_init__(self) -> None:
        """Check places and alternatives.

        Raises:
            WorkloadError: a choice lacks alternatives or places, a place is outside the workload, or an
                alternative does not match the workload's primes.
        """
        last = len(self.workload.groups)
        for choice in self.choices:
            where = f"{self.workload.name}: {choice.name}"
            if not choice.alternatives or not choice.places:
                raise WorkloadError(f"{where}: a choice needs at least one alternative and one place")
            for place in choice.places:
                if not 0 <= place <= last:
                    raise WorkloadError(f"{where}: place {place} is not in [0, {last}]")
            for alternative in choice.alternatives:
                name = f"{where}: {alternative.name}"
                replace(
                    self.workload, name=name, groups=alternative.groups, operations=alternative.operations
                )
            if choice.factor is not None:
                bootstrap, factor = choice.factor
                known = self.workload.common.bootstraps
                if not (0 <= bootstrap < len(known) and 0 <= factor < len(known[bootstrap])):
                    raise WorkloadError(
                        f"{where}: the program has no factor {factor} of bootstrap {bootstrap}"
                    )

    @classmethod
    def of(cls, workload: "Workload | OpenWorkload") -> "OpenWorkload":
        """Return a workload without open parts."""
        return workload if isinstance(workload, OpenWorkload) else cls(workload)

    def with_noise(self, noise_bits: float | None) -> "OpenWorkload":
        """Return the same with another error budget."""
        return replace(self, workload=replace(self.workload, noise_bits=noise_bits))

    @property
    def published(self) -> Workload:
        """Return the workload with the first alternative of each choice."""
        return self.resolve([0] * len(self.choices))

    def resolve(self, selection: Sequence[int]) -> Workload:
        """Return the workload with these alternatives, one for each choice.

        Raises:
            WorkloadError: the number of alternatives is wrong, or one does not exist.
        """
        groups = tuple(group for _, group in self.ordered(selection))
        operations = list(self.workload.operations)
        bootstraps = [list(factors) for factors in self.workload.common.bootstraps]
        for choice, picked in zip(self.choices, selection, strict=True):
            taken = choice.alternatives[picked]
            operations += [operation.times(len(choice.places)) for operation in taken.operations]
            if choice.factor is not None:
                bootstrap, factor = choice.factor
                layers, _ = bootstraps[bootstrap][factor]
                bootstraps[bootstrap][factor] = (layers, taken.babies)
        return replace(
            self.workload,
            groups=groups,
            operations=tuple(operations),
            common=replace(self.workload.common, bootstraps=tuple(tuple(factors) for factors in bootstraps)),
        )

    def ordered(self, selection: Sequence[int]) -> Iterator[tuple[int | None, Group]]:
        """Yield the groups of the workload with these alternatives, in order, each with the index of its
        choice; None for one that is not open.

        Raises:
            WorkloadError: as for `resolve`.
        """
        if len(selection) != len(self.choices):
            raise WorkloadError(
                f"{self.workload.name}: {len(selection)} alternatives were given for {len(self.choices)} "
                "choices"
            )
        before: dict[int, list[tuple[int | None, Group]]] = {}
        for index, (choice, picked) in enumerate(zip(self.choices, selection, strict=True)):
            if not 0 <= picked < len(choice.alternatives):
                raise WorkloadError(
                    f"{self.workload.name}: {choice.name}: alternative {picked} is not in "
                    f"[0, {len(choice.alternatives)})"
                )
            for place in choice.places:
                groups = choice.alternatives[picked].groups
                before.setdefault(place, []).extend((index, group) for group in groups)
        for place, group in enumerate(self.workload.groups):
            yield from before.get(place, ())
            yield None, group
        yield from before.get(len(self.workload.groups), ())

    def every(self) -> Workload:
        """Return the groups of all alternatives in one workload: every key that some alternative needs."""
        return replace(self.workload, groups=tuple(self._all()))

    def _all(self) -> Iterator[Group]:
        yield from self.workload.groups
        for choice in self.choices:
            for alternative in choice.alternatives:
                yield from alternative.groups
