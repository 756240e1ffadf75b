"""Workloads of key switches, written by hand or read from a compiled network."""

from .arithmetic import performed_bootstraps
from .factors import factor_alternatives
from .open_workload import Choice

__all__ = ["Choice", "factor_alternatives", "performed_bootstraps"]
