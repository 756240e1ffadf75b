"""The strategy `optimal`: the best plan that is found within a budget, and how far the best one can be."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property

from .bound import LowerBound
from .cost import CostModel
from .frontier import FrontierPoint, FrontierSearch
from .key_plan import KeyPlan
from .open_program import OpenProgram
from .optimal import Budget, InfeasibleBudgetError, Optimizer
from .program import Program
from .strategies import STRATEGIES
from .strategies.policy import KeyPolicy

EXACT_COLUMNS = 4000
"""Programs whose integer program has more columns are searched, not solved: HiGHS closes the gap of smaller
ones in seconds."""

POLICIES = (KeyPolicy("dynamic", "needed"), KeyPolicy("maximum", "needed"))
DEFAULT_HOPS = 4


class Planner:
    """A program with everything that does not depend on the budget: its frontier, its bound, its integer
    program."""

    def __init__(
        self,
        program: Program | OpenProgram,
        model: CostModel,
        *,
        max_hops: int = DEFAULT_HOPS,
        report: Callable[[str], None] | None = None,
    ) -> None:
        """Search the frontier.

        The descent begins with the fastest key for each use.

        Args:
            program: what is planned; the published strategies are for the first alternative of its choices.
            model: predicts times.
            max_hops: most key switches for an automorphism, from 1 to 4: the error of a plan grows with it.
            report: called with what is being done.
        """
        self.open = OpenProgram.of(program)
        program = self.program = self.open.published
        self.model, self.max_hops = model, max_hops
        say = report or (lambda _: None)
        self.published: list[KeyPlan] = []
        for strategy in STRATEGIES.values():
            say(strategy.name)
            plans = [
                strategy.plan(program, model),
                *(strategy.plan(program, model, policy) for policy in POLICIES),
            ]
            self.published += [plan for plan in plans if plan.max_hops <= max_hops and self.quiet(plan)]
        say("frontier")
        self._search = FrontierSearch(self.open, model, max_hops=max_hops)
        points = self._search.descend()
        if program.noise_bits is not None:
            points = [point for point in points if self.quiet(self.plan(point))]
            if not points and not self.published:
                raise InfeasibleBudgetError(self._loud())
        self.points = _frontier(points)
        self._bound = LowerBound(self.open, model, max_hops=max_hops)

    def quiet(self, plan: KeyPlan) -> bool:
        """Whether a plan is within the program's error budget."""
        return plan.is_quiet(self.model)

    def require_quiet(self, plan: KeyPlan) -> None:
        """Refuse a plan that is not.

        Raises:
            InfeasibleBudgetError: its noise is above the program's error budget.
        """
        if not self.quiet(plan):
            raise InfeasibleBudgetError(
                f"{self.program.name}: the plan {plan.strategy} has {plan.noise_bits(self.model):.2f} bits "
                f"of noise, the error budget is {self.program.noise_bits:.2f}"
            )

    def _loud(self) -> str:
        """What is wrong with an error budget that no plan keeps."""
        fastest = STRATEGIES["kds"].plan(self.program, self.model)
        return (
            f"{self.program.name}: no plan found is within {self.program.noise_bits:.2f} bits of noise; with "
            f"a key for every rotation, the fastest digits make {fastest.noise_bits(self.model):.2f}. "
            "A key adds less the more its special primes are above its digits"
        )

    def best(self, budget: Budget, seconds: float = 60.0) -> KeyPlan:
        """The best plan within a budget, with the gap that is proven.

        The gap is relative to all plans over automorphisms that the program needs; for plans that were
        solved exactly, to all of at most two hops.

        Args:
            budget: bytes or seconds.
            seconds: for how long an exact solution is tried.

        Raises:
            InfeasibleBudgetError: nothing found is within the budget; the error says what the least is.
        """
        plan, bound = self.bounded(budget, seconds)
        return replace(plan, strategy="optimal", gap=gap(plan, bound, budget, self.model))

    def bounded(self, budget: Budget, seconds: float = 60.0) -> tuple[KeyPlan, float]:
        """The best plan within a budget, and a lower bound of what is minimised, for all plans.

        Raises:
            InfeasibleBudgetError: as `best`.
        """
        found = [plan for plan in (self._searched(budget), *self.published) if plan is not None]
        found = [plan for plan in found if self._fits(plan, budget)]
        exact = self._exact(budget, seconds)
        if exact is not None and self._fits(exact, budget) and self.quiet(exact):
            found.append(exact)
        if not found:
            raise InfeasibleBudgetError(self._least(budget))
        best = min(found, key=lambda plan: self._order(plan, budget))
        bound = self.lower_bound(budget)
        # Without the ways that were left out the integer program bounds less than all plans.
        proven = self.max_hops <= 2 and not self._optimizer.pruned
        if exact is not None and exact.gap is not None and proven:
            bound = max(bound, (1 - exact.gap) * self._order(exact, budget)[0])
        return best, bound

    def lower_bound(self, budget: Budget) -> float:
        """No plan within a budget has less of what is minimised."""
        if budget.stored_bytes is not None:
            return self._bound.seconds(budget.stored_bytes)
        return self._bound.stored_bytes(budget.seconds or 0.0)

    def _searched(self, budget: Budget) -> KeyPlan | None:
        if budget.stored_bytes is not None:
            fitting = [point for point in self.points if point.stored_bytes <= budget.stored_bytes]
            point = min(fitting, key=lambda point: point.seconds, default=None)
        else:
            limit = budget.seconds or 0.0
            fitting = [point for point in self.points if point.seconds <= limit * (1 + 1e-12)]
            point = min(fitting, key=lambda point: point.stored_bytes, default=None)
        return None if point is None else self.plan(point)

    def plan(self, point: FrontierPoint) -> KeyPlan:
        """The plan of a point of the frontier."""
        return self._search.plan("optimal", point)

    @cached_property
    def _optimizer(self) -> Optimizer:
        return Optimizer(self.open, self.model, hops=min(2, self.max_hops))

    def _exact(self, budget: Budget, seconds: float) -> KeyPlan | None:
        optimizer = self._optimizer
        if optimizer.columns > EXACT_COLUMNS:
            return None
        try:
            return optimizer.solve(budget, seconds)
        except InfeasibleBudgetError:
            return None

    def _smallest(self) -> KeyPlan:
        """The plan of fewest bytes that is found."""
        points = sorted(self.points, key=lambda point: point.stored_bytes)[:1]
        found = [*(self.plan(point) for point in points), *self.published]
        limit = 1e3 * max(plan.seconds(self.model) for plan in found)
        exact = self._exact(Budget(seconds=limit), 10.0)
        if exact is not None and self.quiet(exact):
            found.append(exact)
        return min(found, key=lambda plan: plan.stored_bytes)

    def _fits(self, plan: KeyPlan, budget: Budget) -> bool:
        if budget.stored_bytes is not None:
            return plan.stored_bytes <= budget.stored_bytes
        return plan.seconds(self.model) <= (budget.seconds or 0.0) * (1 + 1e-12)

    def _order(self, plan: KeyPlan, budget: Budget) -> tuple[float, float]:
        value = (plan.seconds(self.model), float(plan.stored_bytes))
        return value if budget.stored_bytes is not None else value[::-1]

    def _least(self, budget: Budget) -> str:
        name = self.program.name
        if budget.stored_bytes is not None:
            smallest = self._smallest()
            largest = max(smallest.keys, key=lambda key: key.shape.stored_bytes).shape
            return (
                f"{name}: the smallest plan found has {smallest.stored_bytes / 1e9:.3f} GB of keys, "
                f"the budget is {budget.stored_bytes / 1e9:.3f} GB; its largest key, of level "
                f"{largest.level}, has {largest.stored_bytes / 1e6:.0f} MB. "
                f"By count, none of at most {self.max_hops} hops has less than "
                f"{self._bound.counted_bytes / 1e9:.3f} GB. "
                "More hops or more special primes would make it smaller"
            )
        plans = [*(self.plan(point) for point in self.points), *self.published]
        fastest = min(plans, key=lambda plan: plan.seconds(self.model))
        return (
            f"{name}: the fastest plan found takes {fastest.seconds(self.model):.3f} s, "
            f"the budget is {budget.seconds:.3f} s; it has {fastest.stored_bytes / 1e9:.3f} GB of keys"
        )


def gap(plan: KeyPlan, bound: float, budget: Budget, model: CostModel) -> float:
    """What the best plan could be better by, as a share, if none is below a bound."""
    value = plan.seconds(model) if budget.stored_bytes is not None else float(plan.stored_bytes)
    return 0.0 if value <= 0 else max(0.0, 1 - bound / value)


def _frontier(points: Sequence[FrontierPoint]) -> list[FrontierPoint]:
    """Points that no other point beats in bytes and seconds, from the fewest bytes up."""
    out: list[FrontierPoint] = []
    for point in sorted(points, key=lambda point: (point.stored_bytes, point.seconds)):
        if not out or point.seconds < out[-1].seconds:
            out.append(point)
    return out
