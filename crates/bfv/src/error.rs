use keywright_rlwe::RlweError;
use thiserror::Error;

use crate::{MAX_PLAINTEXT_BITS, Packing, SPARE_BITS};

/// Errors of the scheme.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum BfvError {
    /// An error of keys, levels or parameters.
    #[error(transparent)]
    Rlwe(#[from] RlweError),
    /// A switch of the modulus at level 0.
    #[error(
        "at level 0 one prime is left, and switching the modulus divides by a prime; encrypt at a higher level"
    )]
    LastPrime,
    /// An invalid plaintext modulus.
    #[error(
        "the plaintext modulus {value} is outside 2..2^{MAX_PLAINTEXT_BITS}, or not below {smallest}, the smallest \
         ciphertext prime"
    )]
    PlaintextModulus { value: u64, smallest: u64 },
    /// Slots were requested for a plaintext modulus without slots.
    #[error(
        "the plaintext modulus {modulus} is not a prime that is 1 modulo 2N = {two_n}, so it has no slots; pack \
         coefficients"
    )]
    NoSlots { modulus: u64, two_n: u64 },
    /// Parameters that differ only in the plaintext modulus.
    #[error("the plaintext moduli differ: {left} and {right}; use objects of one parameter set")]
    MixedPlaintextModuli { left: u64, right: u64 },
    /// A value outside the residues.
    #[error("value {value} at index {index} is outside {min}..={max}, the range of the plaintext modulus")]
    Value {
        /// Position in the list; 0 for a scalar.
        index: usize,
        value: i64,
        min: i64,
        max: i64,
    },
    /// More values than a plaintext holds.
    #[error("{count} values do not fit a plaintext of {max}; split them over several plaintexts")]
    TooManyValues { count: usize, max: usize },
    /// Packings of two operands differ, or an operation needs the other one.
    #[error("packings differ: {left} and {right}; encode both operands in one packing")]
    PackingMismatch {
        left: Packing,
        /// Right operand, or the required packing.
        right: Packing,
    },
    /// Levels of two operands differ.
    #[error("levels differ: {left} and {right}; bring the higher one down with mod_switch_to")]
    LevelMismatch { left: usize, right: usize },
    /// A ciphertext of the wrong degree.
    #[error(
        "{operation} needs a ciphertext of degree 1, and this one has degree {degree}; relinearize it first"
    )]
    Degree { operation: &'static str, degree: usize },
    /// The result of an operation might not decrypt.
    #[error(
        "{operation} would leave an estimated noise budget of {budget:.1} bits, less than the {SPARE_BITS} that decryption \
         needs; use a larger modulus, a smaller plaintext modulus or fewer multiplications"
    )]
    NoiseExhausted {
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
    UnknownPreset { name: String, known: String },
}
