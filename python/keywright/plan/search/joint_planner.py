"""Plans a workload over several parameter sets and secrets.

Special primes and the secret determine the sizes of keys at the top levels. Every key depends on this choice,
so each variant is planned separately. The result is the plan of the best variant; its gap is relative to the
least bound of all variants.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from keywright._units import format_bytes, format_seconds
from keywright.errors import InfeasibleBudgetError, WorkloadError
from keywright.plan.cost.model import CostModel
from keywright.plan.keys.budget import Budget
from keywright.plan.keys.derivation import DerivationDesign, DerivationPlanner
from keywright.plan.keys.key_plan import KeyPlan
from keywright.plan.workload.open_workload import OpenWorkload
from keywright.plan.workload.workload import Workload

from .network_planner import TimedPlan, plan_jointly
from .planner import DEFAULT_HOPS, Planner, gap, refusal
from .recombination import WORK
from .search_state import FrontierPoint

DERIVED_POINTS = 4
"""Number of smallest plans on a frontier whose derivation is priced, and of others."""
SOLVED = 4
"""With more variants, only the best one is also solved exactly."""


class JointPlanner:
    """Variants of a workload, each with its frontier."""

    def __init__(
        self,
        variants: Sequence[Workload | OpenWorkload],
        model: CostModel,
        *,
        max_hops: int = DEFAULT_HOPS,
        report: Callable[[str], None] | None = None,
    ) -> None:
        """Search the frontier of each variant.

        Args:
            variants: the same workload with other parameters, each with its open parts.
            model: predicts times.
            max_hops: as for `Planner`.
            report: called with a description of the current work.

        Raises:
            ValueError: there are no variants.
        """
        if not variants:
            raise ValueError("variants is empty; give at least one variant to plan")
        self.model = model
        work = WORK // len(variants)
        self.planners = [
            Planner(variant, model, max_hops=max_hops, work=work, report=report) for variant in variants
        ]

    def best(self, budget: Budget, seconds: float = 60.0) -> KeyPlan:
        """Return the best plan of all variants within a budget, with the proven gap.

        Args:
            budget: bytes, or seconds of the whole workload.
            seconds: time limit of an exact solution, for each of a few variants, or for the best of many.

        Raises:
            InfeasibleBudgetError: there is none; the message states the minimum of all variants.
        """
        table: dict[int, tuple[tuple[float, float], KeyPlan]] = {}

        def note(index: int, seconds: float) -> float:
            planner = self.planners[index]
            plan, bound = planner.searched(budget, seconds)
            if plan is not None:
                value = (planner.seconds(plan), float(plan.stored_bytes))
                table[index] = (value if budget.stored_bytes is not None else value[::-1], plan)
            return bound

        few = len(self.planners) <= SOLVED
        bounds = [note(index, seconds if few else 0.0) for index in range(len(self.planners))]
        if not table:
            raise InfeasibleBudgetError(refusal(self.planners, budget, solve=few))
        best = min(table, key=lambda index: table[index][0])
        if not few:
            bounds[best] = note(best, seconds)
        plan = table[best][1]
        return replace(plan, strategy="optimal", gap=gap(plan, min(bounds), budget, self.model))

    def require_quiet(self, plan: KeyPlan) -> None:
        """Refuse a plan that is too noisy for the workload.

        Raises:
            InfeasibleBudgetError: its noise exceeds the workload's error budget.
        """
        self.planners[0].require_quiet(plan)

    def frontier(self) -> list[tuple[int, float]]:
        """Return bytes of keys and predicted seconds of the whole workload for the Pareto-optimal plans
        found, from the fewest bytes up."""
        results = sorted(
            (point.stored_bytes, planner.total(point))
            for planner in self.planners
            for point in planner.points
        )
        out: list[tuple[int, float]] = []
        for stored, seconds in results:
            if not out or seconds < out[-1][1]:
                out.append((stored, seconds))
        return out

    def derived(self, sent_bytes: float, seconds: float) -> DerivationDesign:
        """Return the plan and master keys with the least server time, within limits on bytes sent and on the
        workload's predicted time.

        Some plans of each frontier are tried, from the fewest keys up. Among those within the limits, the one
        with the fastest derivation gets more masters.

        Raises:
            InfeasibleBudgetError: there are none; the message states the minimum of bytes.
        """
        fitting: list[tuple[float, DerivationPlanner]] = []
        least = float("inf")
        for planner in self.planners:
            for point in _spread([point for point in planner.points if planner.total(point) <= seconds]):
                try:
                    derivation = DerivationPlanner(planner.plan(point), self.model)
                except WorkloadError:
                    continue
                least = min(least, derivation.least_bytes)
                if derivation.least_bytes > sent_bytes:
                    continue
                priced = derivation.priced
                if not priced:
                    continue
                within = [price.costs.server_seconds for price in priced if price.sent_bytes <= sent_bytes]
                if within:
                    fitting.append((min(within), derivation))
        if not fitting:
            raise InfeasibleBudgetError(
                f"{self.planners[0].workload.name}: no plan of at most {seconds:.4g} s derives its keys "
                f"from {sent_bytes / 1e6:.1f} MB or less; the minimum is {least / 1e6:.1f} MB"
            )
        return min(fitting, key=lambda entry: entry[0])[1].best(sent_bytes)


def _spread(points: Sequence[FrontierPoint]) -> list[FrontierPoint]:
    """Return the first `DERIVED_POINTS` of a list and as many more, spread over the rest."""
    rest = points[DERIVED_POINTS:]
    return [*points[:DERIVED_POINTS], *rest[:: max(1, -(-len(rest) // DERIVED_POINTS))]]


def divide_budget(
    largest: Sequence[TimedPlan], smaller: Sequence[Sequence[TimedPlan]], budget: Budget
) -> tuple[tuple[KeyPlan, ...], Budget]:
    """Choose the plans of the smaller rings so that all rings together are best, and return them with the
    remaining budget.

    Args:
        largest: plans of the largest ring with their times, from the fewest bytes up.
        smaller: the same for each smaller ring.
        budget: for all rings.

    Raises:
        InfeasibleBudgetError: the smaller rings alone exceed the budget.
    """
    if not smaller:
        return (), budget
    joint = plan_jointly([largest, *smaller])
    sizes = [sum(plan.stored_bytes for plan in plans) for plans, _ in joint]
    seconds = {id(plan): time for ring in (largest, *smaller) for plan, time in ring}
    if budget.stored_bytes is not None:
        within = [place for place, size in enumerate(sizes) if size <= budget.stored_bytes]
        plans = joint[within[-1] if within else 0][0][1:]
        left = budget.stored_bytes - sum(plan.stored_bytes for plan in plans)
        if left < 0:
            least = format_bytes(sum(plan.stored_bytes for plan in plans))
            raise InfeasibleBudgetError(f"the keys of the smaller rings alone take at least {least}")
        return plans, Budget(stored_bytes=left)
    assert budget.seconds is not None
    fast = [place for place, (_, time) in enumerate(joint) if time <= budget.seconds]
    plans = joint[fast[0] if fast else -1][0][1:]
    own = sum(seconds[id(plan)] for plan in plans)
    if own >= budget.seconds:
        raise InfeasibleBudgetError(f"the smaller rings alone take at least {format_seconds(own)}")
    return plans, Budget(seconds=budget.seconds - own)
