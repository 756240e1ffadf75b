use std::fmt;

use keywright_ring::{Evaluation, Poly};
use keywright_rlwe::for_each_item;
use num_complex::Complex64;
use zeroize::Zeroize;

use crate::encoder::Integers;
use crate::{CkksError, CkksParameters, ErrorEstimate, Magnitude, Packing};

/// An encoded message.
#[derive(Clone)]
pub struct Plaintext {
    /// Parameters of the plaintext.
    pub parameters: CkksParameters,
    /// Residues in evaluation form.
    pub poly: Poly<Evaluation>,
    /// Factor by which the message is scaled.
    pub scale: f64,
    /// The places of its values.
    pub packing: Packing,
    /// Bound on the absolute value of every value: the largest of them, or a declaration ([`Plaintext::declared`]).
    pub magnitude: f64,
    /// Whether all values are real.
    pub real: bool,
}

impl Plaintext {
    /// Level of the encoding.
    pub fn level(&self) -> usize {
        self.poly.limb_count() - 1
    }

    /// The error of rounding to integers, uniform in `[-1/2, 1/2]` per coefficient, and that of encoding in `f64`.
    pub fn estimate(&self) -> ErrorEstimate {
        let rounding = (self.packing.spread() / 12.0).sqrt() / self.scale;
        let arithmetic = self.packing.arithmetic() * self.magnitude;
        ErrorEstimate { deviation: rounding.hypot(arithmetic), magnitude: self.magnitude, real: self.real }
    }
}

impl Plaintext {
    /// The same message with a declared magnitude, which results state instead of the largest value.
    ///
    /// # Errors
    /// [`CkksError::AboveMagnitude`].
    pub fn declared(mut self, magnitude: Magnitude) -> Result<Self, CkksError> {
        magnitude.require(self.magnitude)?;
        self.magnitude = magnitude.get();
        Ok(self)
    }
}

impl fmt::Debug for Plaintext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Plaintext(level {}, scale 2^{:.3}, {})", self.level(), self.scale.log2(), self.packing)
    }
}

/// A message as integer coefficients, before it is encoded or encrypted.
pub(crate) struct Message {
    pub(crate) integers: Integers,
    pub(crate) packing: Packing,
    pub(crate) level: usize,
    pub(crate) scale: f64,
    /// The largest absolute value of its values.
    pub(crate) largest: f64,
    pub(crate) real: bool,
}

impl Message {
    /// Refuses a message above its declared magnitude, and a declaration that does not fit the modulus: a client would
    /// stop before a large message, and anyone who chose level and scale would see it.
    ///
    /// # Errors
    /// [`CkksError::AboveMagnitude`], [`CkksError::MagnitudeAboveModulus`].
    pub(crate) fn require(&self, parameters: &CkksParameters, magnitude: Magnitude) -> Result<(), CkksError> {
        magnitude.require(self.largest)?;
        let log_limit = parameters.rlwe().log2_q(self.level) - 1.0 - self.scale.log2();
        if magnitude.get().log2() < log_limit {
            return Ok(());
        }
        Err(CkksError::MagnitudeAboveModulus { magnitude: magnitude.get(), level: self.level, log_limit })
    }
}

impl Drop for Message {
    /// The largest value is plaintext, as the coefficients are.
    fn drop(&mut self) {
        self.largest.zeroize();
    }
}

impl Message {
    /// Complex values in slots. They count as complex even if all imaginary parts are 0: whether they are is a fact
    /// about the message.
    pub(crate) fn complex(
        parameters: &CkksParameters,
        values: &[Complex64],
        log_slots: u32,
        level: usize,
        scale: f64,
    ) -> Result<Self, CkksError> {
        let largest = values.iter().map(|v| v.norm()).fold(0.0, f64::max);
        let integers = Integers::slots(parameters.embedding(), values, log_slots, scale)?;
        Self { integers, packing: Packing::Slots { log_slots }, level, scale, largest, real: false }
            .checked(parameters)
    }

    /// Real values in either packing.
    pub(crate) fn real(
        parameters: &CkksParameters,
        values: &[f64],
        packing: Packing,
        level: usize,
        scale: f64,
    ) -> Result<Self, CkksError> {
        let largest = values.iter().map(|v| v.abs()).fold(0.0, f64::max);
        let integers = match packing {
            Packing::Slots { log_slots } => {
                Integers::slots(parameters.embedding(), values, log_slots, scale)?
            }
            Packing::Coefficients => Integers::coefficients(parameters.embedding(), values, scale)?,
        };
        Self { integers, packing, level, scale, largest, real: true }.checked(parameters)
    }

    fn checked(self, parameters: &CkksParameters) -> Result<Self, CkksError> {
        parameters.rlwe().require_level(self.level)?;
        self.integers.check_fits(&parameters.rlwe().ring().moduli()[..=self.level])?;
        Ok(self)
    }

    fn encode(&self, parameters: &CkksParameters) -> Plaintext {
        let ring = parameters.rlwe().ring();
        let mut poly = Poly::unspecified(ring.n(), self.level + 1);
        for_each_item(poly.limbs_mut().collect(), |i, limb: &mut [u64]| {
            self.integers.residues(ring.modulus(i), limb);
            ring.forward_limb(i, limb);
        });
        Plaintext {
            parameters: parameters.clone(),
            poly,
            scale: self.scale,
            packing: self.packing,
            magnitude: self.largest,
            real: self.real,
        }
    }
}

impl CkksParameters {
    /// Encodes complex values into `2^log_slots` slots, for a level and at a scale. Zeros fill the remaining slots.
    ///
    /// # Errors
    /// [`CkksError::Encode`] for values that are not finite, too many or too large for the level's modulus;
    /// [`CkksError::Rlwe`] for a level that does not exist.
    pub fn encode(
        &self,
        values: &[Complex64],
        log_slots: u32,
        level: usize,
        scale: f64,
    ) -> Result<Plaintext, CkksError> {
        Ok(Message::complex(self, values, log_slots, level, scale)?.encode(self))
    }

    /// Encodes real values into slots or coefficients, otherwise as [`Self::encode`].
    ///
    /// # Errors
    /// As [`Self::encode`].
    pub fn encode_real(
        &self,
        values: &[f64],
        packing: Packing,
        level: usize,
        scale: f64,
    ) -> Result<Plaintext, CkksError> {
        Ok(Message::real(self, values, packing, level, scale)?.encode(self))
    }
}
