//! Polynomials `f` with `f(X) = f(1/X)`, of which half of the coefficients are kept: in plain Rust.

use core::ops::Range;

use super::Kernels;
use crate::{Modulus, ShoupFactor};

/// Words `words` of both halves of [`Kernels::join_halves`].
pub(super) fn join(f: &[i64], g: Option<&[i64]>, words: Range<usize>, low: &mut [i64], high: &mut [i64]) {
    for i in words {
        let mirrored = |half: &[i64]| if i == 0 { 0 } else { half[half.len() - i] };
        low[i] = f[i] + g.map_or(0, mirrored);
        high[i] = g.map_or(0, |g| g[i]) - mirrored(f);
    }
}

/// Words that are separated at a time.
const BLOCK: usize = 512;

/// [`Kernels::separate_halves`] by other kernels of a back end.
pub(super) fn separate<K: Kernels + ?Sized>(
    backend: &K,
    m: &Modulus,
    factors: [ShoupFactor; 2],
    values: &mut [u64],
) {
    let (low, high) = values.split_at_mut(values.len() / 2);
    high.reverse();
    let mut kept = [0; BLOCK];
    for (low, high) in low.chunks_mut(BLOCK).zip(high.chunks_mut(BLOCK)) {
        let kept = &mut kept[..low.len()];
        kept.copy_from_slice(low);
        backend.add_assign(m, low, high);
        backend.mul_scalar_assign(m, low, factors[0]);
        backend.sub_assign(m, high, kept);
        backend.mul_scalar_assign(m, high, factors[1]);
    }
}
