"""The strategy `optimal`: the best plan found within a budget, and its proven distance from the optimum."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property

from keywright._units import format_bytes, format_seconds
from keywright.errors import InfeasibleBudgetError, WorkloadError
from keywright.plan.cost.model import CostModel
from keywright.plan.exact.bound import LowerBound
from keywright.plan.exact.optimizer import Optimizer
from keywright.plan.keys.budget import Budget
from keywright.plan.keys.key_plan import KeyPlan
from keywright.plan.keys.time_prediction import predict_plan
from keywright.plan.strategies import STRATEGIES
from keywright.plan.strategies.policy import KeyPolicy
from keywright.plan.workload.open_workload import OpenWorkload
from keywright.plan.workload.workload import Workload

from .recombination import WORK, Recombination
from .search_state import FrontierPoint

EXACT_COLUMNS = 4000
"""Workloads whose integer program has more columns are searched, not solved: HiGHS closes the gap of smaller
ones in seconds."""

POLICIES = (KeyPolicy("dynamic", "needed"), KeyPolicy("maximum", "needed"))
DEFAULT_HOPS = 4
COMPARED = 4
"""Number of points, preselected by the time of key switches, whose whole time is compared."""


class Planner:
    """A workload with everything that does not depend on the budget: its frontier, its bound, its integer
    program.

    Thread safety: one thread at a time.
    """

    def __init__(
        self,
        workload: Workload | OpenWorkload,
        model: CostModel,
        *,
        max_hops: int = DEFAULT_HOPS,
        work: int = WORK,
        report: Callable[[str], None] | None = None,
    ) -> None:
        """Search the frontier.

        Args:
            workload: the workload; the published strategies use the first alternative of its choices.
            model: predicts times.
            max_hops: maximum key switches for an automorphism, from 1 to 4: the error of a plan grows with
                it.
            work: as for `Recombination.search`.
            report: called with a description of the current work.
        """
        self.open = OpenWorkload.of(workload)
        workload = self.workload = self.open.published
        self.model, self.max_hops = model, max_hops
        say = report or (lambda _: None)
        self.published: list[KeyPlan] = []
        for strategy in STRATEGIES.values():
            say(strategy.name)
            plans = [
                strategy.plan(workload, model),
                *(strategy.plan(workload, model, policy) for policy in POLICIES),
            ]
            self.published += [plan for plan in plans if plan.max_hops <= max_hops and self.quiet(plan)]
        say("frontier")
        self._search = Recombination(self.open, model, max_hops=max_hops, noise_bits=workload.noise_bits)
        self.points = self._search.search(work)
        if not self.points and not self.published:
            raise InfeasibleBudgetError(self._loud())
        self._bound = LowerBound(self.open, model, max_hops=max_hops)
        self._needed = self.open.every().highest_levels

    def seconds(self, plan: KeyPlan) -> float:
        """Return the predicted time of the whole workload with a plan, the time that budgets limit."""
        if any(plan is known for known in self.published):
            return self._published_seconds[id(plan)]
        return predict_plan(plan, self.model).seconds

    @cached_property
    def _published_seconds(self) -> dict[int, float]:
        """Return the times of published plans by identity: predictions for large workloads take long, and
        every budget needs these."""
        return {id(plan): predict_plan(plan, self.model).seconds for plan in self.published}

    def total(self, point: FrontierPoint) -> float:
        """Return the predicted time of the whole workload with the plan of a point."""
        return self.seconds(self.plan(point))

    def quiet(self, plan: KeyPlan) -> bool:
        """Whether a plan is within the workload's error budget."""
        return plan.is_quiet(self.model)

    def require_quiet(self, plan: KeyPlan) -> None:
        """Refuse a plan that is not.

        Raises:
            InfeasibleBudgetError: its noise exceeds the workload's error budget.
        """
        if not self.quiet(plan):
            raise InfeasibleBudgetError(
                f"{self.workload.name}: the plan {plan.strategy} has {plan.noise_bits(self.model):.2f} "
                f"bits of noise, above the error budget of {self.workload.noise_bits:.2f}"
            )

    def _loud(self) -> str:
        """Explain why no plan is within the error budget."""
        fastest = STRATEGIES["kds"].plan(self.workload, self.model)
        return (
            f"{self.workload.name}: no plan found is within {self.workload.noise_bits:.2f} bits of noise; "
            "with a key for every rotation, the fastest digits have "
            f"{fastest.noise_bits(self.model):.2f}. Larger special primes, relative to the digits, reduce "
            "a key's noise"
        )

    def best(self, budget: Budget, seconds: float = 60.0) -> KeyPlan:
        """Return the best plan within a budget, with the proven gap.

        The gap is relative to all plans over automorphisms that the workload needs or that the plan has keys
        for.

        Args:
            budget: bytes, or seconds of the whole workload.
            seconds: time limit of an exact solution.

        Raises:
            InfeasibleBudgetError: no plan found is within the budget; the message states the minimum.
        """
        plan, bound = self.bounded(budget, seconds)
        return replace(plan, strategy="optimal", gap=gap(plan, bound, budget, self.model))

    def bounded(self, budget: Budget, seconds: float = 60.0) -> tuple[KeyPlan, float]:
        """Return the best plan within a budget, and a lower bound on the minimised quantity for all plans.
        Without a time limit, no exact solution is tried.

        Raises:
            InfeasibleBudgetError: as for `best`.
        """
        best, bound = self.searched(budget, seconds)
        if best is None:
            raise InfeasibleBudgetError(refusal([self], budget))
        return best, bound

    def searched(self, budget: Budget, seconds: float) -> tuple[KeyPlan | None, float]:
        """Do the same as `bounded`, but return None if no plan found is within the budget."""
        exact = self._exact(budget, seconds) if seconds > 0 else None
        best = self._best_known(budget, exact)
        others = set() if best is None else {key.automorphism for key in best.keys} - {None, *self._needed}
        if others:  # a published strategy's key, which the bound must allow
            extra = [a for a in others if a is not None]
            wider = LowerBound(self.open, self.model, extra, max_hops=self.max_hops)
            return best, _bound_within(wider, budget)
        bound = self.lower_bound(budget)
        optimizer = self._optimizer if exact is not None else None
        if (
            exact is not None
            and exact.gap is not None
            and self.max_hops <= 2
            and optimizer is not None
            and optimizer.complete
        ):
            rest = self._bound.rest if budget.stored_bytes is not None else 0.0
            solved = exact.seconds(self.model) if budget.stored_bytes is not None else exact.stored_bytes
            bound = max(bound, (1 - exact.gap) * solved + rest)
        return best, bound

    def quick(self, budget: Budget) -> KeyPlan:
        """Return the best plan within a budget among the frontier and the published strategies, without a
        bound, which takes longer.

        Raises:
            InfeasibleBudgetError: as for `best`.
        """
        best = self._best_known(budget)
        if best is None:
            raise InfeasibleBudgetError(refusal([self], budget, solve=False))
        return best

    def _best_known(self, budget: Budget, exact: KeyPlan | None = None) -> KeyPlan | None:
        candidates = [plan for plan in (self._searched(budget), *self.published, exact) if plan is not None]
        fitting = [plan for plan in candidates if self._fits(plan, budget) and self.quiet(plan)]
        return min(fitting, key=lambda plan: self._order(plan, budget), default=None)

    def lower_bound(self, budget: Budget) -> float:
        """Return a lower bound on the minimised quantity of plans within a budget."""
        return _bound_within(self._bound, budget)

    def _searched(self, budget: Budget) -> KeyPlan | None:
        if budget.stored_bytes is not None:
            fitting = [point for point in self.points if point.stored_bytes <= budget.stored_bytes]
            fastest = sorted(fitting, key=lambda point: point.seconds)[:COMPARED]
            return min(map(self.plan, fastest), key=self.seconds, default=None)
        limit = (budget.seconds or 0.0) * (1 + 1e-12) - self._bound.rest
        hopeful = [point for point in self.points if point.seconds <= limit]
        plans = map(self.plan, sorted(hopeful, key=lambda point: point.stored_bytes))
        return next((plan for plan in plans if self._fits(plan, budget)), None)

    def plan(self, point: FrontierPoint) -> KeyPlan:
        """Return the plan of a point of the frontier."""
        return self._search.plan("optimal", point)

    @cached_property
    def _optimizer(self) -> Optimizer | None:
        """Return the integer program over all possible keys. If that is too large, return the one over keys
        of the levels at which they are needed, which proves nothing; None if that is too large as well."""
        hops = min(2, self.max_hops)
        for every_level in (True, False):
            try:
                return Optimizer(
                    self.open, self.model, hops=hops, every_level=every_level, most_columns=EXACT_COLUMNS
                )
            except WorkloadError as error:
                if error.code != "columns":
                    raise
        return None

    def _exact(self, budget: Budget, seconds: float) -> KeyPlan | None:
        optimizer = self._optimizer
        if optimizer is None:
            return None
        if budget.seconds is not None:
            if budget.seconds <= self._bound.rest:
                return None
            budget = Budget(seconds=budget.seconds - self._bound.rest)
        try:
            return optimizer.solve(budget, seconds)
        except InfeasibleBudgetError:
            return None

    def smallest(self, *, solve: bool = True) -> KeyPlan:
        """Return the smallest plan found.

        Args:
            solve: whether an exact solution is tried.
        """
        points = sorted(self.points, key=lambda point: point.stored_bytes)[:1]
        results = [*(self.plan(point) for point in points), *self.published]
        limit = 1e3 * max(self.seconds(plan) for plan in results)
        exact = self._exact(Budget(seconds=limit), 10.0) if solve else None
        if exact is not None and self.quiet(exact):
            results.append(exact)
        return min(results, key=lambda plan: plan.stored_bytes)

    def fastest(self) -> KeyPlan:
        """Return the fastest plan found."""
        return min((*map(self.plan, self.points), *self.published), key=self.seconds)

    @property
    def counted_bytes(self) -> float:
        """A lower bound on the bytes of any plan, by counting."""
        return self._bound.counted_bytes

    @property
    def rest_seconds(self) -> float:
        """A lower bound on the time besides key switches."""
        return self._bound.rest

    def _fits(self, plan: KeyPlan, budget: Budget) -> bool:
        if budget.stored_bytes is not None:
            return plan.stored_bytes <= budget.stored_bytes
        return self.seconds(plan) <= (budget.seconds or 0.0) * (1 + 1e-12)

    def _order(self, plan: KeyPlan, budget: Budget) -> tuple[float, float]:
        value = (self.seconds(plan), float(plan.stored_bytes))
        return value if budget.stored_bytes is not None else value[::-1]


def refusal(planners: Sequence[Planner], budget: Budget, *, solve: bool = True) -> str:
    """Explain why no plan found for any variant of a workload is within a budget: the minimum, its parts, and
    what to allow instead.

    Args:
        planners: of the variants.
        budget: the budget.
        solve: as for `Planner.smallest`.
    """
    name, hops = planners[0].workload.name, planners[0].max_hops
    if budget.stored_bytes is not None:
        smallest = min(
            (planner.smallest(solve=solve) for planner in planners), key=lambda plan: plan.stored_bytes
        )
        largest = max(smallest.keys, key=lambda key: key.shape.stored_bytes)
        text = (
            f"{name}: no plan found has at most {format_bytes(budget.stored_bytes)} of keys. The smallest "
            f"has {format_bytes(smallest.stored_bytes)}, of which the largest key, for level "
            f"{largest.shape.level}, takes {format_bytes(largest.shape.stored_bytes)}"
        )
        if smallest.workload.ephemeral_bytes:
            fixed = format_bytes(smallest.workload.ephemeral_bytes)
            text += f" and those of the ephemeral secret, part of every plan, {fixed}"
        counted = min(planner.counted_bytes for planner in planners)
        text += (
            f". By counting, no plan of at most {hops} hop{'s' * (hops > 1)} has less than "
            f"{format_bytes(counted)}"
        )
        return f"{text}; allow more bytes{' or more hops' * (hops < DEFAULT_HOPS)}"
    fastest, planner = min(
        ((planner.fastest(), planner) for planner in planners), key=lambda entry: entry[1].seconds(entry[0])
    )
    text = (
        f"{name}: no plan found takes at most {format_seconds(budget.seconds or 0.0)}. The fastest, with "
        f"{format_bytes(fastest.stored_bytes)} of keys, is predicted to take "
        f"{format_seconds(planner.seconds(fastest))}"
    )
    if planner.rest_seconds:
        text += f", of which at least {format_seconds(planner.rest_seconds)} are not key switches"
    return f"{text}; allow more time"


def _bound_within(bound: LowerBound, budget: Budget) -> float:
    """Return a lower bound on the minimised quantity of plans within a budget."""
    if budget.stored_bytes is not None:
        return bound.seconds(budget.stored_bytes)
    return bound.stored_bytes(budget.seconds or 0.0)


def gap(plan: KeyPlan, bound: float, budget: Budget, model: CostModel) -> float:
    """Return how much better the best plan could be, as a share, given a bound."""
    value = predict_plan(plan, model).seconds if budget.stored_bytes is not None else float(plan.stored_bytes)
    return 0.0 if value <= 0 else max(0.0, 1 - bound / value)
