//! CKKS messages added to encryptions of zero.

use std::time::Duration;

use keywright_ckks::{
    Ciphertext, CkksError, CkksParameters, Complex64, ErrorEstimate, Magnitude, PRODUCT_TAIL, Packing,
    Plaintext, SeededCiphertext,
};
use keywright_ring::{Backend, Modulus};
use keywright_rlwe::{RlweCiphertext, SeededRlweCiphertext};
use zeroize::Zeroize;

use crate::{EncryptionPool, PoolError, Zero, ZeroKey};

/// Words of a constant vector: a few such vectors stay in the first-level cache.
const BLOCK: usize = 512;

/// An encryption of zero that becomes a CKKS ciphertext.
pub trait CkksZero: Zero {
    /// The ciphertext.
    type Ciphertext: Send;
    /// The ciphertext with these polynomials.
    fn into_ciphertext(
        self,
        parameters: &CkksParameters,
        packing: Packing,
        estimate: ErrorEstimate,
    ) -> Self::Ciphertext;
}

impl CkksZero for RlweCiphertext {
    type Ciphertext = Ciphertext;

    fn into_ciphertext(
        self,
        parameters: &CkksParameters,
        packing: Packing,
        estimate: ErrorEstimate,
    ) -> Ciphertext {
        Ciphertext {
            parameters: parameters.clone(),
            rlwe: self,
            scale: parameters.scale(),
            packing,
            estimate,
        }
    }
}

impl CkksZero for SeededRlweCiphertext {
    type Ciphertext = SeededCiphertext;

    fn into_ciphertext(
        self,
        parameters: &CkksParameters,
        packing: Packing,
        estimate: ErrorEstimate,
    ) -> SeededCiphertext {
        let scale = parameters.scale();
        SeededCiphertext { parameters: parameters.clone(), seeded: self, scale, packing, estimate }
    }
}

/// An encoded message: encoding cannot fail any more, and no entry was taken yet.
pub struct Encoded {
    residues: Residues,
    packing: Packing,
    /// The error of the encoding.
    estimate: ErrorEstimate,
}

enum Residues {
    /// One for each limb: a constant polynomial.
    Constant(Vec<u64>),
    /// A polynomial.
    Vector(Plaintext),
}

impl Drop for Encoded {
    fn drop(&mut self) {
        match &mut self.residues {
            Residues::Constant(residues) => residues.zeroize(),
            Residues::Vector(plaintext) => plaintext.poly.zeroize(),
        }
    }
}

/// A pool whose messages are CKKS messages at the scale of the parameters.
pub struct CkksPool<'p, K: ZeroKey> {
    pool: &'p EncryptionPool<K>,
    parameters: &'p CkksParameters,
    magnitude: Magnitude,
}

impl<'p, K: ZeroKey<Zero: CkksZero>> CkksPool<'p, K> {
    /// A view of a pool.
    ///
    /// # Errors
    /// [`PoolError::Rlwe`] if the pool belongs to other parameters.
    pub fn new(parameters: &'p CkksParameters, pool: &'p EncryptionPool<K>) -> Result<Self, PoolError> {
        parameters.rlwe().require_same(pool.key().parameters(), "the message", "the pool")?;
        Ok(Self { pool, parameters, magnitude: parameters.default_magnitude() })
    }

    /// The same view with another declared magnitude of its messages, as `Encryptor::declaring`.
    #[must_use]
    pub fn declaring(self, magnitude: Magnitude) -> Self {
        Self { magnitude, ..self }
    }

    /// Encodes the same real number for every slot, without FFT or NTT.
    ///
    /// # Errors
    /// [`PoolError::Ckks`] for a number that is not finite or does not fit the modulus, and for more slots than there
    /// are.
    pub fn encode_scalar(&self, value: f64, log_slots: u32) -> Result<Encoded, PoolError> {
        let (parameters, packing) = (self.parameters, Packing::Slots { log_slots });
        if log_slots > parameters.max_log_slots() {
            let log_n = parameters.rlwe().log_n();
            let error = keywright_ckks::encoder::EncoderError::SlotCount { log_slots, log_n };
            return Err(CkksError::from(error).into());
        }
        let residues = parameters.encode_constant(value, self.pool.level(), parameters.scale())?;
        // The product with the scale is rounded to an f64, and then to an integer.
        self.magnitude.require(value.abs())?;
        let error = 0.5 / parameters.scale() + self.magnitude.get() * f64::EPSILON / 2.0;
        let estimate =
            ErrorEstimate { deviation: error / PRODUCT_TAIL, magnitude: self.magnitude.get(), real: true };
        Ok(Encoded { residues: Residues::Constant(residues), packing, estimate })
    }

    /// Encodes real values in slots or coefficients.
    ///
    /// # Errors
    /// [`PoolError::Ckks`], as in [`CkksParameters::encode_real`].
    pub fn encode_real(&self, values: &[f64], packing: Packing) -> Result<Encoded, PoolError> {
        let parameters = self.parameters;
        self.vector(parameters.encode_real(values, packing, self.pool.level(), parameters.scale())?)
    }

    /// Encodes complex values in slots.
    ///
    /// # Errors
    /// [`PoolError::Ckks`], as in [`CkksParameters::encode`].
    pub fn encode(&self, values: &[Complex64], log_slots: u32) -> Result<Encoded, PoolError> {
        let parameters = self.parameters;
        self.vector(parameters.encode(values, log_slots, self.pool.level(), parameters.scale())?)
    }

    fn vector(&self, plaintext: Plaintext) -> Result<Encoded, PoolError> {
        let plaintext = plaintext.declared(self.magnitude)?;
        let (packing, estimate) = (plaintext.packing, plaintext.estimate());
        Ok(Encoded { residues: Residues::Vector(plaintext), packing, estimate })
    }

    /// Encrypts an encoded message: takes an entry and adds.
    ///
    /// # Errors
    /// As [`EncryptionPool::take`].
    pub fn encrypt(&self, message: &Encoded) -> Result<<K::Zero as CkksZero>::Ciphertext, PoolError> {
        Ok(self.add(message, self.pool.take()?))
    }

    /// The same, waiting at most this long for an entry; `None` after that.
    ///
    /// # Errors
    /// As [`EncryptionPool::take`].
    pub fn encrypt_within(
        &self,
        message: &Encoded,
        patience: Duration,
    ) -> Result<Option<<K::Zero as CkksZero>::Ciphertext>, PoolError> {
        Ok(self.pool.take_within(patience)?.map(|zero| self.add(message, zero)))
    }

    fn add(&self, message: &Encoded, mut zero: K::Zero) -> <K::Zero as CkksZero>::Ciphertext {
        let ring = self.parameters.rlwe().ring();
        let backend = ring.backend();
        for (i, limb) in zero.c0_mut().limbs_mut().enumerate() {
            match &message.residues {
                Residues::Constant(residues) => add_constant(backend, ring.modulus(i), limb, residues[i]),
                Residues::Vector(plaintext) => {
                    backend.add_assign(ring.modulus(i), limb, plaintext.poly.limb(i))
                }
            }
        }
        let noise = (self.pool.key().variance() * message.packing.spread()).sqrt() / self.parameters.scale();
        let estimate = match message.residues {
            // The rounding of a constant repeats in every slot, so it is added.
            Residues::Constant(_) => {
                message.estimate.plus(ErrorEstimate { deviation: noise, magnitude: 0.0, real: true })
            }
            Residues::Vector(_) => message.estimate.with_noise(noise),
        };
        zero.into_ciphertext(self.parameters, message.packing, estimate)
    }
}

/// `limb += constant`: one pass.
fn add_constant(backend: &dyn Backend, modulus: &Modulus, limb: &mut [u64], constant: u64) {
    let mut block = [constant; BLOCK];
    for words in limb.chunks_mut(BLOCK) {
        backend.add_assign(modulus, words, &block[..words.len()]);
    }
    block.zeroize();
}
