//! BFV.

use keywright_bfv::BfvError;
use pyo3::prelude::*;

use super::description::{Described, described};
use super::rlwe::rlwe;

pub(super) fn bfv<'py>(py: Python<'py>, error: &BfvError) -> PyResult<Described<'py>> {
    match error {
        BfvError::Rlwe(error) => rlwe(py, error),
        BfvError::PlaintextModulus { value, smallest } => described!(
            py,
            "ParameterError",
            what = "plaintext_modulus",
            value = value,
            minimum = 2,
            maximum = (1 << keywright_bfv::MAX_PLAINTEXT_BITS).min(*smallest) - 1
        ),
        BfvError::NoSlots { modulus, .. } => {
            described!(py, "ParameterError", what = "plaintext_modulus", value = modulus)
        }
        BfvError::MixedPlaintextModuli { left, right } => {
            described!(py, "MixedParametersError", left = left.to_string(), right = right.to_string())
        }
        BfvError::Value { index, value, min, max } => {
            described!(py, "EncodeError", index = index, value = value, minimum = min, maximum = max)
        }
        BfvError::TooManyValues { count, max } => {
            described!(py, "EncodeError", count = count, bound = max)
        }
        BfvError::PackingMismatch { left, right } => {
            described!(py, "PackingError", left = left.to_string(), right = right.to_string())
        }
        BfvError::LevelMismatch { left, right } => described!(
            py,
            "LevelError",
            level = left.max(right),
            maximum = left.min(right),
            object = "the other operand"
        ),
        BfvError::Degree { operation, degree } => {
            described!(py, "DegreeError", operation = operation, degree = degree)
        }
        BfvError::NoiseExhausted { operation, budget } => {
            described!(py, "NoiseError", operation = operation, budget = budget)
        }
        BfvError::NoiseOverflow => described!(py, "NoiseError", operation = "decrypt"),
        BfvError::UnknownPreset { name, known } => {
            described!(py, "ParameterError", what = "preset", value = name, known = known)
        }
        _ => described!(py, "KeywrightError"),
    }
}
