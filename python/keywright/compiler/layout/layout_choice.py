"""Chooses a layout for every value, so that the linear maps between them take few rotations."""

from collections.abc import Iterator, Mapping
from math import prod

from keywright.compiler.graph.graph import Graph, Linear, describe, operands
from keywright.errors import RefusalError
from keywright.program.arrays import Shape
from keywright.program.operands.layout import Layout, candidates, next_power_of_two

from .cyclic import cyclic_layouts
from .layer_work import Prices
from .lowering import placement_cost

SWEEPS = 3
"""Passes over the values; the first sees only the layouts before a value, later ones also those behind it."""

SLOT_DOUBLINGS = 2
"""How many doublings of the smallest sufficient slot count are tried: more room can save rotations."""


def choose_layouts(
    graph: Graph, max_slots: int, prices: Prices, *, fixed: bool = False, cyclic: bool = False
) -> dict[int, Layout]:
    """Return the layout of every value, all with the same number of slots, at most ``max_slots``, or exactly
    that many if they are ``fixed``.

    Values that are added or multiplied share a layout. Layouts are chosen one group after the other, each
    time the one with the lowest cost of the linear maps around it, for a few slot counts; the cheapest slot
    count wins.

    Args:
        cyclic: whether images use `cyclic_layouts` where they exist, instead of the cheapest.

    Raises:
        RefusalError: a layer is too large in every layout.
    """
    smallest = max_slots if fixed else min(next_power_of_two(largest_tensor(graph)), max_slots)
    options = []
    for doubling in range(SLOT_DOUBLINGS + 1):
        slots = smallest << doubling
        if slots <= max_slots:
            given = cyclic_layouts(graph, slots) if cyclic else {}
            search = _Search(graph, slots, prices, given)
            options.append((search.run(), slots, search))
    cost, _, search = min(options, key=lambda option: option[:2])
    if search.refusal is not None and cost == float("inf"):
        raise search.refusal
    return {number: search.chosen[group] for number, group in search.group.items()}


def largest_tensor(graph: Graph) -> int:
    """Return the number of elements of the largest value."""
    return max(_size(node.shape) for node in graph.nodes.values())


def useful_slots(graph: Graph, max_slots: int) -> int:
    """Return the largest slot count that `choose_layouts` tries, if slots are not fixed."""
    return min(next_power_of_two(largest_tensor(graph)) << SLOT_DOUBLINGS, max_slots)


class _Search:
    def __init__(self, graph: Graph, slots: int, prices: Prices, given: Mapping[int, Layout]) -> None:
        self.graph, self.slots, self.prices = graph, slots, prices
        self.group = _groups(graph)
        self.linear = {number: node for number, node in graph.nodes.items() if isinstance(node, Linear)}
        self.given = {self.group[number] for number in given}
        self.chosen = {self.group[number]: layout for number, layout in given.items()}
        self.costs: dict[tuple[int, ...], float] = {}
        self.seen: dict[int, dict[int, Layout | None]] = {}
        self.near: dict[int, set[int]] = {group: set() for group in self.group.values()}
        for number, node in self.linear.items():
            groups = self._touched(number, node)
            for group in groups:
                self.near[group] |= groups - {group}
        self.refusal: RefusalError | None = None
        self.kept: list[Layout] = []  # keeps every layout alive, because costs are cached by identity

    def run(self) -> float:
        """Choose all layouts and return their cost, in seconds."""
        groups = list(dict.fromkeys(self.group.values()))
        free = [group for group in groups if group not in self.given]
        for _ in range(SWEEPS):
            before = dict(self.chosen)
            for group in free:
                neighbours = {g: self.chosen.get(g) for g in self.near[group]}
                if self.seen.get(group) != neighbours:
                    self.seen[group] = neighbours
                    self._choose(group)
            if before == self.chosen:
                break
        return sum(self._cost(number) for number in self.linear) + sum(self._size_cost(g) for g in groups)

    def _choose(self, group: int) -> None:
        options = list(self._options(group))
        current = self.chosen.get(group)
        if current is not None:
            options.insert(0, current)
        self.kept += options
        best = float("inf")
        for option in options:
            previous = self.chosen.get(group)
            self.chosen[group] = option
            cost = self._size_cost(group) + sum(self._cost(number) for number in self._around(group))
            if cost < best:
                best = cost
            elif previous is not None:
                self.chosen[group] = previous

    def _options(self, group: int) -> Iterator[Layout]:
        members = [number for number in self.graph.nodes if self.group[number] == group]
        shapes = [self.graph.nodes[number].shape for number in members]
        shape = next((shape for shape in shapes if len(shape) == 3), shapes[0])
        makers = [self.linear[number] for number in members if number in self.linear]
        sources: list[Layout] = []
        for maker in makers:
            sources += [self.chosen[self.group[o]] for o in maker.operands if self.group[o] in self.chosen]
        stride = max((maker.stride for maker in makers), key=prod, default=(1, 1))
        return candidates(shape, self.slots, sources, stride)

    def _around(self, group: int) -> list[int]:
        """Return the linear maps into and out of a group whose other layouts are already chosen."""
        results = []
        for number, node in self.linear.items():
            groups = self._touched(number, node)
            if group in groups and groups <= self.chosen.keys():
                results.append(number)
        return results

    def _touched(self, number: int, node: Linear) -> set[int]:
        """Return the groups of a linear map's result and operands."""
        return {self.group[number], *(self.group[o] for o in node.operands)}

    def _cost(self, number: int) -> float:
        node = self.linear[number]
        sources = [self.chosen[self.group[o]] for o in node.operands]
        target = self.chosen[self.group[number]]
        key = (number, id(target), *(id(source) for source in sources))
        if key not in self.costs:
            try:
                self.costs[key] = placement_cost(list(node.matrices), sources, target, self.prices)
            except RefusalError as refusal:
                text = f"{describe(number, node)}: {refusal}"
                self.costs[key] = float("inf")
                self.refusal = RefusalError(text, code=refusal.code, **refusal.details)
        return self.costs[key]

    def _size_cost(self, group: int) -> float:
        return self.prices.ciphertext * (self.chosen[group].ciphertexts - 1)


def _groups(graph: Graph) -> dict[int, int]:
    """Return for each value the representative of those that must share its layout."""
    parent = {number: number for number in graph.nodes}

    def find(number: int) -> int:
        while parent[number] != number:
            number = parent[number]
        return number

    for number, node in graph.nodes.items():
        if not isinstance(node, Linear):
            for operand in operands(node):
                low, high = sorted((find(number), find(operand)))
                parent[high] = low
    return {number: find(number) for number in graph.nodes}


def _size(shape: Shape) -> int:
    size = 1
    for extent in shape:
        size *= extent
    return size
