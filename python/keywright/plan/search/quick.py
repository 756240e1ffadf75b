"""Plans in bounded time: what every command takes its keys from where nobody asks for the best plan.

Two descents find the points, for the workload with its bootstraps' layers divided as the preset has them and
their baby steps open: seconds for a network of a thousand rotations. `keywright plan` searches further, and
proves how far the best plan can be.
"""

from collections.abc import Sequence
from dataclasses import replace

from keywright._core import BootstrapperPlan, Parameters
from keywright.plan.cost.error_budget import error_budget
from keywright.plan.cost.model import CostModel
from keywright.plan.keys.execution import PlanExecution, as_planned, smaller_rings
from keywright.plan.keys.key_plan import KeyPlan
from keywright.plan.keys.time_prediction import predict_plan
from keywright.plan.workload.network import convert, open_factors
from keywright.plan.workload.network_protocol import NetworkLike
from keywright.plan.workload.open_workload import OpenWorkload
from keywright.plan.workload.workload import Workload

from .recombination import Recombination

HOPS = 2
"""Most key switches for an automorphism."""

COMPARED = 16
"""Plans of a frontier whose whole time is compared."""

WITH_RINGS = 4
"""Plans that those of smaller rings are made for."""

SLOWER = 1.05
"""By how much a plan of fewer bytes may be slower than the fastest one."""


class QuickPlanner:
    """A workload with the frontier of its key sets.

    Attributes:
        plans: of some points of the frontier, from the fewest bytes up to the fastest; at least one.
    """

    def __init__(self, workload: Workload | OpenWorkload, model: CostModel) -> None:
        """Search the frontier.

        Args:
            workload: what is planned. Points that are noisier than its error budget are left out, unless all
                are: then there is one, the least noisy.
            model: predicts times.
        """
        opened = OpenWorkload.of(workload)
        search = Recombination(opened, model, max_hops=HOPS)
        points = search.begin()
        most = opened.workload.noise_bits
        quiet = [point for point in points if most is None or point.noise_bits <= most]
        if not quiet:
            quiet = [min(points, key=lambda point: (point.noise_bits, point.seconds))]
        count = min(COMPARED, len(quiet))
        places = {round(index * (len(quiet) - 1) / max(1, count - 1)) for index in range(count)}
        self.model = model
        self.plans = [search.plan("quick", quiet[place]) for place in sorted(places)]
        self._seconds = [predict_plan(plan, model).seconds for plan in self.plans]

    def best(self, slower: float = SLOWER) -> KeyPlan:
        """The plan of fewest bytes that is at most so many times as slow as the fastest."""
        limit = min(self._seconds) * slower
        return next(p for p, seconds in zip(self.plans, self._seconds, strict=True) if seconds <= limit)


def open_network(
    network: NetworkLike,
    parameters: Parameters,
    bootstraps: Sequence[BootstrapperPlan] = (),
    name: str = "network",
) -> OpenWorkload:
    """A network's workload within the noise of its inputs and bootstraps, with these bootstraps' baby steps
    open.

    Args:
        network: the compiled network.
        parameters: those that it was compiled for.
        bootstraps: plans of its bootstraps, in order.
        name: what to call it.
    """
    if any(step.opcode == "bootstrap" for step in network.instructions):
        opened = open_factors(bootstraps, name, network)
    else:
        opened = OpenWorkload.of(convert(network, parameters, name))
    return opened.with_noise(error_budget(bootstraps))


def open_ring(
    network: NetworkLike,
    parameters: Parameters,
    bootstraps: Sequence[BootstrapperPlan],
    name: str,
    log_n: int,
) -> OpenWorkload:
    """What a network computes in a smaller ring, within the same noise.

    Args:
        network: the compiled network.
        parameters: those that it was compiled for.
        bootstraps: plans of its bootstraps, in order, as the plan of the largest ring has them.
        name: what to call it.
        log_n: log2 of the degree of the smaller ring.
    """
    workload = convert(network, parameters, name, bootstraps, log_n)
    return OpenWorkload.of(workload).with_noise(error_budget(bootstraps))


def plan_network(
    network: NetworkLike,
    parameters: Parameters,
    bootstraps: Sequence[BootstrapperPlan] = (),
    *,
    model: CostModel | None = None,
    name: str = "network",
) -> PlanExecution:
    """The keys of a network, planned: the fewest bytes of those that are about as fast as any found.

    Args:
        network: the compiled network.
        parameters: those that it was compiled for.
        bootstraps: plans of its bootstraps, in order.
        model: predicts times; with built-in weights where not given.
        name: what to call the program.
    """
    model = model or CostModel()
    best = QuickPlanner(open_network(network, parameters, bootstraps, name), model).best()
    return _with_rings(best, network, parameters, bootstraps, model)


def plan_candidates(
    network: NetworkLike,
    parameters: Parameters,
    bootstraps: Sequence[BootstrapperPlan] = (),
    *,
    model: CostModel | None = None,
    name: str = "network",
) -> list[PlanExecution]:
    """Plans of a network's keys, from the fewest bytes up to the fastest; arguments as of `plan_network`.
    With smaller rings, whose keys are planned for each, there are fewer."""
    model = model or CostModel()
    plans = QuickPlanner(open_network(network, parameters, bootstraps, name), model).plans
    if smaller_rings(network):
        plans = plans[:: -(-len(plans) // WITH_RINGS)]
    return [_with_rings(plan, network, parameters, bootstraps, model) for plan in plans]


def _with_rings(
    plan: KeyPlan,
    network: NetworkLike,
    parameters: Parameters,
    bootstraps: Sequence[BootstrapperPlan],
    model: CostModel,
) -> PlanExecution:
    """A plan of the largest ring with the best ones of smaller rings."""
    planned, name = as_planned(plan.workload, bootstraps), plan.workload.name
    subrings = tuple(
        QuickPlanner(open_ring(network, parameters, planned, name, ring), model).best()
        for ring in smaller_rings(network)
    )
    return PlanExecution(replace(plan, subrings=subrings), parameters, network, bootstraps)
