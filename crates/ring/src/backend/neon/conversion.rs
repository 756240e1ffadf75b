//! Basis conversion to a narrow prime `p`: doubles of at most `p`, in one of three forms.
//!
//! # One source
//! The value is `y - v q`, at most `q/2 (1 + 2^-16)` and below `2^50`. It is reduced if `q` may exceed `2 p`.
//!
//! # Aligned sums
//! For `p < 2^46`, and with `b` bits in `p`, `B = 2^(b + 3)`. A term `y < 2^50` is taken as `x = 2^52 + y`, which
//! replaces the upper bits of the word. Its constant is taken as the integer `c` of its class with `B <= |c| < B + p`,
//! positive and negative in turn. So products are in `[2^52 B, 2^52 B r)` for `r = (1 + p/B)(1 + y/2^52) < 2`. All have
//! the same unit in the last place, `B`:
//!
//! * The sum of rounded products is exact while it is at most `2^53 B`. After an odd number `k` it is below
//!   `2^52 B (r + (r - 1)(k - 1)/2)`, after an even number below `2^52 B (r - 1) k/2`. [`is_aligned`] requires that the
//!   first is at most `2^53 B`.
//! * The error of a product is an integer of at most `B/2 <= 2^48`, so six of them sum to at most `6 * 2^48`.
//! * The sum `H` is below `2^53 B <= 2^(56 + b)`. As `p > 2^(b - 1)`, `|H/p| < 2^57`, and its computed value has an
//!   error below `2^57 * 2^-52 = 32`. So `|H - h p| < 33 p < 33 * 2^46` is exact.
//! * The quotient `v` of at most [`TERMS`] sources is at most 6, and its constant at most `p/2`. The product is exact
//!   and at most `6 * 2^45`. The class of `2^52` times the constants is at most `2^45`.
//! * All together are below `33 * 2^46 + 6 * 2^48 + 7 * 2^45 < 2^52`.
//!
//! # Other sums
//! As in [`super::dot`], with `v` as one more term.

use alloc::vec::Vec;
use core::arch::aarch64::*;

use super::dot::{GRID, Sum, TERMS};
use super::residues::{Field, load, load_words, store};
use crate::Modulus;
use crate::conversion::{Column, ScaledPart, Source};

/// Primes of at most this width can use aligned sums.
const ALIGNED_BITS: u32 = 46;
/// Words that a loop works on at once.
const BLOCK: usize = 4;

/// The inner product of a part's terms with a column.
#[target_feature(enable = "neon")]
pub(super) fn convert(column: &Column, part: ScaledPart<'_>, out: &mut [u64]) {
    let m = &column.modulus;
    let terms: Vec<&[u64]> = part.terms().collect();
    if let ([source], [residues, quotients]) = (part.sources, &terms[..]) {
        single(m, &source.modulus, residues, quotients, out);
    } else if is_aligned(m, part.sources, terms.len() - 1) {
        aligned(column, &terms, out);
    } else {
        general(column, &terms, out);
    }
    debug_assert!(out.iter().all(|&bits| {
        let value = f64::from_bits(bits);
        value.abs() <= m.value() as f64 && value as i64 as f64 == value
    }));
}

/// The residues of one narrow prime `source`.
#[target_feature(enable = "neon")]
fn single(m: &Modulus, source: &Modulus, residues: &[u64], quotients: &[u64], out: &mut [u64]) {
    let (f, divisor) = (Field::new(m), vdupq_n_f64(source.value() as f64));
    // At most (1 - 2^-7) (1 + 2^-16) p without a reduction.
    let small = source.value() <= 2 * m.value() - m.value() / 64;
    let blocks = residues.as_chunks::<BLOCK>().0.iter().zip(quotients.as_chunks::<BLOCK>().0);
    for ((y, v), places) in blocks.zip(out.as_chunks_mut::<BLOCK>().0) {
        let (y, v) = (y.as_chunks::<2>().0, v.as_chunks::<2>().0);
        let values = [0, 1].map(|half| {
            let value = vfmsq_f64(load_words(&y[half]), load_words(&v[half]), divisor);
            if small { value } else { f.reduce(value) }
        });
        for (place, value) in places.as_chunks_mut::<2>().0.iter_mut().zip(values) {
            store(place, value);
        }
    }
}

/// Whether the aligned form is exact for `count` products of terms of these sources.
fn is_aligned(m: &Modulus, sources: &[Source], count: usize) -> bool {
    // The halves of a wide residue are smaller than a narrow prime may be.
    let largest = sources.iter().map(|s| if s.modulus.is_narrow() { s.modulus.bits() } else { 31 }).max();
    let Some(bits) = largest else { return false };
    // In units of 2^-40, exactly, as source primes have more than 15 bits.
    let unit = 1u64 << 40;
    let whole = 9 * unit / 8;
    let ratio = whole + (whole >> (52 - bits));
    let steps = (count.min(TERMS) as u64 - 1) / 2;
    m.bits() <= ALIGNED_BITS && sources.len() <= TERMS && ratio + (ratio - unit) * steps <= 2 * unit
}

/// All terms in the aligned form: products in groups, the quotient with the first of them.
#[target_feature(enable = "neon")]
fn aligned(column: &Column, terms: &[&[u64]], out: &mut [u64]) {
    let (m, last) = (&column.modulus, terms.len() - 1);
    let quotient = (terms[last], column.constants[last]);
    for (first, constants) in (0..).step_by(TERMS).zip(column.constants[..last].chunks(TERMS)) {
        let rows = &terms[first..first + constants.len()];
        match (constants.len(), first == 0) {
            (1, true) => aligned_group::<1, true>(m, constants, rows, quotient, out),
            (2, true) => aligned_group::<2, true>(m, constants, rows, quotient, out),
            (3, true) => aligned_group::<3, true>(m, constants, rows, quotient, out),
            (4, true) => aligned_group::<4, true>(m, constants, rows, quotient, out),
            (5, true) => aligned_group::<5, true>(m, constants, rows, quotient, out),
            (_, true) => aligned_group::<TERMS, true>(m, constants, rows, quotient, out),
            (1, false) => aligned_group::<1, false>(m, constants, rows, quotient, out),
            (2, false) => aligned_group::<2, false>(m, constants, rows, quotient, out),
            (3, false) => aligned_group::<3, false>(m, constants, rows, quotient, out),
            (4, false) => aligned_group::<4, false>(m, constants, rows, quotient, out),
            (5, false) => aligned_group::<5, false>(m, constants, rows, quotient, out),
            (_, false) => aligned_group::<TERMS, false>(m, constants, rows, quotient, out),
        }
    }
}

/// [`aligned`] of `J` terms. They are the first ones and the quotient, or their sum is added to `out`.
#[target_feature(enable = "neon")]
fn aligned_group<const J: usize, const BEGIN: bool>(
    m: &Modulus,
    constants: &[u64],
    terms: &[&[u64]],
    (quotients, constant): (&[u64], u64),
    out: &mut [u64],
) {
    let (f, p, least) = (Field::new(m), m.value(), 1u64 << (m.bits() + 3));
    let raise = |c: u64| least + m.sub(c, m.reduce(least));
    let mut offset = 0;
    let mut factors = [f.q; J];
    let mut rows = [out.as_ptr(); J];
    for j in 0..J {
        let negative = j % 2 == 1;
        let c = raise(if negative { m.neg(constants[j]) } else { constants[j] });
        debug_assert!((least..least + p).contains(&c));
        factors[j] = vdupq_n_f64(if negative { -(c as f64) } else { c as f64 });
        offset = m.add(offset, constants[j]);
        rows[j] = terms[j][..out.len()].as_ptr();
    }
    let offset = vdupq_n_f64(m.centered(m.mul(offset, m.reduce(1 << 52))) as f64);
    let factor = vdupq_n_f64(m.centered(constant) as f64);
    let exponent = vreinterpretq_u64_f64(vdupq_n_f64((1u64 << 52) as f64));
    let quotients = quotients[..out.len()].as_ptr();
    for (i, places) in out.as_chunks_mut::<BLOCK>().0.iter_mut().enumerate() {
        for (half, place) in places.as_chunks_mut::<2>().0.iter_mut().enumerate() {
            let at = BLOCK * i + 2 * half;
            // The negative of what is added to the rounded products.
            let mut low = offset;
            if BEGIN {
                // SAFETY: every row has as many words as `out`; so below.
                let v = vcvtq_f64_u64(unsafe { vld1q_u64(quotients.add(at)) });
                low = vfmsq_f64(low, v, factor);
            }
            let mut high = low;
            for j in 0..J {
                // SAFETY: as above.
                let word = unsafe { vld1q_u64(rows[j].add(at)) };
                let x = vreinterpretq_f64_u64(vorrq_u64(word, exponent));
                let product = vmulq_f64(x, factors[j]);
                high = if j == 0 { product } else { vaddq_f64(high, product) };
                low = vaddq_f64(low, vfmsq_f64(product, x, factors[j]));
            }
            debug_assert!(vmaxnmvq_f64(vabsq_f64(high)) <= least as f64 * (1u64 << 53) as f64);
            let h = vrndnq_f64(vmulq_f64(high, f.inverse));
            let sum = vsubq_f64(vfmsq_f64(high, h, f.q), low);
            debug_assert!(vmaxnmvq_f64(vabsq_f64(sum)) < (1u64 << 52) as f64);
            let sum = if BEGIN { sum } else { vaddq_f64(sum, load(place)) };
            store(place, f.reduce(sum));
        }
    }
}

/// All terms by sums of [`super::dot`].
#[target_feature(enable = "neon")]
fn general(column: &Column, terms: &[&[u64]], out: &mut [u64]) {
    for (first, constants) in (0..).step_by(TERMS).zip(column.constants.chunks(TERMS)) {
        let rows = &terms[first..first + constants.len()];
        let m = &column.modulus;
        match (constants.len(), first == 0) {
            (1, true) => general_group::<1, true>(m, constants, rows, out),
            (2, true) => general_group::<2, true>(m, constants, rows, out),
            (3, true) => general_group::<3, true>(m, constants, rows, out),
            (4, true) => general_group::<4, true>(m, constants, rows, out),
            (5, true) => general_group::<5, true>(m, constants, rows, out),
            (_, true) => general_group::<TERMS, true>(m, constants, rows, out),
            (1, false) => general_group::<1, false>(m, constants, rows, out),
            (2, false) => general_group::<2, false>(m, constants, rows, out),
            (3, false) => general_group::<3, false>(m, constants, rows, out),
            (4, false) => general_group::<4, false>(m, constants, rows, out),
            (5, false) => general_group::<5, false>(m, constants, rows, out),
            (_, false) => general_group::<TERMS, false>(m, constants, rows, out),
        }
    }
}

/// [`general`] of `J` terms. They are the first ones, or their sum is added to `out`.
#[target_feature(enable = "neon")]
fn general_group<const J: usize, const BEGIN: bool>(
    m: &Modulus,
    constants: &[u64],
    terms: &[&[u64]],
    out: &mut [u64],
) {
    let f = Field::new(m);
    let start = vdupq_n_f64(1.5 * GRID);
    let mut factors = [start; J];
    let mut rows = [out.as_ptr(); J];
    for j in 0..J {
        factors[j] = vdupq_n_f64(m.centered(constants[j]) as f64);
        rows[j] = terms[j][..out.len()].as_ptr();
    }
    for (i, places) in out.as_chunks_mut::<BLOCK>().0.iter_mut().enumerate() {
        let mut sums = [Sum::new(start); 2];
        for (&row, &factor) in rows.iter().zip(&factors) {
            for (half, sum) in sums.iter_mut().enumerate() {
                // SAFETY: every row has as many words as `out`; the load needs no alignment.
                let words = unsafe { vld1q_u64(row.add(BLOCK * i + 2 * half)) };
                sum.add(vcvtq_f64_u64(words), factor);
            }
        }
        for (place, sum) in places.as_chunks_mut::<2>().0.iter_mut().zip(sums) {
            let mut value = sum.reduce(f, start);
            if !BEGIN {
                value = f.reduce(vaddq_f64(value, load(place)));
            }
            store(place, value);
        }
    }
}
