"""Chooses the ring of every value: between bootstraps a smaller ring suffices at low levels.

A value whose content repeats after p slots is a polynomial of a subring of degree 2p, and can be switched to
a secret key of any ring of degree at least 2p (ring switching: Gentry, Halevi, Peikert and Smart, SCN 2012).
Each ring has 128 bits of security up to some level. A switch leads to a smaller ring and costs about one key
switch; only a bootstrap leads back. Every operation costs at most half as much in a ring of half the degree.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from keywright.compiler.graph.graph import Graph, Input, levels_consumed, operands
from keywright.compiler.layout.layer_work import LayerWork
from keywright.program.operands.layout import Layout

from .placement import Placement, Problem
from .ring import Ring

SWEEPS = 8
"""Maximum passes over all values. Each lowers the predicted time; after two or three nothing changes."""


def holding_slots(
    number: int, graph: Graph, layouts: Mapping[int, Layout], rings: Sequence[Ring]
) -> Sequence[Ring]:
    """Return the rings, the largest first, whose ciphertexts have enough slots to compute a value; the first
    always has."""
    widest = max(layouts[value].period for value in (number, *operands(graph.nodes[number])))
    return [ring for index, ring in enumerate(rings) if index == 0 or widest <= ring.slots]


@dataclass(frozen=True, eq=False)
class RingProblem:
    """Which ring each value is computed in.

    Attributes:
        problem, placement: the values and their levels.
        layouts: of the values.
        rings: to choose from, by falling degree. Bootstraps lead to the first, which supports every level.
        between_stages: whether input and output belong to a bootstrapping, so that the input is in the first
            ring and the output is switched to it.
    """

    problem: Problem
    placement: Placement
    layouts: Mapping[int, Layout]
    rings: Sequence[Ring]
    between_stages: bool = False

    def assign(self) -> dict[int, int]:
        """Return the ring of each value, as an index. It starts with the smallest valid rings, then changes
        one value at a time, with all that must follow, as long as the predicted time falls."""
        chosen = self._lowered(dict(self._smallest))
        best = self.seconds(chosen)
        for _ in range(SWEEPS):
            before = best
            for number in chosen:
                for index in range(self._smallest[number] + 1):
                    moved = self._lowered(self._raised(chosen, number, index))
                    seconds = self.seconds(moved)
                    if seconds < best:
                        best, chosen = seconds, moved
            if best == before:
                break
        return chosen

    def seconds(self, chosen: Mapping[int, int]) -> float:
        """Return the predicted time of everything, including switches between rings and bootstraps."""
        total = 0.0
        for number, index in chosen.items():
            total += self._computed[number][index] + self.bootstrap_seconds(number, index)
        for (number, _), level in self.switches(chosen).items():
            total += self._switch_seconds(number, self._offered(chosen, number), level)
        return total

    @cached_property
    def bootstrap_ring(self) -> int:
        """Return the ring in which all bootstraps begin: the smallest with the slots of what is bootstrapped.
        Values in other rings are switched to it before."""
        numbers = self.placement.bootstraps
        widest = max((self.layouts[number].period for number in numbers), default=0)
        held = [index for index, ring in enumerate(self.rings) if index == 0 or widest <= ring.slots]
        return held[-1]

    def _switch_seconds(self, number: int, ring: int, level: int) -> float:
        """Return the time of switching a value between a ring and a smaller one: about a rotation in the
        larger one."""
        each = self.rings[ring].costs.seconds(LayerWork(rotations=1), level)
        return each * self.layouts[number].ciphertexts

    def switches(self, chosen: Mapping[int, int]) -> dict[tuple[int, int], int]:
        """Return which values are switched to which smaller rings, and at which level."""
        table: dict[tuple[int, int], int] = {}
        problem = self.problem
        for number, index in chosen.items():
            for operand, level in problem.reads(number, self.placement.levels[number]):
                if index > self._offered(chosen, operand):
                    key = operand, index
                    table[key] = max(table.get(key, 0), level)
        return table

    def bootstrap_seconds(self, number: int, index: int) -> float:
        """Return the time of a value's bootstrap from a ring; 0 if it has none."""
        option = self.placement.bootstraps.get(number)
        if option is None:
            return 0.0
        bootstrap, begin = self.problem.options[option], self.bootstrap_ring
        seconds = self.rings[begin].bootstraps * self.problem.bootstrap_seconds(number, bootstrap)
        if index != begin:
            seconds += self._switch_seconds(number, min(index, begin), bootstrap.input_level)
        return seconds

    @cached_property
    def _smallest(self) -> dict[int, int]:
        """Return the smallest ring that supports a value, the levels at which its operands are read, and all
        slots of these. Every larger one does, too."""
        table = {}
        for number, node in self.problem.graph.nodes.items():
            reads = self.problem.reads(number, self.placement.levels[number])
            level = max((read for _, read in reads), default=self.placement.needs[number])
            held = holding_slots(number, self.problem.graph, self.layouts, self.rings)
            table[number] = max(index for index, ring in enumerate(held) if index == 0 or level <= ring.level)
            if isinstance(node, Input) and self.between_stages:
                table[number] = 0
        return table

    @cached_property
    def _computed(self) -> dict[int, list[float]]:
        """Return the seconds of computing each value in each ring."""
        return {
            number: [
                ring.costs.seconds(
                    self.problem.work[number], self.placement.levels[number] + levels_consumed(node)
                )
                for ring in self.rings
            ]
            for number, node in self.problem.graph.nodes.items()
        }

    def _offered(self, chosen: Mapping[int, int], number: int) -> int:
        """Return the ring in which a value is read, if not in a smaller one."""
        return 0 if number in self.placement.bootstraps else chosen[number]

    def _lowered(self, chosen: dict[int, int]) -> dict[int, int]:
        """Raise operands to rings at least as large as those of their readers."""
        for number, node in reversed(self.problem.graph.nodes.items()):
            for operand in operands(node):
                if operand not in self.placement.bootstraps:
                    chosen[operand] = min(chosen[operand], chosen[number])
        return chosen

    def _raised(self, chosen: Mapping[int, int], number: int, index: int) -> dict[int, int]:
        """Move a value to another ring, and its readers to one no larger where that is valid."""
        moved = {**chosen, number: index}
        for reader, node in self.problem.graph.nodes.items():
            for operand in operands(node):
                if operand not in self.placement.bootstraps and operand in moved and reader != number:
                    moved[reader] = min(max(moved[reader], moved[operand]), self._smallest[reader])
        return moved
