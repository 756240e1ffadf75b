use keywright_rlwe::RlweError;
use thiserror::Error;

use crate::encoder::EncoderError;

/// Errors of the scheme.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum CkksError {
    /// An error of keys, levels or parameters.
    #[error(transparent)]
    Rlwe(#[from] RlweError),
    /// Values that cannot be encoded.
    #[error(transparent)]
    Encode(#[from] EncoderError),
    /// Scales of two operands differ.
    #[error(
        "scales differ: 2^{left:.6} and 2^{right:.6}; rescale, or bring one operand to the other's scale with set_scale"
    )]
    ScaleMismatch {
        /// `log2` of the left scale.
        left: f64,
        /// `log2` of the right scale.
        right: f64,
    },
    /// Packings of two operands differ.
    #[error("packings differ: {left} and {right}; encode both operands in one packing")]
    PackingMismatch { left: crate::Packing, right: crate::Packing },
    /// An operation needs more levels than the ciphertext has.
    #[error(
        "{operation} needs {needed} level{}, and the ciphertext has {available}; use deeper parameters or bootstrap",
        if *needed == 1 { "" } else { "s" }
    )]
    LevelsExhausted { operation: &'static str, needed: usize, available: usize },
    /// A ciphertext of the wrong degree.
    #[error(
        "{operation} needs a ciphertext of degree 1, and this one has degree {degree}; relinearize it first"
    )]
    Degree { operation: &'static str, degree: usize },
    /// A scale outside the range in which messages survive.
    #[error(
        "scale 2^{log_scale:.1} does not fit the modulus of {log_q:.1} bits at level {level}; use a smaller scale or a \
         higher level"
    )]
    Scale { log_scale: f64, log_q: f64, level: usize },
    /// A ciphertext whose values may have exceeded the modulus, by the magnitude that it declares.
    #[error(
        "by its declared magnitude, values of the ciphertext may be as large as 2^{log_value:.1}, but its modulus holds \
         values below 2^{log_limit:.1}, and decrypted values near that limit may have overflowed; encrypt with a smaller \
         magnitude, declare the magnitude of the result if you know it (evaluator.declare), or decrypt at a higher level"
    )]
    MayOverflow { log_value: f64, log_limit: f64 },
    /// A decryption that is larger than its ciphertext allows.
    #[error(
        "a {what} of the decryption is above 2^{log_value:.1}, and the ciphertext allows none above \
         2^{log_limit:.1}: it belongs to another secret key, or its values exceeded the modulus or their declared range; \
         decrypt with the right key, and keep inputs in the range of the computation"
    )]
    Overflow { what: &'static str, log_value: f64, log_limit: f64 },
    /// A message above the magnitude that was declared for it.
    #[error(
        "a value of absolute value {value:.6} is above the declared magnitude {magnitude}; a ciphertext states its \
         declaration, so it cannot follow the values: declare a larger magnitude, or scale the values down"
    )]
    AboveMagnitude { value: f64, magnitude: f64 },
    /// A declared magnitude of which some values do not fit the modulus.
    #[error(
        "values of the declared magnitude {magnitude} do not fit the modulus of level {level}, which holds those below \
         2^{log_limit:.1}; declare a smaller magnitude, or encrypt at a higher level"
    )]
    MagnitudeAboveModulus { magnitude: f64, level: usize, log_limit: f64 },
    /// A declaration that no message can keep.
    #[error("the declared magnitude {0} is not a positive finite number; declare a bound on the values")]
    Magnitude(f64),
    /// A factor that is not a finite number.
    #[error("the constant {0} is not a finite number")]
    NotFinite(f64),
    /// A number of bits or of queries that noise flooding does not support.
    #[error("flooding for {value} {what} is outside 1 to {max}")]
    FloodingRange { what: &'static str, value: u64, max: u64 },
    /// Noise that would destroy the values.
    #[error(
        "flooding for {bits} bits and {queries} queries costs {lost:.1} bits of precision and leaves an error of up to \
         {error:.3e}, where {what} {limit:.3e}; request fewer bits or queries, decrypt fewer slots, or use a larger scale"
    )]
    FloodingTooLarge { bits: u32, queries: u64, lost: f64, error: f64, what: &'static str, limit: f64 },
    /// More decryptions than planned.
    #[error(
        "all {queries} decryptions of this flooding are used; for more, make a new secret, or plan larger noise from the \
         first decryption on"
    )]
    FloodingSpent { queries: u64 },
    /// A flooding in a forked child, which would have all queries of its parent once more.
    #[error(
        "this flooding counts the decryptions of process {owner}, and its forked child {process} would count them again; \
         decrypt in the process that made the flooding"
    )]
    FloodingForked { owner: u32, process: u32 },
    /// A number of summands that is not a power of two.
    #[error("{0} slots cannot be summed by doubling; use a power of two, with zeros in the remaining slots")]
    NotPowerOfTwo(usize),
    /// A number that no circuit can have.
    #[error("{what}={value}; {bounds}")]
    Circuit { what: &'static str, value: String, bounds: &'static str },
    /// No ring is large enough for a circuit.
    #[error(
        "no ring of up to 2^17 has depth={depth}, precision={precision}, slots={slots} and magnitude={magnitude} at 128 bits \
         of security; request less, or bootstrap"
    )]
    NoRing { depth: usize, precision: u32, slots: usize, magnitude: f64 },
    /// No preset of that name.
    #[error("there is no preset `{name}`; use one of {known}")]
    UnknownPreset { name: String, known: String },
}
