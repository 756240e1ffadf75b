"""Neural networks on encrypted data: compiles ONNX models into a `Program` of RNS-CKKS operations."""

from .activations.fit import Fit
from .activations.polynomials import PolynomialSpec
from .activations.report import FitReport, FittedActivation
from .approximating import ApproximatedModel, approximate
from .compiled.instructions import Instruction, Layer, ValueRange
from .compiled.key_switches import KeySwitch, RequiredKey
from .compiler import compile  # noqa: A004 (read as keywright.nn.compile)
from .errors import (
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
from .front_ends.to_onnx import to_onnx
from .layout.diagonals import DiagonalMatrix
from .layout.layout import Layout
from .placement.bootstraps import Bootstrap
from .placement.costs import CostTable
from .placement.target import Target
from .program import Program
from .run.backend import Backend
from .run.checking import CheckReport
from .run.clear import ClearBackend, ClearCiphertext
from .simulation.simulate import Simulation, simulate

__all__ = [
    "AccuracyError",
    "ApproximatedModel",
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
    "PolynomialSpec",
    "Program",
    "ProgramFormatError",
    "RangesMissingError",
    "RefusalError",
    "RequiredKey",
    "Simulation",
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
    "simulate",
    "to_onnx",
]
