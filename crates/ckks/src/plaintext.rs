use std::fmt;

use keywright_ring::{Evaluation, Poly};
use keywright_rlwe::for_each_item;
use num_complex::Complex64;

use crate::encoder::Integers;
use crate::{CkksError, CkksParameters, ErrorEstimate, Packing};

/// An encoded message.
#[derive(Clone)]
pub struct Plaintext {
    /// Parameters it belongs to.
    pub parameters: CkksParameters,
    /// Residues in evaluation form.
    pub poly: Poly<Evaluation>,
    /// Factor by which the message is scaled.
    pub scale: f64,
    /// Where its values are.
    pub packing: Packing,
    /// Bound on the absolute value of every value.
    pub magnitude: f64,
}

impl Plaintext {
    /// Level it is encoded for.
    pub fn level(&self) -> usize {
        self.poly.limb_count() - 1
    }

    /// Rounding to integers as an error: uniform in `[-1/2, 1/2]` per coefficient.
    pub fn estimate(&self) -> ErrorEstimate {
        ErrorEstimate { deviation: (self.packing.spread() / 12.0).sqrt() / self.scale, magnitude: self.magnitude }
    }
}

impl fmt::Debug for Plaintext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Plaintext(level {}, scale 2^{:.3}, {})", self.level(), self.scale.log2(), self.packing)
    }
}

impl CkksParameters {
    /// Encodes complex values into slots or real ones into coefficients, for a level and at a scale. Fewer values than
    /// places are followed by zeros.
    ///
    /// # Errors
    /// [`CkksError::Encode`] for values that are not finite, too many or too large; [`CkksError::Rlwe`] for a level that
    /// does not exist.
    pub fn encode(
        &self,
        values: &[Complex64],
        log_slots: u32,
        level: usize,
        scale: f64,
    ) -> Result<Plaintext, CkksError> {
        let magnitude = values.iter().map(|v| v.norm()).fold(0.0, f64::max);
        let integers = Integers::slots(self.embedding(), values, log_slots, scale)?;
        self.plaintext(&integers, Packing::Slots { log_slots }, level, scale, magnitude)
    }

    /// Encodes real values into the given packing.
    ///
    /// # Errors
    /// As [`Self::encode`].
    pub fn encode_real(&self, values: &[f64], packing: Packing, level: usize, scale: f64) -> Result<Plaintext, CkksError> {
        match packing {
            Packing::Coefficients => self.encode_coefficients(values, level, scale),
            Packing::Slots { log_slots } => {
                let complex: Vec<_> = values.iter().map(|&re| Complex64::new(re, 0.0)).collect();
                self.encode(&complex, log_slots, level, scale)
            }
        }
    }

    /// Encodes real values into coefficients: no transform on the client's side.
    ///
    /// # Errors
    /// As [`Self::encode`].
    pub fn encode_coefficients(&self, values: &[f64], level: usize, scale: f64) -> Result<Plaintext, CkksError> {
        let magnitude = values.iter().map(|v| v.abs()).fold(0.0, f64::max);
        let integers = Integers::coefficients(self.embedding(), values, scale)?;
        self.plaintext(&integers, Packing::Coefficients, level, scale, magnitude)
    }

    fn plaintext(
        &self,
        integers: &Integers,
        packing: Packing,
        level: usize,
        scale: f64,
        magnitude: f64,
    ) -> Result<Plaintext, CkksError> {
        self.rlwe().require_level(level)?;
        let ring = self.rlwe().ring();
        let mut poly = Poly::unspecified(ring.n(), level + 1);
        for_each_item(poly.limbs_mut().collect(), |i, limb: &mut [u64]| {
            integers.residues(ring.modulus(i), limb);
            ring.forward_limb(i, limb);
        });
        Ok(Plaintext { parameters: self.clone(), poly, scale, packing, magnitude })
    }
}
