//! BFV.

use keywright_bfv::BfvError;
use keywright_rlwe::RlweError;

use super::rlwe::rlwe;
use crate::errors::description::table;

table! { bfv(py, BfvError);
    E::Rlwe(error) => rlwe(error),
    E::LastPrime => { rlwe(py, &RlweError::LastPrime) },
    E::PlaintextModulus { value, smallest } =>
        "ParameterError" {
            what = "plaintext_modulus", value, minimum = 2, maximum = (1 << keywright_bfv::MAX_PLAINTEXT_BITS).min(*smallest) - 1
        },
    E::NoSlots { modulus, .. } => "ParameterError" { what = "plaintext_modulus", value = modulus },
    E::MixedPlaintextModuli { left, right } =>
        "MismatchError" { code = "parameters", left = left.to_string(), right = right.to_string() },
    E::Value { index, value, min, max } => "EncodeError" { index, value, minimum = min, maximum = max },
    E::TooManyValues { count, max } => "EncodeError" { count, bound = max },
    E::PackingMismatch { left, right } =>
        "OperandError" { code = "packing", left = left.to_string(), right = right.to_string() },
    E::LevelMismatch { left, right } =>
        "LevelError" { level = left.max(right), maximum = left.min(right), object = "the other operand" },
    E::Degree { operation, degree } => "OperandError" { code = "degree", operation, degree },
    E::NoiseExhausted { operation, budget } => "NoiseError" { operation, budget },
    E::NoiseOverflow => "NoiseError" { code = "decryption", operation = "decrypt" },
    E::UnknownPreset { name, known } => "ParameterError" { what = "preset", value = name, known },
    _ => "KeywrightError" {},
}
