"""The key planner: which keys, at which level, with which digits, and how each use is served."""

from .basis import Basis, smallest_basis
from .bound import LowerBound
from .chain import Chain, Shape, published_bytes, shapes
from .cost import DEFAULT_WEIGHTS, CostModel, SwitchCost, Weights
from .derived import DerivationPlanner, DerivedKeys
from .error_budget import error_budget
from .frontier import FrontierPoint, FrontierSearch
from .galois import Automorphism, AutomorphismGroup
from .key_plan import Hop, KeyPlan, Masters, PlannedKey
from .operations import Operation
from .optimal import Budget, InfeasibleBudgetError, Optimizer
from .planner import Planner
from .prediction import Prediction, predict_plan
from .program import Group, Program, ProgramError, Relinearizations, make_group
from .strategies import STRATEGIES, Strategy
from .strategies.policy import KeyPolicy

__all__ = [
    "DEFAULT_WEIGHTS",
    "STRATEGIES",
    "Automorphism",
    "AutomorphismGroup",
    "Basis",
    "Budget",
    "Chain",
    "CostModel",
    "DerivationPlanner",
    "DerivedKeys",
    "FrontierPoint",
    "FrontierSearch",
    "Group",
    "Hop",
    "InfeasibleBudgetError",
    "KeyPlan",
    "KeyPolicy",
    "LowerBound",
    "Masters",
    "Operation",
    "Optimizer",
    "PlannedKey",
    "Planner",
    "Prediction",
    "Program",
    "ProgramError",
    "Relinearizations",
    "Shape",
    "Strategy",
    "SwitchCost",
    "Weights",
    "error_budget",
    "make_group",
    "predict_plan",
    "published_bytes",
    "shapes",
    "smallest_basis",
]
