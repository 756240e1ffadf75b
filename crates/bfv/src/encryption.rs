use std::fmt;

use keywright_ring::sampling::SecretRng;
use keywright_rlwe::{PublicKey, encrypt_zero, encrypt_zero_symmetric, noise};
use zeroize::Zeroizing;

use crate::{BfvError, BfvParameters, Ciphertext, Decryptor, NoiseEstimate, Plaintext, SeededCiphertext};

/// Encrypts under a public key.
pub struct Encryptor<'k> {
    parameters: BfvParameters,
    key: &'k PublicKey,
    rng: SecretRng,
}

impl<'k> Encryptor<'k> {
    /// An encryptor with its own generator of randomness.
    ///
    /// # Errors
    /// [`BfvError::Rlwe`] if the key belongs to other parameters.
    pub fn new(parameters: &BfvParameters, key: &'k PublicKey, rng: SecretRng) -> Result<Self, BfvError> {
        parameters.rlwe().require_same(key.parameters(), "the encryptor", "the public key")?;
        Ok(Self { parameters: parameters.clone(), key, rng })
    }

    /// Encrypts a plaintext at a level.
    ///
    /// # Errors
    /// [`BfvError::Rlwe`] for a level that does not exist or foreign parameters, [`BfvError::NoiseExhausted`] if the
    /// level's modulus is too small for the plaintext modulus.
    pub fn encrypt(&mut self, plaintext: &Plaintext, level: usize) -> Result<Ciphertext, BfvError> {
        let parameters = &self.parameters;
        parameters.require_same(plaintext.parameters(), "the encryptor", "the plaintext")?;
        parameters.rlwe().require_level(level)?;
        let estimate = NoiseEstimate::fresh(parameters, level, noise::fresh_public(parameters.rlwe()))
            .checked("encrypt")?;
        let remainders = Zeroizing::new(plaintext.remainders(level));
        let rlwe = encrypt_zero(
            self.key,
            level,
            &mut self.rng,
            Some(&|i, limb| {
                plaintext.add_scaled_limb(i, &remainders, limb);
            }),
        )?;
        Ok(Ciphertext { parameters: parameters.clone(), rlwe, packing: plaintext.packing(), estimate })
    }
}

impl Decryptor<'_> {
    /// Encrypts a plaintext symmetrically at a level.
    ///
    /// # Errors
    /// As [`Encryptor::encrypt`].
    pub fn encrypt(
        &self,
        plaintext: &Plaintext,
        level: usize,
        rng: &mut SecretRng,
    ) -> Result<SeededCiphertext, BfvError> {
        let parameters = self.parameters();
        parameters.require_same(plaintext.parameters(), "the decryptor", "the plaintext")?;
        parameters.rlwe().require_level(level)?;
        NoiseEstimate::fresh(parameters, level, noise::fresh_symmetric()).checked("encrypt")?;
        let remainders = Zeroizing::new(plaintext.remainders(level));
        let seeded = encrypt_zero_symmetric(
            self.secret(),
            level,
            rng,
            Some(&|i, limb| {
                plaintext.add_scaled_limb(i, &remainders, limb);
            }),
        )?;
        Ok(SeededCiphertext { parameters: parameters.clone(), seeded, packing: plaintext.packing() })
    }
}

impl fmt::Debug for Encryptor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Encryptor({:?})", self.parameters)
    }
}
