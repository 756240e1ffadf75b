use std::sync::Arc;

use keywright_ring::rotation_element;
use keywright_rlwe::{Decomposed, Finish, KeyElement, noise};

use super::Evaluator;
use crate::{BfvError, Ciphertext, Packing};

impl Evaluator<'_> {
    /// Rotates both rows of slots to the left by `steps`; to the right if negative.
    ///
    /// # Errors
    /// A missing key, [`BfvError::Degree`], [`BfvError::PackingMismatch`] for coefficients,
    /// [`BfvError::NoiseExhausted`], mixed parameters.
    pub fn rotate_rows(&self, a: &Ciphertext, steps: i64) -> Result<Ciphertext, BfvError> {
        Ok(self.rotate_rows_hoisted(a, &[steps])?.remove(0))
    }

    /// Several rotations of one ciphertext, which share its decomposition.
    ///
    /// # Errors
    /// As [`Self::rotate_rows`]. Finds every key before it computes anything.
    pub fn rotate_rows_hoisted(&self, a: &Ciphertext, steps: &[i64]) -> Result<Vec<Ciphertext>, BfvError> {
        Self::require_packing(a, Packing::Slots)?;
        let log_n = self.parameters.rlwe().log_n();
        let elements: Vec<u64> = steps.iter().map(|&k| rotation_element(log_n, k)).collect();
        self.automorphisms_hoisted(a, &elements)
    }

    /// Swaps the two rows of slots.
    ///
    /// # Errors
    /// As [`Self::rotate_rows`].
    pub fn swap_rows(&self, a: &Ciphertext) -> Result<Ciphertext, BfvError> {
        Self::require_packing(a, Packing::Slots)?;
        let element = (2u64 << self.parameters.rlwe().log_n()) - 1;
        Ok(self.automorphisms_hoisted(a, &[element])?.remove(0))
    }

    /// The images under `X -> X^g` for several Galois elements `g`, in order.
    ///
    /// # Errors
    /// As [`Self::rotate_rows`], for any packing.
    pub fn automorphisms_hoisted(
        &self,
        a: &Ciphertext,
        elements: &[u64],
    ) -> Result<Vec<Ciphertext>, BfvError> {
        self.require(a)?;
        Self::require_degree_one("rotate", a)?;
        let rlwe = self.parameters.rlwe();
        let mut out: Vec<Option<Ciphertext>> =
            elements.iter().map(|&g| (g == 1).then(|| a.clone())).collect();
        let mut left = Vec::new();
        for (position, &g) in elements.iter().enumerate().filter(|&(_, &g)| g != 1) {
            left.push((
                position,
                rlwe.automorphism(g)?,
                self.keys.best(KeyElement::Galois(g), a.level(), false)?,
            ));
        }
        let [c0, c1] = [&a.rlwe.polys[0], &a.rlwe.polys[1]];
        while let Some((_, _, first)) = left.first() {
            // Keys whose digits and special primes agree share one decomposition.
            let plan = first.plan.clone();
            let (group, rest): (Vec<_>, Vec<_>) =
                left.into_iter().partition(|(_, _, key_use)| Arc::ptr_eq(&key_use.plan, &plan));
            left = rest;
            let decomposed = Decomposed::new(rlwe, plan, c1)?;
            let finish: Vec<_> = group
                .iter()
                .map(|(_, phi, _)| Finish { addend: [Some(c0), None], automorphism: Some(phi) })
                .collect();
            let uses: Vec<_> = group.iter().map(|(_, _, key_use)| key_use).collect();
            for ((position, _, key_use), rotated) in
                group.iter().zip(decomposed.switch_stored(&uses, &finish)?)
            {
                let added = noise::key_switch(rlwe, &key_use.plan, &key_use.key);
                let estimate = a.estimate.with_error(&self.parameters, a.level(), added);
                out[*position] = Some(a.with("rotate", rotated, estimate)?);
            }
        }
        Ok(out.into_iter().flatten().collect())
    }
}
