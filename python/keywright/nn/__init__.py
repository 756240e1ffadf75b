"""Neural networks on encrypted data: ONNX in, a `Program` of RNS-CKKS operations out."""

from .backend import Backend, LinearTransform, PolynomialSpec
from .checking import CheckReport
from .clear import ClearBackend, ClearCiphertext
from .compiler import compile  # noqa: A004 (read as keywright.nn.compile)
from .errors import (
    BackendMisuse,
    CalibrationMissing,
    DynamicShape,
    InvalidModel,
    InvalidSamples,
    ModelRefused,
    NnError,
    OnnxruntimeMissing,
    OutOfLevels,
    ProgramFormatError,
    RefusalReason,
    TooDeep,
    TooWide,
    UnsupportedAttribute,
    UnsupportedOperator,
)
from .fitting import FittedActivation
from .key_switches import KeySwitch, RequiredKey
from .layout import Layout
from .program import Instruction, Program

__all__ = [
    "Backend",
    "BackendMisuse",
    "CalibrationMissing",
    "CheckReport",
    "ClearBackend",
    "ClearCiphertext",
    "DynamicShape",
    "FittedActivation",
    "Instruction",
    "InvalidModel",
    "InvalidSamples",
    "KeySwitch",
    "Layout",
    "LinearTransform",
    "ModelRefused",
    "NnError",
    "OnnxruntimeMissing",
    "OutOfLevels",
    "PolynomialSpec",
    "Program",
    "ProgramFormatError",
    "RefusalReason",
    "RequiredKey",
    "TooDeep",
    "TooWide",
    "UnsupportedAttribute",
    "UnsupportedOperator",
    "compile",
]
