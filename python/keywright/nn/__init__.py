"""Neural networks on encrypted data: ONNX in, a `Program` of RNS-CKKS operations out."""

from .activations.fit import Fit
from .activations.fitting import FittedActivation
from .activations.polynomials import PolynomialSpec
from .compiled.instructions import Instruction, Layer
from .compiled.key_switches import KeySwitch, RequiredKey
from .compiler import compile  # noqa: A004 (read as keywright.nn.compile)
from .errors import (
    BackendMisuseError,
    CalibrationMissingError,
    CannotPlaceError,
    DynamicShapeError,
    InvalidBootstrapError,
    InvalidCostsError,
    InvalidModelError,
    InvalidSamplesError,
    ModelRefusedError,
    NnError,
    OnnxruntimeMissingError,
    OutOfLevelsError,
    OutOfRangeError,
    ProgramFormatError,
    RangesMissingError,
    RefusalError,
    TooDeepError,
    TooWideError,
    UnsupportedAttributeError,
    UnsupportedOperatorError,
)
from .layout.diagonals import DiagonalMatrix
from .layout.layout import Layout
from .placement.bootstraps import Bootstrap
from .placement.costs import CostTable
from .placement.target import Target
from .program import Program
from .run.backend import Backend
from .run.checking import CheckReport
from .run.clear import ClearBackend, ClearCiphertext

__all__ = [
    "Backend",
    "BackendMisuseError",
    "Bootstrap",
    "CalibrationMissingError",
    "CannotPlaceError",
    "CheckReport",
    "ClearBackend",
    "ClearCiphertext",
    "CostTable",
    "DiagonalMatrix",
    "DynamicShapeError",
    "Fit",
    "FittedActivation",
    "Instruction",
    "InvalidBootstrapError",
    "InvalidCostsError",
    "InvalidModelError",
    "InvalidSamplesError",
    "KeySwitch",
    "Layer",
    "Layout",
    "ModelRefusedError",
    "NnError",
    "OnnxruntimeMissingError",
    "OutOfLevelsError",
    "OutOfRangeError",
    "PolynomialSpec",
    "Program",
    "ProgramFormatError",
    "RangesMissingError",
    "RefusalError",
    "RequiredKey",
    "Target",
    "TooDeepError",
    "TooWideError",
    "UnsupportedAttributeError",
    "UnsupportedOperatorError",
    "compile",
]
