use keywright_ring::rotation_element;
use keywright_rlwe::switch::images;
use keywright_rlwe::{KeyElement, ServedHop, noise};

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
        let direct = |&g: &u64| -> Result<_, BfvError> {
            let automorphism = rlwe.automorphism(g)?;
            let key_use = self.keys.best(KeyElement::Galois(g), a.level(), false)?;
            Ok(ServedHop { parent: 1, child: g, automorphism, key_use })
        };
        let hops = elements.iter().filter(|&&g| g != 1).map(direct).collect::<Result<_, _>>()?;
        images(
            rlwe,
            a,
            elements,
            hops,
            |a| &a.rlwe,
            |a, rotated, key_use| {
                let added = noise::key_switch(rlwe, &key_use.plan, &key_use.key);
                let estimate = a.estimate.with_error(&self.parameters, a.level(), added);
                a.with("rotate", rotated, estimate)
            },
        )
    }
}
