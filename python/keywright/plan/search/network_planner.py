"""Plans in bounded time: the default of every command that needs keys.

Two descents find the points of each ring. They divide the layers of bootstraps as the preset does, and leave
the baby steps open. This takes seconds for a network of a thousand rotations. Several rings are planned
together. `keywright plan` searches further, and proves how good the best plan can be.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import TypeVar

from keywright._copies import Unpicklable
from keywright._core import BootstrapperPlan, Parameters
from keywright._units import format_bytes
from keywright.errors import OutOfMemoryError
from keywright.plan.cost.error_budget import error_budget
from keywright.plan.cost.model import CostModel
from keywright.plan.keys.execution import PlanExecution, as_planned, smaller_rings
from keywright.plan.keys.hull import hull, savings
from keywright.plan.keys.key_plan import KeyPlan
from keywright.plan.keys.time_prediction import predict_plan
from keywright.plan.workload.network import convert, open_factors
from keywright.plan.workload.open_workload import OpenWorkload
from keywright.plan.workload.workload import Workload
from keywright.program.program import Program

from .recombination import Recombination
from .search_state import FrontierPoint

HOPS = 2
"""Maximum key switches for an automorphism."""

COMPARED = 16
"""Number of plans of a frontier that are compared by other properties, such as their memory."""

SLOWER = 1.05
"""Maximum time of a smaller plan, relative to the fastest one."""


TimedPlan = tuple[KeyPlan, float]
"""Keys of one ring, and the predicted seconds of their workload."""

Keys = TypeVar("Keys", KeyPlan, FrontierPoint)


class RingFrontier:
    """The keys of a workload of one ring, from the fewest bytes to the fastest.

    Attributes:
        points: at least one. Those above the error budget of the workload are left out; if all are, only the
            least noisy one is kept.

    Thread safety: one thread at a time.

    Args:
        workload: the workload.
        model: predicts times.
        max_hops: maximum key switches for an automorphism.
    """

    def __init__(self, workload: Workload | OpenWorkload, model: CostModel, *, max_hops: int = HOPS) -> None:
        opened = OpenWorkload.of(workload)
        self._model, self._search = model, Recombination(opened, model, max_hops=max_hops)
        points, most = self._search.begin(), opened.workload.noise_bits
        quiet = [point for point in points if most is None or point.noise_bits <= most]
        self.points = quiet or [min(points, key=lambda point: (point.noise_bits, point.seconds))]
        self._plans: dict[int, TimedPlan] = {}

    def timed(self, point: FrontierPoint) -> TimedPlan:
        """Return the plan of a point, with the whole predicted time. A point has the time of its key switches
        alone."""
        if point.stored_bytes not in self._plans:
            plan = self._search.plan("quick", point)
            self._plans[point.stored_bytes] = plan, predict_plan(plan, self._model).seconds
        return self._plans[point.stored_bytes]


def quick_plans(
    workload: Workload | OpenWorkload, model: CostModel, *, max_hops: int = HOPS
) -> list[TimedPlan]:
    """Return some plans of a `RingFrontier`, from the fewest bytes to the fastest; at least one."""
    ring = RingFrontier(workload, model, max_hops=max_hops)
    return [ring.timed(ring.points[place]) for place in _compared(len(ring.points))]


def _compared(count: int) -> list[int]:
    """Return places among so many, at most `COMPARED`, with the first and the last."""
    parts = max(1, min(COMPARED, count) - 1)
    return sorted({round(index * (count - 1) / parts) for index in range(parts + 1)})


def plan_jointly(rings: Sequence[Sequence[tuple[Keys, float]]]) -> list[tuple[tuple[Keys, ...], float]]:
    """Combine the plans of all rings. Starting with the fewest bytes in all, every step changes the ring
    whose next plan saves most time per byte, up to the fastest.

    Args:
        rings: for each ring, plans or points with their times, from the fewest bytes up.

    Returns:
        Plans of all rings, with the sum of their times. For a single ring, all of its plans.
    """
    if len(rings) == 1:
        return [((plan,), seconds) for plan, seconds in rings[0]]
    costs = [[(plan.stored_bytes, seconds) for plan, seconds in timed] for timed in rings]
    kept = [hull(each) for each in costs]
    places = [0] * len(rings)
    results = [tuple(timed[0] for timed in rings)]
    while True:
        open_ = [ring for ring, indices in enumerate(kept) if places[ring] + 1 < len(indices)]
        if not open_:
            return [(tuple(plan for plan, _ in one), sum(seconds for _, seconds in one)) for one in results]
        ring = max(
            open_,
            key=lambda ring: savings(
                *(costs[ring][index] for index in kept[ring][places[ring] : places[ring] + 2])
            ),
        )
        places[ring] += 1
        results.append(tuple(rings[ring][kept[ring][place]] for ring, place in enumerate(places)))


def open_network(
    network: Program,
    parameters: Parameters,
    bootstraps: Sequence[BootstrapperPlan] = (),
    name: str = "network",
) -> OpenWorkload:
    """Return a network's workload within the noise of its inputs and bootstraps, with these bootstraps' baby
    steps open.

    Args:
        network: the compiled network.
        parameters: the parameters that it was compiled for.
        bootstraps: plans of its bootstraps, in order.
        name: a name for it.
    """
    if any(step.opcode == "bootstrap" for step in network.instructions):
        opened = open_factors(bootstraps, name, network)
    else:
        opened = OpenWorkload.of(convert(network, parameters, name))
    return opened.with_noise(error_budget(bootstraps))


def open_ring(
    network: Program,
    parameters: Parameters,
    bootstraps: Sequence[BootstrapperPlan],
    name: str,
    log_n: int,
) -> OpenWorkload:
    """Return a network's workload in a smaller ring, within the noise of an encryption: bootstraps take place
    in the largest ring, and what they leave in a value is far above one rounding of a key switch.

    Args:
        network: the compiled network.
        parameters: the parameters that it was compiled for.
        bootstraps: plans of its bootstraps, in order, as in the plan of the largest ring.
        name: a name for it.
        log_n: log2 of the degree of the smaller ring.
    """
    workload = convert(network, parameters, name, bootstraps, log_n)
    return OpenWorkload.of(workload).with_noise(error_budget())


class KeyFrontier(
    Unpicklable,
    elsewhere="pickle the plan of its execution, and make a PlanExecution of it in the other process",
):
    """The keys of a network, of all its rings, from the fewest bytes to the fastest. They are searched once.

    Thread safety: one thread at a time.

    Args:
        network: the compiled network.
        parameters: the parameters that it was compiled for.
        bootstraps: plans of its bootstraps, in order.
        model: predicts times; built-in weights by default.
        name: a name for the program.
        max_hops: maximum key switches for an automorphism.
        slower: maximum time of `execution`, relative to the fastest plan.
    """

    def __init__(
        self,
        network: Program,
        parameters: Parameters,
        bootstraps: Sequence[BootstrapperPlan] = (),
        *,
        model: CostModel | None = None,
        name: str = "network",
        max_hops: int = HOPS,
        slower: float = SLOWER,
    ) -> None:
        self._network, self._parameters, self._bootstraps = network, parameters, bootstraps
        self._slower = slower
        self._rings = _rings(network, parameters, bootstraps, model or CostModel(), name, max_hops)
        self._points = _joint_points([ring.points for ring in self._rings])

    @cached_property
    def execution(self) -> PlanExecution:
        """The fewest bytes with nearly the best speed."""
        last = len(self._points) - 1
        limit = self._slower * self._seconds(last)
        return self._execution(
            bisect_left(range(last), True, key=lambda place: self._seconds(place) <= limit)
        )

    @cached_property
    def candidates(self) -> list[PlanExecution]:
        """Some of the plans, from the fewest bytes to the fastest."""
        return [self._execution(place) for place in _compared(len(self._points))]

    def within(self, most: int) -> PlanExecution:
        """Return the fastest keys that take at most ``most`` bytes in memory.

        Raises:
            OutOfMemoryError: none are that small.
        """
        sizes = [sum(point.stored_bytes for point in points) for points in self._points]
        require_size(sizes[0], most)
        return self._execution(bisect_right(sizes, most) - 1)

    def _timed(self, place: int) -> list[TimedPlan]:
        return [ring.timed(point) for ring, point in zip(self._rings, self._points[place], strict=True)]

    def _seconds(self, place: int) -> float:
        return sum(seconds for _, seconds in self._timed(place))

    def _execution(self, place: int) -> PlanExecution:
        largest, *smaller = (plan for plan, _ in self._timed(place))
        whole = replace(largest, subrings=tuple(smaller))
        return PlanExecution(whole, self._parameters, self._network, self._bootstraps)


def require_size(least: int, most: int) -> None:
    """Refuse keys of at least so many bytes in memory where at most so many are allowed. Raises
    `OutOfMemoryError`."""
    if least > most:
        text = f"no plan has keys of at most {format_bytes(most)}; allow at least {format_bytes(least)}"
        raise OutOfMemoryError(text, needed=least, budget=most, parts={"keys": least}, code="keys")


def _joint_points(rings: Sequence[Sequence[FrontierPoint]]) -> list[tuple[FrontierPoint, ...]]:
    """Return the choices of `plan_jointly`, and between two of them, which differ in one ring, all points of
    this ring: a limit is met more closely, if not at the least time per byte."""
    joint = [
        points for points, _ in plan_jointly([[(each, each.seconds) for each in ring] for ring in rings])
    ]
    results = joint[:1]
    for before, after in pairwise(joint):
        ring = next(
            place for place, pair in enumerate(zip(before, after, strict=True)) if pair[0] is not pair[1]
        )
        low, high = before[ring].stored_bytes, after[ring].stored_bytes
        results += [
            (*before[:ring], point, *before[ring + 1 :])
            for point in rings[ring]
            if low < point.stored_bytes <= high
        ]
    return results


def _rings(
    network: Program,
    parameters: Parameters,
    bootstraps: Sequence[BootstrapperPlan],
    model: CostModel,
    name: str,
    max_hops: int,
) -> list[RingFrontier]:
    """Return the keys of the largest ring and of the smaller ones. The bootstraps' work in a smaller ring is
    the same with all keys of the largest."""
    largest = RingFrontier(open_network(network, parameters, bootstraps, name), model, max_hops=max_hops)
    plan, _ = largest.timed(largest.points[0])
    planned = as_planned(plan.workload, bootstraps)
    smaller = (open_ring(network, parameters, planned, name, ring) for ring in smaller_rings(network))
    return [largest, *(RingFrontier(each, model, max_hops=max_hops) for each in smaller)]
