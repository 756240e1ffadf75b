//! Thin clients, and their servers.

use keywright_client::ClientError;
use keywright_thin_server::ServerError;

use super::description::table;
use super::schemes::rlwe::{ring, rlwe};
use super::search::search;
use super::wire::wire;

table! { client(py, ClientError);
    E::Randomness(_) => "RandomnessError" {},
    E::Range { what, value, min, max } => "ParameterError" { what, value, minimum = min, maximum = max },
    E::Ring(error) => ring(error),
    E::Rlwe(error) => rlwe(error),
    E::Insecure { bits, log_n, bound } =>
        "SecurityError" { object = "q_0", modulus_bits = bits, bound, log_n, secret = py.None() },
    E::NumberRange { index, max, .. } => "EncodeError" { index, minimum = -max, maximum = max },
    E::SmallInteger { index, bits } | E::Group { index, bits } =>
        "EncodeError" { index, minimum = 0, maximum = (1u64 << bits) - 1 },
    E::Length { found, expected, .. } => "EncodeError" { count = found, bound = expected },
    E::Format { .. } => "FormatError" { code = "contents" },
    E::Residue { value, modulus, .. } =>
        "FormatError" { code = "residue", found = value, expected = modulus },
    E::Checksum { stored, computed, .. } =>
        "FormatError" { code = "checksum", found = computed, expected = stored },
    E::ForeignParameters(what) => "MismatchError" { code = "parameters", left = what, right = "the client" },
    _ => "KeywrightError" {},
}

table! { server(py, ServerError);
    E::Wire(error) => wire(error),
    E::Client(error) => client(error),
    E::Rlwe(error) => rlwe(error),
    E::Search(error) => search(error),
    E::Upload { found, expected, .. } => "FormatError" { code = "contents", found, expected },
    E::TooLarge { log_size, log_q } => "ScaleError" { log_scale = log_size, log_q, level = 0 },
    E::Packing(packing) => "OperandError" { code = "packing", left = packing.to_string(), right = "coefficients" },
    E::Growth(value) => "ParameterError" { what = "growth", value, minimum = 1 },
    _ => "KeywrightError" {},
}
