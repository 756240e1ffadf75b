//! Pointwise kernels: sums and differences of any width, products modulo narrow primes.

use core::arch::x86_64::*;

use super::residues::{Field, Words, load_words, store_words};
use crate::backend::Quotient;
use crate::{Modulus, ShoupFactor};

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
        store_words(place, f.make_positive(f.mul_variable(load_words(x), load_words(y))));
    }
}

#[target_feature(enable = "avx2,fma")]
pub(super) fn mul_add_assign(m: &Modulus, acc: &mut [u64], a: &[u64], b: &[u64]) {
    let f = Field::new(m);
    for ((x, y), place) in fours(a).iter().zip(fours(b)).zip(fours_mut(acc)) {
        // In (-q, 2q) before the reduction.
        let sum = _mm256_add_pd(f.mul_variable(load_words(x), load_words(y)), load_words(place));
        store_words(place, f.make_positive(f.reduce(sum)));
    }
}

#[target_feature(enable = "avx2,fma")]
pub(super) fn mul_scalar_assign(m: &Modulus, a: &mut [u64], w: ShoupFactor) {
    let (f, w) = (Field::new(m), Field::factor(m, w.value));
    for x in fours_mut(a) {
        let product = f.mul(load_words(x), w);
        store_words(x, f.make_positive(product));
    }
}

#[target_feature(enable = "avx2,fma")]
pub(super) fn mul_scalar_add_assign(m: &Modulus, acc: &mut [u64], a: &[u64], w: ShoupFactor) {
    let (f, w) = (Field::new(m), Field::factor(m, w.value));
    for (x, place) in fours(a).iter().zip(fours_mut(acc)) {
        let sum = _mm256_add_pd(f.mul(load_words(x), w), load_words(place));
        store_words(place, f.make_positive(f.reduce(sum)));
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
        store_words(place, f.make_positive(value));
    }
}
