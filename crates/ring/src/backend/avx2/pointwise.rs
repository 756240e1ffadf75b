//! Pointwise kernels: sums and differences of any width, products modulo narrow primes.

use core::arch::x86_64::*;

use super::residues::{Field, Words, load_words};
use crate::backend::Quotient;
use crate::{Automorphism, Modulus, ShoupFactor};

fn fours(words: &[u64]) -> &[Words] {
    words.as_chunks::<4>().0
}

fn fours_mut(words: &mut [u64]) -> &mut [Words] {
    words.as_chunks_mut::<4>().0
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn load_integers(words: &Words) -> __m256i {
    // SAFETY: the array has 32 bytes; the load needs no alignment.
    unsafe { _mm256_loadu_si256(words.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn store_integers(words: &mut Words, x: __m256i) {
    // SAFETY: the array has 32 bytes; the store needs no alignment.
    unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), x) }
}

/// Adds `q` to negative lanes; residues are below `2^61`, so signs are right.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn wrap(x: __m256i, q: __m256i) -> __m256i {
    _mm256_add_epi64(x, _mm256_and_si256(_mm256_cmpgt_epi64(_mm256_setzero_si256(), x), q))
}

#[target_feature(enable = "avx2,fma")]
pub(super) fn add_assign(m: &Modulus, a: &mut [u64], b: &[u64]) {
    let q = _mm256_set1_epi64x(m.value().cast_signed());
    for (x, y) in fours_mut(a).iter_mut().zip(fours(b)) {
        let sum = _mm256_add_epi64(load_integers(x), load_integers(y));
        store_integers(x, wrap(_mm256_sub_epi64(sum, q), q));
    }
}

#[target_feature(enable = "avx2,fma")]
pub(super) fn sub_assign(m: &Modulus, a: &mut [u64], b: &[u64]) {
    let q = _mm256_set1_epi64x(m.value().cast_signed());
    for (x, y) in fours_mut(a).iter_mut().zip(fours(b)) {
        store_integers(x, wrap(_mm256_sub_epi64(load_integers(x), load_integers(y)), q));
    }
}

#[target_feature(enable = "avx2,fma")]
pub(super) fn neg_assign(m: &Modulus, a: &mut [u64]) {
    let q = _mm256_set1_epi64x(m.value().cast_signed());
    for x in fours_mut(a) {
        // -x is 0 or negative.
        store_integers(x, wrap(_mm256_sub_epi64(_mm256_setzero_si256(), load_integers(x)), q));
    }
}

#[target_feature(enable = "avx2,fma")]
pub(super) fn lift_small(m: &Modulus, values: &[i64], out: &mut [u64]) {
    let q = _mm256_set1_epi64x(m.value().cast_signed());
    for (value, place) in values.as_chunks::<4>().0.iter().zip(fours_mut(out)) {
        // SAFETY: the array has 32 bytes; the load needs no alignment.
        store_integers(place, wrap(unsafe { _mm256_loadu_si256(value.as_ptr().cast()) }, q));
    }
}

#[target_feature(enable = "avx2,fma")]
pub(super) fn mul(m: &Modulus, a: &[u64], b: &[u64], out: &mut [u64]) {
    let f = Field::new(m);
    for ((x, y), place) in fours(a).iter().zip(fours(b)).zip(fours_mut(out)) {
        f.store_canonical(place, f.mul_variable(load_words(x), load_words(y)));
    }
}

#[target_feature(enable = "avx2,fma")]
pub(super) fn mul_add_assign(m: &Modulus, acc: &mut [u64], a: &[u64], b: &[u64]) {
    let f = Field::new(m);
    for ((x, y), place) in fours(a).iter().zip(fours(b)).zip(fours_mut(acc)) {
        // In (-q, 2q) before the reduction.
        let sum = _mm256_add_pd(f.mul_variable(load_words(x), load_words(y)), load_words(place));
        f.store_canonical(place, f.reduce(sum));
    }
}

#[target_feature(enable = "avx2,fma")]
pub(super) fn mul_scalar_assign(m: &Modulus, a: &mut [u64], w: ShoupFactor) {
    let (f, w) = (Field::new(m), Field::factor(m, w.value));
    for x in fours_mut(a) {
        let product = f.mul(load_words(x), w);
        f.store_canonical(x, product);
    }
}

#[target_feature(enable = "avx2,fma")]
pub(super) fn mul_scalar_add_assign(m: &Modulus, acc: &mut [u64], a: &[u64], w: ShoupFactor) {
    let (f, w) = (Field::new(m), Field::factor(m, w.value));
    for (x, place) in fours(a).iter().zip(fours_mut(acc)) {
        let sum = _mm256_add_pd(f.mul(load_words(x), w), load_words(place));
        f.store_canonical(place, f.reduce(sum));
    }
}

#[target_feature(enable = "avx2,fma")]
pub(super) fn quotient(m: &Modulus, quotient: &Quotient<'_>, out: &mut [u64]) {
    let Quotient { dividend, remainder, factor, addend, addend_factor } = *quotient;
    let f = Field::new(m);
    let w = Field::factor(m, factor.value);
    let addend_w = addend_factor.map(|w| Field::factor(m, w.value));
    let (dividend, remainder, addend) = (fours(dividend), fours(remainder), addend.map(fours));
    for (i, place) in fours_mut(out).iter_mut().enumerate() {
        let difference = _mm256_sub_pd(load_words(&dividend[i]), load_words(&remainder[i]));
        let mut value = f.mul(difference, w);
        if let Some(addend) = addend {
            let addend = load_words(&addend[i]);
            let addend = addend_w.map_or(addend, |w| f.mul(addend, w));
            value = f.reduce(_mm256_add_pd(value, addend));
        }
        f.store_canonical(place, value);
    }
}

/// [`permute`](crate::backend::portable::kernels::permute): both halves of eight words are permuted, and each word is
/// taken from one of them.
#[target_feature(enable = "avx2,fma")]
pub(super) fn permute(automorphism: &Automorphism, input: &[u64], out: &mut [u64]) {
    let shifts = _mm256_setr_epi32(0, 0, 3, 3, 6, 6, 9, 9);
    let parity = _mm256_setr_epi32(0, 1, 0, 1, 0, 1, 0, 1);
    let (eights, tables) = (input.as_chunks::<8>().0, automorphism.groups.iter().zip(&automorphism.lanes));
    for (places, (&group, &lanes)) in out.as_chunks_mut::<8>().0.iter_mut().zip(tables) {
        let source = fours(&eights[group as usize]);
        let (low, high) = (load_integers(&source[0]), load_integers(&source[1]));
        for (half, place) in fours_mut(places).iter_mut().enumerate() {
            // The number of a word in three bits, above them those of others.
            let word = _mm256_srlv_epi32(_mm256_set1_epi32((lanes >> (12 * half)).cast_signed()), shifts);
            let index = _mm256_or_si256(_mm256_slli_epi32::<1>(word), parity);
            let from = [low, high].map(|half| _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(half, index)));
            let above = _mm256_castsi256_ps(_mm256_slli_epi32::<29>(word));
            store_integers(place, _mm256_castps_si256(_mm256_blendv_ps(from[0], from[1], above)));
        }
    }
}
