//! Terms that are derived from rows of scaled residues, see [`crate::conversion`].
//!
//! A row's share `floor(y f / 2^52)` is exact in 32-bit products of a factor below `2^32` with the halves of the other:
//! with `y = y1 2^32 + y0` and `f < 2^32` it is `floor((y1 f + floor(y0 f / 2^32)) / 2^20)`.
//!
//! * A narrow prime: `y1 < 2^18`, so the sum stays below `2^51`.
//! * A wide prime: the high part of a residue is below `2^31`, its fraction at most `2^50`, so the sum stays below
//!   `2^50`. The low part is below `2^30`, its fraction at most `2^20`: its share is 0.

use core::arch::x86_64::*;

use super::residues::{load, store};
use crate::conversion::{Decomposer, FRACTION_BITS, SPLIT_BITS};

/// Whether [`derive`] is exact: narrow primes are above `2^38`, so that their fractions fit 32 bits.
pub(super) fn applies(decomposer: &Decomposer) -> bool {
    decomposer.sources().iter().all(|s| !s.modulus.is_narrow() || s.fraction >> 32 == 0)
}

/// `floor(x f / 2^52)` for `f < 2^32`.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn share(x: __m256i, f: __m256i) -> __m256i {
    let low = _mm256_srli_epi64::<32>(_mm256_mul_epu32(x, f));
    let high = _mm256_mul_epu32(_mm256_srli_epi64::<32>(x), f);
    _mm256_srli_epi64::<20>(_mm256_add_epi64(low, high))
}

/// The terms of `rows`; only where [`applies`].
#[target_feature(enable = "avx2,fma")]
pub(super) fn derive(decomposer: &Decomposer, rows: &[&[u64]], out: &mut [u64]) {
    debug_assert!(applies(decomposer));
    let n = out.len() / decomposer.derived_count();
    let (split, quotients) = out.split_at_mut(out.len() - n);
    let split = split.as_chunks_mut::<4>().0;
    for (i, place) in quotients.as_chunks_mut::<4>().0.iter_mut().enumerate() {
        let mut sum = _mm256_set1_epi64x(1 << (FRACTION_BITS - 1));
        let mut at = i;
        let mut put = |x: __m256i| {
            store(&mut split[at], _mm256_castsi256_pd(x));
            at += n / 4;
        };
        for (source, row) in decomposer.sources().iter().zip(rows) {
            let y = _mm256_castpd_si256(load(&row.as_chunks().0[i]));
            let fractions =
                [source.fraction, source.fraction_high].map(|f| _mm256_set1_epi64x(f.cast_signed()));
            sum = _mm256_add_epi64(
                sum,
                if source.modulus.is_narrow() {
                    share(y, fractions[0])
                } else {
                    let high = _mm256_srli_epi64::<{ SPLIT_BITS as i32 }>(y);
                    put(_mm256_and_si256(y, _mm256_set1_epi64x((1 << SPLIT_BITS) - 1)));
                    put(high);
                    share(fractions[1], high)
                },
            );
        }
        store(place, _mm256_castsi256_pd(_mm256_srli_epi64::<{ FRACTION_BITS as i32 }>(sum)));
    }
}
