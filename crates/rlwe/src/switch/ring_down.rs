//! Switching down: from a ring to a smaller one.
//!
//! Let `Y = X^k`, `k = N / n`, and `(c_0, c_1)` a ciphertext under `s` in the ring of `X`. Every polynomial is
//! `c = sum_j X^j c_j(Y)` with `k` components in the ring of `Y`. A message in that ring equals its component 0, and
//! component 0 of the decryption is
//!
//! ```text
//! (c_0 + c_1 s)_0 = (c_0)_0 + (c_1)_0 s_0 + sum_{j = 1}^{k - 1} (c_1)_j Y s_{k - j}
//! ```
//!
//! So `k` keys in the small ring, from `s_0` and from each `Y s_{k - j}` to one secret
//! ([`crate::KeyElement::RingDown`]), make a ciphertext of the small ring: the `k` inner products are summed, and
//! divided once. Errors outside of component 0 are dropped. The work is that of `k` switches in the small ring with one
//! division.
//!
//! # Components of evaluations
//! Limb entry `i` of `c` is its value at `x_i = psi^(2 brv(i) + 1)`, and `x_i^k` is the same for the `k` entries from
//! `k floor(i / k)` on: `psi^k` is the root of the small ring, and the lowest bits of `i` are the highest of `brv(i)`.
//! The mean of these `k` entries is component 0 at `x_i^k`, because the powers `x_i^j`, `0 < j < k`, sum to zero over
//! them. Component `j` is component 0 of `X^-j c`.

use alloc::vec::Vec;

use keywright_ring::{Buffer, Evaluation, Poly};

use super::mod_up::Decomposed;
use super::pipeline::transpose;
use crate::parallel::{for_each_item, groups};
use crate::{KeyUse, Parameters, RlweCiphertext, RlweError, SwitchingKey};

impl Parameters {
    /// The ratio of this ring's degree to that of a smaller one.
    fn parts_of(&self, small: &Self) -> usize {
        self.n() / small.n()
    }

    /// The first `count` components of a polynomial of this ring, in a smaller one of the same primes.
    pub(super) fn components(
        &self,
        small: &Self,
        poly: &Poly<Evaluation>,
        count: usize,
    ) -> Vec<Poly<Evaluation>> {
        let k = self.parts_of(small);
        let mut out: Vec<Poly<Evaluation>> =
            (0..count).map(|_| Poly::unspecified(small.n(), poly.limb_count())).collect();
        for_each_item(transpose(&mut out), |i, outs: Vec<&mut [u64]>| {
            let (m, backend) = (self.modulus(i), self.ring().backend());
            let share = m.shoup(m.inv(k as u64));
            let (mut shifted, mut next) = (Buffer::unspecified(self.n()), Buffer::unspecified(self.n()));
            shifted.copy_from_slice(poly.limb(i));
            for (j, out) in outs.into_iter().enumerate() {
                if j > 0 {
                    backend.mul(m, &shifted, &self.inverse_of_x(i), &mut next);
                    core::mem::swap(&mut shifted, &mut next);
                }
                sums_of_neighbours(m.value(), &shifted, k, out);
                backend.mul_scalar_assign(m, out, share);
            }
        });
        out
    }
}

/// The sums of `k` adjacent canonical residues each, canonical.
fn sums_of_neighbours(q: u64, limb: &[u64], k: usize, out: &mut [u64]) {
    for (out, entries) in out.iter_mut().zip(limb.chunks_exact(k)) {
        *out = entries.iter().fold(0, |sum, &entry| {
            let sum = sum + entry;
            sum.min(sum.wrapping_sub(q))
        });
    }
}

impl Decomposed<'_> {
    /// Adds the inner product with a key to the halves in `sums`, or initialises them with it: all targets, limb by
    /// limb.
    fn accumulate(&self, key: &SwitchingKey, rows: &[usize], sums: &mut [Poly<Evaluation>; 2], begin: bool) {
        let (ring, n) = (self.parameters.ring(), self.parameters.n());
        for_each_item(groups(transpose(sums)), |_, (first, mut outs): (usize, Vec<Vec<&mut [u64]>>)| {
            let (count, digits) = (outs.len(), outs.len() * self.scratch_words());
            let keys = [(key, rows.to_vec())];
            let positions = first..first + count;
            if begin {
                return self.products(positions, &keys, &mut Buffer::unspecified(digits), &mut outs);
            }
            let mut scratch = Buffer::unspecified(digits + 2 * count * n);
            let (scratch, products) = scratch.split_at_mut(digits);
            let mut products: Vec<Vec<&mut [u64]>> =
                products.chunks_exact_mut(2 * n).map(|pair| pair.chunks_exact_mut(n).collect()).collect();
            self.products(positions.clone(), &keys, scratch, &mut products);
            for ((position, outs), products) in positions.zip(outs).zip(&products) {
                let m = ring.modulus(self.plan.target(position));
                for (out, product) in outs.into_iter().zip(products) {
                    ring.backend().add_assign(m, out, product);
                }
            }
        });
    }
}

/// Converts a ciphertext of the ring `from` to the smaller ring `to` of the same primes. The message is component 0 of
/// the input's. `uses` are those of the keys of all parts, in order ([`crate::EvaluationKeys::ring_down`]).
///
/// # Errors
/// [`RlweError::Level`] for an input at another level than that of the uses; as [`Decomposed::rows_of`] and
/// [`crate::KeySource::load`].
///
/// # Panics
/// Unless the input has two polynomials, and there is a use for every part.
pub fn ring_down(
    from: &Parameters,
    to: &Parameters,
    input: &RlweCiphertext,
    uses: &[KeyUse],
) -> Result<RlweCiphertext, RlweError> {
    let k = from.parts_of(to);
    assert!(
        input.degree() == 1 && uses.len() == k,
        "{} polynomials and {} keys",
        input.polys.len(),
        uses.len()
    );
    let plan = &uses[0].plan;
    let targets = plan.layout.target_count();
    let key = input.key.or(uses[0].key.identity());
    let parts = from.components(to, &input.polys[1], k);
    let mut sums = [0; 2].map(|_| Poly::unspecified(to.n(), targets));
    for (j, (part, key_use)) in parts.iter().zip(uses).enumerate() {
        let decomposed = Decomposed::new(to, plan.clone(), part)?;
        let loaded = key_use.key.load()?;
        let rows = decomposed.rows_of(&loaded, key_use.coalesce)?;
        decomposed.accumulate(&loaded, &rows, &mut sums, j == 0);
    }
    let mut polys = plan.mod_down.divide(to, &[&sums[0], &sums[1]]);
    let addend = from.components(to, &input.polys[0], 1).remove(0);
    for_each_item(polys[0].limbs_mut().zip(addend.limbs()).collect(), |i, (x, y): (&mut [u64], &[u64])| {
        to.ring().backend().add_assign(to.modulus(i), x, y);
    });
    Ok(RlweCiphertext { polys, key })
}
