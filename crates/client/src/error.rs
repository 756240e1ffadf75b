use keywright_frame::FrameError;
use keywright_rlwe::RlweError;
use thiserror::Error;

/// Why a client refuses.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The platform gave no randomness, or bytes that are all zero.
    #[error("no randomness: {0}")]
    Randomness(&'static str),
    /// A field of the parameters is outside its range.
    #[error("{what} is {value}, must be in {min}..={max}")]
    Range {
        /// The field.
        what: &'static str,
        /// Its value.
        value: u64,
        /// Smallest allowed.
        min: u64,
        /// Largest allowed.
        max: u64,
    },
    /// The prime does not serve the ring, or the back end cannot be used.
    #[error(transparent)]
    Ring(#[from] keywright_ring::RingError),
    /// The parameters are refused by the layer of keys.
    #[error(transparent)]
    Rlwe(#[from] RlweError),
    /// `q_0` alone is above the 128-bit bound of the ring.
    #[error("q_0 has {bits} bits; 128-bit security at N = 2^{log_n} allows {bound}")]
    Insecure {
        /// Bits of `q_0`.
        bits: u32,
        /// `log2(N)`.
        log_n: u32,
        /// The bound of the secret's distribution; 0 where there is none.
        bound: u32,
    },
    /// A number does not fit the fixed-point format.
    #[error("number {index} is outside -{max}..={max} (fixed point with {fraction_bits} fraction bits)")]
    NumberRange {
        /// Its place.
        index: usize,
        /// Largest absolute value, in units of the last place.
        max: i64,
        /// Bits after the point.
        fraction_bits: u32,
    },
    /// A small integer that is negative, or has too many bits for its place in a number.
    #[error("integer {index} is outside 0..2^{bits}: a group has no room for it")]
    SmallInteger {
        /// Its place.
        index: usize,
        /// Bits of a place.
        bits: u32,
    },
    /// A buffer or a list has another length than is needed.
    #[error("{what}: {found} given, {expected} needed")]
    Length {
        /// What was measured.
        what: &'static str,
        /// Its length.
        found: usize,
        /// The length needed.
        expected: usize,
    },
    /// Bytes that are no object of this kind, of these parameters.
    #[error("{what}: {problem}")]
    Format {
        /// What was read.
        what: &'static str,
        /// What is wrong.
        problem: &'static str,
    },
    /// A residue is not below its modulus.
    #[error("residue {index} is {value}, not below the modulus {modulus}")]
    Residue {
        /// Its place.
        index: usize,
        /// Its value.
        value: u64,
        /// The modulus.
        modulus: u64,
    },
    /// A stored checksum differs from the one computed: the bytes are damaged.
    #[error("checksum of the {what}: {stored:08x} stored, {computed:08x} computed")]
    Checksum {
        /// Header or body.
        what: &'static str,
        /// The stored one.
        stored: u32,
        /// The computed one.
        computed: u32,
    },
    /// The object belongs to other parameters.
    #[error("the {0} belongs to other parameters than this client's")]
    ForeignParameters(&'static str),
    /// The receiver of the bytes refused them.
    #[error("the sink refused the bytes: {0}")]
    Sink(SinkError),
}

/// Why a sink refused bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct SinkError(pub &'static str);

impl From<SinkError> for ClientError {
    fn from(error: SinkError) -> Self {
        Self::Sink(error)
    }
}

pub(crate) fn in_range(what: &'static str, value: u64, min: u64, max: u64) -> Result<(), ClientError> {
    if (min..=max).contains(&value) { Ok(()) } else { Err(ClientError::Range { what, value, min, max }) }
}

pub(crate) fn require_len(what: &'static str, found: usize, expected: usize) -> Result<(), ClientError> {
    if found == expected { Ok(()) } else { Err(ClientError::Length { what, found, expected }) }
}

/// What is wrong with the frame of an object, in a client's words.
pub(crate) fn frame_error(what: &'static str) -> impl Fn(FrameError) -> ClientError {
    move |error| {
        let problem = match error {
            FrameError::Field { what, value, min, max } => {
                return ClientError::Range { what, value, min, max };
            }
            FrameError::Truncated { .. } => "the descriptor is cut short",
            FrameError::Trailing { .. } => "the descriptor has bytes left over",
            FrameError::Magic { .. } => "these bytes are no object of Keywright",
            FrameError::Version { .. } => "written in another version of the format",
        };
        ClientError::Format { what, problem }
    }
}
