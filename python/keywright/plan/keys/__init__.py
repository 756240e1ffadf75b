"""A plan: its keys, its file, its predicted time, derived keys, and its execution."""

from .derivation import DerivationDesign
from .key_plan import PlannedKey
from .time_prediction import TimePrediction

__all__ = ["DerivationDesign", "PlannedKey", "TimePrediction"]
