"""The least cost of a workload's key switches over all keys that can be used at a level."""

from collections.abc import Sequence
from functools import cache

from keywright.plan.cost.model import CostModel, Form, SwitchCost
from keywright.plan.ring.chain import Shape, shapes
from keywright.plan.workload.workload import Workload


class LeastCosts:
    """Least seconds and bytes over shapes and levels of keys."""

    def __init__(self, workload: Workload, model: CostModel) -> None:
        """Set up for the shapes of a workload's chain."""
        self._workload, self._model = workload, model
        self.stored_bytes = cache(self._stored_bytes)
        self.with_larger_keys = cache(self._with_larger_keys)
        self._usable = cache(self._find_usable)

    def _find_usable(self, level: int) -> Sequence[tuple[Shape, SwitchCost]]:
        """Return every key for a level or a higher one, with its cost there."""
        chain = self._workload.chain
        results = (shape for at in range(level, chain.max_level + 1) for shape in shapes(chain, at))
        costs = ((shape, self._model.switch(shape, level)) for shape in results)
        return [(shape, cost) for shape, cost in costs if cost is not None]

    def _stored_bytes(self, level: int) -> int:
        """Return the bytes of the smallest key that can be used at a level."""
        return min(shape.stored_bytes for shape, _ in self._usable(level))

    @property
    def largest(self) -> int:
        """Return the bytes of the largest key."""
        return max(shape.stored_bytes for shape, _ in self._usable(0))

    def removed(self, level: int) -> list[tuple[int, ...]]:
        """Return the sets of primes that keys divide by at a level, each once."""
        return sorted({cost.removed for _, cost in self._usable(level)})

    def group(self, level: int, form: Form, targets: int = 1) -> float:
        """Return the seconds of a group whose targets all have one hop."""
        return min(cost.shared + targets * _last(cost, form) for _, cost in self._usable(level))

    def switch(self, level: int) -> float:
        """Return the seconds of a key switch that shares nothing."""
        return min(cost.alone for _, cost in self._usable(level))

    def again(self, level: int, form: Form) -> float:
        """Return the extra seconds of a group for each result that is decomposed."""
        costs = [cost for _, cost in self._usable(level)]
        return min(cost.shared for cost in costs) + min(cost.own - _last(cost, form) for cost in costs)

    def _with_larger_keys(
        self, level: int, form: Form, targets: int, levels: tuple[int, ...]
    ) -> tuple[float, float, list[tuple[float, float]]]:
        """Return bounds on the seconds of one target of a group, including its share of the decomposition.

        Args:
            level: of the group.
            form: of the group.
            targets: number of targets in the group.
            levels: levels for which bytes of keys are counted, in ascending order.

        Returns:
            Seconds with the smallest key of a level; the maximum saving of another shape; slopes and
                constants of lines whose
            minimum, at a number of bytes, bounds the saving of a key with so many more bytes than the
                smallest one of its level.
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
    """Return slopes and constants of lines that lie above the origin and all points, with the greatest value
    among them."""
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
    """Return the unshared cost of a step that is not rotated again and may be done as a whole switch."""
    return min(cost.own, cost.of_form(form))
