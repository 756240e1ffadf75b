//! The four layers of distances 8, 4, 2 and 1, sixteen words at a time. Registers hold neighbours, except in the layer
//! of distance 1, whose registers hold words of even or of odd number. Interleaving loads and stores, and
//! transpositions, change from one order to the other.

use core::arch::aarch64::*;

use super::super::residues::FactorPair;
use super::passes::{butterfly, butterfly_inverse};
use super::{Factor, Field, Quotient, SIXTEEN};

/// The factors of sixteen words whose layer of distance 8 has factor `i`.
struct Factors<'t> {
    eight: &'t Quotient,
    four: &'t [Quotient; 2],
    two: &'t [Quotient; 4],
    one: &'t [[Quotient; 2]; 4],
}

/// The factors of `count` times sixteen words, of which the first sixteen have factor `first`.
fn factors(t: &[Quotient], first: usize, count: usize) -> impl Iterator<Item = Factors<'_>> {
    let level = |depth: u32| &t[first << depth..(first + count) << depth];
    let (four, two) = (level(1).as_chunks::<2>().0, level(2).as_chunks::<4>().0);
    let one = level(3).as_chunks::<2>().0.as_chunks::<4>().0;
    let pairs = level(0).iter().zip(four).zip(two.iter().zip(one));
    pairs.map(|((eight, four), (two, one))| Factors { eight, four, two, one })
}

/// The last layers and the reduction to canonical words, see [`super`].
#[target_feature(enable = "neon")]
pub(super) fn last_layers_forward<const LAZY: bool>(
    f: Field,
    center: f64,
    t: &[Quotient],
    first: usize,
    x: &mut [u64],
) {
    // Replaces the values with C added by those without, plus 1/2: see `Field::canonical`.
    let shift = vdupq_n_f64(if LAZY { 0.5 - center } else { 0.5 });
    let count = x.len() / SIXTEEN;
    for (words, w) in x.as_chunks_mut::<SIXTEEN>().0.iter_mut().zip(factors(t, first, count)) {
        let mut v = [shift; 8];
        for k in 0..8 {
            // SAFETY: the array has eight times 16 bytes.
            v[k] = unsafe { vld1q_f64(words.as_ptr().cast::<f64>().add(2 * k)) };
        }
        let eight = Factor::load(w.eight);
        for k in 0..4 {
            (v[k], v[k + 4]) = butterfly::<LAZY>(f, v[k], v[k + 4], eight);
        }
        for (half, w) in v.as_chunks_mut::<4>().0.iter_mut().zip(w.four) {
            let w = Factor::load(w);
            (half[0], half[2]) = butterfly::<LAZY>(f, half[0], half[2], w);
            (half[1], half[3]) = butterfly::<LAZY>(f, half[1], half[3], w);
        }
        let quarters = v.as_chunks_mut::<2>().0.iter_mut().zip(words.as_chunks_mut::<4>().0);
        for ((pair, four), (two, one)) in quarters.zip(w.two.iter().zip(w.one)) {
            let x = if LAZY { pair[0] } else { f.reduce(pair[0]) };
            let (a, b) = butterfly::<LAZY>(f, x, pair[1], Factor::load(two));
            let (even, odd) = (vtrn1q_f64(a, b), vtrn2q_f64(a, b));
            let (even, odd) = butterfly::<LAZY>(f, vaddq_f64(even, shift), odd, FactorPair::load(one));
            let words = uint64x2x2_t(f.canonical(even), f.canonical(odd));
            // SAFETY: the array has 32 bytes; the store needs no alignment.
            unsafe { vst2q_u64(four.as_mut_ptr(), words) };
        }
    }
}

/// The first layers of canonical words, see [`super`].
#[target_feature(enable = "neon")]
pub(super) fn first_layers_inverse(f: Field, t: &[Quotient], first: usize, x: &mut [u64]) {
    let count = x.len() / SIXTEEN;
    for (words, w) in x.as_chunks_mut::<SIXTEEN>().0.iter_mut().zip(factors(t, first, count)) {
        let mut v = [f.q; 8];
        let quarters = v.as_chunks_mut::<2>().0.iter_mut().zip(words.as_chunks::<4>().0);
        for ((pair, four), (two, one)) in quarters.zip(w.two.iter().zip(w.one)) {
            // SAFETY: the array has 32 bytes; the load needs no alignment.
            let uint64x2x2_t(even, odd) = unsafe { vld2q_u64(four.as_ptr()) };
            let (even, odd) = (vcvtq_f64_u64(even), vcvtq_f64_u64(odd));
            let (even, odd) = butterfly_inverse(f, even, odd, FactorPair::load(one));
            let (a, b) = (vtrn1q_f64(even, odd), vtrn2q_f64(even, odd));
            (pair[0], pair[1]) = butterfly_inverse(f, a, b, Factor::load(two));
        }
        for (half, w) in v.as_chunks_mut::<4>().0.iter_mut().zip(w.four) {
            let w = Factor::load(w);
            (half[0], half[2]) = butterfly_inverse(f, half[0], half[2], w);
            (half[1], half[3]) = butterfly_inverse(f, half[1], half[3], w);
            // Sums of eight words, and of four products.
            half[0] = f.reduce(half[0]);
        }
        let eight = Factor::load(w.eight);
        for k in 0..4 {
            (v[k], v[k + 4]) = butterfly_inverse(f, v[k], v[k + 4], eight);
            if k > 0 {
                v[k] = f.reduce(v[k]);
            }
        }
        for k in 0..8 {
            // SAFETY: the array has eight times 16 bytes.
            unsafe { vst1q_f64(words.as_mut_ptr().cast::<f64>().add(2 * k), v[k]) };
        }
    }
}
