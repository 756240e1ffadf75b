//! Sums of products in 128 bits: basis conversion and key inner product, a chunk at a time, reduced once per sum.

use alloc::vec::Vec;
use core::array::from_fn;

use super::kernels::canonical;
use crate::backend::UniformRow;
use crate::conversion::Column;
use crate::randomness::expander::CHUNK_WORDS;
use crate::{Modulus, Seed, StreamId};

/// Products summed in registers.
const GROUP: usize = 6;
/// Products of canonical residues between reductions, a multiple of [`GROUP`]: `60 q^2 + q < 61 * 2^122 < 2^128`.
const LAZY_TERMS: usize = 60;

type Chunk = [u64; CHUNK_WORDS];

/// Barrett reduction with one high product.
///
/// # Invariant
/// `shift = b - 1` for a modulus of `b` bits, and `ratio = floor(2^(64 + shift) / q)`, which is below `2^64`. For
/// `x < 2^(64 + shift)` the quotient `floor(floor(x / 2^shift) ratio / 2^64)` is less than 3 below `x / q`: less than 1
/// for each of the three roundings, as `2^shift < q` and `x / 2^shift < 2^64`. The remainder is below `4q`.
struct LazyBarrett {
    q: u64,
    shift: u32,
    ratio: u64,
}

impl LazyBarrett {
    fn new(m: &Modulus) -> Self {
        let shift = m.bits() - 1;
        Self { q: m.value(), shift, ratio: ((1u128 << (64 + shift)) / u128::from(m.value())) as u64 }
    }

    /// `x mod q` in `[0, 4q)`.
    #[inline(always)]
    fn reduce(&self, x: u128) -> u64 {
        debug_assert!(x >> self.shift >> 64 == 0);
        let quotient = (((x >> self.shift) as u64 as u128 * u128::from(self.ratio)) >> 64) as u64;
        (x as u64).wrapping_sub(quotient.wrapping_mul(self.q))
    }
}

/// The second factors of a row of products: one for all, or one per product.
trait Factors: Copy {
    fn at(self, i: usize) -> u64;
}

impl Factors for u64 {
    #[inline(always)]
    fn at(self, _: usize) -> u64 {
        self
    }
}

impl Factors for &Chunk {
    #[inline(always)]
    fn at(self, i: usize) -> u64 {
        self[i]
    }
}

/// Passes to `finish` the sum of `x(j)[i] * y(j)[i]` over `j < terms` for each `i`. The sum is modulo `m` if there are
/// more than [`LAZY_TERMS`] terms. Few terms are summed in registers.
#[inline(always)]
fn sum_products<'a, Y: Factors>(
    m: &Modulus,
    terms: usize,
    x: impl Fn(usize) -> &'a Chunk,
    y: impl Fn(usize) -> Y,
    mut finish: impl FnMut(usize, u128),
) {
    if terms <= GROUP {
        return sum_group(terms, x, y, finish);
    }
    let mut sums = [0u128; CHUNK_WORDS];
    for first in (0..terms).step_by(GROUP) {
        if first > 0 && first.is_multiple_of(LAZY_TERMS) {
            sums.iter_mut().for_each(|sum| *sum = u128::from(m.reduce_u128(*sum)));
        }
        let count = GROUP.min(terms - first);
        sum_group(count, |k| x(first + k), |k| y(first + k), |i, sum| sums[i] += sum);
    }
    for (i, sum) in sums.into_iter().enumerate() {
        finish(i, sum);
    }
}

/// [`sum_products`] of at most [`GROUP`] terms.
#[inline(always)]
fn sum_group<'a, Y: Factors>(
    terms: usize,
    x: impl Fn(usize) -> &'a Chunk,
    y: impl Fn(usize) -> Y,
    finish: impl FnMut(usize, u128),
) {
    match terms {
        1 => sum_exactly::<1, Y>(x, y, finish),
        2 => sum_exactly::<2, Y>(x, y, finish),
        3 => sum_exactly::<3, Y>(x, y, finish),
        4 => sum_exactly::<4, Y>(x, y, finish),
        5 => sum_exactly::<5, Y>(x, y, finish),
        _ => sum_exactly::<GROUP, Y>(x, y, finish),
    }
}

#[inline(always)]
fn sum_exactly<'a, const J: usize, Y: Factors>(
    x: impl Fn(usize) -> &'a Chunk,
    y: impl Fn(usize) -> Y,
    mut finish: impl FnMut(usize, u128),
) {
    let (x, y): ([&Chunk; J], [Y; J]) = (from_fn(x), from_fn(y));
    for i in 0..CHUNK_WORDS {
        let mut sum = 0;
        for j in 0..J {
            sum += u128::from(x[j][i]) * u128::from(y[j].at(i));
        }
        finish(i, sum);
    }
}

/// Chunk `number` of a limb.
#[inline(always)]
fn chunk(limb: &[u64], number: usize) -> &Chunk {
    &limb.as_chunks::<CHUNK_WORDS>().0[number]
}

/// Inner product of terms with a column, below `2p`.
///
/// Montgomery reduction, with `2^64` in the constants: as terms are below `2^50`, a sum `S` of at most
/// [`crate::conversion::MAX_TERMS`] products is below `2^58 p`. With `k = S p^-1 mod 2^64`, `S - k p` is a multiple of
/// `2^64` in `(-2^64 p, 2^58 p)`, so its quotient plus `p` is in `(0, 2p)`.
pub(crate) fn convert(column: &Column, terms: &[&[u64]], out: &mut [u64]) {
    debug_assert_eq!(terms.len(), column.constants.len());
    let (m, p) = (&column.modulus, column.modulus.value());
    let constants: Vec<u64> = column.constants.iter().map(|&c| m.reduce_u128(u128::from(c) << 64)).collect();
    // Newton: p is its own inverse modulo 8, each step doubles the bits.
    let inverse = (0..5).fold(p, |x, _| x.wrapping_mul(2u64.wrapping_sub(p.wrapping_mul(x))));
    for (number, part) in out.as_chunks_mut::<CHUNK_WORDS>().0.iter_mut().enumerate() {
        sum_products(
            m,
            terms.len(),
            |j| chunk(terms[j], number),
            |j| constants[j],
            |i, sum| {
                let k = (sum as u64).wrapping_mul(inverse);
                let lazy = ((sum >> 64) as u64) + p - ((u128::from(k) * u128::from(p)) >> 64) as u64;
                debug_assert!(lazy < 2 * p);
                part[i] = lazy;
            },
        );
    }
}

/// `out = sum_j digits[j] * row(j)` on chunk `number`.
#[inline(always)]
fn dot_chunk<'a>(
    m: &Modulus,
    barrett: &LazyBarrett,
    digits: &[&[u64]],
    row: impl Fn(usize) -> &'a Chunk,
    number: usize,
    out: &mut Chunk,
) {
    sum_products(
        m,
        digits.len(),
        |j| chunk(digits[j], number),
        row,
        |i, sum| {
            // Narrow: 61 q^2 < 2^(56 + b) < 2^(64 + shift).
            out[i] =
                if m.is_narrow() { canonical(barrett.q, barrett.reduce(sum)) } else { m.reduce_u128(sum) };
        },
    );
}

/// Both halves of a key inner product. `expand` makes the words of a stream from a word on.
pub(crate) fn inner_product(
    m: &Modulus,
    digits: &[&[u64]],
    b: &[&[u64]],
    a: &[UniformRow<'_>],
    (out_b, out_a): (&mut [u64], &mut [u64]),
    expand: impl Fn(&Seed, StreamId, &Modulus, usize, &mut [u64]),
) {
    debug_assert!(digits.len() == b.len() && digits.len() == a.len());
    let barrett = LazyBarrett::new(m);
    let mut expanded: Vec<Chunk> = alloc::vec![[0; CHUNK_WORDS]; a.len()];
    let parts = out_b.as_chunks_mut().0.iter_mut().zip(out_a.as_chunks_mut().0);
    for (number, (part_b, part_a)) in parts.enumerate() {
        for (row, words) in a.iter().zip(&mut expanded) {
            if let UniformRow::Seeded(seed, id, first) = row {
                expand(seed, *id, m, first + number * CHUNK_WORDS, words);
            }
        }
        dot_chunk(m, &barrett, digits, |j| chunk(b[j], number), number, part_b);
        let row = |j: usize| match a[j] {
            UniformRow::Stored(words) => chunk(words, number),
            UniformRow::Seeded(..) => &expanded[j],
        };
        dot_chunk(m, &barrett, digits, row, number, part_a);
    }
}
