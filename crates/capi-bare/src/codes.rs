use core::ffi::c_int;

use keywright_client::ClientError;
use keywright_ring::RingError;
use keywright_rlwe::RlweError;

/// `KW_OK`.
pub const OK: c_int = 0;
/// `KW_ERROR_ARGUMENT`.
pub const ARGUMENT: c_int = -1;
/// `KW_ERROR_RANDOMNESS`.
pub const RANDOMNESS: c_int = -2;
/// `KW_ERROR_NUMBERS`.
pub const NUMBERS: c_int = -3;
/// `KW_ERROR_FORMAT`.
pub const FORMAT: c_int = -4;
/// `KW_ERROR_PARAMETERS`.
pub const PARAMETERS: c_int = -5;
/// `KW_ERROR_SINK`.
pub const SINK: c_int = -6;
/// `KW_ERROR_INTERNAL`.
pub const INTERNAL: c_int = -7;

/// The code of a client's error.
#[must_use]
pub fn code(error: &ClientError) -> c_int {
    match error {
        ClientError::Randomness(_)
        | ClientError::Ring(RingError::Forked { .. } | RingError::Randomness(_)) => RANDOMNESS,
        ClientError::NumberRange { .. }
        | ClientError::SmallInteger { .. }
        | ClientError::Group { .. }
        | ClientError::Length { .. } => NUMBERS,
        ClientError::Format { .. }
        | ClientError::Checksum { .. }
        | ClientError::Residue { .. }
        | ClientError::ForeignParameters(_)
        | ClientError::Rlwe(RlweError::KeyMismatch { .. }) => FORMAT,
        ClientError::Sink(_) => SINK,
        _ => PARAMETERS,
    }
}
