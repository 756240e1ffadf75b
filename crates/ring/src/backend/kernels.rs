//! Arithmetic of polynomials modulo one prime.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::halves;
use crate::conversion::{Column, Decomposer, ScaledLayout, ScaledPart};
use crate::{Automorphism, Modulus, Seed, ShoupFactor, StreamId};

/// Negacyclic transforms modulo one prime.
pub trait NttPlan: Send + Sync {
    /// Transforms coefficients to evaluations, in place; canonical in, canonical out. Prefetches `upcoming`, of any
    /// length, where the CPU has such an instruction.
    fn forward(&self, limb: &mut [u64], upcoming: &[u64]);
    /// The same in the subring of polynomials in `Y = X^(N/M)`, for the `M` coefficients of a limb of `M` words, where
    /// `M` is a power of two of at least `2^`[`crate::MIN_LOG_N`]. Entry `i` is the value at
    /// `Y = (psi^(N/M))^(2 brv(i) + 1)`. It equals each entry `i N/M + k`, `k < N/M`, of the transform in the ring.
    fn forward_subring(&self, limb: &mut [u64]);
    /// The evaluations of integers smaller than the modulus in absolute value, without a branch on them. The result is
    /// that of [`Kernels::lift_small`] and [`Self::forward`] or, for as many integers as a subring's degree, of
    /// [`Self::forward_subring`].
    fn forward_small(&self, values: &[i64], limb: &mut [u64], upcoming: &[u64]);
    /// Transforms evaluations to coefficients, in place; canonical in, canonical out.
    fn inverse(&self, limb: &mut [u64]);
    /// Transforms evaluations to scaled residues: coefficients times `factor`, canonical, in the back end's order
    /// ([`Kernels::scaled_layout`]). Leaves unspecified words in `limb`.
    fn inverse_scaled(&self, limb: &mut [u64], factor: ShoupFactor, out: &mut [u64]);
    /// Converts one part of a polynomial to this prime, as the inner product of its terms with the column, and begins
    /// the transform of the result. `out` is the whole limb.
    fn convert_part(&self, column: &Column, part: ScaledPart<'_>, out: &mut [u64]);
    /// Number of equal blocks in which [`Self::finish_block`] ends the transform of a limb.
    fn blocks(&self) -> usize;
    /// Ends the transform of block `block` of a limb whose parts are all converted: canonical evaluations. Prefetches
    /// `upcoming`, as [`Self::forward`] does.
    fn finish_block(&self, block: usize, words: &mut [u64], upcoming: [&[u64]; 2]);
}

/// The layout of back ends that do not fuse conversion with the first pass: the words of a limb in their order. Eight
/// rows of a part are 128 KiB.
pub(super) const fn plain_layout(n: usize) -> ScaledLayout {
    ScaledLayout { runs: 1, words: if n < 2048 { n } else { 2048 } }
}

/// The products of one factor with the same words of four rows.
#[derive(Debug, Clone, Copy)]
pub struct Term<'a> {
    /// The factor, each word for as many words of the rows.
    pub factor: &'a [u64],
    /// As many words that are read next, and are prefetched where the CPU has such an instruction.
    pub upcoming: &'a [u64],
    /// The rows.
    pub rows: [&'a [u64]; 4],
}

/// One row of the uniform half of a key, for one digit and one prime.
#[derive(Debug, Clone, Copy)]
pub enum UniformRow<'a> {
    /// Stored residues.
    Stored(&'a [u64]),
    /// Residues expanded at use, from this residue of the stream on, a multiple of [`crate::expander::CHUNK_WORDS`].
    Seeded(&'a Seed, StreamId, usize),
}

/// The last step of a division: `(dividend - remainder) * factor + addend * addend_factor`.
#[derive(Debug, Clone, Copy)]
pub struct Quotient<'a> {
    /// The dividend.
    pub dividend: &'a [u64],
    /// Its remainder.
    pub remainder: &'a [u64],
    /// The inverse of the divisor.
    pub factor: ShoupFactor,
    /// The addend of the quotient.
    pub addend: Option<&'a [u64]>,
    /// The factor of the addend; `None` for 1.
    pub addend_factor: Option<ShoupFactor>,
}

/// Kernels on limbs. Slices of one call have equal length, a multiple of 128, unless said otherwise.
pub trait Kernels: Send + Sync {
    /// Precomputes the transforms modulo a prime with the primitive `2N`-th root `psi`.
    fn plan_ntt(&self, log_n: u32, modulus: &Modulus, psi: u64) -> Box<dyn NttPlan>;
    /// `a += b`.
    fn add_assign(&self, m: &Modulus, a: &mut [u64], b: &[u64]);
    /// `a -= b`.
    fn sub_assign(&self, m: &Modulus, a: &mut [u64], b: &[u64]);
    /// `a = -a`.
    fn neg_assign(&self, m: &Modulus, a: &mut [u64]);
    /// `out = a * b`.
    fn mul(&self, m: &Modulus, a: &[u64], b: &[u64], out: &mut [u64]);
    /// `acc += a * b`.
    fn mul_add_assign(&self, m: &Modulus, acc: &mut [u64], a: &[u64], b: &[u64]);
    /// `a = a * w`.
    fn mul_scalar_assign(&self, m: &Modulus, a: &mut [u64], w: ShoupFactor);
    /// `acc += a * w`.
    fn mul_scalar_add_assign(&self, m: &Modulus, acc: &mut [u64], a: &[u64], w: ShoupFactor);
    /// The last step of a division, see [`Quotient`].
    fn quotient(&self, m: &Modulus, quotient: &Quotient<'_>, out: &mut [u64]);
    /// Residues of integers smaller than the modulus in absolute value, without a branch on them.
    fn lift_small(&self, m: &Modulus, values: &[i64], out: &mut [u64]);
    /// `out[i] = input[source(i)]`: an automorphism in evaluation form.
    fn permute(&self, automorphism: &Automorphism, input: &[u64], out: &mut [u64]);
    /// The order in which this back end lays the words of scaled residues of polynomials of degree `n`.
    fn scaled_layout(&self, n: usize) -> ScaledLayout;
    /// Derives the terms that are not scaled residues, for equal words of every source: the low and the high part of
    /// each wide prime, then the quotient, one after another in `out`.
    fn derive_terms(&self, decomposer: &Decomposer, residues: &[&[u64]], out: &mut [u64]);
    /// `out_b = sum_j digits[j] * b[j]` and `out_a = sum_j digits[j] * a[j]`, reduced once per sum; at least one digit.
    fn inner_product(
        &self,
        m: &Modulus,
        digits: &[&[u64]],
        b: &[&[u64]],
        a: &[UniformRow<'_>],
        out_b: &mut [u64],
        out_a: &mut [u64],
    );
    /// `out[k] = sum_j factor_j * rows_j[k]` for terms `j`, added to what `out` holds if `add`. Every factor is read
    /// once for four rows. `repeat` words of the rows, 1, 2, 4 or 8, have the same word of a factor.
    fn inner_products(
        &self,
        m: &Modulus,
        terms: &[Term<'_>],
        repeat: usize,
        add: bool,
        [out_0, out_1, out_2, out_3]: [&mut [u64]; 4],
    ) {
        let repeated = |term: &Term<'_>| -> Vec<u64> {
            term.factor.iter().flat_map(|&word| core::iter::repeat_n(word, repeat)).collect()
        };
        let expanded: Vec<Vec<u64>> =
            if repeat > 1 { terms.iter().map(repeated).collect() } else { Vec::new() };
        let factors: Vec<&[u64]> = match repeat {
            1 => terms.iter().map(|term| term.factor).collect(),
            _ => expanded.iter().map(Vec::as_slice).collect(),
        };
        for (first, outs) in [(0, [out_0, out_1]), (2, [out_2, out_3])] {
            let [out_b, out_a] = outs;
            let before = add.then(|| (out_b.to_vec(), out_a.to_vec()));
            let b: Vec<&[u64]> = terms.iter().map(|term| term.rows[first]).collect();
            let a: Vec<UniformRow<'_>> =
                terms.iter().map(|term| UniformRow::Stored(term.rows[first + 1])).collect();
            self.inner_product(m, &factors, &b, &a, out_b, out_a);
            if let Some((before_b, before_a)) = before {
                self.add_assign(m, out_b, &before_b);
                self.add_assign(m, out_a, &before_a);
            }
        }
    }
    /// The coefficients of `f + X^(M/2) g`, from the first `M/2` of those of `f` and `g`, whose coefficient `M/2` is 0
    /// and whose coefficient `M - i` is minus coefficient `i`. `M` is a power of two.
    fn join_halves(&self, f: &[i64], g: Option<&[i64]>, out: &mut [i64]) {
        let (low, high) = out.split_at_mut(f.len());
        halves::join(f, g, 0..f.len(), low, high);
    }
    /// In place of values `s_i`, `i < M`, in the first half `(s_i + s_(M-1-i)) factors[0]`, in the second half
    /// `(s_(M-1-i) - s_i) factors[1]`, for `i < M/2`. `M` is a multiple of 32.
    fn separate_halves(&self, m: &Modulus, factors: [ShoupFactor; 2], values: &mut [u64]) {
        // Words that are separated at a time.
        const BLOCK: usize = 512;
        let (low, high) = values.split_at_mut(values.len() / 2);
        high.reverse();
        let mut kept = [0; BLOCK];
        for (low, high) in low.chunks_mut(BLOCK).zip(high.chunks_mut(BLOCK)) {
            let kept = &mut kept[..low.len()];
            kept.copy_from_slice(low);
            self.add_assign(m, low, high);
            self.mul_scalar_assign(m, low, factors[0]);
            self.sub_assign(m, high, kept);
            self.mul_scalar_assign(m, high, factors[1]);
        }
    }
}
