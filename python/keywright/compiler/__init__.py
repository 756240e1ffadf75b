"""Neural networks on encrypted data: compiles ONNX models into a `Program` of RNS-CKKS operations."""

from keywright.program.file.storage import load, save
from keywright.program.operands.bootstraps import Bootstrap
from keywright.program.program import Program

from .activations.fit import Fit, Ranges
from .approximating import approximate
from .checking import CheckReport, check
from .compiler import compile_program
from .front_ends.to_onnx import to_onnx
from .placement.target import Target

__all__ = [
    "Bootstrap",
    "CheckReport",
    "Fit",
    "Program",
    "Ranges",
    "Target",
    "approximate",
    "check",
    "compile_program",
    "load",
    "save",
    "to_onnx",
]
