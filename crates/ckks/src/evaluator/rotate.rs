use std::sync::Arc;

use keywright_ring::rotation_element;
use keywright_rlwe::{Decomposed, Finish, KeyElement, KeyUse, RlweCiphertext, noise};

use super::Evaluator;
use crate::{Ciphertext, CkksError, Packing};

impl Evaluator<'_> {
    /// Rotates the slots to the left by `steps` (right, if negative).
    ///
    /// # Errors
    /// A missing key, [`CkksError::Degree`], [`CkksError::PackingMismatch`] for coefficients, mixed parameters.
    pub fn rotate(&self, a: &Ciphertext, steps: i64) -> Result<Ciphertext, CkksError> {
        Ok(self.rotate_hoisted(a, &[steps])?.remove(0))
    }

    /// Several rotations of one ciphertext, which share its decomposition.
    ///
    /// # Errors
    /// As [`Self::rotate`]. Nothing is computed before every key is found.
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
        let mut out: Vec<Option<Ciphertext>> =
            elements.iter().map(|&g| (g == 1).then(|| a.clone())).collect();
        let mut wanted = Vec::new();
        for (position, &g) in elements.iter().enumerate().filter(|&(_, &g)| g != 1) {
            wanted.push((
                position,
                rlwe.automorphism(g)?,
                self.keys.best(KeyElement::Galois(g), a.level(), false)?,
            ));
        }
        let polys = &a.rlwe.polys;
        while let Some((_, _, first)) = wanted.first() {
            // Keys whose digits and special primes agree share one decomposition.
            let plan = first.plan.clone();
            let (group, rest): (Vec<_>, Vec<_>) =
                wanted.into_iter().partition(|(_, _, found)| Arc::ptr_eq(&found.plan, &plan));
            wanted = rest;
            let decomposed = Decomposed::new(rlwe, plan, &polys[1])?;
            let mut keys = Vec::with_capacity(group.len());
            for (_, _, found) in &group {
                keys.push((&*found.key, decomposed.rows_of(&found.key, found.coalesce)?));
            }
            let finish: Vec<_> = group
                .iter()
                .map(|(_, phi, _)| Finish { addend: [Some(&polys[0]), None], automorphism: Some(phi) })
                .collect();
            for ((position, _, found), rotated) in group.iter().zip(decomposed.switch(&keys, &finish)) {
                out[*position] = Some(self.switched(a, rotated, found));
            }
        }
        Ok(out.into_iter().flatten().collect())
    }

    /// `rlwe` as the result of one key switch of `a`.
    fn switched(&self, a: &Ciphertext, rlwe: RlweCiphertext, found: &KeyUse) -> Ciphertext {
        let added = a.deviation_of(noise::key_switch(self.parameters.rlwe(), &found.plan, &found.key));
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
            // Steps count modulo a power of two, as words do.
            let rotated = self.rotate(&sum, stride.wrapping_mul(reach as i64))?;
            self.add_assign(&mut sum, &rotated)?;
            reach *= 2;
        }
        Ok(sum)
    }
}
