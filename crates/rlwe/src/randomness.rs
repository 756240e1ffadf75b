use alloc::string::ToString;

use keywright_ring::sampling::SecretRng;
use zeroize::Zeroizing;

use crate::RlweError;

/// A generator of secrets seeded with 32 bytes of the operating system's entropy.
///
/// # Errors
/// [`RlweError::Randomness`] if the operating system gives none.
pub fn system_rng() -> Result<SecretRng, RlweError> {
    let mut entropy = Zeroizing::new([0; 32]);
    getrandom::fill(&mut *entropy).map_err(|error| RlweError::Randomness(error.to_string()))?;
    Ok(SecretRng::from_entropy(&entropy))
}
