use std::fmt;

use keywright_ring::{Buffer, sampling::SecretRng};
use keywright_rlwe::{
    KeyIdentity, PublicKey, RlweCiphertext, SecretKey, SeededRlweCiphertext, decrypt, encrypt_zero,
    encrypt_zero_symmetric, noise,
};
use num_complex::Complex64;
use zeroize::Zeroize;

use crate::encoder::{WORD_LIMIT, centred};
use crate::plaintext::Message;
use crate::{Ciphertext, CkksError, CkksParameters, ErrorEstimate, Flooding, Magnitude, Packing};

/// Encrypts under a public key.
pub struct Encryptor<'k> {
    parameters: CkksParameters,
    key: &'k PublicKey,
    rng: SecretRng,
    magnitude: Magnitude,
}

impl Message {
    /// Adds the message to limb `i` in coefficient form.
    fn add_to(&self, parameters: &CkksParameters, i: usize, limb: &mut [u64]) {
        let ring = parameters.rlwe().ring();
        let mut residues = Buffer::unspecified(ring.n());
        self.integers.residues(ring.modulus(i), &mut residues);
        ring.backend().add_assign(ring.modulus(i), limb, &residues);
        residues.zeroize();
    }

    /// The ciphertext of the message with these polynomials. Nothing else depends on the message: its magnitude
    /// is the declared one, and its error is bounded by that.
    fn ciphertext(
        &self,
        parameters: &CkksParameters,
        rlwe: RlweCiphertext,
        variance: f64,
        magnitude: Magnitude,
    ) -> Ciphertext {
        let estimate = ErrorEstimate { deviation: 0.0, magnitude: magnitude.get(), real: self.real };
        let mut out = Ciphertext {
            parameters: parameters.clone(),
            rlwe,
            scale: self.scale,
            packing: self.packing,
            estimate,
        };
        // Encoding rounds every coefficient to an integer, and before that in f64.
        out.estimate.deviation = out.deviation_of(variance + 1.0 / 12.0);
        out.estimate = out.estimate.with_noise(self.packing.arithmetic() * magnitude.get());
        out
    }
}

impl<'k> Encryptor<'k> {
    /// An encryptor with its own generator of randomness.
    ///
    /// # Errors
    /// [`CkksError::Rlwe`] if the key belongs to other parameters.
    pub fn new(parameters: &CkksParameters, key: &'k PublicKey, rng: SecretRng) -> Result<Self, CkksError> {
        parameters.rlwe().require_same(key.parameters(), "the encryptor", "the public key")?;
        Ok(Self { parameters: parameters.clone(), key, rng, magnitude: parameters.default_magnitude() })
    }

    /// The same encryptor with another declared magnitude: every ciphertext states it, and messages above it are
    /// refused. Without a declaration it is [`CkksParameters::default_magnitude`].
    #[must_use]
    pub fn declaring(self, magnitude: Magnitude) -> Self {
        Self { magnitude, ..self }
    }

    /// Encrypts complex values in `2^log_slots` slots at a level, at the parameters' scale.
    ///
    /// # Errors
    /// [`CkksError::Encode`] for values that cannot be encoded, [`CkksError::AboveMagnitude`] for values above the
    /// declaration, [`CkksError::Rlwe`] for a level that does not exist.
    pub fn encrypt(
        &mut self,
        values: &[Complex64],
        log_slots: u32,
        level: usize,
    ) -> Result<Ciphertext, CkksError> {
        let message = Message::complex(&self.parameters, values, log_slots, level, self.parameters.scale())?;
        self.encrypt_message(&message)
    }

    /// Encrypts real values in the given packing at a level, at the parameters' scale.
    ///
    /// # Errors
    /// As [`Self::encrypt`].
    pub fn encrypt_real(
        &mut self,
        values: &[f64],
        packing: Packing,
        level: usize,
    ) -> Result<Ciphertext, CkksError> {
        let message = Message::real(&self.parameters, values, packing, level, self.parameters.scale())?;
        self.encrypt_message(&message)
    }

    fn encrypt_message(&mut self, message: &Message) -> Result<Ciphertext, CkksError> {
        message.require(&self.parameters, self.magnitude)?;
        let parameters = &self.parameters;
        let rlwe = encrypt_zero(
            self.key,
            message.level,
            &mut self.rng,
            Some(&|i, limb| message.add_to(parameters, i, limb)),
        )?;
        Ok(message.ciphertext(parameters, rlwe, noise::fresh_public(parameters.rlwe()), self.magnitude))
    }
}

/// A ciphertext made with the secret key, whose uniform half is a seed: half the bytes to send.
#[derive(Clone)]
pub struct SeededCiphertext {
    /// Parameters of the ciphertext.
    pub parameters: CkksParameters,
    /// Seed and first half.
    pub seeded: SeededRlweCiphertext,
    /// Factor by which the message is scaled.
    pub scale: f64,
    /// The places of its values.
    pub packing: Packing,
    /// The estimate of its error.
    pub estimate: ErrorEstimate,
}

impl SeededCiphertext {
    /// Expands it to a ciphertext for computation.
    pub fn expand(&self) -> Ciphertext {
        Ciphertext {
            parameters: self.parameters.clone(),
            rlwe: self.seeded.expand(self.parameters.rlwe()),
            scale: self.scale,
            packing: self.packing,
            estimate: self.estimate,
        }
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

/// Decrypts and decodes ciphertexts of every ring of its parameters, and encrypts symmetrically: the operations of the
/// secret's owner.
pub struct Decryptor<'k> {
    parameters: CkksParameters,
    secret: &'k SecretKey,
    magnitude: Magnitude,
}

/// Bits that values may have above the scale before [`Decryptor::coefficients`] uses more primes.
const HEADROOM_BITS: f64 = 20.0;
/// Further bits that distinguish a wrapped value from a small one. The residue of a coefficient that exceeds the primes
/// is practically uniform, so it looks small with probability `2^-39`; that all of them do is even less likely.
const DETECTION_BITS: f64 = 40.0;

impl<'k> Decryptor<'k> {
    /// A decryptor for one secret.
    ///
    /// # Errors
    /// [`CkksError::Rlwe`] if the secret belongs to other parameters.
    pub fn new(parameters: &CkksParameters, secret: &'k SecretKey) -> Result<Self, CkksError> {
        parameters.rlwe().require_same(secret.parameters(), "the decryptor", "the secret key")?;
        Ok(Self { parameters: parameters.clone(), secret, magnitude: parameters.default_magnitude() })
    }

    /// The same decryptor with another declared magnitude of the messages that it encrypts, as
    /// [`Encryptor::declaring`].
    #[must_use]
    pub fn declaring(self, magnitude: Magnitude) -> Self {
        Self { magnitude, ..self }
    }

    /// The decryptor for encryptions in the ring of that degree of its parameters.
    ///
    /// # Errors
    /// [`CkksError::Rlwe`] for a ring that the parameters lack.
    pub fn in_ring(&self, log_n: u32) -> Result<Self, CkksError> {
        let parameters = self.parameters.ring_of_degree(log_n)?.clone();
        Ok(Self { secret: self.secret.ring_like(parameters.rlwe())?, parameters, magnitude: self.magnitude })
    }

    /// Encrypts real values symmetrically in the given packing at a level, at the parameters' scale.
    ///
    /// # Errors
    /// As [`Encryptor::encrypt`].
    pub fn encrypt_real(
        &self,
        values: &[f64],
        packing: Packing,
        level: usize,
        rng: &mut SecretRng,
    ) -> Result<SeededCiphertext, CkksError> {
        let message = Message::real(&self.parameters, values, packing, level, self.parameters.scale())?;
        message.require(&self.parameters, self.magnitude)?;
        let parameters = &self.parameters;
        let seeded = encrypt_zero_symmetric(
            self.secret,
            level,
            rng,
            Some(&|i, limb| message.add_to(parameters, i, limb)),
        )?;
        let empty = RlweCiphertext { polys: Vec::new(), key: seeded.key };
        let header = message.ciphertext(parameters, empty, noise::fresh_symmetric(), self.magnitude);
        Ok(SeededCiphertext {
            parameters: parameters.clone(),
            seeded,
            scale: message.scale,
            packing: message.packing,
            estimate: header.estimate,
        })
    }

    /// The decrypted coefficients, centred, not yet divided by the scale, with the noise added to those that are
    /// decoded. Without noise nothing is added.
    ///
    /// Decrypts only as many primes as the scale needs with [`HEADROOM_BITS`] to spare, and all of them if a
    /// coefficient proves larger.
    fn coefficients(&self, ciphertext: &Ciphertext, noise: &[i64]) -> Result<Vec<f64>, CkksError> {
        let rlwe = self.parameters.rlwe();
        rlwe.ring_like(ciphertext.parameters.rlwe(), "the decryptor", "the ciphertext")?;
        let secret = self.secret.ring_like(ciphertext.parameters.rlwe())?;
        secret.identity().join(ciphertext.key(), "the secret key", "the ciphertext")?;
        let all = ciphertext.level() + 1;
        let bits = ciphertext.scale.log2() + HEADROOM_BITS + DETECTION_BITS;
        let enough = (1..=all).find(|&k| rlwe.log2_q(k - 1) >= bits).unwrap_or(all);
        let mut first = Self::decrypt_with(secret, ciphertext, enough, noise);
        if enough == all {
            return require_allowed(ciphertext, first, noise);
        }
        let limit = (rlwe.log2_q(enough - 1) - DETECTION_BITS).exp2();
        if largest(first.iter().map(|c| c.abs())) < limit {
            return require_allowed(ciphertext, first, noise);
        }
        first.zeroize();
        require_allowed(ciphertext, Self::decrypt_with(secret, ciphertext, all, noise), noise)
    }

    fn decrypt_with(secret: &SecretKey, ciphertext: &Ciphertext, limbs: usize, noise: &[i64]) -> Vec<f64> {
        let mut poly = decrypt(secret, &ciphertext.rlwe, limbs);
        let ring = secret.parameters().ring();
        let moduli = &ring.moduli()[..limbs];
        if !noise.is_empty() {
            // Before conversion to floating-point numbers, so that rounding acts on the exact sum.
            let mut residues = Buffer::unspecified(ring.n());
            for (m, limb) in moduli.iter().zip(poly.limbs_mut()) {
                ciphertext.parameters.embedding().residues_of_words(noise, WORD_LIMIT, m, &mut residues);
                ring.backend().add_assign(m, limb, &residues);
            }
            residues.zeroize();
        }
        let values = centred(moduli, &poly.limbs().collect::<Vec<_>>());
        // The exact message and error together with the ciphertext reveal the secret.
        poly.zeroize();
        values
    }

    /// Decrypts complex values from slots.
    ///
    /// # Errors
    /// [`CkksError::Rlwe`] for foreign parameters and a ciphertext of another key, [`CkksError::Overflow`],
    /// [`CkksError::PackingMismatch`] if the values are in coefficients.
    pub fn decrypt(&self, ciphertext: &Ciphertext) -> Result<Vec<Complex64>, CkksError> {
        self.slots(ciphertext, &[])
    }

    /// Decrypts complex values that may be shared: with noise that hides the error of the ciphertext.
    /// [`Flooding::error_bound`] bounds their error.
    ///
    /// # Errors
    /// As [`Self::decrypt`]; [`CkksError::FloodingTooLarge`], [`CkksError::FloodingSpent`]; [`CkksError::Rlwe`] for a
    /// generator of given entropy in a forked child.
    pub fn decrypt_flooded(
        &self,
        ciphertext: &Ciphertext,
        flooding: &Flooding,
        rng: &mut SecretRng,
    ) -> Result<Vec<Complex64>, CkksError> {
        self.slots(ciphertext, &flooding.draw(ciphertext, rng)?)
    }

    fn slots(&self, ciphertext: &Ciphertext, noise: &[i64]) -> Result<Vec<Complex64>, CkksError> {
        let Packing::Slots { log_slots } = ciphertext.packing else {
            let right = Packing::Slots { log_slots: self.parameters.max_log_slots() };
            return Err(CkksError::PackingMismatch { left: ciphertext.packing, right });
        };
        let mut coefficients = self.coefficients(ciphertext, noise)?;
        let n = 1usize << log_slots;
        let gap = coefficients.len() / (2 * n);
        let mut slots: Vec<Complex64> = (0..n)
            .map(|i| Complex64::new(coefficients[i * gap], coefficients[(i + n) * gap]) / ciphertext.scale)
            .collect();
        coefficients.zeroize();
        ciphertext.parameters.embedding().to_slots(log_slots, &mut slots);
        require_values_allowed(ciphertext, slots, noise)
    }

    /// Decrypts real values: the real parts of slots, or coefficients.
    ///
    /// # Errors
    /// [`CkksError::Rlwe`] for foreign parameters and a ciphertext of another key; [`CkksError::Overflow`].
    pub fn decrypt_real(&self, ciphertext: &Ciphertext) -> Result<Vec<f64>, CkksError> {
        self.real(ciphertext, &[])
    }

    /// Decrypts real values that may be shared, as [`Self::decrypt_flooded`].
    ///
    /// # Errors
    /// As [`Self::decrypt_flooded`], for any packing.
    pub fn decrypt_real_flooded(
        &self,
        ciphertext: &Ciphertext,
        flooding: &Flooding,
        rng: &mut SecretRng,
    ) -> Result<Vec<f64>, CkksError> {
        self.real(ciphertext, &flooding.draw(ciphertext, rng)?)
    }

    fn real(&self, ciphertext: &Ciphertext, noise: &[i64]) -> Result<Vec<f64>, CkksError> {
        match ciphertext.packing {
            Packing::Slots { .. } => Ok(self.slots(ciphertext, noise)?.into_iter().map(|v| v.re).collect()),
            Packing::Coefficients => {
                let coefficients = self.coefficients(ciphertext, noise)?;
                Ok(coefficients.into_iter().map(|c| c / ciphertext.scale).collect())
            }
        }
    }
}

/// `log2` of the share of the half modulus that coefficients may reach: 15/16. The coefficients of a decryption with
/// another key, or of values that have overflowed by far, are practically uniform: `m` of them stay below with
/// probability `(15/16)^m`, less than `2^-95` for 1,024.
const LOG_SHARE: f64 = -0.093_109;

/// `log2` of the share of the half modulus from which on coefficients are refused that may have exceeded it, by the
/// declared magnitude. Coefficients that did so are practically uniform: each stays below with probability 1/16. Bounds
/// suppose the worst values, so that smaller ones are mostly right.
const LOG_OVERFLOWN: f64 = -4.0;

/// Refuses the decryption of values that may have exceeded the modulus by the ciphertext's estimate, and one with a
/// coefficient above twice what the estimate and the added noise allow, or near half the modulus. An estimate is exact
/// to roundings far below a factor of two.
fn require_allowed(
    ciphertext: &Ciphertext,
    mut coefficients: Vec<f64>,
    noise: &[i64],
) -> Result<Vec<f64>, CkksError> {
    let gap = match ciphertext.packing {
        Packing::Slots { log_slots } => coefficients.len() >> (log_slots + 1),
        Packing::Coefficients => 1,
    };
    let half = ciphertext.parameters.rlwe().log2_q(ciphertext.level()) - 1.0;
    let largest = largest(coefficients.iter().step_by(gap).map(|c| c.abs()));
    let (log_value, log_limit) = (ciphertext.estimate.magnitude.log2(), half - ciphertext.scale.log2());
    if log_value >= log_limit && largest >= (half + LOG_OVERFLOWN).exp2() {
        coefficients.zeroize();
        return Err(CkksError::MayOverflow { log_value, log_limit });
    }
    let allowed = (ciphertext.log2_largest() + 1.0).exp2() + largest_noise(noise);
    // Logarithms look their argument up in a table, so only refused values have theirs computed.
    if largest < (half + LOG_SHARE).exp2() && largest <= allowed {
        return Ok(coefficients);
    }
    coefficients.zeroize();
    let log_share = half + LOG_SHARE;
    if largest <= allowed && ciphertext.log2_largest() >= log_share {
        return Err(CkksError::MayOverflow { log_value, log_limit: log_share - ciphertext.scale.log2() });
    }
    let log_limit = log_share.min(allowed.log2());
    Err(CkksError::Overflow { what: "coefficient", log_value: largest.log2(), log_limit })
}

/// Refuses slots of which one is above twice what the ciphertext's estimate and the added noise allow. A single slot is
/// spread over all coefficients, each of which can be far below their limit.
fn require_values_allowed(
    ciphertext: &Ciphertext,
    mut slots: Vec<Complex64>,
    noise: &[i64],
) -> Result<Vec<Complex64>, CkksError> {
    let largest = largest(slots.iter().map(Complex64::norm_sqr)).sqrt();
    let scaled =
        (ciphertext.log2_largest() + 1.0).exp2() + ciphertext.packing.spread() * largest_noise(noise);
    let allowed = scaled / ciphertext.scale;
    if largest <= allowed {
        return Ok(slots);
    }
    for value in &mut slots {
        value.re.zeroize();
        value.im.zeroize();
    }
    Err(CkksError::Overflow { what: "value", log_value: largest.log2(), log_limit: allowed.log2() })
}

/// The largest absolute value of some noise.
fn largest_noise(noise: &[i64]) -> f64 {
    noise.iter().fold(0, |most: u64, n| most.max(n.unsigned_abs())) as f64
}

/// The largest of some values without a sign; reads all of them. Their bits have their order, and the largest of
/// integers needs no branch. A value that is not a number is larger than all others.
fn largest(values: impl Iterator<Item = f64>) -> f64 {
    f64::from_bits(values.fold(0, |most, value| most.max(value.to_bits())))
}

impl fmt::Debug for Encryptor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Encryptor({:?})", self.parameters)
    }
}

impl fmt::Debug for Decryptor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Decryptor({:?})", self.parameters)
    }
}

impl fmt::Debug for SeededCiphertext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SeededCiphertext(scale 2^{:.3}, {})", self.scale.log2(), self.packing)
    }
}
