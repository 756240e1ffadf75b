//! Polynomials `f` with `f(X) = f(1/X)`, of which half of the coefficients are kept: in plain Rust.

use core::ops::Range;

/// Words `words` of both halves of [`super::Kernels::join_halves`].
pub(super) fn join(f: &[i64], g: Option<&[i64]>, words: Range<usize>, low: &mut [i64], high: &mut [i64]) {
    for i in words {
        let mirrored = |half: &[i64]| if i == 0 { 0 } else { half[half.len() - i] };
        low[i] = f[i] + g.map_or(0, mirrored);
        high[i] = g.map_or(0, |g| g[i]) - mirrored(f);
    }
}
