//! Diagonals of linear transforms: their products, and those that are real, of which halves are kept. A polynomial `f`
//! of halves has `f(X) = f(1/X)`.

use alloc::vec::Vec;
use core::ops::Range;

use super::{KeySwitching, UniformRow};
use crate::{Modulus, ShoupFactor};

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

/// Kernels of linear transforms. Slices are those of [`super::Kernels`], unless said otherwise.
pub trait Diagonals: KeySwitching {
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
        join(f, g, 0..f.len(), low, high);
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

/// Words `words` of both halves of [`Diagonals::join_halves`].
pub(super) fn join(f: &[i64], g: Option<&[i64]>, words: Range<usize>, low: &mut [i64], high: &mut [i64]) {
    for i in words {
        let mirrored = |half: &[i64]| if i == 0 { 0 } else { half[half.len() - i] };
        low[i] = f[i] + g.map_or(0, mirrored);
        high[i] = g.map_or(0, |g| g[i]) - mirrored(f);
    }
}
