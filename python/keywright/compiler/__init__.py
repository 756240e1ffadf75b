"""Neural networks on encrypted data: compiles ONNX models into a `Program` of RNS-CKKS operations."""

from keywright.errors.network import (
    AccuracyError,
    BackendMisuseError,
    CalibrationMissingError,
    CannotPlaceError,
    DynamicShapeError,
    ExporterMissingError,
    InvalidBootstrapError,
    InvalidCostsError,
    InvalidModelError,
    InvalidSamplesError,
    MethodError,
    MinimaxError,
    ModelRefusedError,
    NnError,
    NoLabelsError,
    NoPredictionError,
    NotExportedError,
    OnnxruntimeMissingError,
    OutOfLevelsError,
    OutOfRangeError,
    OverflowingPolynomialError,
    ProgramFormatError,
    RangesMissingError,
    RefusalError,
    TooDeepError,
    TooLargeError,
    TooWideError,
    UnknownActivationError,
    UnsupportedAttributeError,
    UnsupportedOperatorError,
)
from keywright.program.fit_report import FitReport, FittedActivation
from keywright.program.instructions import Instruction, Layer, ValueRange
from keywright.program.key_switches import KeySwitch, RequiredKey
from keywright.program.operands.bootstraps import Bootstrap
from keywright.program.operands.diagonals import DiagonalMatrix
from keywright.program.operands.layout import Layout
from keywright.program.operands.polynomials import PolynomialSpec
from keywright.program.program import Program

from .activations.fit import Fit
from .approximating import ApproximatedModel, approximate
from .compiler import compile  # noqa: A004 (read as keywright.compiler.compile)
from .front_ends.to_onnx import to_onnx
from .placement.costs import CostTable
from .placement.target import Target

__all__ = [
    "AccuracyError",
    "ApproximatedModel",
    "BackendMisuseError",
    "Bootstrap",
    "CalibrationMissingError",
    "CannotPlaceError",
    "CostTable",
    "DiagonalMatrix",
    "DynamicShapeError",
    "ExporterMissingError",
    "Fit",
    "FitReport",
    "FittedActivation",
    "Instruction",
    "InvalidBootstrapError",
    "InvalidCostsError",
    "InvalidModelError",
    "InvalidSamplesError",
    "KeySwitch",
    "Layer",
    "Layout",
    "MethodError",
    "MinimaxError",
    "ModelRefusedError",
    "NnError",
    "NoLabelsError",
    "NoPredictionError",
    "NotExportedError",
    "OnnxruntimeMissingError",
    "OutOfLevelsError",
    "OutOfRangeError",
    "OverflowingPolynomialError",
    "PolynomialSpec",
    "Program",
    "ProgramFormatError",
    "RangesMissingError",
    "RefusalError",
    "RequiredKey",
    "Target",
    "TooDeepError",
    "TooLargeError",
    "TooWideError",
    "UnknownActivationError",
    "UnsupportedAttributeError",
    "UnsupportedOperatorError",
    "ValueRange",
    "approximate",
    "compile",
    "to_onnx",
]
