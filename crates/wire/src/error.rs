use std::io;

use keywright_aggregation::AggregationError;
use keywright_frame::{FORMAT_VERSION, Fingerprint, FrameError, Kind, MAGIC};
use keywright_rlwe::{KeyElement, KeySpec, RlweError};
use thiserror::Error;

/// What can be wrong with bytes, or with an object that is to become bytes.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WireError {
    /// The reader or writer failed.
    #[error("input or output failed: {0}")]
    Io(#[from] io::Error),
    /// The bytes end too early.
    #[error("{what} ends early: {missing} of {needed} bytes are missing; the file or message was cut off")]
    Truncated {
        /// What was being read.
        what: &'static str,
        /// Bytes that it takes.
        needed: u64,
        /// Bytes that were not there.
        missing: u64,
    },
    /// Bytes follow the end.
    #[error("{extra} bytes follow the end of {what}; one object was expected and nothing after it")]
    Trailing {
        /// What ended.
        what: &'static str,
        /// Bytes left over.
        extra: u64,
    },
    /// Not a Keywright object.
    #[error("the bytes start with {found:02x?}, not with the Keywright magic {expected:02x?}; this is another kind of file", expected = MAGIC)]
    Magic {
        /// The first bytes.
        found: [u8; 8],
    },
    /// Written in a format that this build does not know.
    #[error("format version {found} is not among the supported 1..={supported}; use a newer Keywright")]
    Version {
        /// Version in the header.
        found: u16,
        /// Newest version that this build reads.
        supported: u16,
    },
    /// A kind code without a meaning.
    #[error("object kind {0:#06x} is unknown to this version of Keywright")]
    UnknownKind(u16),
    /// Another kind of object than the one asked for.
    #[error("this is {found}, not {expected}")]
    WrongKind {
        /// Kind in the header.
        found: Kind,
        /// Kind that was asked for.
        expected: Kind,
    },
    /// A checksum does not match: the bytes were damaged.
    #[error(
        "checksum of the {what} is {computed:#010x}, stored is {stored:#010x}; the bytes were damaged, fetch them again"
    )]
    Checksum {
        /// Header or body.
        what: &'static str,
        /// Checksum found in the bytes.
        stored: u32,
        /// Checksum of what was read.
        computed: u32,
    },
    /// A derived key was to be written.
    #[error(
        "the key for {element} was derived from master keys, and such keys are not written: write the master keys, \
         and derive it again"
    )]
    DerivedKey {
        /// Element of the key.
        element: KeyElement,
    },
    /// The object belongs to other parameters.
    #[error(
        "the object belongs to parameters {found}, not to {expected}; load the parameters it was made with"
    )]
    ForeignParameters {
        /// Fingerprint in the header.
        found: Fingerprint,
        /// Fingerprint of the parameters at hand.
        expected: Fingerprint,
    },
    /// A length that contradicts what the header and the parameters imply.
    #[error("{what} has {found} bytes, the parameters imply {expected}")]
    Length {
        /// Whose length.
        what: &'static str,
        /// Length stated.
        found: u64,
        /// Length implied.
        expected: u64,
    },
    /// A number outside its range.
    #[error("{what} is {value}, outside {min}..={max}")]
    Field {
        /// Which number.
        what: &'static str,
        /// Offending value.
        value: u64,
        /// Smallest legal value.
        min: u64,
        /// Largest legal value.
        max: u64,
    },
    /// A real number without a meaning in its place.
    #[error("{what} is {value}; a finite number is needed, a size is not negative, and a scale is not 0")]
    Number {
        /// Which number.
        what: &'static str,
        /// Offending value.
        value: f64,
    },
    /// A residue that is not below its prime.
    #[error("residue {index} of a limb modulo {modulus} is {value}: not canonical")]
    Residue {
        /// Offending residue.
        value: u64,
        /// Its prime.
        modulus: u64,
        /// Position in the limb.
        index: usize,
    },
    /// A coefficient of a secret that is not in `{-1, 0, 1}`. The value is not shown.
    #[error("{count} coefficients of the secret are not ternary")]
    SecretCoefficient {
        /// How many.
        count: usize,
    },
    /// A key that is not the one that the key set's directory names at this place.
    #[error("key {index} of the key set is {found:?}; the directory names {expected:?}")]
    KeyOrder {
        /// Place in the directory.
        index: usize,
        /// What the key at hand is.
        found: Box<KeySpec>,
        /// What the directory says.
        expected: Box<KeySpec>,
    },
    /// Fewer or more keys than the directory names.
    #[error("the directory of the key set names {expected} keys, {found} were given")]
    KeyCount {
        /// Keys given.
        found: usize,
        /// Keys in the directory.
        expected: usize,
    },
    /// No key of a set serves an element at a level.
    #[error("the key set has no key for {element} that reaches level {level}")]
    NoSuchKey {
        /// Element asked for.
        element: KeyElement,
        /// Level asked for.
        level: usize,
    },
    /// The contents are well-formed but not legal for the parameters.
    #[error(transparent)]
    Rlwe(#[from] RlweError),
    /// The same of an encrypted update or sum.
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
