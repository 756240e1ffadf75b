"""Runs programs: on ciphertexts, in the clear, and as a simulation without keys."""

from .backend import Backend
from .checking import CheckReport, check, run_clear
from .clear import ClearBackend, ClearCiphertext
from .encrypted.backend import EncryptedBackend
from .evaluation import Runner
from .executor import execute
from .range_guard import guard
from .simulation.simulate import Simulation, simulate
from .timing import LayerClock

__all__ = [
    "Backend",
    "CheckReport",
    "ClearBackend",
    "ClearCiphertext",
    "EncryptedBackend",
    "LayerClock",
    "Runner",
    "Simulation",
    "check",
    "execute",
    "guard",
    "run_clear",
    "simulate",
]
