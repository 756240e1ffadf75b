"""The key planner: chooses keys, their levels and digits, and how each rotation is served."""

from .basis.basis import smallest_basis
from .basis.shared_basis import smallest_shared_basis
from .cost.model import CostModel
from .cost.operations import Operation
from .keys.budget import Budget
from .keys.derivation import DerivationPlanner
from .keys.execution import PlanExecution
from .keys.key_plan import KeyPlan
from .keys.plan_file import load, save
from .keys.time_prediction import predict_plan
from .memory.planner import Process, plan_process
from .problem import PlanningProblem, ProblemPlanner
from .ring.chain import Chain
from .ring.galois import AutomorphismGroup
from .search.network_planner import KeyFrontier
from .search.planner import Planner
from .strategies import STRATEGIES
from .strategies.policy import KeyPolicy
from .workload.open_workload import OpenWorkload
from .workload.workload import Relinearizations, Workload, make_group

__all__ = [
    "STRATEGIES",
    "AutomorphismGroup",
    "Budget",
    "Chain",
    "CostModel",
    "DerivationPlanner",
    "KeyFrontier",
    "KeyPlan",
    "KeyPolicy",
    "OpenWorkload",
    "Operation",
    "PlanExecution",
    "Planner",
    "PlanningProblem",
    "ProblemPlanner",
    "Process",
    "Relinearizations",
    "Workload",
    "load",
    "make_group",
    "plan_process",
    "predict_plan",
    "save",
    "smallest_basis",
    "smallest_shared_basis",
]
