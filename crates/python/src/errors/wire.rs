//! Bytes and files.

use keywright_wire::WireError;

use super::description::table;
use super::schemes::rlwe::{element_name, rlwe};
use super::sums::aggregation;

table! { wire(py, WireError);
    E::Aggregation(error) => aggregation(error),
    E::Rlwe(error) => rlwe(error),
    E::ForeignParameters { found, expected } =>
        "MismatchError" { code = "parameters", left = found.to_string(), right = expected.to_string() },
    E::DerivedKey { element } => "MissingKeyError" { element = element_name(element), code = "written" },
    E::NotAFile { found } => "FormatError" { code = "kind", found, expected = "a file" },
    E::Truncated { needed, missing, .. } =>
        "FormatError" { code = "truncated", found = needed - missing, expected = needed },
    E::Trailing { extra, .. } => "FormatError" { code = "trailing", found = extra, expected = 0 },
    E::Magic { found } =>
        "FormatError" {
            code = "foreign", found = found.to_vec(), expected = keywright_wire::MAGIC.to_vec()
        },
    E::Version { found, supported } => "FormatError" { code = "version", found, expected = supported },
    E::UnknownKind(kind) => "FormatError" { code = "kind", found = kind },
    E::WrongKind { found, expected } =>
        "FormatError" { code = "kind", found = found.to_string(), expected = expected.to_string() },
    E::Checksum { stored, computed, .. } =>
        "FormatError" { code = "checksum", found = computed, expected = stored },
    E::Length { found, expected, .. } => "FormatError" { code = "length", found, expected },
    E::Number { value, .. } => "FormatError" { code = "field", found = value },
    E::Field { value, .. } => "FormatError" { code = "field", found = value },
    E::Residue { value, modulus, .. } =>
        "FormatError" { code = "residue", found = value, expected = modulus },
    E::SecretCoefficient { count } => "FormatError" { code = "secret", found = count },
    E::KeyCount { found, expected } => "FormatError" { code = "number_of_keys", found, expected },
    _ => "FormatError" { code = "contents" },
}

/// The system's words for an error, without the number that Rust appends.
pub(super) fn system_text(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_string()
}
