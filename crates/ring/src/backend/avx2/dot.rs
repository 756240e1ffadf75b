//! Sums of products modulo a narrow prime `q < 2^B` of `B` bits: basis conversion and key inner product.
//!
//! # Invariant
//! The high parts of products are summed from a start above `2^52 q` on ([`Sum::starting`]). A step `h` of this sum is
//! exact, as neighbours differ by less than a factor of 2, and `l = x y - h` is an exact integer: the rounding error of
//! a fused operation, at most half a unit in the last place of the sum. The product of the sum with `1/q` is above
//! `2^52`, so it has no fraction, and is the quotient. The start modulo `q`, at most `q/2`, is taken off the low parts.
//!
//! * Key rows: products are at most `2^50 q`, so [`TERMS`] = 6 of them stay below `2.5 * 2^52 q`. The first four sums
//!   are below `2^(53+B)`, so `l <= 2^(B-1)`, the last two `l <= 2^B`. The quotient has an error of at most 1.25, and 1
//!   by rounding. All together, with a former sum, are below `(4 * 1/2 + 2 + 2.25 + 1/2 + 1/2) 2^B < 2^53`.
//! * Conversion: terms are below `2^50`, constants at most `q/2` in absolute value. The start is higher by what
//!   negative constants can take away. So sums stay from `2^52 q` to `1.75 * 2^52 q`, and `l <= 2^(B-1)`. The quotient
//!   has an error of at most 0.88, and 1/2 by rounding. The term of the quotient is taken around its mean, so it is at
//!   most [`SOURCES`]`/2 = 6`, and its product at most `3 q`. All together are at most
//!   `(6 * 1/2 + 1.38 + 1/2 + 3) 2^B < 2^53`. Other groups add the former sum instead of the quotient.

use alloc::vec::Vec;
use core::arch::x86_64::*;
use core::ops::Range;

use super::chacha;
use super::residues::{Field, Words, load, load_words, load_words_less, store};
use crate::Modulus;
use crate::backend::UniformRow;
use crate::conversion::{Column, ScaledLayout, ScaledPart};
use crate::randomness::expander::CHUNK_WORDS;

/// Products between reductions.
const TERMS: usize = 6;
/// With more source primes, the quotient is a term as the others.
const SOURCES: usize = 12;

/// A sum of at most [`TERMS`] products.
#[derive(Clone, Copy)]
struct Sum {
    high: __m256d,
    low: __m256d,
}

impl Sum {
    /// The sum of no products, which can go down by `2^50 below`, plus `offset`. It is at least 16 above `2^52` in
    /// units of `q`, more than six roundings and that of the quotient take away.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn starting(m: &Modulus, below: u64, offset: u64) -> Self {
        // An integer below 2^53.
        let start = 4 * m.value() + 16 + below;
        let low = m.sub(offset, m.mul(m.reduce(start), m.reduce(1 << 50)));
        Self {
            high: _mm256_set1_pd(start as f64 * (1u64 << 50) as f64),
            low: _mm256_set1_pd(m.centered(low) as f64),
        }
    }

    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn add(&mut self, x: __m256d, y: __m256d) {
        let next = _mm256_fmadd_pd(x, y, self.high);
        let step = _mm256_sub_pd(next, self.high);
        self.low = _mm256_add_pd(self.low, _mm256_fmsub_pd(x, y, step));
        self.high = next;
    }

    /// The sum modulo `q`, below `2^53`.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn value(self, f: Field) -> __m256d {
        let h = _mm256_mul_pd(self.high, f.inverse);
        let sum = _mm256_add_pd(_mm256_fnmadd_pd(h, f.q, self.high), self.low);
        debug_assert!({
            let largest = _mm256_set1_pd((1u64 << 53) as f64);
            let size = _mm256_andnot_pd(_mm256_set1_pd(-0.0), sum);
            _mm256_movemask_pd(_mm256_cmp_pd::<_CMP_LE_OQ>(size, largest)) == 0xF
        });
        sum
    }
}

/// The inner product of a part's terms with a column: doubles of at most `(1/2 + 2^-9) q`, in the part's places.
#[target_feature(enable = "avx2,fma")]
pub(super) fn convert(column: &Column, part: ScaledPart<'_>, layout: ScaledLayout, out: &mut [u64]) {
    let terms: Vec<&[u64]> = part.terms().collect();
    let count = if part.sources.len() > SOURCES { terms.len() } else { terms.len() - 1 };
    let quotients =
        terms.get(count).map(|&words| (words, column.constants[count], part.sources.len() as u64));
    for first in (0..count).step_by(TERMS) {
        let range = first..count.min(first + TERMS);
        let (constants, rows) = (&column.constants[range.clone()], &terms[range]);
        let group =
            Group { m: &column.modulus, constants, rows, quotients: quotients.filter(|_| first == 0) };
        let places = layout.ranges(out.len(), part.part);
        match (group.rows.len(), first == 0) {
            (1, true) => group.sum::<1, true>(places, out),
            (2, true) => group.sum::<2, true>(places, out),
            (3, true) => group.sum::<3, true>(places, out),
            (4, true) => group.sum::<4, true>(places, out),
            (5, true) => group.sum::<5, true>(places, out),
            (_, true) => group.sum::<TERMS, true>(places, out),
            (1, false) => group.sum::<1, false>(places, out),
            (2, false) => group.sum::<2, false>(places, out),
            (3, false) => group.sum::<3, false>(places, out),
            (4, false) => group.sum::<4, false>(places, out),
            (5, false) => group.sum::<5, false>(places, out),
            (_, false) => group.sum::<TERMS, false>(places, out),
        }
    }
}

/// Terms that are summed without a reduction.
struct Group<'t> {
    m: &'t Modulus,
    constants: &'t [u64],
    rows: &'t [&'t [u64]],
    /// The quotients, their constant, and the largest of them.
    quotients: Option<(&'t [u64], u64, u64)>,
}

impl Group<'_> {
    /// The sums of `J` terms, in `places` of `out`. `BEGIN` tells that they are the first, not added to `out`.
    #[target_feature(enable = "avx2,fma")]
    fn sum<const J: usize, const BEGIN: bool>(
        &self,
        places: impl Iterator<Item = Range<usize>>,
        out: &mut [u64],
    ) {
        let (m, f) = (self.m, Field::new(self.m));
        let (mut below, mut factors, mut rows) = (0, [f.q; J], [out.as_ptr().cast(); J]);
        for j in 0..J {
            let c = m.centered(self.constants[j]);
            below += c.min(0).unsigned_abs();
            factors[j] = _mm256_set1_pd(c as f64);
            rows[j] = self.rows[j].as_ptr().cast::<Words>();
        }
        let (mut offset, mut quotients, mut factor, mut mean) = (0, out.as_ptr().cast(), f.q, 0);
        if let Some((words, constant, largest)) = self.quotients {
            mean = largest / 2;
            (quotients, factor) =
                (words.as_ptr().cast::<Words>(), _mm256_set1_pd(m.centered(constant) as f64));
            offset = m.mul(m.reduce(mean), constant);
        }
        let (start, centred) = (Sum::starting(m, below, offset), self.quotients.is_some());
        let mut at = 0..self.rows[0].len() / 4;
        for places in places {
            for (place, i) in out[places].as_chunks_mut::<4>().0.iter_mut().zip(&mut at) {
                let mut sum = start;
                if BEGIN && centred {
                    // SAFETY: `i` counts the words of a part, which every row has; so below.
                    let quotient = load_words_less(unsafe { &*quotients.add(i) }, mean);
                    sum.low = _mm256_fmadd_pd(quotient, factor, sum.low);
                }
                for j in 0..J {
                    // SAFETY: as above.
                    sum.add(load_words(unsafe { &*rows[j].add(i) }), factors[j]);
                }
                let value = sum.value(f);
                store(place, f.reduce(if BEGIN { value } else { _mm256_add_pd(value, load(place)) }));
            }
        }
    }
}

/// Both halves of a key inner product modulo a narrow prime; each digit is loaded once.
#[target_feature(enable = "avx2,fma")]
pub(super) fn inner_product(
    m: &Modulus,
    digits: &[&[u64]],
    b: &[&[u64]],
    a: &[UniformRow<'_>],
    out_b: &mut [u64],
    out_a: &mut [u64],
) {
    let start = Sum::starting(m, 0, 0);
    let mut expanded = [[0; CHUNK_WORDS]; TERMS];
    let parts = out_b.as_chunks_mut::<CHUNK_WORDS>().0.iter_mut().zip(out_a.as_chunks_mut().0);
    for (number, (part_b, part_a)) in parts.enumerate() {
        for first in (0..digits.len()).step_by(TERMS) {
            let count = TERMS.min(digits.len() - first);
            for (row, words) in a[first..first + count].iter().zip(&mut expanded) {
                if let UniformRow::Seeded(seed, id, start) = row {
                    chacha::fill_uniform(seed, *id, m, start + number * CHUNK_WORDS, words);
                }
            }
            let row = |j: usize| {
                let uniform = match a[first + j] {
                    UniformRow::Stored(words) => chunk(words, number),
                    UniformRow::Seeded(..) => &expanded[j],
                };
                [chunk(digits[first + j], number), chunk(b[first + j], number), uniform]
            };
            let ends = (first == 0, first + count == digits.len());
            match count {
                1 => sum_group::<1>(m, start, ends, row, part_b, part_a),
                2 => sum_group::<2>(m, start, ends, row, part_b, part_a),
                3 => sum_group::<3>(m, start, ends, row, part_b, part_a),
                4 => sum_group::<4>(m, start, ends, row, part_b, part_a),
                5 => sum_group::<5>(m, start, ends, row, part_b, part_a),
                _ => sum_group::<TERMS>(m, start, ends, row, part_b, part_a),
            }
        }
    }
}

type Chunk = [u64; CHUNK_WORDS];

/// Chunk `number` of a limb.
fn chunk(limb: &[u64], number: usize) -> &Chunk {
    &limb.as_chunks().0[number]
}

/// Adds `J` digits times their two rows; `ends` tells whether they are the first and the last ones.
#[target_feature(enable = "avx2,fma")]
fn sum_group<'a, const J: usize>(
    m: &Modulus,
    start: Sum,
    (begin, end): (bool, bool),
    row: impl Fn(usize) -> [&'a Chunk; 3],
    part_b: &mut Chunk,
    part_a: &mut Chunk,
) {
    let f = Field::new(m);
    let mut rows = [[part_b.as_ptr().cast::<Words>(); 3]; J];
    for (j, pointers) in rows.iter_mut().enumerate() {
        *pointers = row(j).map(|words| words.as_ptr().cast());
    }
    let (b, a) = (part_b.as_chunks_mut::<4>().0, part_a.as_chunks_mut::<4>().0);
    for i in 0..CHUNK_WORDS / 4 {
        let (mut sum_b, mut sum_a) = (start, start);
        for row in &rows {
            // SAFETY: every row is a chunk, as are the outputs.
            let [digit, b, a] = row.map(|row| unsafe { load_words(&*row.add(i)) });
            sum_b.add(digit, b);
            sum_a.add(digit, a);
        }
        for (place, sum) in [(&mut b[i], sum_b), (&mut a[i], sum_a)] {
            let mut value = sum.value(f);
            if !begin {
                value = _mm256_add_pd(value, load(place));
            }
            value = f.reduce(value);
            if end {
                f.store_canonical(place, value);
            } else {
                store(place, value);
            }
        }
    }
}
