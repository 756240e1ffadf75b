"""A program whose keys are planned: with its open choices, in all its rings, beside published strategies."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from keywright._core import BootstrapperPlan, Parameters
from keywright.program.program import Program

from .cost.error_budget import error_budget
from .cost.model import CostModel
from .keys.budget import Budget
from .keys.execution import smaller_rings
from .keys.key_plan import KeyPlan
from .search.joint_planner import JointPlanner, divide_budget
from .search.network_planner import open_ring, quick_plans
from .search.planner import DEFAULT_HOPS
from .strategies import STRATEGIES
from .workload.network import convert, convert_bootstrap, open_bootstraps
from .workload.open_workload import OpenWorkload
from .workload.workload import Workload


@dataclass(frozen=True)
class PlanningProblem:
    """The key switches of a program, with the choices that a plan may make.

    Attributes:
        workload: the key switches of the largest ring, with all choices made.
        variants: the same with open choices: how the transforms of bootstraps are divided into factors, and
            their numbers of baby steps.
        smaller: the key switches in each smaller ring, whose keys are planned within the same budget.
    """

    workload: Workload
    variants: tuple[OpenWorkload, ...] = ()
    smaller: tuple[OpenWorkload, ...] = ()

    @classmethod
    def of_bootstrap(cls, bootstrap: BootstrapperPlan, name: str) -> "PlanningProblem":
        """Return the problem of one bootstrap, within its error budget."""
        problem = cls(convert_bootstrap(bootstrap, name), tuple(open_bootstraps([bootstrap], name)))
        return problem.with_noise(error_budget([bootstrap]))

    @classmethod
    def of_program(
        cls, program: Program, parameters: Parameters, bootstraps: Sequence[BootstrapperPlan], name: str
    ) -> "PlanningProblem":
        """Return the problem of a compiled model, within its error budget.

        Args:
            program: the program.
            parameters: those that it was compiled for.
            bootstraps: plans of its bootstraps, in order.
            name: a name for it.
        """
        workload = convert(program, parameters, name, bootstraps)
        variants = open_bootstraps(bootstraps, name, program) if bootstraps else ()
        smaller = [open_ring(program, parameters, bootstraps, name, ring) for ring in smaller_rings(program)]
        return cls(workload, tuple(variants), tuple(smaller)).with_noise(error_budget(bootstraps))

    def with_noise(self, bits: float | None) -> "PlanningProblem":
        """Return the problem with another limit on the noise of the largest ring's plan, in bits; None for
        no limit."""
        variants = tuple(each.with_noise(bits) for each in self.variants)
        return replace(self, workload=replace(self.workload, noise_bits=bits), variants=variants)

    @property
    def needs_keys(self) -> bool:
        """Whether there is anything to plan: a rotation, a product, or a switch with fixed keys."""
        common = self.workload.common
        return bool(
            self.workload.groups or self.workload.relinearizations or common.fixed or common.ring_switches
        )

    def published(self, model: CostModel) -> list[KeyPlan]:
        """Return the keys of every published strategy of `STRATEGIES`, in all rings."""
        return [
            replace(
                strategy.plan(self.workload, model),
                subrings=tuple(strategy.plan(each.workload, model) for each in self.smaller),
            )
            for strategy in STRATEGIES.values()
        ]


class ProblemPlanner:
    """The frontier of a problem's plans: bytes of keys against time.

    Thread safety: one thread at a time.

    Attributes:
        problem: the problem.
        model: predicts times.
    """

    def __init__(
        self,
        problem: PlanningProblem,
        model: CostModel,
        *,
        max_hops: int = DEFAULT_HOPS,
        report: Callable[[str], None] | None = None,
    ) -> None:
        """Search the frontier of the largest ring.

        Args:
            problem: the problem.
            model: predicts times.
            max_hops: maximum key switches for an automorphism.
            report: called with a description of the current work.
        """
        self.problem, self.model = problem, model
        self._joint = JointPlanner(
            [problem.workload, *problem.variants], model, max_hops=max_hops, report=report
        )

    def best(self, budget: Budget) -> KeyPlan:
        """Return the best plan within a budget for all rings. Its proven gap is for the largest ring alone.

        Raises:
            InfeasibleBudgetError: there is none; the message states the minimum.
        """
        subrings: tuple[KeyPlan, ...] = ()
        if smaller := self.problem.smaller:
            opened = self.problem.variants[0] if self.problem.variants else self.problem.workload
            timed = [quick_plans(each, self.model) for each in (opened, *smaller)]
            subrings, budget = divide_budget(timed[0], timed[1:], budget)
        return replace(self._joint.best(budget), subrings=subrings)

    def require_quiet(self, plan: KeyPlan) -> None:
        """Refuse a plan that is too noisy for the problem.

        Raises:
            InfeasibleBudgetError: its noise exceeds the problem's error budget.
        """
        self._joint.require_quiet(plan)

    def frontier(self) -> list[tuple[int, float]]:
        """Return bytes of keys and predicted seconds of the Pareto-optimal plans of the largest ring, from
        the fewest bytes up."""
        return self._joint.frontier()
