"""Plans in bounded time: the default of every command that needs keys.

Two descents find the points of each ring. They divide the layers of bootstraps as the preset does, and leave
the baby steps open. This takes seconds for a network of a thousand rotations. Several rings are planned
together. `keywright plan` searches further, and proves how good the best plan can be.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise

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

HOPS = 2
"""Maximum key switches for an automorphism."""

COMPARED = 16
"""Number of plans of a frontier whose whole time is compared."""

JOINED = 64
"""The same for each of several rings: of their plans, only those are joined that save most time per byte."""

SLOWER = 1.05
"""Maximum time of a smaller plan, relative to the fastest one."""


TimedPlan = tuple[KeyPlan, float]
"""Keys of one ring, and the predicted seconds of their workload."""


def quick_plans(
    workload: Workload | OpenWorkload, model: CostModel, *, max_hops: int = HOPS, compared: int = COMPARED
) -> list[TimedPlan]:
    """Search the frontier of a workload's key sets, and return plans of some of its points, from the fewest
    bytes to the fastest; at least one.

    Args:
        workload: the workload. Points above its error budget are left out; if all are, only the least noisy
            one is kept.
        model: predicts times.
        max_hops: maximum key switches for an automorphism.
        compared: number of points whose whole time is predicted. The search knows that of key switches alone,
            and diagonals take more time the more primes a key switch removes.
    """
    opened = OpenWorkload.of(workload)
    search = Recombination(opened, model, max_hops=max_hops)
    points = search.begin()
    most = opened.workload.noise_bits
    quiet = [point for point in points if most is None or point.noise_bits <= most]
    if not quiet:
        quiet = [min(points, key=lambda point: (point.noise_bits, point.seconds))]
    plans = [search.plan("quick", quiet[place]) for place in _spread(len(quiet), compared)]
    return [(plan, predict_plan(plan, model).seconds) for plan in plans]


def _spread(count: int, most: int) -> list[int]:
    """Return at most so many places of a list of ``count``, evenly, with the first and the last."""
    parts = max(1, min(most, count) - 1)
    return sorted({round(index * (count - 1) / parts) for index in range(parts + 1)})


def plan_jointly(rings: Sequence[Sequence[TimedPlan]]) -> list[tuple[tuple[KeyPlan, ...], float]]:
    """Combine the plans of all rings. Starting with the fewest bytes in all, every step changes the ring
    whose next plan saves most time per byte, up to the fastest.

    Args:
        rings: for each ring, plans with their times, from the fewest bytes up.

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


def with_steps(rings: Sequence[Sequence[TimedPlan]]) -> list[tuple[tuple[KeyPlan, ...], float]]:
    """Return the choices of `plan_jointly`, and between two of them, which differ in one ring, the plans of
    this ring that are faster than smaller ones: limits are met more closely, if not at the least time per
    byte."""
    results, joint = list[tuple[tuple[KeyPlan, ...], float]](), plan_jointly(rings)
    for (before, slow), (after, fast) in pairwise(joint):
        place = next(place for place, plan in enumerate(before) if plan is not after[place])
        results.append((before, slow))
        low, high = before[place].stored_bytes, after[place].stored_bytes
        own = next(seconds for plan, seconds in rings[place] if plan is before[place])
        for plan, seconds in rings[place]:
            whole = slow - own + seconds
            if low < plan.stored_bytes < high and fast < whole < results[-1][1]:
                results.append(((*before[:place], plan, *before[place + 1 :]), whole))
    return [*results, joint[-1]]


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

    Attributes:
        slower: maximum time of `execution`, relative to the fastest plan, until it is first read.

    Thread safety: one thread at a time.

    Args:
        network: the compiled network.
        parameters: the parameters that it was compiled for.
        bootstraps: plans of its bootstraps, in order.
        model: predicts times; built-in weights by default.
        name: a name for the program.
        max_hops: maximum key switches for an automorphism.
        slower: as the attribute.
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
        self._timed = _plan_rings(network, parameters, bootstraps, model or CostModel(), name, max_hops)
        self.slower = slower

    @cached_property
    def execution(self) -> PlanExecution:
        """The fewest bytes with nearly the best speed."""
        limit = self.slower * min(seconds for _, seconds in self._timed)
        return self._execution(next(plans for plans, seconds in self._timed if seconds <= limit))

    @cached_property
    def candidates(self) -> list[PlanExecution]:
        """Some of the plans, from the fewest bytes to the fastest."""
        return [self._execution(self._timed[place][0]) for place in _spread(len(self._timed), COMPARED)]

    def within(self, most: int) -> PlanExecution:
        """Return the fastest keys that take at most ``most`` bytes in memory.

        Raises:
            OutOfMemoryError: none are that small.
        """
        sizes = [sum(plan.stored_bytes for plan in plans) for plans, _ in self._timed]
        require_size(sizes[0], most)
        return self._execution(self._timed[bisect_right(sizes, most) - 1][0])

    def _execution(self, plans: Sequence[KeyPlan]) -> PlanExecution:
        largest, *smaller = plans
        whole = replace(largest, subrings=tuple(smaller))
        return PlanExecution(whole, self._parameters, self._network, self._bootstraps)


def require_size(least: int, most: int) -> None:
    """Refuse keys of at least so many bytes in memory where at most so many are allowed. Raises
    `OutOfMemoryError`."""
    if least > most:
        text = f"no plan has keys of at most {format_bytes(most)}; allow at least {format_bytes(least)}"
        raise OutOfMemoryError(text, needed=least, budget=most, parts={"keys": least}, code="keys")


def _plan_rings(
    network: Program,
    parameters: Parameters,
    bootstraps: Sequence[BootstrapperPlan],
    model: CostModel,
    name: str,
    max_hops: int,
) -> list[tuple[tuple[KeyPlan, ...], float]]:
    """Return plans of the largest ring and of the smaller ones; see `plan_jointly`. The bootstraps' work in a
    smaller ring is the same in all plans of the largest."""
    rings = smaller_rings(network)
    options: dict[str, int] = {"max_hops": max_hops, "compared": JOINED if rings else COMPARED}
    largest = quick_plans(open_network(network, parameters, bootstraps, name), model, **options)
    planned = as_planned(largest[0][0].workload, bootstraps)
    smaller = (
        quick_plans(open_ring(network, parameters, planned, name, ring), model, **options) for ring in rings
    )
    return with_steps([largest, *smaller])
