"""Neural networks on encrypted data: compiles ONNX models into a `Program` of RNS-CKKS operations."""

from keywright.program.fit_report import FitReport
from keywright.program.operands.bootstraps import Bootstrap
from keywright.program.program import Program

from .activations.fit import Fit
from .approximating import ApproximatedModel, approximate
from .compiler import compile  # noqa: A004 (read as keywright.compiler.compile)
from .front_ends.to_onnx import to_onnx
from .placement.costs import CostTable
from .placement.target import Target

__all__ = [
    "ApproximatedModel",
    "Bootstrap",
    "CostTable",
    "Fit",
    "FitReport",
    "Program",
    "Target",
    "approximate",
    "compile",
    "to_onnx",
]
