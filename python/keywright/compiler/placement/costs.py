"""Costs of a program's operations at each level, which the placement of bootstraps minimises.

The costs come from the planner's cost model (`keywright.plan.CostModel`), so that one calibration predicts a
program and the plan of its keys.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cache
from itertools import accumulate

from keywright._core import BootstrapperPlan
from keywright.compiler.layout.layer_work import LayerWork, Prices
from keywright.errors import ParameterError
from keywright.plan.cost.model import CostModel
from keywright.plan.cost.operations import Operation, product_operation
from keywright.plan.ring.chain import Chain, shapes
from keywright.plan.ring.chain_sources import chain_of
from keywright.plan.ring.preset_plans import shipped_plan
from keywright.plan.strategies.bootstrap_time import predict_bootstrap
from keywright.program.operands.bootstraps import DEFAULT_BOOTSTRAP_PRESET, Bootstrap

MAX_LEVELS = 128
PAIR = 1.4
"""Time of a bootstrap of two ciphertexts, relative to that of one: a second reduction is added. Those of
presets of degree 2^16 are predicted to take 1.3 to 1.4 times as long."""


@dataclass(frozen=True)
class CostTable:
    """Seconds of one operation by the level of its operand, from level 0 on. Levels above the last are
    extrapolated linearly.

    Attributes:
        rotation: a single rotation.
        hoisted: one of many rotations of a ciphertext.
        diagonal: a product with an encoded diagonal.
        multiplication: a product of two ciphertexts, with relinearization and rescaling.
        bootstrap: by the level of its result.

    Raises:
        ParameterError: fewer than two entries or more than 128, one that is not positive, or one that is
            smaller than at the level below: the placement relies on lower levels being cheaper.
    """

    rotation: tuple[float, ...]
    hoisted: tuple[float, ...]
    diagonal: tuple[float, ...]
    multiplication: tuple[float, ...]
    bootstrap: tuple[float, ...]

    def __post_init__(self) -> None:
        for field in fields(self):
            costs = getattr(self, field.name)
            if not 2 <= len(costs) <= MAX_LEVELS:
                raise ParameterError(
                    f"{field.name} has costs of {len(costs)} levels; needed are 2 to {MAX_LEVELS}",
                    code="costs",
                )
            for level, cost in enumerate(costs):
                floor = costs[level - 1] if level else 0.0
                if not floor <= cost < float("inf") or cost <= 0:
                    raise ParameterError(
                        f"{field.name} costs {cost} at level {level}; it must be finite, above 0 and at "
                        f"least {floor}, the cost one level below",
                        code="costs",
                    )

    @classmethod
    def predicted(
        cls, chain: Chain, model: CostModel, bootstraps: Sequence[BootstrapperPlan] = ()
    ) -> "CostTable":
        """Return the predictions of a cost model on parameters, with the fastest key of each level.

        Args:
            chain: the primes of the parameters.
            model: the model of a machine.
            bootstraps: the bootstraps that a program may use: one without a time of its own takes as long as
                the slowest of them.
        """
        levels = [costs for level in range(chain.max_level + 1) if (costs := _at_level(chain, model, level))]
        if not levels:
            raise ParameterError(f"no key is within {chain.modulus_bound} bits at level 0", code="costs")
        columns = zip(*(levels if len(levels) > 1 else levels * 2), strict=True)
        rotation, hoisted, diagonal, multiplication = (tuple(accumulate(column, max)) for column in columns)
        bootstrap = max((predict_bootstrap(plan, model) for plan in bootstraps), default=rotation[-1])
        return cls(rotation, hoisted, diagonal, multiplication, (bootstrap, bootstrap))

    @staticmethod
    @cache
    def default() -> "CostTable":
        """Return the table for the default parameters, `DEFAULT_BOOTSTRAP_PRESET`, and the weights of plans
        without a calibration."""
        plan = shipped_plan(DEFAULT_BOOTSTRAP_PRESET)
        return CostTable.predicted(chain_of(plan.parameters), CostModel(), [plan])

    def seconds(self, work: LayerWork, level: int) -> float:
        """Return the time of a layer whose operands are at a level."""
        total = work.rotations * _at(self.rotation, level)
        total += work.hoisted * _at(self.hoisted, level) + work.diagonals * _at(self.diagonal, level)
        for below, count in enumerate(work.multiplications):
            total += count * _at(self.multiplication, level - below)
        return total

    def prices(self, level: int) -> Prices:
        """Return the costs of operations on operands at a level."""
        columns = (self.rotation, self.hoisted, self.diagonal, self.multiplication)
        return Prices(*(_at(column, level) for column in columns))

    def bootstrap_seconds(self, option: Bootstrap, count: int = 1) -> float:
        """Return the time of bootstrapping so many ciphertexts of a value."""
        each = _at(self.bootstrap, option.output_level) if option.seconds is None else option.seconds
        pairs = count // 2 if option.pairs else 0
        return each * (count - (2 - PAIR) * pairs)


def _at(costs: tuple[float, ...], level: int) -> float:
    last = len(costs) - 1
    if level <= last:
        return costs[max(level, 0)]
    return costs[last] + (level - last) * (costs[last] - costs[last - 1])


def _at_level(chain: Chain, model: CostModel, level: int) -> tuple[float, float, float, float] | None:
    """Return the seconds of a giant step, a baby step, a product with a diagonal and a product of
    ciphertexts; None if no key of the level is secure."""
    results = [
        (switch.alone, shape, switch)
        for shape in shapes(chain, level)
        if (switch := model.switch(shape, level)) is not None
    ]
    if not results:
        return None
    _, _, switch = min(results, key=lambda entry: entry[0])
    weights = model.of_degree(chain.log_n)

    def seconds(operation: Operation) -> float:
        return operation.work(chain, switch.removed).seconds(weights)

    diagonal = seconds(Operation("diagonal", level, diagonals=1))
    product = seconds(product_operation("product", max(level, 1)))
    return switch.shared + switch.of_form("giant"), switch.of_form("baby"), diagonal, product + switch.alone
