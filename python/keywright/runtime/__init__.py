"""Runs programs: on ciphertexts, in the clear, and as a simulation without keys."""

from .backend import Backend
from .clear_backend import ClearBackend, ClearCiphertext
from .clear_run import run_clear
from .encrypted.backend import EncryptedBackend
from .executor import execute
from .range_guard import guard
from .runner import Runner
from .simulation.simulate import Simulation, simulate
from .timing import LayerClock

__all__ = [
    "Backend",
    "ClearBackend",
    "ClearCiphertext",
    "EncryptedBackend",
    "LayerClock",
    "Runner",
    "Simulation",
    "execute",
    "guard",
    "run_clear",
    "simulate",
]
