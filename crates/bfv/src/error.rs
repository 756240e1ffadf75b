use keywright_rlwe::RlweError;
use thiserror::Error;

use crate::{MAX_PLAINTEXT_BITS, Packing, SPARE_BITS};

/// Errors of the scheme.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum BfvError {
    /// An error of keys, levels or parameters.
    #[error(transparent)]
    Rlwe(#[from] RlweError),
    /// An invalid plaintext modulus.
    #[error(
        "the plaintext modulus {value} is outside 2..2^{MAX_PLAINTEXT_BITS}, or not below {smallest}, the smallest \
         ciphertext prime"
    )]
    PlaintextModulus {
        /// The offending modulus.
        value: u64,
        /// Smallest ciphertext prime.
        smallest: u64,
    },
    /// Slots were requested for a plaintext modulus without slots.
    #[error(
        "the plaintext modulus {modulus} is not a prime that is 1 modulo 2N = {two_n}, so it has no slots; pack \
         coefficients"
    )]
    NoSlots {
        /// The plaintext modulus.
        modulus: u64,
        /// Twice the ring degree.
        two_n: u64,
    },
    /// Parameters that differ only in the plaintext modulus.
    #[error("the plaintext moduli differ: {left} and {right}; use objects of one parameter set")]
    MixedPlaintextModuli {
        /// One modulus.
        left: u64,
        /// The other.
        right: u64,
    },
    /// A value outside the residues.
    #[error("value {value} at index {index} is outside {min}..={max}, the range of the plaintext modulus")]
    Value {
        /// Position in the list; 0 for a scalar.
        index: usize,
        /// The offending value.
        value: i64,
        /// Smallest legal value.
        min: i64,
        /// Largest legal value.
        max: i64,
    },
    /// More values than a plaintext holds.
    #[error("{count} values do not fit a plaintext of {max}; split them over several plaintexts")]
    TooManyValues {
        /// Number of values.
        count: usize,
        /// The number that fits.
        max: usize,
    },
    /// Packings of two operands differ, or an operation needs the other one.
    #[error("packings differ: {left} and {right}; encode both operands in one packing")]
    PackingMismatch {
        /// Left operand.
        left: Packing,
        /// Right operand, or the required packing.
        right: Packing,
    },
    /// Levels of two operands differ.
    #[error("levels differ: {left} and {right}; bring the higher one down with mod_switch_to")]
    LevelMismatch {
        /// Level of the left operand.
        left: usize,
        /// Level of the right operand.
        right: usize,
    },
    /// A ciphertext of the wrong degree.
    #[error(
        "{operation} needs a ciphertext of degree 1, and this one has degree {degree}; relinearize it first"
    )]
    Degree {
        /// The operation.
        operation: &'static str,
        /// Offending degree.
        degree: usize,
    },
    /// The result of an operation might not decrypt.
    #[error(
        "{operation} would leave an estimated noise budget of {budget:.1} bits, less than the {SPARE_BITS} that decryption \
         needs; use a larger modulus, a smaller plaintext modulus or fewer multiplications"
    )]
    NoiseExhausted {
        /// The operation.
        operation: &'static str,
        /// The estimate in bits; negative if the noise bound exceeds 1/2.
        budget: f64,
    },
    /// The noise of a ciphertext is too large for decryption.
    #[error(
        "the ciphertext has a noise budget below {SPARE_BITS} bit and cannot be decrypted reliably; its noise grew too \
         large, or it belongs to another key"
    )]
    NoiseOverflow,
    /// No preset of that name.
    #[error("there is no preset `{name}`; use one of {known}")]
    UnknownPreset {
        /// The requested name.
        name: String,
        /// All names.
        known: String,
    },
}
