"""The key planner: which keys, at which level, with which digits, and how each use is served."""

from .basis import Basis, smallest_basis
from .bound import LowerBound
from .chain import Chain, Shape, published_bytes, shapes
from .cost import DEFAULT_WEIGHTS, CostModel, SwitchCost, Weights
from .derived import DerivationPlanner, DerivedKeys
from .ephemeral import EphemeralSwitch, FixedKeys
from .error_budget import error_budget
from .frontier import FrontierSearch
from .galois import Automorphism, AutomorphismGroup
from .joint import JointPlanner
from .key_plan import Hop, KeyPlan, Masters, PlannedKey
from .open_program import Alternative, Choice, OpenProgram
from .operations import Operation
from .optimal import Budget, InfeasibleBudgetError, Optimizer
from .planner import Planner
from .prediction import Prediction, predict_plan
from .program import Group, Program, ProgramError, Relinearizations, make_group
from .search_state import FrontierPoint
from .shared_basis import smallest_shared_basis
from .strategies import STRATEGIES, Strategy
from .strategies.policy import KeyPolicy

__all__ = [
    "DEFAULT_WEIGHTS",
    "STRATEGIES",
    "Alternative",
    "Automorphism",
    "AutomorphismGroup",
    "Basis",
    "Budget",
    "Chain",
    "Choice",
    "CostModel",
    "DerivationPlanner",
    "DerivedKeys",
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
    "OpenProgram",
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
    "smallest_shared_basis",
]
