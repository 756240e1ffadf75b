use keywright_frame::FrameError;
use keywright_rlwe::RlweError;
use thiserror::Error;

/// Reasons for a client's refusal.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum ClientError {
    /// The platform provided no randomness, or bytes that are all zero.
    #[error("no randomness: {0}")]
    Randomness(&'static str),
    /// A field of the parameters is outside its range.
    #[error("{what} is {value}; it must be in {min}..={max}")]
    Range { what: &'static str, value: u64, min: u64, max: u64 },
    /// The prime does not support the ring, or the back end cannot be used.
    #[error(transparent)]
    Ring(#[from] keywright_ring::RingError),
    /// The layer of keys refused the parameters.
    #[error(transparent)]
    Rlwe(#[from] RlweError),
    /// `q_0` alone exceeds the 128-bit bound of the ring.
    #[error(
        "q_0 has {bits} bits, and 128-bit security at N = 2^{log_n} allows {bound}; use a smaller q_0 or a larger ring"
    )]
    Insecure {
        bits: u32,
        log_n: u32,
        /// The bound for the secret's distribution; 0 if there is none.
        bound: u32,
    },
    /// A number does not fit the fixed-point format.
    #[error(
        "number {index} is outside -{max}..={max}, in units of 2^-{fraction_bits}; scale the numbers to this range"
    )]
    NumberRange {
        index: usize,
        /// Largest absolute value, in units of the last place.
        max: i64,
        fraction_bits: u32,
    },
    /// A small integer that is negative, or has too many bits for its place in a number.
    #[error(
        "integer {index} is outside 0..2^{bits}, the range of a place in a group; use groups of wider places"
    )]
    SmallInteger { index: usize, bits: u32 },
    /// A number that is no group of small integers.
    #[error(
        "number {index} is outside 0..2^{bits}, the range of a group: a sum outgrew its place, the error was half a unit \
         or more, or the integers were not grouped; use wider places, or a larger scale"
    )]
    Group { index: usize, bits: u32 },
    /// A buffer or a list has the wrong length.
    #[error("{what}: {found} given, {expected} required")]
    Length { what: &'static str, found: usize, expected: usize },
    /// Bytes that are not an object of this kind and these parameters.
    #[error("{what}: {problem}")]
    Format { what: &'static str, problem: &'static str },
    /// A residue is not below its modulus.
    #[error("residue {index} is {value}, not below the modulus {modulus}")]
    Residue { index: usize, value: u64, modulus: u64 },
    /// A stored checksum differs from the computed one: the bytes are damaged.
    #[error(
        "the checksum of the {what} is {computed:08x}, but {stored:08x} is stored: the bytes were damaged; fetch them again"
    )]
    Checksum { what: &'static str, stored: u32, computed: u32 },
    /// The object belongs to other parameters.
    #[error("the {0} belongs to other parameters than this client; use the server's own parameters")]
    ForeignParameters(&'static str),
    /// The receiver of the bytes refused them.
    #[error("the sink refused the bytes: {0}")]
    Sink(SinkError),
}

/// The reason why a sink refused bytes.
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

/// The problem with the frame of an object, in a client's words.
pub(crate) fn frame_error(what: &'static str) -> impl Fn(FrameError) -> ClientError {
    move |error| {
        let problem = match error {
            FrameError::Field { what, value, min, max } => {
                return ClientError::Range { what, value, min, max };
            }
            FrameError::Truncated { .. } => "the descriptor is cut short",
            FrameError::Trailing { .. } => "the descriptor has bytes left over",
            FrameError::Magic { .. } => "these bytes are not a Keywright object",
            FrameError::Version { .. } => "written in another version of the format",
        };
        ClientError::Format { what, problem }
    }
}
