use keywright_ring::sampling::SecretRng;
use zeroize::Zeroizing;

use crate::ClientError;

/// The platform's randomness: a hardware generator, a browser, an operating system.
pub trait Entropy {
    /// Fills a slice with independent uniform bytes.
    ///
    /// # Errors
    /// [`ClientError::Randomness`] if it cannot.
    fn fill(&mut self, out: &mut [u8]) -> Result<(), ClientError>;
}

impl<F: FnMut(&mut [u8]) -> Result<(), ClientError>> Entropy for F {
    fn fill(&mut self, out: &mut [u8]) -> Result<(), ClientError> {
        self(out)
    }
}

/// A generator of secrets from 32 bytes of the platform.
///
/// # Errors
/// [`ClientError::Randomness`] if the platform gives none, or all of them are equal, which a working generator gives with probability
/// `2^-248` and one that is missing always.
pub fn secret_rng(entropy: &mut dyn Entropy) -> Result<SecretRng, ClientError> {
    let mut bytes = Zeroizing::new([0; 32]);
    entropy.fill(&mut *bytes)?;
    if bytes.iter().all(|&byte| byte == bytes[0]) {
        return Err(ClientError::Randomness("32 equal bytes are not random"));
    }
    Ok(SecretRng::from_entropy(&bytes))
}

/// The operating system's randomness.
///
/// # Errors
/// [`ClientError::Randomness`].
#[cfg(feature = "std")]
pub fn system_rng() -> Result<SecretRng, ClientError> {
    keywright_rlwe::system_rng()
        .map_err(|_| ClientError::Randomness("the operating system gives no random bytes"))
}
