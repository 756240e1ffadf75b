"""The time of a bootstrap with the keys of a published strategy."""

from keywright._core import BootstrapperPlan
from keywright.plan.cost.model import CostModel
from keywright.plan.keys.time_prediction import predict_plan
from keywright.plan.workload.network import convert_bootstrap

from . import STRATEGIES


def predict_bootstrap(bootstrap: BootstrapperPlan, model: CostModel) -> float:
    """Return the seconds of a bootstrap on one thread, with each of its keys at the level at which it is
    used."""
    workload = convert_bootstrap(bootstrap, "bootstrap")
    return predict_plan(STRATEGIES["kds"].plan(workload, model), model).seconds
