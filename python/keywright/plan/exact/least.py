"""What key switches of a workload take at least, over all keys that can be used at a level."""

from collections.abc import Sequence
from functools import cache

from keywright.plan.cost.model import CostModel, Form, SwitchCost
from keywright.plan.ring.chain import Shape, shapes
from keywright.plan.workload.workload import Workload


class LeastCosts:
    """Least seconds and bytes over shapes and levels of keys."""

    def __init__(self, workload: Workload, model: CostModel) -> None:
        """For the shapes of a workload's chain."""
        self._workload, self._model = workload, model
        self.stored_bytes = cache(self._stored_bytes)
        self.with_larger_keys = cache(self._with_larger_keys)
        self._usable = cache(self._find_usable)

    def _find_usable(self, level: int) -> Sequence[tuple[Shape, SwitchCost]]:
        """Every key for a level or a higher one, with what it takes there."""
        chain = self._workload.chain
        found = (shape for at in range(level, chain.max_level + 1) for shape in shapes(chain, at))
        costs = ((shape, self._model.switch(shape, level)) for shape in found)
        return [(shape, cost) for shape, cost in costs if cost is not None]

    def _stored_bytes(self, level: int) -> int:
        """Bytes of the smallest key that can be used at a level."""
        return min(shape.stored_bytes for shape, _ in self._usable(level))

    @property
    def largest(self) -> int:
        """Bytes of the largest key."""
        return max(shape.stored_bytes for shape, _ in self._usable(0))

    def removed(self, level: int) -> list[tuple[int, ...]]:
        """The primes that keys divide by at a level, each set of them once."""
        return sorted({cost.removed for _, cost in self._usable(level)})

    def group(self, level: int, form: Form, targets: int = 1) -> float:
        """Seconds of a group whose targets all have one hop."""
        return min(cost.shared + targets * _last(cost, form) for _, cost in self._usable(level))

    def switch(self, level: int) -> float:
        """Seconds of a key switch that shares nothing."""
        return min(cost.alone for _, cost in self._usable(level))

    def again(self, level: int, form: Form) -> float:
        """Seconds that a group takes more for each result that is decomposed."""
        costs = [cost for _, cost in self._usable(level)]
        return min(cost.shared for cost in costs) + min(cost.own - _last(cost, form) for cost in costs)

    def _with_larger_keys(
        self, level: int, form: Form, targets: int, levels: tuple[int, ...]
    ) -> tuple[float, float, list[tuple[float, float]]]:
        """Seconds of one target of a group, its share of the decomposition among them.

        Args:
            level: of the group.
            form: of the group.
            targets: how many the group has.
            levels: those that the bytes of keys are counted for, in ascending order.

        Returns:
            Seconds with the smallest key of a level; most that another shape saves of them; slopes and
            constants of lines of which the least, at a number of bytes, is at least what a key with so many
            more than the smallest one of its level saves.
        """
        points = []
        for shape, cost in self._usable(level):
            counted = max(at for at in levels if at <= shape.level)
            more = shape.stored_bytes - self.stored_bytes(counted)
            points.append((float(more), cost.shared / targets + _last(cost, form)))
        fastest = min(seconds for _, seconds in points)
        smallest = min((seconds for more, seconds in points if more == 0), default=fastest)
        return smallest, smallest - fastest, _above([(more, smallest - seconds) for more, seconds in points])


def _above(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Slopes and constants of lines through the origin and points that no point is above of, with the
    greatest value among them."""
    lines: list[tuple[float, float]] = []
    place, value = 0.0, 0.0
    while True:
        steps = [((v - value) / (x - place), x, v) for x, v in points if v > value and x > place]
        if not steps:
            return [*lines, (0.0, value)]
        slope, place_next, value_next = max(steps)
        lines.append((slope, value - slope * place))
        place, value = place_next, value_next


def _last(cost: SwitchCost, form: Form) -> float:
    """What is not shared, of a step that is not rotated again and may be done whole."""
    return min(cost.own, cost.of_form(form))
