"""Neural networks on encrypted data: ONNX in, a `Program` of RNS-CKKS operations out."""

from .backend import Backend, DiagonalMatrix, PolynomialSpec
from .bootstraps import Bootstrap
from .checking import CheckReport
from .clear import ClearBackend, ClearCiphertext
from .compiler import compile  # noqa: A004 (read as keywright.nn.compile)
from .costs import CostTable
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
from .fit import Fit
from .fitting import FittedActivation
from .key_switches import KeySwitch, RequiredKey
from .layout import Layout
from .program import Instruction, Layer, Program
from .target import Target

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
