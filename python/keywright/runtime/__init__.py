"""Runs programs: on ciphertexts, in the clear, and as a simulation without keys."""

from .backend import Backend
from .checking import CheckReport
from .clear import ClearBackend, ClearCiphertext
from .simulation.simulate import Simulation, simulate

__all__ = ["Backend", "CheckReport", "ClearBackend", "ClearCiphertext", "Simulation", "simulate"]
