use std::sync::Arc;

use keywright_ring::{Evaluation, Poly, Seed, sampling::SecretRng};
use keywright_rlwe::{
    KeyIdentity, Parameters, PublicKey, RlweCiphertext, RlweError, SecretKey, SeededRlweCiphertext,
    encrypt_zero, encrypt_zero_symmetric, noise,
};
use keywright_wire::{Wire, WireError, WireSecret};
use zeroize::Zeroizing;

/// An encryption of zero, to which a message can be added.
pub trait Zero: Send + Sized + 'static {
    /// The half to which the message is added.
    fn c0_mut(&mut self) -> &mut Poly<Evaluation>;
    /// Bytes of its residues and seed.
    fn bytes(&self) -> usize;
    /// Its length in the format of [`keywright_wire`] at a level.
    ///
    /// # Errors
    /// [`WireError::Rlwe`] for a level that does not exist.
    fn encoded_len(level: usize, parameters: &Parameters) -> Result<u64, WireError>;
    /// Its bytes in the format of [`keywright_wire`].
    ///
    /// # Errors
    /// Any [`WireError`].
    fn to_bytes(&self, parameters: &Parameters) -> Result<Vec<u8>, WireError>;
    /// The inverse of [`Self::to_bytes`].
    ///
    /// # Errors
    /// Any [`WireError`].
    fn from_bytes(bytes: &[u8], parameters: &Parameters) -> Result<Self, WireError>;
}

impl Zero for RlweCiphertext {
    fn c0_mut(&mut self) -> &mut Poly<Evaluation> {
        &mut self.polys[0]
    }

    fn bytes(&self) -> usize {
        self.bytes()
    }

    fn encoded_len(level: usize, parameters: &Parameters) -> Result<u64, WireError> {
        parameters.require_level(level)?;
        let poly = Poly::zero(parameters.n(), level + 1);
        Wire::encoded_len(&Self { polys: vec![poly.clone(), poly], key: KeyIdentity::UNKNOWN }, parameters)
    }

    fn to_bytes(&self, parameters: &Parameters) -> Result<Vec<u8>, WireError> {
        Wire::to_bytes(self, parameters)
    }

    fn from_bytes(bytes: &[u8], parameters: &Parameters) -> Result<Self, WireError> {
        let zero: Self = Wire::from_bytes(bytes, parameters)?;
        if zero.degree() != 1 {
            let value = zero.polys.len() as u64;
            return Err(WireError::Field {
                what: "polynomials of an encryption of zero",
                value,
                min: 2,
                max: 2,
            });
        }
        Ok(zero)
    }
}

impl Zero for SeededRlweCiphertext {
    fn c0_mut(&mut self) -> &mut Poly<Evaluation> {
        &mut self.c0
    }

    fn bytes(&self) -> usize {
        self.c0.words().len() * 8 + self.seed.0.len()
    }

    fn encoded_len(level: usize, parameters: &Parameters) -> Result<u64, WireError> {
        parameters.require_level(level)?;
        let c0 = Poly::zero(parameters.n(), level + 1);
        let zero = Self { seed: Seed([0; 32]), c0, key: KeyIdentity::UNKNOWN };
        Wire::encoded_len(&zero, parameters)
    }

    fn to_bytes(&self, parameters: &Parameters) -> Result<Vec<u8>, WireError> {
        Wire::to_bytes(self, parameters)
    }

    fn from_bytes(bytes: &[u8], parameters: &Parameters) -> Result<Self, WireError> {
        Wire::from_bytes(bytes, parameters)
    }
}

/// The key of a pool: a public key, whose entries are whole ciphertexts, or a secret key, whose entries are seeded, at
/// half the bytes and about half the work.
pub trait ZeroKey: Send + Sync + 'static {
    /// Its encryptions of zero.
    type Zero: Zero;

    /// The parameters of the key.
    fn parameters(&self) -> &Parameters;
    /// A fresh encryption of zero.
    ///
    /// # Errors
    /// [`RlweError::Level`].
    fn encrypt_zero(&self, level: usize, rng: &mut SecretRng) -> Result<Self::Zero, RlweError>;
    /// Variance of one coefficient of its error.
    fn variance(&self) -> f64;
    /// The key as bytes, for identification; wiped when dropped.
    ///
    /// # Errors
    /// Any [`WireError`].
    fn identity(&self) -> Result<Zeroizing<Vec<u8>>, WireError>;
}

impl ZeroKey for PublicKey {
    type Zero = RlweCiphertext;

    fn parameters(&self) -> &Parameters {
        self.parameters()
    }

    fn encrypt_zero(&self, level: usize, rng: &mut SecretRng) -> Result<RlweCiphertext, RlweError> {
        encrypt_zero(self, level, rng, None)
    }

    fn variance(&self) -> f64 {
        noise::fresh_public(self.parameters())
    }

    fn identity(&self) -> Result<Zeroizing<Vec<u8>>, WireError> {
        Ok(Zeroizing::new(self.to_bytes(self.parameters())?))
    }
}

impl ZeroKey for SecretKey {
    type Zero = SeededRlweCiphertext;

    fn parameters(&self) -> &Parameters {
        self.parameters()
    }

    fn encrypt_zero(&self, level: usize, rng: &mut SecretRng) -> Result<SeededRlweCiphertext, RlweError> {
        encrypt_zero_symmetric(self, level, rng, None)
    }

    fn variance(&self) -> f64 {
        noise::fresh_symmetric()
    }

    fn identity(&self) -> Result<Zeroizing<Vec<u8>>, WireError> {
        self.to_secret_bytes(self.parameters())
    }
}

impl<K: ZeroKey> ZeroKey for Arc<K> {
    type Zero = K::Zero;

    fn parameters(&self) -> &Parameters {
        (**self).parameters()
    }

    fn encrypt_zero(&self, level: usize, rng: &mut SecretRng) -> Result<K::Zero, RlweError> {
        (**self).encrypt_zero(level, rng)
    }

    fn variance(&self) -> f64 {
        (**self).variance()
    }

    fn identity(&self) -> Result<Zeroizing<Vec<u8>>, WireError> {
        (**self).identity()
    }
}
