use keywright_ring::RingError;
use keywright_rlwe::RlweError;
use thiserror::Error;

/// What can go wrong between parameters and a decrypted sum.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum AggregationError {
    /// Parameters, keys, randomness.
    #[error(transparent)]
    Rlwe(#[from] RlweError),
    /// A number outside its range.
    #[error("{what} is {value}, outside {min}..={max}")]
    Range {
        /// Which number.
        what: &'static str,
        /// Offending value.
        value: u64,
        /// Smallest legal value.
        min: u64,
        /// Largest legal value.
        max: u64,
    },
    /// An integer above the declared magnitude: it could overflow the sum.
    #[error(
        "value {index} is {value}; the declared magnitude is {magnitude}: clip it, or declare a larger one"
    )]
    Magnitude {
        /// Its place.
        index: usize,
        /// The offending value.
        value: i64,
        /// Largest absolute value declared.
        magnitude: u64,
    },
    /// Two of a party's mask keys are equal: what one hides the other shows.
    #[error("the mask keys of parties {} and {} are equal: every pair of parties has a key of its own", parties[0], parties[1])]
    RepeatedKey {
        /// Their numbers.
        parties: [u32; 2],
    },
    /// No modulus is wide enough.
    #[error(
        "sums of {max_inputs} values up to {magnitude} need a modulus of {bits} bits; at most {max} are supported: use fewer bits \
         per value or fewer clients"
    )]
    NoModulus {
        /// Number of inputs.
        max_inputs: u64,
        /// Largest absolute value of one input.
        magnitude: u64,
        /// Bits that would be needed.
        bits: u32,
        /// Bits that there are.
        max: u32,
    },
    /// Updates that cannot be added: of another session or round, or with another number of values.
    #[error("{what} of client {client} is {found}, expected {expected}")]
    Mismatch {
        /// Which claim.
        what: &'static str,
        /// Whose update.
        client: u64,
        /// What it says.
        found: String,
        /// What the others say.
        expected: String,
    },
    /// One client twice in a sum.
    #[error("client {0} contributes twice to one sum")]
    Duplicate(u64),
    /// A decryption that is not a sum of what was declared: wrong key, altered ciphertext or claims, or a client that
    /// broke the protocol. Which value is not shown.
    #[error(
        "the decryption is no sum of {inputs} updates: wrong key, altered bytes, or a client that broke the protocol"
    )]
    Undecodable {
        /// Number of updates in the sum.
        inputs: usize,
    },
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
