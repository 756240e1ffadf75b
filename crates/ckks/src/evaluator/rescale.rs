use keywright_rlwe::{RlweCiphertext, noise};

use super::Evaluator;
use crate::{Ciphertext, CkksError};

impl Evaluator<'_> {
    /// Divides message and scale by the last prime: one level less. At degree 2 the rounding error is larger by about
    /// the square root of `N` ([`noise::division_of_degree`]); [`Self::relinearize_rescale`] avoids that.
    ///
    /// # Errors
    /// [`CkksError::LevelsExhausted`] at level 0, mixed parameters.
    pub fn rescale(&self, a: &Ciphertext) -> Result<Ciphertext, CkksError> {
        self.require(a)?;
        if a.level() == 0 {
            return Err(CkksError::LevelsExhausted { operation: "rescale", needed: 1, available: 0 });
        }
        let rlwe = self.parameters.rlwe();
        let division = rlwe.rescaling(a.level())?;
        let polys: Vec<_> = a.rlwe.polys.iter().collect();
        let mut out = Ciphertext {
            rlwe: RlweCiphertext { polys: division.divide(rlwe, &polys), key: a.key() },
            ..a.clone_header()
        };
        self.account_for_rescaling(&mut out, a.level());
        Ok(out)
    }

    /// The scale and the rounding of a division by `q_level`.
    pub(super) fn account_for_rescaling(&self, out: &mut Ciphertext, level: usize) {
        let rlwe = self.parameters.rlwe();
        out.scale /= rlwe.modulus(level).value() as f64;
        // In a slot, powers of the secret have heavier tails than the secret: P(|s^k r| > t sqrt(k!)), for normal
        // variables, is as small as at PRODUCT_TAIL and k = 1 for t below PRODUCT_TAIL 4^(k - 1).
        let tails = 4f64.powi(out.degree() as i32 - 1);
        let rounding = tails * out.deviation_of(noise::division_of_degree(rlwe, out.degree()));
        out.estimate = out.estimate.with_noise(rounding);
    }

    /// The same message at a lower level; costs one copy.
    ///
    /// # Errors
    /// [`CkksError::Rlwe`] if `level` is above the ciphertext's.
    pub fn drop_to_level(&self, a: &Ciphertext, level: usize) -> Result<Ciphertext, CkksError> {
        self.require(a)?;
        if level > a.level() {
            return Err(CkksError::Rlwe(keywright_rlwe::RlweError::Level {
                level,
                max: a.level(),
                object: "the ciphertext",
            }));
        }
        Ok(Ciphertext { rlwe: Self::lowered(&a.rlwe, level), ..a.clone_header() })
    }

    /// The same message at another scale, one level lower: multiplies by the constant that makes the scale exact.
    ///
    /// # Errors
    /// [`CkksError::LevelsExhausted`] at level 0; [`CkksError::Scale`] if the target scale is so small that the
    /// factor would round to nothing.
    pub fn set_scale(&self, a: &Ciphertext, scale: f64) -> Result<Ciphertext, CkksError> {
        self.require(a)?;
        if a.level() == 0 {
            return Err(CkksError::LevelsExhausted { operation: "set_scale", needed: 1, available: 0 });
        }
        let q = self.parameters.rlwe().modulus(a.level()).value() as f64;
        let factor_scale = scale * q / a.scale;
        if !(factor_scale >= 1.0 && factor_scale.log2() < self.parameters.rlwe().log2_q(a.level()) - 1.0) {
            return Err(CkksError::Scale {
                log_scale: scale.log2(),
                log_q: self.parameters.rlwe().log2_q(a.level()),
                level: a.level(),
            });
        }
        let mut product = self.mul_constant_lazy(a, 1.0, factor_scale)?;
        product = self.rescale(&product)?;
        // By construction, up to the rounding of f64.
        product.scale = scale;
        Ok(product)
    }
}
