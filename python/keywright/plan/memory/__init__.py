"""Memory of an evaluating process: predicted part by part, and planned together with the keys."""

from .machine import default_budget, peak_bytes, resident_bytes
from .process import ProcessPlan

__all__ = ["ProcessPlan", "default_budget", "peak_bytes", "resident_bytes"]
