use std::sync::{Mutex, PoisonError};

use keywright_ring::sampling::SecretRng;
use zeroize::Zeroizing;

use crate::errors::Failure;

/// A generator of secrets from the operating system, or from given entropy.
pub(crate) fn rng(entropy: Option<[u8; 32]>) -> Result<SecretRng, Failure> {
    Ok(match entropy {
        None => SecretRng::system()?,
        Some(bytes) => SecretRng::from_entropy(&Zeroizing::new(bytes)),
    })
}

/// The generator of a Python object: every operation splits off a generator of its own.
pub(crate) struct Randomness(Mutex<SecretRng>);

impl From<SecretRng> for Randomness {
    fn from(rng: SecretRng) -> Self {
        Self(Mutex::new(rng))
    }
}

impl Randomness {
    pub(crate) fn new(entropy: Option<[u8; 32]>) -> Result<Self, Failure> {
        Ok(rng(entropy)?.into())
    }

    pub(crate) fn split(&self) -> Result<SecretRng, Failure> {
        Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner).split()?)
    }
}
