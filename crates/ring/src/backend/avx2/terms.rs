//! Quotients of rows modulo narrow primes, see [`crate::conversion`].
//!
//! A row's share `floor(y f / 2^52)` is exact in 32-bit products: with `y = y1 2^32 + y0` and `f < 2^32` it is
//! `floor((y1 f + floor(y0 f / 2^32)) / 2^20)`, where `y1 < 2^18`, so the sum stays below `2^51`.

use core::arch::x86_64::*;

use super::residues::{load, store};
use crate::conversion::{Decomposer, FRACTION_BITS};

/// Whether [`quotients`] are all the derived terms: narrow primes above `2^38`, whose fractions fit 32 bits.
pub(super) fn applies(decomposer: &Decomposer) -> bool {
    decomposer.sources().iter().all(|s| s.modulus.is_narrow() && s.fraction >> 32 == 0)
}

/// The quotients of `rows`; only where [`applies`].
#[target_feature(enable = "avx2,fma")]
pub(super) fn quotients(decomposer: &Decomposer, rows: &[&[u64]], out: &mut [u64]) {
    debug_assert!(applies(decomposer));
    for (i, place) in out.as_chunks_mut::<4>().0.iter_mut().enumerate() {
        let mut sum = _mm256_set1_epi64x(1 << (FRACTION_BITS - 1));
        for (source, row) in decomposer.sources().iter().zip(rows) {
            let fraction = _mm256_set1_epi64x(source.fraction.cast_signed());
            let y = _mm256_castpd_si256(load(&row.as_chunks::<4>().0[i]));
            let low = _mm256_srli_epi64::<32>(_mm256_mul_epu32(y, fraction));
            let high = _mm256_mul_epu32(_mm256_srli_epi64::<32>(y), fraction);
            sum = _mm256_add_epi64(sum, _mm256_srli_epi64::<20>(_mm256_add_epi64(low, high)));
        }
        store(place, _mm256_castsi256_pd(_mm256_srli_epi64::<{ FRACTION_BITS as i32 }>(sum)));
    }
}
