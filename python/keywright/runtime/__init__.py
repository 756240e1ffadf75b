"""Runs programs: on ciphertexts, in the clear, and as a simulation without keys."""

from .backend import Backend
from .checking import CheckReport, check
from .clear import ClearBackend, ClearCiphertext
from .evaluation import Evaluation
from .executor import execute
from .range_guard import guard
from .simulation.simulate import Simulation, simulate

__all__ = [
    "Backend",
    "CheckReport",
    "ClearBackend",
    "ClearCiphertext",
    "Evaluation",
    "Simulation",
    "check",
    "execute",
    "guard",
    "simulate",
]
