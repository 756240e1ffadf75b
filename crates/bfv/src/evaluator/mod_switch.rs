use keywright_rlwe::{RlweCiphertext, noise};

use super::Evaluator;
use crate::{BfvError, Ciphertext};

impl Evaluator<'_> {
    /// The same message one level lower: divides `Q` and the ciphertext by the last prime. The relative noise stays the
    /// same, except for the rounding. Lower levels are smaller and faster, and allow less noise.
    ///
    /// # Errors
    /// [`BfvError::LastPrime`] at level 0, [`BfvError::NoiseExhausted`] if the lower modulus is too small, mixed
    /// parameters.
    pub fn mod_switch(&self, a: &Ciphertext) -> Result<Ciphertext, BfvError> {
        self.require(a)?;
        if a.level() == 0 {
            return Err(BfvError::LastPrime);
        }
        let rlwe = self.parameters.rlwe();
        let division = rlwe.rescaling(a.level())?;
        let rounding = noise::division_of_degree(rlwe, a.degree());
        let estimate =
            a.estimate.with_error(&self.parameters, a.level() - 1, rounding).checked("mod_switch")?;
        let polys: Vec<_> = a.rlwe.polys.iter().collect();
        a.with("mod_switch", RlweCiphertext { polys: division.divide(rlwe, &polys), key: a.key() }, estimate)
    }

    /// [`Self::mod_switch`] down to a level.
    ///
    /// # Errors
    /// [`BfvError::Rlwe`] if `level` is above the ciphertext's, otherwise as [`Self::mod_switch`].
    pub fn mod_switch_to(&self, a: &Ciphertext, level: usize) -> Result<Ciphertext, BfvError> {
        self.require(a)?;
        if level > a.level() {
            return Err(Self::level_error(level, a.level()));
        }
        let mut out = a.clone();
        while out.level() > level {
            out = self.mod_switch(&out)?;
        }
        Ok(out)
    }
}
