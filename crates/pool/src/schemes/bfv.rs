//! BFV messages added to encryptions of zero.

use std::time::Duration;

use keywright_bfv::{BfvError, BfvParameters, Ciphertext, NoiseEstimate, Plaintext, SeededCiphertext};
use keywright_rlwe::{RlweCiphertext, SeededRlweCiphertext};

use crate::{EncryptionPool, PoolError, Zero, ZeroKey};

/// An encryption of zero that becomes a BFV ciphertext.
pub trait BfvZero: Zero {
    /// The ciphertext.
    type Ciphertext: Send;
    /// Adds a message. `variance` is that of one coefficient of the encryption of zero.
    ///
    /// # Errors
    /// [`BfvError::NoiseExhausted`].
    fn into_ciphertext(self, message: &Plaintext, variance: f64) -> Result<Self::Ciphertext, BfvError>;
}

impl BfvZero for RlweCiphertext {
    type Ciphertext = Ciphertext;

    fn into_ciphertext(self, message: &Plaintext, variance: f64) -> Result<Ciphertext, BfvError> {
        Ciphertext::from_zero(self, message, variance)
    }
}

impl BfvZero for SeededRlweCiphertext {
    type Ciphertext = SeededCiphertext;

    fn into_ciphertext(mut self, message: &Plaintext, _: f64) -> Result<SeededCiphertext, BfvError> {
        message.add_scaled_to(&mut self.c0);
        let parameters = message.parameters().clone();
        Ok(SeededCiphertext { parameters, seeded: self, packing: message.packing() })
    }
}

/// A pool whose messages are BFV plaintexts.
pub struct BfvPool<'p, K: ZeroKey> {
    pool: &'p EncryptionPool<K>,
    parameters: &'p BfvParameters,
}

impl<'p, K: ZeroKey<Zero: BfvZero>> BfvPool<'p, K> {
    /// A view of a pool.
    ///
    /// # Errors
    /// [`PoolError::Rlwe`] if the pool belongs to other parameters, [`PoolError::Bfv`] if the plaintext modulus is too
    /// large for the pool's level.
    pub fn new(parameters: &'p BfvParameters, pool: &'p EncryptionPool<K>) -> Result<Self, PoolError> {
        parameters.rlwe().require_same(pool.key().parameters(), "the message", "the pool")?;
        NoiseEstimate::fresh(parameters, pool.level(), pool.key().variance()).checked("encrypt")?;
        Ok(Self { pool, parameters })
    }

    /// Encrypts a plaintext: takes an entry and adds. A constant plaintext ([`BfvParameters::encode_scalar`]) costs one
    /// pass and no transform.
    ///
    /// # Errors
    /// [`PoolError::Bfv`] for a plaintext of other parameters, which takes no entry; otherwise as
    /// [`EncryptionPool::take`].
    pub fn encrypt(&self, message: &Plaintext) -> Result<<K::Zero as BfvZero>::Ciphertext, PoolError> {
        self.check(message)?;
        Ok(self.pool.take()?.into_ciphertext(message, self.pool.key().variance())?)
    }

    /// The same, waiting at most this long for an entry; `None` after that.
    ///
    /// # Errors
    /// As [`Self::encrypt`].
    pub fn encrypt_within(
        &self,
        message: &Plaintext,
        patience: Duration,
    ) -> Result<Option<<K::Zero as BfvZero>::Ciphertext>, PoolError> {
        self.check(message)?;
        let add = |zero: K::Zero| zero.into_ciphertext(message, self.pool.key().variance());
        Ok(self.pool.take_within(patience)?.map(add).transpose()?)
    }

    fn check(&self, message: &Plaintext) -> Result<(), PoolError> {
        Ok(self.parameters.require_same(message.parameters(), "the pool", "the message")?)
    }
}
