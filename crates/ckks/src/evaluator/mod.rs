//! Operations on ciphertexts, one file per family.

mod add;
mod constant;
mod multiply;
mod rescale;
mod rotate;
mod switch_ring;

use keywright_ring::{Evaluation, Poly};
use keywright_rlwe::{EvaluationKeys, KeyIdentity, RlweCiphertext, RlweError, for_each_item, prefix};

use crate::{Ciphertext, CkksError, CkksParameters, Plaintext};

/// Largest relative difference between scales that are one: some hundreds of roundings of double precision, as in
/// products of another order. The quotient of two primes differs from 1 by more, unless they are near `2^60`. Scales
/// that differ by it, added as one, would change a message by more than its error. What is left is part of a sum's
/// estimate.
pub const SCALE_TOLERANCE: f64 = 1.0 / (1u64 << 44) as f64;

/// Computes on ciphertexts, with only the keys that it was given.
#[derive(Debug, Clone)]
pub struct Evaluator<'k> {
    parameters: CkksParameters,
    keys: &'k EvaluationKeys,
}

impl<'k> Evaluator<'k> {
    /// An evaluator for parameters and the keys of the owner of the data. For parameters with subrings, an evaluator
    /// for a subring uses the keys of that ring.
    ///
    /// # Errors
    /// [`CkksError::Rlwe`] if the keys belong to other parameters.
    pub fn new(parameters: &CkksParameters, keys: &'k EvaluationKeys) -> Result<Self, CkksError> {
        let Ok(keys) = keys.ring_like(parameters.rlwe()) else {
            parameters.rlwe().require_same(keys.parameters(), "the evaluator", "the key set")?;
            return Err(RlweError::MixedParameters { left: "the evaluator", right: "the key set" }.into());
        };
        Ok(Self { parameters: parameters.clone(), keys })
    }

    /// The parameters it computes with.
    pub fn parameters(&self) -> &CkksParameters {
        &self.parameters
    }

    /// The keys it may use.
    pub fn keys(&self) -> &'k EvaluationKeys {
        self.keys
    }

    /// Refuses a ciphertext of other parameters, or of another key than the evaluator's.
    ///
    /// # Errors
    /// [`CkksError::Rlwe`].
    pub fn require(&self, ciphertext: &Ciphertext) -> Result<(), CkksError> {
        self.parameters.require_same(&ciphertext.parameters, "the evaluator", "the ciphertext")?;
        self.require_key(ciphertext)
    }

    /// Refuses a ciphertext of another key than the evaluator's, in any ring of its parameters.
    ///
    /// # Errors
    /// [`CkksError::Rlwe`].
    pub fn require_key(&self, ciphertext: &Ciphertext) -> Result<(), CkksError> {
        self.keys.identity().join(ciphertext.key(), "the evaluator's key set", "the ciphertext")?;
        Ok(())
    }

    /// Refuses two operands of different parameters, keys or packing. Returns the identity of the result.
    fn require_pair(&self, a: &Ciphertext, b: &Ciphertext) -> Result<KeyIdentity, CkksError> {
        self.require(a)?;
        self.require(b)?;
        Self::require_packing(a, b.packing)?;
        Ok(a.key().join(b.key(), "one ciphertext", "the other")?)
    }

    fn require_plain(&self, plaintext: &Plaintext) -> Result<(), CkksError> {
        Ok(self.parameters.require_same(&plaintext.parameters, "the evaluator", "the plaintext")?)
    }

    fn require_degree_one(operation: &'static str, ciphertext: &Ciphertext) -> Result<(), CkksError> {
        match ciphertext.degree() {
            1 => Ok(()),
            degree => Err(CkksError::Degree { operation, degree }),
        }
    }

    fn require_packing(left: &Ciphertext, right: crate::Packing) -> Result<(), CkksError> {
        if left.packing == right {
            Ok(())
        } else {
            Err(CkksError::PackingMismatch { left: left.packing, right })
        }
    }

    fn require_scales(left: f64, right: f64) -> Result<(), CkksError> {
        if (left / right - 1.0).abs() <= SCALE_TOLERANCE {
            Ok(())
        } else {
            Err(CkksError::ScaleMismatch { left: left.log2(), right: right.log2() })
        }
    }

    /// A polynomial made limb by limb at a level: `f(prime, limb)` writes each limb whole.
    fn make_poly(&self, level: usize, f: impl Fn(usize, &mut [u64]) + Sync + Send) -> Poly<Evaluation> {
        let mut poly = Poly::unspecified(self.parameters.rlwe().n(), level + 1);
        for_each_item(poly.limbs_mut().collect(), |i, limb: &mut [u64]| f(i, limb));
        poly
    }

    /// The same polynomials at a lower level.
    fn lowered(rlwe: &RlweCiphertext, level: usize) -> RlweCiphertext {
        RlweCiphertext {
            polys: rlwe.polys.iter().map(|poly| prefix(poly, level + 1)).collect(),
            key: rlwe.key,
        }
    }
}
