"""Compilation targets of shipped bootstrappings: their levels and their smaller rings."""

from dataclasses import dataclass, replace
from functools import cache, cached_property
from math import inf

from keywright._core import BootstrapperPlan, Parameters
from keywright.compiler.placement.costs import CostTable
from keywright.compiler.placement.ring import Ring
from keywright.plan.cost.model import CostModel
from keywright.plan.ring.chain_sources import chain_of
from keywright.plan.ring.preset_plans import LEAST_LEVELS, ring_levels, shipped_plan, used_rings
from keywright.plan.strategies.bootstrap_time import predict_bootstrap
from keywright.program.operands.bootstraps import Bootstrap
from keywright.program.program import Program

LOST_BITS = 1.0
"""Maximum precision, in bits of the worst value, that may be lost by raising the modulus less far."""


@dataclass(frozen=True)
class BootstrapPreset:
    """A shipped bootstrapping for networks.

    Attributes:
        name: one of `keywright.BootstrapperPlan.presets()`.
        model: predicts times.
    """

    name: str
    model: CostModel

    @cached_property
    def plan(self) -> BootstrapperPlan:
        """The shipped bootstrapping, with one ring."""
        return shipped_plan(self.name)

    @cached_property
    def options(self) -> tuple[Bootstrap, ...]:
        """Return the bootstrapping to each useful output level, with its predicted time: the modulus is
        raised only as far as necessary. `eval_mod` then uses other primes; levels at which these are too
        narrow for it are left out."""
        plan = self.plan
        whole = plan.slots == plan.parameters.max_slots and plan.iterations == 1
        pairs = whole and (plan.values, plan.order) == ("real", "slots_to_coeffs_first")
        return tuple(
            replace(Bootstrap.of(each, predict_bootstrap(each, self.model), preset=self.name), pairs=pairs)
            for each in _useful_plans(self.name)
        )

    @cached_property
    def rings(self) -> tuple[Ring, ...]:
        """Return the ring of the bootstrapping, and smaller ones with their levels."""
        chain = chain_of(self.plan.parameters)
        costs = CostTable.predicted(chain, self.model, [self.plan])
        out = [Ring(chain.log_n, self.plan.output_level, costs)]
        for log_n, level, _ in ring_levels(self.plan):
            smaller = replace(chain, log_n=log_n, q=chain.q[: level + 1])
            out.append(Ring(log_n, level, CostTable.predicted(smaller, self.model)))
        return tuple(out)

    def least_seconds(self, depth: int) -> float:
        """Return a lower bound on the predicted seconds of a network's bootstraps: the fewest that its levels
        allow, each with the fastest option."""
        gained = self.plan.output_level - self.plan.input_level
        each = min(option.seconds or 0.0 for option in self.options)
        return max(-(-depth // gained) - 1, 0) * each * min(ring.bootstraps for ring in self.rings)

    def parameters(self, program: Program) -> Parameters:
        """Return the parameters of a program without bootstraps, with its rings."""
        return self.plan.parameters.with_subrings(used_rings(self.plan, program))


@cache
def _useful_plans(name: str) -> tuple[BootstrapperPlan, ...]:
    """Return a shipped bootstrapping to each useful output level, the highest last."""
    plan = shipped_plan(name)
    levels = range(plan.input_level + LEAST_LEVELS, plan.output_level)
    lower = [BootstrapperPlan.preset(name, output_level=level) for level in levels]
    enough = _worst_bits(plan) - LOST_BITS
    return (*(each for each in lower if _worst_bits(each) >= enough), plan)


def _worst_bits(plan: BootstrapperPlan) -> float:
    """Return the predicted bits of the worst value of one vector; infinity if there is no prediction."""
    result = plan.predicted_bits(vectors=1)
    return inf if result is None else result[1]
