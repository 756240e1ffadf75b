use keywright_ckks::encoder::EncoderError;
use keywright_ckks::{Ciphertext, CkksError, CkksParameters, ErrorEstimate, Packing};
use keywright_ring::{Evaluation, Poly};
use keywright_rlwe::RlweCiphertext;

use super::ChemScheme;
use crate::PoolError;

/// CKKS messages `x unit` in every slot, for integers `x`.
pub struct ChemCkks {
    parameters: CkksParameters,
    /// `round(unit * scale)` modulo every prime of the level.
    unit: Vec<u64>,
    /// The largest message, at the effective unit after this rounding.
    magnitude: f64,
}

impl ChemCkks {
    /// The scheme for messages of this many bits at a level.
    ///
    /// # Errors
    /// [`PoolError::ChemUnit`] if the unit is below the scale's resolution, [`PoolError::Ckks`] if the largest message
    /// does not fit the modulus.
    pub fn new(parameters: &CkksParameters, level: usize, bits: u32, unit: f64) -> Result<Self, PoolError> {
        let scale = parameters.scale();
        let rounded = (unit * scale).round_ties_even();
        if rounded.is_nan() || rounded < 1.0 {
            return Err(PoolError::ChemUnit { unit, smallest: scale.recip() });
        }
        let residues = parameters.encode_constant(unit, level, scale)?;
        let (needed_bits, available_bits) =
            (rounded.log2() + f64::from(bits) + 1.0, parameters.rlwe().log2_q(level));
        if needed_bits >= available_bits {
            return Err(CkksError::from(EncoderError::TooLarge { needed_bits, available_bits }).into());
        }
        let magnitude = f64::from(bits).exp2() * rounded / scale;
        Ok(Self { parameters: parameters.clone(), unit: residues, magnitude })
    }
}

impl ChemScheme for ChemCkks {
    type Ciphertext = Ciphertext;

    fn add_power(&self, radix: u64, exponent: u32, c0: &mut Poly<Evaluation>) -> Result<(), PoolError> {
        let ring = self.parameters.rlwe().ring();
        for (i, (limb, &unit)) in c0.limbs_mut().zip(&self.unit).enumerate() {
            let m = ring.modulus(i);
            let power = m.mul(unit, m.pow(radix, exponent.into()));
            limb.iter_mut().for_each(|x| *x = m.add(*x, power));
        }
        Ok(())
    }

    fn ciphertext(&self, rlwe: RlweCiphertext, variance: f64) -> Ciphertext {
        let packing = Packing::Slots { log_slots: self.parameters.max_log_slots() };
        let scale = self.parameters.scale();
        let deviation = (variance * packing.spread()).sqrt() / scale;
        let estimate = ErrorEstimate { deviation, magnitude: self.magnitude, real: true };
        Ciphertext { parameters: self.parameters.clone(), rlwe, scale, packing, estimate }
    }
}
