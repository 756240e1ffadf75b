use std::io;

use keywright_aggregation::AggregationError;
use keywright_frame::{FORMAT_VERSION, Fingerprint, FrameError, Kind, MAGIC};
use keywright_rlwe::{KeyElement, KeySpec, RlweError};
use thiserror::Error;

/// Errors of reading and writing objects.
#[derive(Debug, Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum WireError {
    /// The reader or writer failed.
    #[error("input or output failed: {0}")]
    Io(#[from] io::Error),
    /// The path is not that of a regular file.
    #[error("this is {found}; name a regular file")]
    NotAFile {
        /// A folder, a pipe, a socket or a device.
        found: &'static str,
    },
    /// The bytes end too early.
    #[error("{what} ends early: {missing} of {needed} bytes are missing; the file or message was cut off")]
    Truncated { what: &'static str, needed: u64, missing: u64 },
    /// Bytes follow the end.
    #[error("{extra} bytes follow the end of {what}; pass exactly one object")]
    Trailing { what: &'static str, extra: u64 },
    /// Not a Keywright object.
    #[error("the bytes start with {found:02x?}, not with the Keywright magic {expected:02x?}; pass a Keywright object", expected = MAGIC)]
    Magic { found: [u8; 8] },
    /// The object has a format version that this build does not read.
    #[error(
        "format version {found} is not supported, only version {supported}; use the Keywright that wrote it"
    )]
    Version { found: u16, supported: u16 },
    /// An unknown kind code.
    #[error("object kind {0:#06x} is unknown to this version of Keywright; use a newer one")]
    UnknownKind(u16),
    /// An object of another kind than the requested one.
    #[error("this is {found}, not {expected}")]
    WrongKind { found: Kind, expected: Kind },
    /// A checksum does not match: the bytes were damaged.
    #[error(
        "the checksum of the {what} is {computed:#010x}, but {stored:#010x} is stored: the bytes were damaged; fetch \
         them again"
    )]
    Checksum { what: &'static str, stored: u32, computed: u32 },
    /// A derived key, which cannot be written.
    #[error(
        "the key for {element} was derived from master keys, and such keys are not written; write the master keys, \
         and derive it again"
    )]
    DerivedKey { element: KeyElement },
    /// The object belongs to other parameters.
    #[error(
        "the object belongs to parameters {found}, not to {expected}; load it with the parameters that made it"
    )]
    ForeignParameters { found: Fingerprint, expected: Fingerprint },
    /// A length that contradicts what the header and the parameters imply.
    #[error("{what} has {found} bytes, but the parameters require {expected}")]
    Length { what: &'static str, found: u64, expected: u64 },
    /// A number outside its range.
    #[error("{what} is {value}, outside {min}..={max}")]
    Field { what: &'static str, value: u64, min: u64, max: u64 },
    /// A real number that is invalid in its place.
    #[error("{what} is {value}; it must be finite, a size must not be negative, and a scale must not be 0")]
    Number { what: &'static str, value: f64 },
    /// A residue that is not below its prime.
    #[error("residue {index} of a limb modulo {modulus} is {value}, not below the modulus")]
    Residue { value: u64, modulus: u64, index: usize },
    /// A coefficient of a secret that is not in `{-1, 0, 1}`. The value is not shown.
    #[error("{count} coefficients of the secret are not ternary")]
    SecretCoefficient { count: usize },
    /// A key that differs from the directory's entry at its place.
    #[error("key {index} of the key set is {found:?}; the directory names {expected:?}")]
    KeyOrder { index: usize, found: Box<KeySpec>, expected: Box<KeySpec> },
    /// Fewer or more keys than the directory names.
    #[error("the directory of the key set names {expected} keys, but {found} were given")]
    KeyCount { found: usize, expected: usize },
    /// The content is well-formed, but not legal for the parameters.
    #[error(transparent)]
    Rlwe(#[from] RlweError),
    /// The same for an encrypted update or sum.
    #[error(transparent)]
    Aggregation(#[from] AggregationError),
}

impl From<FrameError> for WireError {
    fn from(error: FrameError) -> Self {
        match error {
            FrameError::Truncated { needed, missing } => {
                Self::Truncated { what: "the descriptor", needed, missing }
            }
            FrameError::Trailing { extra } => Self::Trailing { what: "the descriptor", extra },
            FrameError::Magic { found } => Self::Magic { found },
            FrameError::Version { found } => Self::Version { found, supported: FORMAT_VERSION },
            FrameError::Field { what, value, min, max } => Self::Field { what, value, min, max },
        }
    }
}

/// Checks `min <= value <= max`.
pub(crate) fn in_range(what: &'static str, value: u64, min: u64, max: u64) -> Result<(), WireError> {
    if (min..=max).contains(&value) { Ok(()) } else { Err(WireError::Field { what, value, min, max }) }
}
