//! Key switching as a pipeline over target primes.
//!
//! For each target prime, every digit is converted to it and transformed while its limb is in cache, then multiplied
//! into both halves of every key that shares the decomposition. The removed primes come first. With their result
//! available, each kept prime is finished in the same visit, and written once. Targets run in parallel; keys are read
//! once.

use alloc::vec::Vec;

use keywright_ring::backend::Quotient;
use keywright_ring::{Automorphism, Buffer, Domain, Evaluation, Poly, Scaled};

use super::mod_up::Decomposed;
use crate::parallel::{for_each_item, groups};
use crate::{KeyUse, RlweCiphertext, RlweError, StoredKey, SwitchingKey};

/// The last step of one switch before its result is written: `out = phi(switched + addend)`.
pub struct Finish<'f> {
    /// Addends of the two halves, modulo the ciphertext's own primes.
    pub addend: [Option<&'f Poly<Evaluation>>; 2],
    /// Automorphism `phi`.
    pub automorphism: Option<&'f Automorphism>,
}

impl Decomposed<'_> {
    /// Switches with several keys at once and finishes each result. `keys` are pairs of a key and the rows from
    /// [`Self::rows_of`]; each result has its key's identity.
    pub fn switch(&self, keys: &[(&SwitchingKey, Vec<usize>)], finish: &[Finish<'_>]) -> Vec<RlweCiphertext> {
        let (n, kept) = (self.parameters.n(), self.plan.mod_down.kept);
        let mut out: Vec<Poly<Evaluation>> =
            (0..2 * keys.len()).map(|_| Poly::unspecified(n, kept)).collect();
        self.switch_into(keys, finish, transpose(&mut out));
        let mut out = out.into_iter();
        let result = |(key, _): &(&SwitchingKey, _)| {
            Some(RlweCiphertext { polys: alloc::vec![out.next()?, out.next()?], key: key.identity() })
        };
        keys.iter().filter_map(result).collect()
    }

    /// [`Self::switch`] with keys of a set, in batches that fit memory together: ModUp runs once per batch.
    ///
    /// # Errors
    /// As [`Self::rows_of`]; the errors of [`crate::KeySource::load`].
    pub fn switch_stored(
        &self,
        uses: &[&KeyUse],
        finish: &[Finish<'_>],
    ) -> Result<Vec<RlweCiphertext>, RlweError> {
        let mut out = Vec::with_capacity(uses.len());
        while out.len() < uses.len() {
            let left = &uses[out.len()..];
            let loaded = StoredKey::load_some(left.iter().map(|key_use| &key_use.key))?;
            let keys = left
                .iter()
                .zip(&loaded)
                .map(|(key_use, key)| Ok((&**key, self.rows_of(key, key_use.coalesce)?)));
            let keys = keys.collect::<Result<Vec<_>, RlweError>>()?;
            let finish = &finish[out.len()..out.len() + keys.len()];
            out.extend(self.switch(&keys, finish));
        }
        Ok(out)
    }

    /// [`Self::switch`] into given limbs: `outs[i][2 k]` and `[2 k + 1]` are the halves of result `k` modulo kept prime
    /// `i`.
    pub(crate) fn switch_into(
        &self,
        keys: &[(&SwitchingKey, Vec<usize>)],
        finish: &[Finish<'_>],
        outs: Vec<Vec<&mut [u64]>>,
    ) {
        assert_eq!(keys.len(), finish.len(), "one finish per key");
        assert_eq!(outs.len(), self.plan.mod_down.kept, "limbs for every kept prime");
        let (ring, n, plan) = (self.parameters.ring(), self.parameters.n(), &*self.plan);
        let backend = ring.backend();
        let halves = 2 * keys.len();
        let mod_down = &plan.mod_down;
        let removed = mod_down.removed.len();

        // The removed primes: both halves of every key, as scaled residues.
        let mut remainders_scaled: Vec<Poly<Scaled>> =
            (0..halves).map(|_| Poly::unspecified(n, removed)).collect();
        for_each_item(groups(transpose(&mut remainders_scaled)), |_, (first, scaled)| {
            let count = scaled.len();
            let mut scratch = Buffer::unspecified(count * (self.scratch_words() + halves * n));
            let (scratch, products) = scratch.split_at_mut(count * self.scratch_words());
            let mut products = limbs_of(products, n, halves);
            let start = mod_down.kept + first;
            self.products(start..start + count, keys, scratch, &mut products);
            for ((i, limbs), outs) in (first..).zip(&mut products).zip(scaled) {
                let prime = mod_down.removed[i];
                for ((half, limb), out) in limbs.iter_mut().enumerate().zip(outs) {
                    // Only q_level, when rescaling: P D is zero modulo all other removed primes.
                    let addend = finish[half / 2].addend[half % 2];
                    if let (Some(addend), Some(lift), true) =
                        (addend, plan.addend_lift, prime == plan.layout.level)
                    {
                        backend.mul_scalar_add_assign(ring.modulus(prime), limb, addend.limb(prime), lift);
                    }
                    mod_down.scale(&self.parameters, i, limb, out);
                }
            }
        });

        // The kept primes, each finished in one visit.
        for_each_item(groups(outs), |_, (first, mut outs)| {
            let count = outs.len();
            let digits = count * self.scratch_words().max(n);
            let mut scratch = Buffer::unspecified(digits + (count * halves + 1) * n);
            let (scratch, rest) = scratch.split_at_mut(digits);
            let (products, near) = rest.split_at_mut(count * halves * n);
            let mut products = limbs_of(products, n, halves);
            self.products(first..first + count, keys, scratch, &mut products);
            for (half, residues) in remainders_scaled.iter().enumerate() {
                let finish = &finish[half / 2];
                let addend = finish.addend[half % 2];
                // The digits are no longer needed.
                let mut remainders: Vec<&mut [u64]> = scratch.chunks_exact_mut(n).take(count).collect();
                mod_down.begin(&self.parameters, first, residues, &mut remainders);
                for (((i, outs), products), remainder) in
                    (first..).zip(&mut outs).zip(&products).zip(remainders)
                {
                    ring.finish_limb(i, remainder, [&*products[half], &*outs[half]]);
                    let quotient = Quotient {
                        dividend: &*products[half],
                        remainder,
                        factor: mod_down.factor(i),
                        addend: addend.map(|addend| addend.limb(i)),
                        addend_factor: plan.addend_factor.as_ref().map(|w| w[i]),
                    };
                    match finish.automorphism {
                        Some(automorphism) => {
                            // The permutation reads at random places: from a near cache.
                            backend.quotient(ring.modulus(i), &quotient, near);
                            backend.permute(automorphism, near, &mut *outs[half]);
                        }
                        None => backend.quotient(ring.modulus(i), &quotient, &mut *outs[half]),
                    }
                }
            }
        });
    }
}

/// Limb `i` of every polynomial, for each `i`: the output of a task that owns one prime.
pub(super) fn transpose<D: Domain>(polys: &mut [Poly<D>]) -> Vec<Vec<&mut [u64]>> {
    let count = polys.first().map_or(0, Poly::limb_count);
    let mut limbs: Vec<_> = polys.iter_mut().map(Poly::limbs_mut).collect();
    (0..count).map(|_| limbs.iter_mut().filter_map(Iterator::next).collect()).collect()
}

/// Scratch words as lists of `count` limbs of `n` words.
fn limbs_of(words: &mut [u64], n: usize, count: usize) -> Vec<Vec<&mut [u64]>> {
    words.chunks_exact_mut(count * n).map(|limbs| limbs.chunks_exact_mut(n).collect()).collect()
}
