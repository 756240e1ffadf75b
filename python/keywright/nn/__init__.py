"""Neural networks on encrypted data: ONNX in, a `Program` of RNS-CKKS operations out."""

from .backend import Backend, LinearTransform, PolynomialSpec
from .bootstraps import Bootstrap
from .checking import CheckReport
from .clear import ClearBackend, ClearCiphertext
from .compiler import compile  # noqa: A004 (read as keywright.nn.compile)
from .costs import CostTable
from .errors import (
    BackendMisuse,
    CalibrationMissing,
    CannotPlace,
    DynamicShape,
    InvalidBootstrap,
    InvalidCosts,
    InvalidModel,
    InvalidSamples,
    ModelRefused,
    NnError,
    OnnxruntimeMissing,
    OutOfLevels,
    OutOfRange,
    ProgramFormatError,
    RangesMissing,
    RefusalReason,
    TooDeep,
    TooWide,
    UnsupportedAttribute,
    UnsupportedOperator,
)
from .fitting import FittedActivation
from .key_switches import KeySwitch, RequiredKey
from .layout import Layout
from .program import Instruction, Layer, Program

__all__ = [
    "Backend",
    "BackendMisuse",
    "Bootstrap",
    "CalibrationMissing",
    "CannotPlace",
    "CheckReport",
    "ClearBackend",
    "ClearCiphertext",
    "CostTable",
    "DynamicShape",
    "FittedActivation",
    "Instruction",
    "InvalidBootstrap",
    "InvalidCosts",
    "InvalidModel",
    "InvalidSamples",
    "KeySwitch",
    "Layer",
    "Layout",
    "LinearTransform",
    "ModelRefused",
    "NnError",
    "OnnxruntimeMissing",
    "OutOfLevels",
    "OutOfRange",
    "PolynomialSpec",
    "Program",
    "ProgramFormatError",
    "RangesMissing",
    "RefusalReason",
    "RequiredKey",
    "TooDeep",
    "TooWide",
    "UnsupportedAttribute",
    "UnsupportedOperator",
    "compile",
]
