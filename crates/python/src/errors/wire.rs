//! Bytes and files.

use keywright_wire::WireError;
use pyo3::prelude::*;

use super::description::{Described, described};
use super::rlwe::{element_name, rlwe};
use super::sums::aggregation;

pub(super) fn wire<'py>(py: Python<'py>, error: &WireError) -> PyResult<Described<'py>> {
    match error {
        WireError::Aggregation(error) => aggregation(py, error),
        WireError::Rlwe(error) => rlwe(py, error),
        WireError::ForeignParameters { found, expected } => {
            described!(py, "MixedParametersError", left = found.to_string(), right = expected.to_string())
        }
        WireError::NoSuchKey { element, level } => described!(
            py,
            "MissingKeyError",
            element = element_name(element),
            rotation = py.None(),
            level = level,
            nearest = py.None()
        ),
        WireError::DerivedKey { element } => {
            described!(py, "DerivationError", element = element_name(element), reason = "written")
        }
        WireError::NotAFile { found } => {
            described!(py, "FormatError", reason = "kind", found = *found, expected = "a file")
        }
        WireError::Truncated { needed, missing, .. } => {
            described!(py, "FormatError", reason = "truncated", found = needed - missing, expected = needed)
        }
        WireError::Trailing { extra, .. } => {
            described!(py, "FormatError", reason = "trailing", found = extra, expected = 0)
        }
        WireError::Magic { found } => described!(
            py,
            "FormatError",
            reason = "foreign",
            found = found.to_vec(),
            expected = keywright_wire::MAGIC.to_vec()
        ),
        WireError::Version { found, supported } => {
            described!(py, "FormatError", reason = "version", found = found, expected = supported)
        }
        WireError::UnknownKind(kind) => described!(py, "FormatError", reason = "kind", found = kind),
        WireError::WrongKind { found, expected } => described!(
            py,
            "FormatError",
            reason = "kind",
            found = found.to_string(),
            expected = expected.to_string()
        ),
        WireError::Checksum { stored, computed, .. } => {
            described!(py, "FormatError", reason = "checksum", found = computed, expected = stored)
        }
        WireError::Length { found, expected, .. } => {
            described!(py, "FormatError", reason = "length", found = found, expected = expected)
        }
        WireError::Number { value, .. } => described!(py, "FormatError", reason = "field", found = value),
        WireError::Field { value, .. } => described!(py, "FormatError", reason = "field", found = value),
        WireError::Residue { value, modulus, .. } => {
            described!(py, "FormatError", reason = "residue", found = value, expected = modulus)
        }
        WireError::SecretCoefficient { count } => {
            described!(py, "FormatError", reason = "secret", found = count)
        }
        WireError::KeyCount { found, expected } => {
            described!(py, "FormatError", reason = "number of keys", found = found, expected = expected)
        }
        _ => described!(py, "FormatError", reason = "contents"),
    }
}

/// The system's words for an error, without the number that Rust appends.
pub(super) fn system_text(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_string()
}
