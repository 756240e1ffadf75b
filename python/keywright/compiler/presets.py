"""Compilation targets of shipped bootstrappings: their levels and their smaller rings."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from math import inf

from keywright._core import BootstrapperPlan, Parameters
from keywright.compiler.placement.costs import CostTable
from keywright.compiler.placement.ring import Ring
from keywright.errors import ParameterError
from keywright.plan.cost.model import CostModel
from keywright.plan.ring.chain import Chain, shapes
from keywright.plan.ring.chain_sources import chain_of
from keywright.plan.strategies.bootstrap_time import predict_bootstrap
from keywright.program.operands.bootstraps import Bootstrap
from keywright.program.program import Program

SMALLEST_LOG_N = 13
"""Smaller rings have too few levels of the shipped widths."""
LEAST_LEVELS = 3
"""A smaller ring is considered if it has so many levels above those at which a bootstrap begins."""
LOST_BITS = 1.0
"""Maximum precision, in bits of the worst value, that may be lost by raising the modulus less far."""

Subring = tuple[int, int, Sequence[int] | None]
"""log2 of the degree, highest level, special primes: as for `Parameters.with_subrings`."""


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
        return _shipped(self.name)

    @cached_property
    def options(self) -> tuple[Bootstrap, ...]:
        """Return the bootstrapping to each useful output level, with its predicted time: the modulus is
        raised only as far as necessary. `eval_mod` then uses other primes; levels at which these are too
        narrow for it are left out."""
        return tuple(
            Bootstrap.of(plan, predict_bootstrap(plan, self.model), preset=self.name)
            for plan in _useful_plans(self.name)
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
        return self.plan.parameters.with_subrings(_subrings(self.plan, program))


@cache
def _shipped(name: str) -> BootstrapperPlan:
    """Return a shipped bootstrapping, made once: it takes a tenth of a second and a megabyte."""
    return BootstrapperPlan.preset(name)


@cache
def _useful_plans(name: str) -> tuple[BootstrapperPlan, ...]:
    """Return a shipped bootstrapping to each useful output level, the highest last."""
    plan = _shipped(name)
    levels = range(plan.input_level + LEAST_LEVELS, plan.output_level)
    lower = [BootstrapperPlan.preset(name, output_level=level) for level in levels]
    enough = _worst_bits(plan) - LOST_BITS
    return (*(each for each in lower if _worst_bits(each) >= enough), plan)


def _worst_bits(plan: BootstrapperPlan) -> float:
    """Return the predicted bits of the worst value of one vector; infinity if there is no prediction."""
    result = plan.predicted_bits(vectors=1)
    return inf if result is None else result[1]


def ring_levels(plan: BootstrapperPlan) -> list[Subring]:
    """Return the smaller rings for values between bootstraps, by falling degree: each with the highest level
    at which a key is secure, and all special primes."""
    chain, least = chain_of(plan.parameters), plan.input_level + LEAST_LEVELS
    out: list[Subring] = []
    for log_n in range(chain.log_n - 1, SMALLEST_LOG_N - 1, -1):
        level = highest_level(replace(chain, log_n=log_n), plan.output_level)
        if level is not None and level >= least:
            out.append((log_n, level, None))
    return out


def highest_level(chain: Chain, most: int) -> int | None:
    """Return the highest level, at most ``most``, at which a key with at least two primes per digit is secure
    in the ring of a chain. Shorter digits would cost more than a larger ring."""
    for level in range(most, 0, -1):
        if any(shape.alpha > 1 for shape in shapes(replace(chain, q=chain.q[: level + 1]), level)):
            return level
    return None


def bootstrap_plans(program: Program) -> list[BootstrapperPlan]:
    """Return the plans that a program's bootstraps name, in order, on parameters with the program's rings.

    Raises:
        ParameterError: a bootstrap is not one of a preset.
    """
    for bootstrap in program.operands.bootstraps:
        if bootstrap.preset not in BootstrapperPlan.presets():
            raise ParameterError(
                f"the program bootstraps with preset {bootstrap.preset!r}, but this release has "
                f"{', '.join(BootstrapperPlan.presets())}; compile the model again",
                code="preset",
            )
    return [preset_plan(option, program) for option in program.operands.bootstraps]


def preset_plan(option: Bootstrap, program: Program) -> BootstrapperPlan:
    """Return the plan of one bootstrap. A preset's budget of keys is for its own ring, slots and levels. If
    other keys exceed it, the plan with the fewest bytes is used."""
    make = partial(
        BootstrapperPlan.preset,
        option.preset,
        slots=option.slots,
        subrings=_subrings(_shipped(option.preset), program),
        input_log_n=option.input_log_n or None,
        output_level=option.output_level,
    )
    try:
        return make()
    except ParameterError as error:
        if error.what != "key_budget":
            raise
        return make(key_budget="fewest")


def _subrings(plan: BootstrapperPlan, program: Program) -> list[Subring]:
    """Return the smaller rings of a program's ciphertexts."""
    used = set(program.rings.values())
    return [ring for ring in ring_levels(plan) if ring[0] in used]
