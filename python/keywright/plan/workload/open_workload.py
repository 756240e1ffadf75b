"""Programs with parts that can be made in several ways, each of which rotates by other steps.

A factor of a bootstrapping's transforms is one: with n1 baby steps and a chain of giant steps it needs the
rotations by g, .., (n1 - 1) g of one ciphertext and n1 g of one after the other, for any n1. Which keys are
best depends on n1, and which n1 on the keys that there are anyway: the planner chooses both together.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from keywright.plan.cost.operations import Operation

from .workload import Group, Program, ProgramError


@dataclass(frozen=True)
class Alternative:
    """One way to make a part of a program.

    Attributes:
        name: what it is called.
        groups: its key switches, in order.
        operations: what it computes beside them.
        babies: baby steps, of a factor of a compiled network's bootstrapping.
    """

    name: str
    groups: tuple[Group, ...]
    operations: tuple[Operation, ...] = ()
    babies: int = 1


@dataclass(frozen=True)
class Choice:
    """A part of a program that can be made in several ways.

    Attributes:
        name: what it is called.
        places: for each time that the part is done, how many groups of the program come before it; ascending.
        alternatives: the ways, the published one first.
        factor: which part it is, of a compiled network: index of the bootstrapping, and of its factor.
    """

    name: str
    places: tuple[int, ...]
    alternatives: tuple[Alternative, ...]
    factor: tuple[int, int] | None = None


@dataclass(frozen=True)
class OpenProgram:
    """A program and the parts of it that are still open.

    Attributes:
        program: everything else.
        choices: the parts; of those at one place the first one comes first.
    """

    program: Program
    choices: tuple[Choice, ...] = ()

    def __post_init__(self) -> None:
        """Check places and alternatives.

        Raises:
            ProgramError: a choice without alternatives or places, a place outside the program, an alternative
                that is not one for the program's primes.
        """
        last = len(self.program.groups)
        for choice in self.choices:
            where = f"{self.program.name}: {choice.name}"
            if not choice.alternatives or not choice.places:
                raise ProgramError(f"{where}: a choice needs at least one alternative and one place")
            for place in choice.places:
                if not 0 <= place <= last:
                    raise ProgramError(f"{where}: place {place} is not in [0, {last}]")
            for alternative in choice.alternatives:
                name = f"{where}: {alternative.name}"
                replace(self.program, name=name, groups=alternative.groups, operations=alternative.operations)
            if choice.factor is not None:
                bootstrap, factor = choice.factor
                known = self.program.bootstraps
                if not (0 <= bootstrap < len(known) and 0 <= factor < len(known[bootstrap])):
                    raise ProgramError(
                        f"{where}: the program has no factor {factor} of bootstrap {bootstrap}"
                    )

    @classmethod
    def of(cls, program: "Program | OpenProgram") -> "OpenProgram":
        """The same; a program has nothing open."""
        return program if isinstance(program, OpenProgram) else cls(program)

    @property
    def published(self) -> Program:
        """The program with the first alternative of each choice."""
        return self.resolve([0] * len(self.choices))

    def resolve(self, selection: Sequence[int]) -> Program:
        """The program with these alternatives, one for each choice.

        Raises:
            ProgramError: another number of them, or one that there is not.
        """
        groups = tuple(group for _, group in self.ordered(selection))
        operations = list(self.program.operations)
        bootstraps = [list(factors) for factors in self.program.bootstraps]
        for choice, picked in zip(self.choices, selection, strict=True):
            taken = choice.alternatives[picked]
            operations += [operation.times(len(choice.places)) for operation in taken.operations]
            if choice.factor is not None:
                bootstrap, factor = choice.factor
                layers, _ = bootstraps[bootstrap][factor]
                bootstraps[bootstrap][factor] = (layers, taken.babies)
        return replace(
            self.program,
            groups=groups,
            operations=tuple(operations),
            bootstraps=tuple(tuple(factors) for factors in bootstraps),
        )

    def ordered(self, selection: Sequence[int]) -> Iterator[tuple[int | None, Group]]:
        """The groups of the program with these alternatives, in order, each with the index of its choice;
        None for one that is not open.

        Raises:
            ProgramError: as `resolve`.
        """
        if len(selection) != len(self.choices):
            raise ProgramError(
                f"{self.program.name}: {len(selection)} alternatives for {len(self.choices)} choices"
            )
        before: dict[int, list[tuple[int | None, Group]]] = {}
        for index, (choice, picked) in enumerate(zip(self.choices, selection, strict=True)):
            if not 0 <= picked < len(choice.alternatives):
                raise ProgramError(
                    f"{self.program.name}: {choice.name}: alternative {picked} is not in "
                    f"[0, {len(choice.alternatives)})"
                )
            for place in choice.places:
                groups = choice.alternatives[picked].groups
                before.setdefault(place, []).extend((index, group) for group in groups)
        for place, group in enumerate(self.program.groups):
            yield from before.get(place, ())
            yield None, group
        yield from before.get(len(self.program.groups), ())

    def every(self) -> Program:
        """The groups of all alternatives in one program: every key that some way needs."""
        return replace(self.program, groups=tuple(self._all()))

    def _all(self) -> Iterator[Group]:
        yield from self.program.groups
        for choice in self.choices:
            for alternative in choice.alternatives:
                yield from alternative.groups
