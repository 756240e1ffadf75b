//! Rotations of slots, alone or hoisted: several rotations of one ciphertext share its decomposition.

use keywright_ring::rotation_element;
use keywright_rlwe::switch::images;
use keywright_rlwe::{KeyUse, RlweCiphertext, noise};

use super::Evaluator;
use crate::{Ciphertext, CkksError, Packing};

impl Evaluator<'_> {
    /// Rotates the slots to the left by `steps`; to the right if negative.
    ///
    /// # Errors
    /// A missing key, [`CkksError::Degree`], [`CkksError::PackingMismatch`] for coefficients, mixed parameters.
    pub fn rotate(&self, a: &Ciphertext, steps: i64) -> Result<Ciphertext, CkksError> {
        Ok(self.rotate_hoisted(a, &[steps])?.remove(0))
    }

    /// Several rotations of one ciphertext, which share its decomposition; by hops if the keys have routes.
    ///
    /// # Errors
    /// As [`Self::rotate`]. Finds every key before it computes anything.
    pub fn rotate_hoisted(&self, a: &Ciphertext, steps: &[i64]) -> Result<Vec<Ciphertext>, CkksError> {
        let Packing::Slots { log_slots } = a.packing else {
            let right = Packing::Slots { log_slots: self.parameters.max_log_slots() };
            return Err(CkksError::PackingMismatch { left: a.packing, right });
        };
        // In a subring of 2^log_slots slots, rotations act modulo that number.
        let elements: Vec<u64> = steps
            .iter()
            .map(|k| rotation_element(self.parameters.rlwe().log_n(), k.rem_euclid(1 << log_slots)))
            .collect();
        self.automorphisms_hoisted(a, &elements)
    }

    /// Conjugates every slot.
    ///
    /// # Errors
    /// As [`Self::rotate`].
    pub fn conjugate(&self, a: &Ciphertext) -> Result<Ciphertext, CkksError> {
        let element = (2u64 << self.parameters.rlwe().log_n()) - 1;
        Ok(self.automorphisms_hoisted(a, &[element])?.remove(0))
    }

    /// The images under `X -> X^g` for several Galois elements `g`, in order.
    ///
    /// # Errors
    /// As [`Self::rotate`], for any packing.
    pub fn automorphisms_hoisted(
        &self,
        a: &Ciphertext,
        elements: &[u64],
    ) -> Result<Vec<Ciphertext>, CkksError> {
        self.require(a)?;
        Self::require_degree_one("rotate", a)?;
        let rlwe = self.parameters.rlwe();
        let hops = self.keys.serve(elements, a.level(), &[])?;
        let switched = |from: &Ciphertext, rlwe, key_use: &_| Ok(self.switched(from, rlwe, key_use));
        images(rlwe, a, elements, hops, |a| &a.rlwe, switched)
    }

    /// Variance of a coefficient that [`Self::rotate`] adds to a ciphertext of `2^log_slots` slots at a level,
    /// including all hops of a route. Known before any key is made, from [`keywright_rlwe::EvaluationKeys::outline`].
    ///
    /// # Errors
    /// A missing key.
    pub fn rotation_variance(
        &self,
        steps: i64,
        log_slots: u32,
        level: usize,
    ) -> Result<noise::Variance, CkksError> {
        let log_n = self.parameters.rlwe().log_n();
        self.automorphism_variance(rotation_element(log_n, steps.rem_euclid(1 << log_slots)), level)
    }

    /// The same of [`Self::conjugate`].
    ///
    /// # Errors
    /// A missing key.
    pub fn conjugation_variance(&self, level: usize) -> Result<noise::Variance, CkksError> {
        self.automorphism_variance((2u64 << self.parameters.rlwe().log_n()) - 1, level)
    }

    fn automorphism_variance(&self, mut place: u64, level: usize) -> Result<noise::Variance, CkksError> {
        let rlwe = self.parameters.rlwe();
        let mut sum = noise::Variance::default();
        // Parents precede their children.
        for hop in self.keys.serve(&[place], level, &[])?.iter().rev() {
            if hop.child == place {
                sum += noise::key_switch_parts(rlwe, &hop.key_use.plan, &hop.key_use.key);
                place = hop.parent;
            }
        }
        Ok(sum)
    }

    /// `rlwe` as the result of one key switch of `a`.
    fn switched(&self, a: &Ciphertext, mut rlwe: RlweCiphertext, key_use: &KeyUse) -> Ciphertext {
        rlwe.key = rlwe.key.or(a.key());
        let added = a.deviation_of(noise::key_switch(self.parameters.rlwe(), &key_use.plan, &key_use.key));
        Ciphertext { rlwe, estimate: a.estimate.with_noise(added), ..a.clone_header() }
    }

    /// The sum of each slot with the `count - 1` slots `stride, 2 stride, ...` to its right, `count` a power of two:
    /// `log2(count)` rotations.
    ///
    /// # Errors
    /// As [`Self::rotate`]; the rotations are by `stride * 2^k`. [`CkksError::NotPowerOfTwo`].
    pub fn inner_sum(&self, a: &Ciphertext, stride: i64, count: usize) -> Result<Ciphertext, CkksError> {
        if !count.is_power_of_two() {
            return Err(CkksError::NotPowerOfTwo(count));
        }
        let mut sum = a.clone();
        let mut reach = 1usize;
        while reach < count {
            // Steps count modulo a power of two, like words.
            let rotated = self.rotate(&sum, stride.wrapping_mul(reach as i64))?;
            self.add_assign(&mut sum, &rotated)?;
            reach *= 2;
        }
        Ok(sum)
    }
}
