use keywright_ring::{Evaluation, Poly};
use keywright_rlwe::{RlweCiphertext, for_each_item};

use super::Evaluator;
use crate::{BfvError, Ciphertext, Plaintext};

impl Evaluator<'_> {
    /// `a p`. Values in slots are multiplied one by one, coefficients as polynomials. The plaintext keeps its
    /// transforms, so a second product with it needs none.
    ///
    /// # Errors
    /// [`BfvError::PackingMismatch`], [`BfvError::NoiseExhausted`], mixed parameters.
    pub fn multiply_plain(&self, a: &Ciphertext, p: &Plaintext) -> Result<Ciphertext, BfvError> {
        self.require_plain(a, p)?;
        if let Some(residue) = p.constant() {
            return self.multiply_constant(a, "multiply_plain", self.parameters.t().centred(residue));
        }
        let estimate = a.estimate.times_plain(p.norms()).checked("multiply_plain")?;
        let ring = self.parameters.rlwe().ring();
        let factor = p.evaluations();
        let mut polys: Vec<Poly<Evaluation>> =
            a.rlwe.polys.iter().map(|_| Poly::unspecified(ring.n(), a.level() + 1)).collect();
        let limbs = polys
            .iter_mut()
            .zip(&a.rlwe.polys)
            .flat_map(|(out, x)| out.limbs_mut().zip(x.limbs()).enumerate())
            .collect();
        for_each_item(limbs, |_, (i, (out, x)): (usize, (&mut [u64], &[u64]))| {
            ring.backend().mul(ring.modulus(i), x, factor.limb(i), out);
        });
        a.with("multiply_plain", RlweCiphertext { polys, key: a.key() }, estimate)
    }

    /// `c a` for the same integer in every value: one pass, no transform.
    ///
    /// # Errors
    /// [`BfvError::Value`] for an integer outside `-t/2 ..= t - 1`, [`BfvError::NoiseExhausted`], mixed parameters.
    pub fn multiply_scalar(&self, a: &Ciphertext, c: i64) -> Result<Ciphertext, BfvError> {
        self.require(a)?;
        let residue = self.parameters.residue(0, c)?;
        self.multiply_constant(a, "multiply_scalar", self.parameters.t().centred(residue))
    }

    fn multiply_constant(
        &self,
        a: &Ciphertext,
        operation: &'static str,
        c: i64,
    ) -> Result<Ciphertext, BfvError> {
        let size = (c as f64).abs();
        let mut out = a.with(operation, a.rlwe.clone(), a.estimate.times_plain((size, size)))?;
        let ring = self.parameters.rlwe().ring();
        let limbs = out.rlwe.polys.iter_mut().flat_map(|poly| poly.limbs_mut().enumerate()).collect();
        for_each_item(limbs, |_, (i, limb)| {
            let m = ring.modulus(i);
            ring.backend().mul_scalar_assign(m, limb, m.shoup(m.reduce_i64(c)));
        });
        Ok(out)
    }
}
