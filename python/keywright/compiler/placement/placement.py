"""Places bootstraps: a shortest path over the levels of the values that are alive.

Values are visited from the output to the input. Each visited node requires a level of the values that it
reads, their *need*: at least the level that it consumes from. A value is either computed at its need, or
computed at the input level of a bootstrap and bootstrapped. A state is the needs of the required values that
have not been visited: one number along a chain, one for each open branch parallel to a shortcut. Branches are
thus weighed together, not one after the other. If all needs of one state are at least as high as the needs of
another state and it costs no less, it is dropped: lower needs never cost more, because every operation is
cheaper at lower levels. The result is therefore the cheapest of all placements as long as the states fit in
`MAX_STATES`.

Orion (Ebel et al., ASPLOS 2025) also places bootstraps by a shortest path over the levels of layers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from keywright.compiler.graph.graph import (
    Graph,
    Input,
    Linear,
    Multiply,
    Polynomial,
    describe,
    levels_consumed,
    operands,
)
from keywright.compiler.layout.layer_work import LayerWork
from keywright.errors.network import RefusalError
from keywright.errors.refusals.sizes import cannot_place, too_deep
from keywright.program.operands.bootstraps import Bootstrap

from .costs import CostTable
from .ring import Ring

MAX_STATES = 2000
"""States kept at each value; beyond that, only the cheapest. Networks with shortcuts have tens."""


@dataclass(frozen=True)
class Placement:
    """Which values are bootstrapped.

    Attributes:
        options: the candidate bootstraps; none if levels suffice.
        bootstraps: index of the bootstrap by value.
        levels: level at which each value is computed, before its bootstrap.
        needs: highest level at which it is read, after its bootstrap.
        seconds: predicted time of everything.
    """

    options: tuple[Bootstrap, ...]
    bootstraps: Mapping[int, int]
    levels: dict[int, int]
    needs: dict[int, int]
    seconds: float


@dataclass(frozen=True)
class LevelLimits:
    """The levels between which a program runs.

    Attributes:
        highest: level of a ciphertext.
        input: highest level of the input.
        output: level of the result.
    """

    highest: int
    input: int
    output: int


@dataclass(frozen=True, eq=False)
class Problem:
    """The input of the placement.

    Attributes:
        graph: in topological order, without activations.
        work: of each value's ciphertexts together.
        ciphertexts: of each value.
        options: bootstraps to choose from.
        largest: bound on the absolute values of each value; a bootstrap takes values of at most 1.
        limits: the levels between which it runs.
        costs: of everything, in the largest ring.
        rings: for each value, the rings whose ciphertexts have enough slots, the largest first: it is assumed
            to be computed in the smallest that supports the level.
    """

    graph: Graph
    work: Mapping[int, LayerWork]
    ciphertexts: Mapping[int, int]
    options: Sequence[Bootstrap]
    largest: Mapping[int, float]
    limits: LevelLimits
    costs: CostTable
    rings: Mapping[int, Sequence[Ring]] = field(default_factory=dict)

    def seconds(self, number: int, level: int) -> float:
        """Return the time of computing a value at a level."""
        above = level + levels_consumed(self.graph.nodes[number])
        holding = [ring.costs for ring in self.rings.get(number, ()) if above <= ring.level]
        costs = holding[-1] if holding else self.costs
        return costs.seconds(self.work[number], above)

    def bootstrap_seconds(self, number: int, option: Bootstrap) -> float:
        """Return the time of bootstrapping a value."""
        return self.costs.bootstrap_seconds(option, self.ciphertexts[number])

    @cached_property
    def drifted(self) -> set[int]:
        """Return the values whose scale depends on the levels of the products before them."""
        members: set[int] = set()
        for number, node in self.graph.nodes.items():
            if isinstance(node, Multiply) or any(operand in members for operand in operands(node)):
                members.add(number)
        return members

    @cached_property
    def depths(self) -> dict[int, int]:
        """Return the depth of each value; see `Graph.depths`."""
        return self.graph.depths()

    def reads(self, number: int, level: int) -> list[tuple[int, int]]:
        """Return which values are read at which level to produce a result at a level.

        Values that are summed must agree in scale, which costs a level. All but the deepest have one to
        spare, if scales can differ. They cannot at the highest level, where values are fresh.
        """
        node = self.graph.nodes[number]
        base, sources = level + levels_consumed(node), operands(node)
        if isinstance(node, Multiply) or not any(source in self.drifted for source in sources):
            return [(source, base) for source in sources]
        deepest = max(sources, key=lambda source: self.depths[source])
        spare = min(base + 1, max(self.limits.highest, base))
        return [(source, base if source == deepest else spare) for source in sources]

    def choices(self, number: int, need: int) -> list[tuple[int | None, int, float]]:
        """Return the ways to have a value at a level: bootstrap, level of computation, time."""
        node = self.graph.nodes[number]
        results: list[tuple[int | None, int, float]] = []
        if isinstance(node, Input):
            return [(None, need, 0.0)] if need <= self.limits.input else []
        if need + levels_consumed(node) <= self.limits.highest:
            results.append((None, need, self.seconds(number, need)))
        for index, option in enumerate(self.options):
            level = option.input_level
            reached = option.output_level >= need and level + levels_consumed(node) <= self.limits.highest
            if reached and self.largest[number] <= 1:
                time = self.seconds(number, level) + self.bootstrap_seconds(number, option)
                results.append((index, level, time))
        return results


@dataclass(frozen=True, eq=False)
class _State:
    needs: dict[int, int]
    seconds: float
    chosen: tuple[int, int | None] | None
    before: "_State | None"


def place(problem: Problem) -> Placement:
    """Return the fastest placement.

    Raises:
        RefusalError: there are no bootstraps and too few levels.
        RefusalError: names the first layer, from the output, that no placement can reach.
    """
    graph = problem.graph
    states = [_State({graph.output: problem.limits.output}, 0.0, None, None)]
    for number in reversed(graph.nodes):
        reached = [
            _advance(problem, state, number, *choice)
            for state in states
            for choice in problem.choices(number, state.needs[number])
        ]
        if not reached:
            raise _refusal(problem, number, min(state.needs[number] for state in states))
        states = _undominated(reached)
    best = min(states, key=lambda state: state.seconds)
    bootstraps: dict[int, int] = {}
    state: _State | None = best
    while state is not None and state.chosen is not None:
        number, option = state.chosen
        if option is not None:
            bootstraps[number] = option
        state = state.before
    levels, needs = assign_levels(problem, bootstraps)
    return Placement(tuple(problem.options), bootstraps, levels, needs, best.seconds)


def assign_levels(problem: Problem, bootstraps: Mapping[int, int]) -> tuple[dict[int, int], dict[int, int]]:
    """Return the level at which every value is computed and the highest at which it is read, both as low as
    its readers allow. Keys are then as small as possible.

    Args:
        bootstraps: index of the option by value.
    """
    needs = dict.fromkeys(problem.graph.nodes, 0)
    needs[problem.graph.output] = problem.limits.output
    levels: dict[int, int] = {}
    for number in reversed(problem.graph.nodes):
        option = bootstraps.get(number)
        levels[number] = needs[number] if option is None else problem.options[option].input_level
        for operand, need in problem.reads(number, levels[number]):
            needs[operand] = max(needs[operand], need)
    return levels, needs


def _advance(
    problem: Problem, state: _State, number: int, option: int | None, level: int, seconds: float
) -> _State:
    needs = {value: need for value, need in state.needs.items() if value != number}
    for operand, need in problem.reads(number, level):
        needs[operand] = max(needs.get(operand, 0), need)
    return _State(needs, state.seconds + seconds, (number, option), state)


def _undominated(states: list[_State]) -> list[_State]:
    """Return the states that no other state dominates; at most `MAX_STATES`."""
    kept: list[_State] = []
    for state in sorted(states, key=lambda state: (state.seconds, sum(state.needs.values()))):
        if len(kept) == MAX_STATES:
            break
        if not any(all(other.needs[v] <= need for v, need in state.needs.items()) for other in kept):
            kept.append(state)
    return kept


def _refusal(problem: Problem, number: int, need: int) -> RefusalError:
    node = problem.graph.nodes[number]
    if not problem.options:
        needed = max(problem.graph.depth(), need - problem.limits.output)
        return too_deep(needed, problem.limits.input - problem.limits.output)
    large = {
        describe(value, problem.graph.nodes[value]): bound
        for value, bound in problem.largest.items()
        if bound > 1 and isinstance(problem.graph.nodes[value], Linear | Multiply | Polynomial)
    }
    return cannot_place(
        describe(number, node),
        need,
        levels_consumed(node),
        problem.limits.input if isinstance(node, Input) else problem.limits.highest,
        [(option.input_level, option.output_level) for option in problem.options],
        large,
    )
