//! Sums of products and of scaled powers, in one pass over memory.
//!
//! A limb of `N = 2^16` residues is half a megabyte, so a pass over all limbs for each summand would take longer than
//! the arithmetic. Every limb is therefore made block by block: the block of the sum stays in the nearest cache while
//! every summand passes by once.

use std::ops::Range;

use keywright_ckks::{Ciphertext, CkksError, ErrorEstimate, Evaluator};
use keywright_ring::{Backend, Modulus, Poly, ShoupFactor};
use keywright_rlwe::{RlweCiphertext, for_each_item};

use crate::CircuitError;

/// Words of a block: three blocks of a sum and four of the factors of a product make 28 KiB.
const BLOCK: usize = 512;

/// A scaled power: `c X^k` as the power and the integer that encodes `c`.
pub(super) struct Term<'p> {
    power: &'p Ciphertext,
    constant: f64,
    estimate: ErrorEstimate,
}

impl<'p> Term<'p> {
    /// `c` times a power, for a sum at a level and a scale: the constant is encoded at the quotient of the two scales,
    /// with an error of at most half a unit.
    ///
    /// # Errors
    /// [`CkksError::Scale`] for a quotient below 1, at which constants would round to nothing, or for constants of more
    /// than 127 bits.
    pub(super) fn new(
        evaluator: &Evaluator<'_>,
        power: &'p Ciphertext,
        c: f64,
        level: usize,
        scale: f64,
    ) -> Result<Self, CircuitError> {
        let constant_scale = scale / power.scale;
        let constant = (c * constant_scale).round_ties_even();
        if !(constant_scale >= 1.0 && constant.abs() < 127f64.exp2()) {
            let log_q = evaluator.parameters().rlwe().log2_q(level);
            return Err(CkksError::Scale { log_scale: constant_scale.log2(), log_q, level }.into());
        }
        let factor = ErrorEstimate { deviation: 0.5 / constant_scale, magnitude: c.abs(), real: true };
        Ok(Self { power, constant, estimate: power.estimate.times(factor) })
    }

    fn factor(&self, m: &Modulus) -> ShoupFactor {
        let magnitude = m.reduce_u128(self.constant.abs() as u128);
        m.shoup(if self.constant < 0.0 { m.neg(magnitude) } else { magnitude })
    }
}

/// `multiple * sum_i a_i b_i + sum_k t_k` at a level and a scale: of degree 2 if there are products, else of degree 1.
///
/// The products have the scale of the sum. The estimate has the errors of the terms, not those of the products'
/// factors, and the magnitudes of all.
pub(super) fn accumulate(
    evaluator: &Evaluator<'_>,
    products: &[(&Ciphertext, &Ciphertext)],
    multiple: u64,
    terms: &[Term<'_>],
    header: &Ciphertext,
    level: usize,
    scale: f64,
) -> Ciphertext {
    let ring = evaluator.parameters().rlwe().ring();
    let (n, backend) = (ring.n(), ring.backend());
    let parts = if products.is_empty() { 2 } else { 3 };
    let mut polys: Vec<_> = (0..parts).map(|_| Poly::unspecified(n, level + 1)).collect();
    let mut limbs: Vec<_> = polys.iter_mut().map(Poly::limbs_mut).collect();
    let tasks: Vec<Vec<&mut [u64]>> =
        (0..=level).map(|_| limbs.iter_mut().filter_map(Iterator::next).collect()).collect();
    drop(limbs);
    for_each_item(tasks, |i, mut outs: Vec<&mut [u64]>| {
        let m = ring.modulus(i);
        let factors: Vec<_> = terms.iter().map(|term| term.factor(m)).collect();
        for start in (0..n).step_by(BLOCK) {
            let words = start..n.min(start + BLOCK);
            let of = |from, part| block(from, part, i, &words);
            let mut blocks: Vec<&mut [u64]> = outs.iter_mut().map(|out| &mut out[words.clone()]).collect();
            if let [c0, c1, c2] = &mut blocks[..] {
                for (index, &(a, b)) in products.iter().enumerate() {
                    let first = index == 0;
                    product(backend, m, of(a, 0), of(b, 0), c0, first);
                    product(backend, m, of(a, 0), of(b, 1), c1, first);
                    product(backend, m, of(a, 1), of(b, 0), c1, false);
                    product(backend, m, of(a, 1), of(b, 1), c2, first);
                }
                if multiple != 1 {
                    let w = m.shoup(m.reduce(multiple));
                    blocks.iter_mut().for_each(|block| backend.mul_scalar_assign(m, block, w));
                }
            } else {
                blocks.iter_mut().for_each(|block| block.fill(0));
            }
            for (term, &w) in terms.iter().zip(&factors) {
                for (part, block) in blocks.iter_mut().take(2).enumerate() {
                    backend.mul_scalar_add_assign(m, block, of(term.power, part), w);
                }
            }
        }
    });
    let magnitude = |a: &Ciphertext| a.estimate.magnitude;
    let sum: f64 = products.iter().map(|(a, b)| magnitude(a) * magnitude(b)).sum();
    let real = products.iter().all(|(a, b)| a.estimate.real && b.estimate.real);
    let start = ErrorEstimate { deviation: 0.0, magnitude: multiple as f64 * sum, real };
    Ciphertext {
        parameters: evaluator.parameters().clone(),
        rlwe: RlweCiphertext { polys, key: header.key() },
        scale,
        packing: header.packing,
        estimate: terms.iter().fold(start, |sum, term| sum.plus(term.estimate)),
    }
}

/// Some words of limb `i` of one part of a ciphertext.
fn block<'c>(from: &'c Ciphertext, part: usize, i: usize, words: &Range<usize>) -> &'c [u64] {
    &from.rlwe.polys[part].limb(i)[words.clone()]
}

/// `out = a b`, or `out += a b` unless it is the first product of a sum.
fn product(backend: &dyn Backend, m: &Modulus, a: &[u64], b: &[u64], out: &mut [u64], first: bool) {
    if first {
        backend.mul(m, a, b, out);
    } else {
        backend.mul_add_assign(m, out, a, b);
    }
}
