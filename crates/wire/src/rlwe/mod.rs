//! Objects of `keywright-rlwe`.

pub(crate) mod ciphertext;
pub(crate) mod parameters;
pub(crate) mod polynomial;
pub(crate) mod public_key;
pub(crate) mod secret_key;
pub(crate) mod switching_key;

use keywright_frame::packing::packed_len;
use keywright_ring::Modulus;
use keywright_rlwe::Parameters;

use crate::{WireError, error::in_range};

/// Bytes of one polynomial over the given primes.
pub(crate) fn poly_len(parameters: &Parameters, primes: impl Iterator<Item = usize>) -> u64 {
    primes.map(|i| packed_len(parameters.n(), parameters.modulus(i).bits()) as u64).sum()
}

/// The first primes of the parameters.
pub(crate) fn moduli(parameters: &Parameters, count: usize) -> core::slice::Iter<'_, Modulus> {
    parameters.ring().moduli()[..count].iter()
}

/// Refuses a polynomial of another shape than `limbs` limbs in the parameters' ring.
pub(crate) fn require_shape(
    parameters: &Parameters,
    n: usize,
    limbs: usize,
    expected_limbs: usize,
) -> Result<(), WireError> {
    let (degree, limb_range) = (parameters.n() as u64, expected_limbs as u64);
    in_range("ring degree of a polynomial", n as u64, degree, degree)?;
    in_range("number of limbs of a polynomial", limbs as u64, limb_range, limb_range)
}
