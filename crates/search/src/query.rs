//! What a client encrypts.

use keywright_bfv::{BfvError, BfvParameters, Ciphertext, Packing};

use crate::SearchError;
use crate::error::in_range;

/// The plaintext modulus of search is odd: the expansion multiplies a query by a power of two, and the client divides
/// by it.
pub(crate) fn require_odd(parameters: &BfvParameters) -> Result<u64, SearchError> {
    let t = parameters.plaintext_modulus();
    if t.is_multiple_of(2) {
        return Err(SearchError::Range {
            what: "plaintext modulus, which is odd,",
            value: t,
            min: t + 1,
            max: t + 1,
        });
    }
    Ok(t)
}

/// Queries and encrypted vectors have an integer in each coefficient.
pub(crate) fn require_coefficients(ciphertext: &Ciphertext) -> Result<(), SearchError> {
    match ciphertext.packing {
        Packing::Coefficients => Ok(()),
        left => Err(BfvError::PackingMismatch { left, right: Packing::Coefficients }.into()),
    }
}

/// Ciphertexts that a query of `dimension` components expands to: a power of two.
pub(crate) fn expanded(dimension: usize) -> usize {
    dimension.next_power_of_two()
}

/// The residues to encrypt in coefficients for a query of integers: `q_i / D` modulo `t`, where `D` is the dimension
/// rounded up to a power of two, by which the server's expansion multiplies them. Without a branch on the integers.
///
/// # Errors
/// [`SearchError::Range`] for no components or more than `N`, and for an even plaintext modulus.
pub fn query_values(parameters: &BfvParameters, query: &[i64]) -> Result<Vec<i64>, SearchError> {
    in_range("dimension", query.len() as u64, 1, parameters.rlwe().n() as u64)?;
    let t = i128::from(require_odd(parameters)?);
    // 2^-1 is (t + 1) / 2.
    let inverse = (0..expanded(query.len()).ilog2()).fold(1, |x: i128, _| x * ((t + 1) / 2) % t);
    Ok(query.iter().map(|&q| (i128::from(q).rem_euclid(t) * inverse % t) as i64).collect())
}
