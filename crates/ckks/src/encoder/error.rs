use thiserror::Error;

/// Errors of encoding and decoding.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum EncoderError {
    /// More slots than the ring has.
    #[error("2^{log_slots} slots do not fit a ring of degree 2^{log_n}, which has at most 2^{}", log_n - 1)]
    SlotCount { log_slots: u32, log_n: u32 },
    /// More values than places.
    #[error("{count} values do not fit {room} {what}; split them over several plaintexts")]
    TooManyValues { count: usize, room: usize, what: &'static str },
    /// A value is NaN or infinite.
    #[error("value {index} is {value}; only finite numbers can be encoded")]
    NotFinite { index: usize, value: f64 },
    /// The scale is not a positive finite number.
    #[error(
        "scale {0} is not a positive finite number; a usual scale is a power of two between 2^30 and 2^60"
    )]
    Scale(f64),
    /// A coefficient is not below half the modulus.
    #[error(
        "the largest coefficient needs {needed_bits:.1} bits with its sign, and {available_bits:.1} are available; use a \
         smaller scale, smaller values or a higher level"
    )]
    TooLarge {
        /// `log2(2 |c|)` of the largest coefficient `c`.
        needed_bits: f64,
        /// `log2` of the modulus, or of the largest representable coefficient if no modulus is known yet.
        available_bits: f64,
    },
}
