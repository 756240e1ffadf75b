//! Quotients of rows modulo narrow primes, see [`crate::conversion`]. They use scalar registers, which have the high
//! product of words; vector registers have none.

use core::arch::aarch64::*;

use super::residues::{load_integers, store_integers};
use crate::conversion::{Decomposer, FRACTION_BITS, Source};

/// Words summed at once.
const BLOCK: usize = 8;

/// Whether [`quotients`] are all the derived terms: those of narrow primes.
pub(super) fn applies(decomposer: &Decomposer) -> bool {
    decomposer.sources().iter().all(|s| s.modulus.is_narrow())
}

/// The quotients of `rows`; only where [`applies`].
pub(super) fn quotients(decomposer: &Decomposer, rows: &[&[u64]], out: &mut [u64]) {
    debug_assert!(applies(decomposer));
    if let ([source], [row]) = (decomposer.sources(), rows) {
        // SAFETY: a caller has a reference to a `Neon`, which proves the features.
        return unsafe { single(source, row, out) };
    }
    let n = out.len() / BLOCK;
    for (i, places) in out.as_chunks_mut::<BLOCK>().0.iter_mut().enumerate() {
        let mut sums = [1 << (FRACTION_BITS - 1); BLOCK];
        for (source, row) in decomposer.sources().iter().zip(rows) {
            // Below 2^52: `floor(y f / 2^52)` is the high word of the product with `2^12 f`.
            debug_assert!(source.fraction >> 52 == 0);
            let fraction = u128::from(source.fraction << 12);
            let words = &row.as_chunks::<BLOCK>().0[..n][i];
            for (sum, &y) in sums.iter_mut().zip(words) {
                *sum += ((u128::from(y) * fraction) >> 64) as u64;
            }
        }
        *places = sums.map(|sum| sum >> FRACTION_BITS);
    }
}

/// The quotients of a row alone. `y < q` and `fraction <= 2^(52 + F) / q`, so `floor(y fraction / 2^52) < 2^F` and the
/// quotient is 0 or 1. It is 1 where `y fraction >= 2^(52 + F - 1)`.
#[target_feature(enable = "neon")]
fn single(source: &Source, row: &[u64], out: &mut [u64]) {
    let least = vdupq_n_u64((1u128 << (52 + FRACTION_BITS - 1)).div_ceil(u128::from(source.fraction)) as u64);
    debug_assert!(row.iter().all(|&y| y < source.modulus.value()));
    for (y, place) in row.as_chunks::<2>().0.iter().zip(out.as_chunks_mut::<2>().0) {
        store_integers(place, vshrq_n_u64::<63>(vcgeq_u64(load_integers(y), least)));
    }
}
