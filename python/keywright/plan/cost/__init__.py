"""Costs of key switches and operations: the cost model, its calibration to a machine, noise budgets."""

from .calibration import (
    Calibration,
    Measured,
    default_path,
    describe_machine,
    fit,
    predict,
    stored_calibration,
    stored_model,
    stored_speedup,
)
from .gauge import CHAINS, Gauge
from .measuring import measure, speedup

__all__ = [
    "CHAINS",
    "Calibration",
    "Gauge",
    "Measured",
    "default_path",
    "describe_machine",
    "fit",
    "measure",
    "predict",
    "speedup",
    "stored_calibration",
    "stored_model",
    "stored_speedup",
]
