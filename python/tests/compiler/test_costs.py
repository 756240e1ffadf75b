"""Compiled networks are predicted from the planner's cost model alone."""

import keywright as kw
import pytest
from keywright.compiler.placement.costs import CostTable
from keywright.errors import ParameterError
from keywright.plan import CostModel
from keywright.plan.cost.model import Weights
from keywright.plan.cost.operations import Operation
from keywright.plan.ring.chain import shapes
from keywright.plan.ring.chain_sources import chain_of
from keywright.plan.strategies import STRATEGIES
from keywright.plan.workload.network import convert_bootstrap
from keywright.program.operands.bootstraps import Bootstrap

MODEL = CostModel(
    Weights(transform=3.0, product=2.0, conversion=0.5, key_limb=1.0, diagonal=0.25, multiplication=0.125)
)


def test_a_table_is_what_the_model_predicts() -> None:
    chain = chain_of(kw.Parameters.preset("N14_QP430_S40"))
    table = CostTable.predicted(chain, MODEL)
    assert len(table.rotation) == chain.max_level + 1
    for level in range(1, chain.max_level + 1):
        costs = (MODEL.switch(shape, level) for shape in shapes(chain, level))
        best = min((cost for cost in costs if cost is not None), key=lambda cost: cost.alone)
        assert table.rotation[level] == pytest.approx(best.shared + best.of_form("giant"))
        assert table.hoisted[level] == pytest.approx(best.of_form("baby"))
        product = Operation("", level, products=4, merged=1).work(chain, best.removed)
        expected = best.alone + product.seconds(MODEL.of_degree(chain.log_n))
        assert table.multiplication[level] == pytest.approx(expected, rel=1e-9)


def test_a_bootstrap_takes_what_its_plan_takes() -> None:
    plan = kw.BootstrapperPlan.preset("N15_QP858_L5_S32_real")
    table = CostTable.predicted(chain_of(plan.parameters), MODEL, [plan])
    workload = convert_bootstrap(plan, "bootstrap")
    planned = STRATEGIES["kds"].plan(workload, MODEL)
    assert table.bootstrap_seconds(Bootstrap.of(plan)) >= planned.seconds(MODEL) > 10 * table.rotation[-1]


def test_keys_that_no_level_can_have_are_refused() -> None:
    chain = kw.plan.Chain(12, (60, 40), (60,), bound=50)
    with pytest.raises(ParameterError, match="50 bits at level 0", check=lambda error: error.code == "costs"):
        CostTable.predicted(chain, MODEL)
