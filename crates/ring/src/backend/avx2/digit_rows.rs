//! Rows of residues modulo narrow primes, see [`crate::conversion`].
//!
//! The quotient's term `floor(y f / 2^52)` is exact in 32-bit products: with `y = y1 2^32 + y0` and `f < 2^32` it is
//! `floor((y1 f + floor(y0 f / 2^32)) / 2^20)`, where `y1 < 2^18`, so the sum stays below `2^51`.

use core::arch::x86_64::*;

use super::residues::{Field, load, load_words, store, to_words};
use crate::conversion::{Decomposer, FRACTION_BITS};

/// Words of a part.
const PART: usize = 1024;

/// Whether [`digit_rows`] applies: narrow primes above `2^38`, whose fractions fit 32 bits.
pub(super) fn applies(decomposer: &Decomposer) -> bool {
    decomposer.sources().iter().all(|s| s.modulus.is_narrow() && s.fraction >> 32 == 0)
}

/// Rows of `limbs`; only where [`applies`].
#[target_feature(enable = "avx2,fma")]
pub(super) fn digit_rows(decomposer: &Decomposer, limbs: &[&[u64]], rows: &mut [u64]) {
    debug_assert!(applies(decomposer));
    let n = limbs.first().map_or(0, |limb| limb.len());
    let half = _mm256_set1_epi64x(1 << (FRACTION_BITS - 1));
    let (rows, quotients) = rows.split_at_mut(limbs.len() * n);
    // Part by part, so that the quotients stay in the first-level cache.
    for (number, quotients) in quotients.chunks_mut(PART).enumerate() {
        let quotients = quotients.as_chunks_mut::<4>().0;
        let range = number * PART..number * PART + 4 * quotients.len();
        let last = limbs.len() - 1;
        let terms = decomposer.sources().iter().zip(limbs).zip(rows.chunks_exact_mut(n));
        for (index, ((source, limb), row)) in terms.enumerate() {
            let f = Field::new(&source.modulus);
            let factor = Field::factor(&source.modulus, source.factor.value);
            let fraction = _mm256_set1_epi64x(source.fraction.cast_signed());
            let words = limb[range.clone()].as_chunks::<4>().0.iter();
            let places = row[range.clone()].as_chunks_mut::<4>().0.iter_mut();
            for ((word, place), quotient) in words.zip(places).zip(&mut *quotients) {
                let y = f.make_positive(f.mul(load_words(word), factor));
                let y = to_words(y);
                store(place, y);
                let y = _mm256_castpd_si256(y);
                let low = _mm256_srli_epi64::<32>(_mm256_mul_epu32(y, fraction));
                let high = _mm256_mul_epu32(_mm256_srli_epi64::<32>(y), fraction);
                let term = _mm256_srli_epi64::<20>(_mm256_add_epi64(low, high));
                let sum = if index == 0 { half } else { _mm256_castpd_si256(load(quotient)) };
                let mut sum = _mm256_add_epi64(sum, term);
                if index == last {
                    sum = _mm256_srli_epi64::<{ FRACTION_BITS as i32 }>(sum);
                }
                store(quotient, _mm256_castsi256_pd(sum));
            }
        }
    }
}
