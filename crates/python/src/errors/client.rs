//! Thin clients, and their servers.

use keywright_client::ClientError;
use keywright_thin_server::ServerError;
use pyo3::prelude::*;

use super::description::{Described, described};
use super::rlwe::{ring, rlwe};
use super::wire::wire;

pub(super) fn client<'py>(py: Python<'py>, error: &ClientError) -> PyResult<Described<'py>> {
    match error {
        ClientError::Randomness(_) => described!(py, "RandomnessError"),
        ClientError::Range { what, value, min, max } => {
            described!(py, "ParameterError", what = what, value = value, minimum = min, maximum = max)
        }
        ClientError::Ring(error) => ring(py, error),
        ClientError::Rlwe(error) => rlwe(py, error),
        ClientError::Insecure { bits, log_n, bound } => described!(
            py,
            "SecurityError",
            object = "q_0",
            modulus_bits = bits,
            bound = bound,
            log_n = log_n,
            secret = py.None()
        ),
        ClientError::NumberRange { index, max, .. } => {
            described!(py, "EncodeError", index = index, minimum = -max, maximum = max)
        }
        ClientError::SmallInteger { index, bits } => {
            described!(py, "EncodeError", index = index, minimum = 0, maximum = (1u64 << bits) - 1)
        }
        ClientError::Length { found, expected, .. } => {
            described!(py, "EncodeError", count = found, bound = expected)
        }
        ClientError::Format { .. } => described!(py, "FormatError", reason = "contents"),
        ClientError::Residue { value, modulus, .. } => {
            described!(py, "FormatError", reason = "residue", found = value, expected = modulus)
        }
        ClientError::Checksum { stored, computed, .. } => {
            described!(py, "FormatError", reason = "checksum", found = computed, expected = stored)
        }
        ClientError::ForeignParameters(what) => {
            described!(py, "MixedParametersError", left = what, right = "the client")
        }
        _ => described!(py, "KeywrightError"),
    }
}

pub(super) fn server<'py>(py: Python<'py>, error: &ServerError) -> PyResult<Described<'py>> {
    match error {
        ServerError::Wire(error) => wire(py, error),
        ServerError::Client(error) => client(py, error),
        ServerError::Rlwe(error) => rlwe(py, error),
        ServerError::Upload { found, expected, .. } => {
            described!(py, "FormatError", reason = "contents", found = found, expected = expected)
        }
        ServerError::TooLarge { log_size, log_q } => {
            described!(py, "ScaleError", log_scale = log_size, log_q = log_q, level = 0)
        }
        ServerError::Packing(packing) => {
            described!(py, "PackingError", left = packing.to_string(), right = "coefficients")
        }
        ServerError::Growth(value) => {
            described!(py, "ParameterError", what = "growth", value = value, minimum = 1)
        }
        _ => described!(py, "KeywrightError"),
    }
}
