"""The key planner: chooses keys, their levels and digits, and how each rotation is served."""

from .basis.basis import Basis, smallest_basis
from .basis.shared_basis import smallest_shared_basis
from .cost.ephemeral import EphemeralSwitch, FixedKeys
from .cost.error_budget import error_budget
from .cost.model import TYPICAL_WEIGHTS, CostModel, SwitchCost, Weights
from .cost.operations import Operation
from .exact.bound import LowerBound
from .exact.optimal import Optimizer
from .keys.budget import Budget, InfeasibleBudgetError
from .keys.derivation import DerivationDesign, DerivationPlanner
from .keys.key_plan import Hop, KeyPlan, Masters, PlannedKey
from .keys.time_prediction import TimePrediction, predict_plan
from .ring.chain import Chain, Shape, published_bytes, shapes
from .ring.galois import Automorphism, AutomorphismGroup
from .search.frontier import FrontierSearch
from .search.joint import JointPlanner
from .search.planner import Planner
from .search.quick import QuickPlanner, plan_network
from .search.search_state import FrontierPoint
from .strategies import STRATEGIES, Strategy
from .strategies.policy import KeyPolicy
from .workload.open_workload import Alternative, Choice, OpenWorkload
from .workload.workload import Group, Relinearizations, Workload, WorkloadError, make_group

__all__ = [
    "STRATEGIES",
    "TYPICAL_WEIGHTS",
    "Alternative",
    "Automorphism",
    "AutomorphismGroup",
    "Basis",
    "Budget",
    "Chain",
    "Choice",
    "CostModel",
    "DerivationDesign",
    "DerivationPlanner",
    "EphemeralSwitch",
    "FixedKeys",
    "FrontierPoint",
    "FrontierSearch",
    "Group",
    "Hop",
    "InfeasibleBudgetError",
    "JointPlanner",
    "KeyPlan",
    "KeyPolicy",
    "LowerBound",
    "Masters",
    "OpenWorkload",
    "Operation",
    "Optimizer",
    "PlannedKey",
    "Planner",
    "QuickPlanner",
    "Relinearizations",
    "Shape",
    "Strategy",
    "SwitchCost",
    "TimePrediction",
    "Weights",
    "Workload",
    "WorkloadError",
    "error_budget",
    "make_group",
    "plan_network",
    "predict_plan",
    "published_bytes",
    "shapes",
    "smallest_basis",
    "smallest_shared_basis",
]
