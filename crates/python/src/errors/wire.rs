//! Bytes and files.

use keywright_wire::WireError;

use super::description::table;
use super::rlwe::{element_name, rlwe};
use super::sums::aggregation;

table! { wire(py, WireError);
    E::Aggregation(error) => aggregation(error),
    E::Rlwe(error) => rlwe(error),
    E::ForeignParameters { found, expected } =>
        "MixedParametersError" { left = found.to_string(), right = expected.to_string() },
    E::DerivedKey { element } => "DerivationError" { element = element_name(element), reason = "written" },
    E::NotAFile { found } => "FormatError" { reason = "kind", found, expected = "a file" },
    E::Truncated { needed, missing, .. } =>
        "FormatError" { reason = "truncated", found = needed - missing, expected = needed },
    E::Trailing { extra, .. } => "FormatError" { reason = "trailing", found = extra, expected = 0 },
    E::Magic { found } =>
        "FormatError" {
            reason = "foreign", found = found.to_vec(), expected = keywright_wire::MAGIC.to_vec()
        },
    E::Version { found, supported } => "FormatError" { reason = "version", found, expected = supported },
    E::UnknownKind(kind) => "FormatError" { reason = "kind", found = kind },
    E::WrongKind { found, expected } =>
        "FormatError" { reason = "kind", found = found.to_string(), expected = expected.to_string() },
    E::Checksum { stored, computed, .. } =>
        "FormatError" { reason = "checksum", found = computed, expected = stored },
    E::Length { found, expected, .. } => "FormatError" { reason = "length", found, expected },
    E::Number { value, .. } => "FormatError" { reason = "field", found = value },
    E::Field { value, .. } => "FormatError" { reason = "field", found = value },
    E::Residue { value, modulus, .. } =>
        "FormatError" { reason = "residue", found = value, expected = modulus },
    E::SecretCoefficient { count } => "FormatError" { reason = "secret", found = count },
    E::KeyCount { found, expected } => "FormatError" { reason = "number of keys", found, expected },
    _ => "FormatError" { reason = "contents" },
}

/// The system's words for an error, without the number that Rust appends.
pub(super) fn system_text(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_string()
}
