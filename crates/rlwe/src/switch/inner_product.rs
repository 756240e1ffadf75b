//! The inner product of digits after ModUp with the rows of keys.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use super::mod_up::{Decomposed, Limb, ModUpDigits};
use crate::{RlweError, SwitchingKey};

impl Decomposed<'_> {
    /// The products of all keys modulo each of the targets at `positions`: `outs[target][2 k]` and `[2 k + 1]` for key
    /// `k`. Works block by block: it finishes the digits' transforms while the keys of the block come from memory, and
    /// multiplies while the digits are in a near cache.
    pub(super) fn products(
        &self,
        positions: Range<usize>,
        keys: &[(&SwitchingKey, Vec<usize>)],
        scratch: &mut [u64],
        outs: &mut [Vec<&mut [u64]>],
    ) {
        let ring = self.parameters.ring();
        for (mut target, outs) in self.begin(positions, scratch).into_iter().zip(outs) {
            let plan = ring.plan(target.prime);
            let size = ring.n() / plan.blocks();
            for block in 0..plan.blocks() {
                let words = block * size..(block + 1) * size;
                for (j, limb) in target.limbs.iter_mut().enumerate() {
                    if let Limb::Converted(limb) = limb {
                        let key_words = keys.first().and_then(|(key, rows)| {
                            let row = rows.iter().position(|&digit| digit == j)?;
                            Some(&key.b_limb(row, key.limb_position(target.prime)?)[words.clone()])
                        });
                        let (_, rest) = limb.split_at_mut(words.start);
                        let (now, rest) = rest.split_at_mut(size);
                        let next = &rest[..size.min(rest.len())];
                        plan.finish_block(block, now, [key_words.unwrap_or(&[]), next]);
                    }
                }
                let digits: Vec<&[u64]> =
                    target.limbs.iter().map(|limb| &limb.words()[words.clone()]).collect();
                for ((key, rows), out) in keys.iter().zip(outs.as_chunks_mut::<2>().0) {
                    let [out_b, out_a] = out;
                    let (out_b, out_a) = (&mut out_b[words.clone()], &mut out_a[words.clone()]);
                    self.multiply_words(&digits, target.prime, words.clone(), key, rows, out_b, out_a);
                }
            }
        }
    }

    /// Checks that a key can be multiplied with these digits, and returns the digit of each of its rows.
    ///
    /// # Errors
    /// [`RlweError::MixedParameters`]; [`RlweError::KeyUse`] if the key was made for another decomposition.
    pub fn rows_of(&self, key: &SwitchingKey, coalesce: usize) -> Result<Vec<usize>, RlweError> {
        self.parameters.require_same(key.parameters(), "the ciphertext", "the key")?;
        let rescale = self.plan.rescales();
        let plan = self.parameters.switch_plan(key.spec(), self.plan.layout.level, coalesce, rescale)?;
        if !Arc::ptr_eq(&plan, &self.plan)
            && (plan.layout.digits != self.plan.layout.digits
                || plan.mod_down.removed != self.plan.mod_down.removed)
        {
            return Err(RlweError::KeyUse {
                element: key.spec().element,
                key_level: key.spec().level,
                alpha: key.spec().alpha,
                level: self.plan.layout.level,
                coalesce,
                reason: "the ciphertext was decomposed with other digits or special primes",
            });
        }
        Ok(self.plan.layout.digit_of_rows(key.digits()))
    }

    /// `out_b, out_a = sum_j d_j (b_j, a_j)` modulo the target's prime.
    pub fn multiply(
        &self,
        digits: &ModUpDigits<'_>,
        key: &SwitchingKey,
        rows: &[usize],
        out_b: &mut [u64],
        out_a: &mut [u64],
    ) {
        self.multiply_words(&digits.digits, digits.prime, 0..self.parameters.n(), key, rows, out_b, out_a);
    }

    /// The same for some words of the limbs; `digits` and outputs contain only those words.
    fn multiply_words(
        &self,
        digits: &[&[u64]],
        prime: usize,
        words: Range<usize>,
        key: &SwitchingKey,
        rows: &[usize],
        out_b: &mut [u64],
        out_a: &mut [u64],
    ) {
        let ring = self.parameters.ring();
        let Some(position) = key.limb_position(prime) else {
            unreachable!("rows_of checked that the key has all primes of the plan")
        };
        let digits: Vec<&[u64]> = rows.iter().map(|&j| digits[j]).collect();
        let b: Vec<&[u64]> = (0..rows.len()).map(|row| &key.b_limb(row, position)[words.clone()]).collect();
        let a: Vec<_> = (0..rows.len()).map(|row| key.a_row(row, position, prime, words.clone())).collect();
        ring.backend().inner_product(ring.modulus(prime), &digits, &b, &a, out_b, out_a);
    }
}
