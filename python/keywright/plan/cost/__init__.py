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
from .measuring import cases, measure, rounds, settled, speedup

__all__ = [
    "CHAINS",
    "Calibration",
    "Gauge",
    "Measured",
    "cases",
    "default_path",
    "describe_machine",
    "fit",
    "measure",
    "predict",
    "rounds",
    "settled",
    "speedup",
    "stored_calibration",
    "stored_model",
    "stored_speedup",
]
