//! Products modulo narrow primes.

use core::arch::aarch64::*;

use super::residues::{Factor, Field, Words, load_integers, load_words, store_integers};
use crate::backend::Quotient;
use crate::{Modulus, ShoupFactor};

fn twos(words: &[u64]) -> &[Words] {
    words.as_chunks::<2>().0
}

fn twos_mut(words: &mut [u64]) -> &mut [Words] {
    words.as_chunks_mut::<2>().0
}

/// Sum of canonical words.
#[inline]
#[target_feature(enable = "neon")]
fn add(x: uint64x2_t, y: uint64x2_t, q: uint64x2_t) -> uint64x2_t {
    let sum = vaddq_u64(x, y);
    vsubq_u64(sum, vandq_u64(vcgeq_u64(sum, q), q))
}

#[target_feature(enable = "neon")]
pub(super) fn mul(m: &Modulus, a: &[u64], b: &[u64], out: &mut [u64]) {
    let f = Field::new(m);
    for ((x, y), place) in twos(a).iter().zip(twos(b)).zip(twos_mut(out)) {
        store_integers(place, f.make_positive(f.mul_variable(load_words(x), load_words(y))));
    }
}

#[target_feature(enable = "neon")]
pub(super) fn mul_add_assign(m: &Modulus, acc: &mut [u64], a: &[u64], b: &[u64]) {
    let (f, q) = (Field::new(m), vdupq_n_u64(m.value()));
    for ((x, y), place) in twos(a).iter().zip(twos(b)).zip(twos_mut(acc)) {
        let product = f.make_positive(f.mul_variable(load_words(x), load_words(y)));
        store_integers(place, add(product, load_integers(place), q));
    }
}

#[target_feature(enable = "neon")]
pub(super) fn mul_scalar_assign(m: &Modulus, a: &mut [u64], w: ShoupFactor) {
    let (f, w) = (Field::new(m), Factor::new(m, w.value));
    let half = f.half_unit();
    for x in twos_mut(a) {
        let product = f.canonical_product(load_words(x), w, half);
        store_integers(x, product);
    }
}

#[target_feature(enable = "neon")]
pub(super) fn mul_scalar_add_assign(m: &Modulus, acc: &mut [u64], a: &[u64], w: ShoupFactor) {
    let (f, w, q) = (Field::new(m), Factor::new(m, w.value), vdupq_n_u64(m.value()));
    let half = f.half_unit();
    for (x, place) in twos(a).iter().zip(twos_mut(acc)) {
        let product = f.canonical_product(load_words(x), w, half);
        store_integers(place, add(product, load_integers(place), q));
    }
}

#[target_feature(enable = "neon")]
pub(super) fn quotient(m: &Modulus, quotient: &Quotient<'_>, out: &mut [u64]) {
    let Quotient { dividend, remainder, factor, addend, addend_factor } = *quotient;
    let (f, q) = (Field::new(m), vdupq_n_u64(m.value()));
    let (w, half) = (Factor::new(m, factor.value), f.half_unit());
    let (dividend, remainder) = (twos(dividend).iter(), twos(remainder));
    // In (-q, q).
    let difference = |x: &Words, r: &Words| {
        vcvtq_f64_s64(vreinterpretq_s64_u64(vsubq_u64(load_integers(x), load_integers(r))))
    };
    let places = dividend.zip(remainder).zip(twos_mut(out));
    match (addend, addend_factor) {
        (None, _) => {
            for ((x, r), place) in places {
                store_integers(place, f.canonical_product(difference(x, r), w, half));
            }
        }
        (Some(addend), None) => {
            for (((x, r), place), y) in places.zip(twos(addend)) {
                let value = f.canonical_product(difference(x, r), w, half);
                store_integers(place, add(value, load_integers(y), q));
            }
        }
        (Some(addend), Some(addend_w)) => {
            let addend_w = Factor::new(m, addend_w.value);
            for (((x, r), place), y) in places.zip(twos(addend)) {
                let value = f.canonical_product(difference(x, r), w, half);
                store_integers(place, add(value, f.canonical_product(load_words(y), addend_w, half), q));
            }
        }
    }
}
