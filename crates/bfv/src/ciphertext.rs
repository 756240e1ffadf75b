use std::fmt;

use keywright_rlwe::{KeyIdentity, RlweCiphertext, SeededRlweCiphertext, noise};

use crate::{BfvError, BfvParameters, NoiseEstimate, Packing, Plaintext};

/// An encrypted message.
#[derive(Clone)]
pub struct Ciphertext {
    /// Parameters of the ciphertext.
    pub parameters: BfvParameters,
    /// The RLWE ciphertext of `round(Q m / t)`.
    pub rlwe: RlweCiphertext,
    /// The places of its values.
    pub packing: Packing,
    /// The estimate of its noise.
    pub estimate: NoiseEstimate,
}

impl Ciphertext {
    /// A message added to an encryption of zero, as from a pool of such encryptions. `variance` is that of one
    /// coefficient of its error, see [`keywright_rlwe::noise`]. A constant plaintext costs one pass over one polynomial
    /// and no transform.
    ///
    /// # Errors
    /// [`BfvError::NoiseExhausted`].
    pub fn from_zero(
        mut zero: RlweCiphertext,
        plaintext: &Plaintext,
        variance: f64,
    ) -> Result<Self, BfvError> {
        let parameters = plaintext.parameters().clone();
        let estimate = NoiseEstimate::fresh(&parameters, zero.level(), variance).checked("encrypt")?;
        if let Some(c0) = zero.polys.first_mut() {
            plaintext.add_scaled_to(c0);
        }
        Ok(Self { parameters, rlwe: zero, packing: plaintext.packing(), estimate })
    }

    /// Level: one less than the number of its primes.
    pub fn level(&self) -> usize {
        self.rlwe.level()
    }

    /// Degree in the secret: 1, or 2 after a product that was not relinearized.
    pub fn degree(&self) -> usize {
        self.rlwe.degree()
    }

    /// The identity of the secret that encrypts it.
    pub fn key(&self) -> KeyIdentity {
        self.rlwe.key
    }

    /// Bytes of its residues.
    pub fn bytes(&self) -> usize {
        self.rlwe.bytes()
    }

    /// This ciphertext with other polynomials and another estimate.
    ///
    /// # Errors
    /// [`BfvError::NoiseExhausted`].
    pub(crate) fn with(
        &self,
        operation: &'static str,
        mut rlwe: RlweCiphertext,
        estimate: NoiseEstimate,
    ) -> Result<Self, BfvError> {
        let estimate = estimate.checked(operation)?;
        rlwe.key = rlwe.key.or(self.rlwe.key);
        Ok(Self { parameters: self.parameters.clone(), rlwe, packing: self.packing, estimate })
    }
}

/// A ciphertext made with the secret key, whose uniform half is a seed: half the bytes to send.
#[derive(Clone)]
pub struct SeededCiphertext {
    /// Parameters of the ciphertext.
    pub parameters: BfvParameters,
    /// Seed and first half.
    pub seeded: SeededRlweCiphertext,
    /// The places of its values.
    pub packing: Packing,
}

impl SeededCiphertext {
    /// Expands it to a ciphertext for computation.
    pub fn expand(&self) -> Ciphertext {
        Ciphertext {
            parameters: self.parameters.clone(),
            rlwe: self.seeded.expand(self.parameters.rlwe()),
            packing: self.packing,
            estimate: self.estimate(),
        }
    }

    /// The estimate of its noise.
    pub fn estimate(&self) -> NoiseEstimate {
        NoiseEstimate::fresh(&self.parameters, self.level(), noise::fresh_symmetric())
    }

    /// Level: one less than the number of its primes.
    pub fn level(&self) -> usize {
        self.seeded.c0.limb_count() - 1
    }

    /// The identity of the secret that encrypts it.
    pub fn key(&self) -> KeyIdentity {
        self.seeded.key
    }

    /// Bytes of its residues and seed.
    pub fn bytes(&self) -> usize {
        self.seeded.c0.words().len() * 8 + 32
    }
}

impl fmt::Debug for Ciphertext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Ciphertext(level {}, degree {}, modulo {}, {}, {:.1} bits)",
            self.level(),
            self.degree(),
            self.parameters.plaintext_modulus(),
            self.packing,
            self.estimate.budget_bits()
        )
    }
}

impl fmt::Debug for SeededCiphertext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SeededCiphertext(level {}, {})", self.level(), self.packing)
    }
}
