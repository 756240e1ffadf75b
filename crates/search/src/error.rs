use keywright_bfv::BfvError;
use thiserror::Error;

/// Errors of an index, its queries and its answers.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum SearchError {
    /// An error of the scheme.
    #[error(transparent)]
    Bfv(#[from] BfvError),
    /// A number outside its range.
    #[error("{what} is {value}, outside {min}..={max}")]
    Range { what: &'static str, value: u64, min: u64, max: u64 },
    /// A vector above the declared norm, whose inner products could exceed the plaintext modulus.
    #[error("the squared norm of vector {row} is {value}, above the declared {max}; scale the vectors down")]
    Norm {
        row: usize,
        /// The sum of the squares of its components.
        value: u64,
        max: u64,
    },
    /// The index holds no vector.
    #[error("the index is empty; add vectors first")]
    Empty,
    /// The noise and the roundings of an answer could exceed half a unit of the scores.
    #[error(
        "an answer could not be decrypted: its noise has {noise:.1} bits, its modulus {modulus:.1} bits, and the scores \
         {scores:.1}; use fewer levels of quantisation"
    )]
    Noise {
        /// `log2` of the bound on the noise, in units of the ciphertext modulus over the plaintext modulus.
        noise: f64,
        /// `log2` of the modulus.
        modulus: f64,
        /// `log2` of the plaintext modulus.
        scores: f64,
    },
}

impl From<keywright_rlwe::RlweError> for SearchError {
    fn from(error: keywright_rlwe::RlweError) -> Self {
        BfvError::from(error).into()
    }
}

/// Refuses a number outside its range.
pub(crate) fn in_range(what: &'static str, value: u64, min: u64, max: u64) -> Result<(), SearchError> {
    if (min..=max).contains(&value) { Ok(()) } else { Err(SearchError::Range { what, value, min, max }) }
}
