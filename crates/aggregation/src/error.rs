use keywright_ring::RingError;
use keywright_rlwe::RlweError;
use thiserror::Error;

/// Errors from parameters to the decrypted sum.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum AggregationError {
    /// An error of parameters, keys or randomness.
    #[error(transparent)]
    Rlwe(#[from] RlweError),
    /// A number outside its range.
    #[error("{what} is {value}, outside {min}..={max}")]
    Range { what: &'static str, value: u64, min: u64, max: u64 },
    /// An integer above the declared magnitude, which could overflow the sum.
    #[error(
        "value {index} is {value}, and the declared magnitude is {magnitude}; clip it, or declare a larger magnitude"
    )]
    Magnitude { index: usize, value: i64, magnitude: u64 },
    /// Two of a party's mask keys are equal, so one mask reveals the other.
    #[error("the mask keys of parties {} and {} are equal; give every pair of parties its own key", parties[0], parties[1])]
    RepeatedKey { parties: [u32; 2] },
    /// No modulus is wide enough.
    #[error(
        "sums of {max_inputs} values up to {magnitude} need a modulus of {bits} bits, and at most {max} are supported; \
         use fewer bits per value or fewer clients"
    )]
    NoModulus { max_inputs: u64, magnitude: u64, bits: u32, max: u32 },
    /// Updates of different sessions or rounds, or with different numbers of values.
    #[error("{what} of client {client} is {found}, expected {expected}")]
    Mismatch { what: &'static str, client: u64, found: String, expected: String },
    /// One client occurs twice in a sum.
    #[error("client {0} contributes twice to one sum; add each client's update once")]
    Duplicate(u64),
    /// A decryption that is not a sum of declared values: wrong key, altered ciphertext or claims, or a client that
    /// broke the protocol. The error does not reveal which value.
    #[error(
        "the decryption is not a sum of {inputs} updates: the key is wrong, bytes were altered, or a client broke the \
         protocol; begin the round again"
    )]
    Undecodable { inputs: usize },
}

impl From<RingError> for AggregationError {
    fn from(error: RingError) -> Self {
        Self::Rlwe(error.into())
    }
}

/// Checks `min <= value <= max`.
pub(crate) fn in_range(what: &'static str, value: u64, min: u64, max: u64) -> Result<(), AggregationError> {
    if (min..=max).contains(&value) { Ok(()) } else { Err(AggregationError::Range { what, value, min, max }) }
}
