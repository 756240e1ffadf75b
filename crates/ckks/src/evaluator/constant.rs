use keywright_ring::Modulus;
use keywright_rlwe::for_each_item;

use super::Evaluator;
use crate::encoder::EncoderError;
use crate::{Ciphertext, CkksError, CkksParameters, ErrorEstimate, PRODUCT_TAIL, Packing};

/// `round(value)` modulo `m`, for any finite value: reduces the mantissa and the exponent separately.
fn reduce_f64(m: &Modulus, value: f64) -> u64 {
    let rounded = value.round_ties_even();
    let magnitude = rounded.abs();
    let bits = magnitude.to_bits();
    let exponent = (bits >> 52) as i32 - 1075;
    let residue = if exponent <= 0 {
        // Below 2^53: exact as a word.
        m.reduce(magnitude as u64)
    } else {
        let mantissa = (bits & ((1 << 52) - 1)) | 1 << 52;
        m.mul(m.reduce(mantissa), m.pow(2, exponent as u64))
    };
    if rounded < 0.0 { m.neg(residue) } else { residue }
}

fn require_finite(value: f64) -> Result<(), CkksError> {
    if value.is_finite() { Ok(()) } else { Err(CkksError::NotFinite(value)) }
}

impl CkksParameters {
    /// Refuses a scaled constant that is not below half the modulus of a level.
    fn require_fit(&self, scaled: f64, level: usize) -> Result<(), CkksError> {
        let (needed_bits, available_bits) = (scaled.abs().log2() + 1.0, self.rlwe().log2_q(level));
        if needed_bits >= available_bits {
            return Err(EncoderError::TooLarge { needed_bits, available_bits }.into());
        }
        Ok(())
    }

    /// `round(value * scale)` modulo `q_0, ..., q_level`: the encoding of the same real number in every slot. Its
    /// polynomial is constant, so in evaluation form every word of limb `i` is residue `i`; no FFT or NTT is needed.
    ///
    /// # Errors
    /// [`CkksError::NotFinite`], [`CkksError::Encode`] if it does not fit the modulus, [`CkksError::Rlwe`] for a level
    /// that does not exist.
    pub fn encode_constant(&self, value: f64, level: usize, scale: f64) -> Result<Vec<u64>, CkksError> {
        require_finite(value)?;
        self.rlwe().require_level(level)?;
        let scaled = value * scale;
        self.require_fit(scaled, level)?;
        Ok((0..=level).map(|i| reduce_f64(self.rlwe().modulus(i), scaled)).collect())
    }
}

impl Evaluator<'_> {
    /// `a + c` for the same real constant in every value. Costs one pass over one polynomial.
    ///
    /// # Errors
    /// [`CkksError::NotFinite`], [`CkksError::Encode`] if the constant does not fit the modulus, mixed parameters.
    pub fn add_constant(&self, a: &Ciphertext, c: f64) -> Result<Ciphertext, CkksError> {
        let mut out = a.clone();
        self.add_constant_assign(&mut out, c)?;
        Ok(out)
    }

    /// `a += c` in place.
    ///
    /// # Errors
    /// As [`Self::add_constant`]; `a` is then unchanged.
    pub fn add_constant_assign(&self, a: &mut Ciphertext, c: f64) -> Result<(), CkksError> {
        self.require(a)?;
        require_finite(c)?;
        let ring = self.parameters.rlwe().ring();
        if a.packing == Packing::Coefficients {
            // In slots this is a constant polynomial; in coefficients every coefficient gets the constant.
            let values = vec![c; ring.n()];
            *a = self.add_plain(a, &self.parameters.encode_real(&values, a.packing, a.level(), a.scale)?)?;
            return Ok(());
        }
        let residues = self.parameters.encode_constant(c, a.level(), a.scale)?;
        for_each_item(a.rlwe.polys[0].limbs_mut().zip(residues).collect(), |i, (limb, residue)| {
            let m = ring.modulus(i);
            limb.iter_mut().for_each(|x| *x = m.add(*x, residue));
        });
        a.estimate.magnitude += c.abs();
        // The constant is rounded twice, in f64 and to a multiple of 1/scale: an error that repeats, so it is added.
        a.estimate.deviation += (0.5 / a.scale + c.abs() * f64::EPSILON / 2.0) / PRODUCT_TAIL;
        Ok(())
    }

    /// `c a` for a real constant, without rescaling. The constant is encoded at `constant_scale`, which multiplies the
    /// scale.
    ///
    /// # Errors
    /// [`CkksError::NotFinite`], [`CkksError::Scale`] if the new scale does not fit the modulus, [`CkksError::Encode`]
    /// if the constant does not, mixed parameters.
    pub fn mul_constant_lazy(
        &self,
        a: &Ciphertext,
        c: f64,
        constant_scale: f64,
    ) -> Result<Ciphertext, CkksError> {
        self.require(a)?;
        require_finite(c)?;
        let rlwe = self.parameters.rlwe();
        let (scale, log_q) = (a.scale * constant_scale, rlwe.log2_q(a.level()));
        if !(constant_scale > 0.0 && scale.log2() < log_q) {
            return Err(CkksError::Scale { log_scale: scale.log2(), log_q, level: a.level() });
        }
        self.parameters.require_fit(c * constant_scale, a.level())?;
        let ring = rlwe.ring();
        let mut out = a.clone();
        let limbs = out.rlwe.polys.iter_mut().flat_map(|poly| poly.limbs_mut().enumerate()).collect();
        for_each_item(limbs, |_, (i, limb)| {
            let m = ring.modulus(i);
            ring.backend().mul_scalar_assign(m, limb, m.shoup(reduce_f64(m, c * constant_scale)));
        });
        out.scale = scale;
        // The constant has an error of at most half a unit of its scale, plus that of its product in f64.
        let rounding = 0.5 / constant_scale + c.abs() * f64::EPSILON / 2.0;
        let factor = ErrorEstimate { deviation: rounding / PRODUCT_TAIL, magnitude: c.abs(), real: true };
        out.estimate = a.estimate.times(factor);
        Ok(out)
    }

    /// `c a` for a real constant, rescaled: same scale, one level less. For an integer constant, [`Self::mul_integer`]
    /// is exact and consumes no level.
    ///
    /// # Errors
    /// [`CkksError::LevelsExhausted`] at level 0, otherwise as [`Self::mul_constant_lazy`].
    pub fn mul_constant(&self, a: &Ciphertext, c: f64) -> Result<Ciphertext, CkksError> {
        self.require(a)?;
        if a.level() == 0 {
            return Err(CkksError::LevelsExhausted { operation: "mul_constant", needed: 1, available: 0 });
        }
        let q = self.parameters.rlwe().modulus(a.level()).value() as f64;
        let product = self.mul_constant_lazy(a, c, q)?;
        Ok(Ciphertext { scale: a.scale, ..self.rescale(&product)? })
    }

    /// `k a` for an integer: exact, consumes no level.
    ///
    /// # Errors
    /// Mixed parameters.
    pub fn mul_integer(&self, a: &Ciphertext, k: i64) -> Result<Ciphertext, CkksError> {
        let mut out = a.clone();
        self.mul_integer_assign(&mut out, k)?;
        Ok(out)
    }

    /// `a *= k` in place, for an integer: exact, consumes no level.
    ///
    /// # Errors
    /// Mixed parameters.
    pub fn mul_integer_assign(&self, a: &mut Ciphertext, k: i64) -> Result<(), CkksError> {
        self.require(a)?;
        let ring = self.parameters.rlwe().ring();
        let limbs = a.rlwe.polys.iter_mut().flat_map(|poly| poly.limbs_mut().enumerate()).collect();
        for_each_item(limbs, |_, (i, limb)| {
            let m = ring.modulus(i);
            ring.backend().mul_scalar_assign(m, limb, m.shoup(m.reduce_i64(k)));
        });
        a.estimate =
            a.estimate.times(ErrorEstimate { deviation: 0.0, magnitude: (k as f64).abs(), real: true });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_constants_reduce_exactly() {
        let m = Modulus::new((1 << 50) - 27).unwrap_or_else(|e| panic!("{e}"));
        for (value, expected) in [
            (0.0, 0),
            (0.4, 0),
            (-1.0, (1 << 50) - 28),
            (3.7, 4),
            (2f64.powi(50), 27),
            (2f64.powi(100), 27 * 27),
            (-(2f64.powi(150)), (1 << 50) - 27 - 27 * 27 * 27),
            (9_007_199_254_740_993.0, 9_007_199_254_740_992 % ((1 << 50) - 27)),
        ] {
            assert_eq!(reduce_f64(&m, value), expected, "{value}");
        }
    }
}
