"""Costs of key switches and operations: the cost model, its calibration to a machine, noise budgets."""

from .calibration import Calibration, Measurement, fit, stored_model
from .gauge import CHAINS, Gauge
from .measuring import measure, speedup

__all__ = ["CHAINS", "Calibration", "Gauge", "Measurement", "fit", "measure", "speedup", "stored_model"]
