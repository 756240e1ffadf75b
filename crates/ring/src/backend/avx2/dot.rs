//! Sums of products modulo a narrow prime: basis conversion and key inner product.
//!
//! # Invariant
//! The high parts of products are summed on the grid of multiples of `2^51`. The accumulator starts at `2^103`, or at
//! `1.5 * 2^103` if products may be negative. While it stays within `[2^103, 2^104)`, it rounds every fused product to
//! the grid. Its step `h` is exact, and `l = x y - h` is an exact integer of at most `2^50`. The sum of [`TERMS`] = 6
//! such `l` is at most `6 * 2^50`.
//!
//! * Key rows: `0 <= x y < 2^100`, so six steps stay below `2^103 + 6 * 2^100 + 6 * 2^50 < 2^104`.
//! * Conversion: terms below `2^50`, constants at most `p/2 < 2^49` in absolute value: six steps move by less than
//!   `6 * 2^99 + 6 * 2^50 < 2^102`.
//!
//! The sum `H` of steps is reduced with the quotient `h = round(H / q)`. In the first case `H < 6 q^2`, in the second
//! `|H| < 6 * 2^49 q`. In both, `|H/q| < 6 * 2^50 < 2^53`, so its computed value has an error below
//! `6 * 2^50 * 2^-52 = 1.5`, and `|H - h q| <= 2 q < 2^51` is exact. Adding the low sum gives less than `2^53`, exact.

use core::arch::x86_64::*;

use super::chacha;
use super::residues::{Field, Words, load_words, store, store_words};
use crate::Modulus;
use crate::backend::UniformRow;
use crate::conversion::Column;
use crate::randomness::expander::{self, CHUNK_WORDS};

/// Products between reductions.
const TERMS: usize = 6;
/// `2^103`.
const GRID: f64 = 10_141_204_801_825_835_211_973_625_643_008.0;

/// A sum of at most [`TERMS`] products.
#[derive(Clone, Copy)]
struct Sum {
    high: __m256d,
    low: __m256d,
}

impl Sum {
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn new(start: __m256d) -> Self {
        Self { high: start, low: _mm256_setzero_pd() }
    }

    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn add(&mut self, x: __m256d, y: __m256d) {
        let next = _mm256_fmadd_pd(x, y, self.high);
        let step = _mm256_sub_pd(next, self.high);
        self.low = _mm256_add_pd(self.low, _mm256_fmsub_pd(x, y, step));
        self.high = next;
    }

    /// The sum modulo `q`, at most `(1/2 + 2^-9) q`.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn reduce(self, f: Field, start: __m256d) -> __m256d {
        let sum = _mm256_sub_pd(self.high, start);
        let h = _mm256_round_pd::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(_mm256_mul_pd(
            sum, f.inverse,
        ));
        f.reduce(_mm256_add_pd(_mm256_fnmadd_pd(h, f.q, sum), self.low))
    }
}

/// Inner product of terms with a column: doubles of at most `(1/2 + 2^-9) q`.
#[target_feature(enable = "avx2,fma")]
pub(super) fn convert(column: &Column, terms: &[&[u64]], out: &mut [u64]) {
    let m = &column.modulus;
    let f = Field::new(m);
    let start = _mm256_set1_pd(1.5 * GRID);
    for (first, constants) in (0..).step_by(TERMS).zip(column.constants.chunks(TERMS)) {
        let begin = first == 0;
        let mut factors = [_mm256_setzero_pd(); TERMS];
        let mut chunks: [&[Words]; TERMS] = [&[]; TERMS];
        for (j, &c) in constants.iter().enumerate() {
            factors[j] = _mm256_set1_pd(m.centered(c) as f64);
            chunks[j] = terms[first + j].as_chunks::<4>().0;
        }
        for (i, place) in out.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            let mut sum = Sum::new(start);
            for (row, &factor) in chunks.iter().zip(&factors).take(constants.len()) {
                sum.add(load_words(&row[i]), factor);
            }
            let mut value = sum.reduce(f, start);
            if !begin {
                value = f.reduce(_mm256_add_pd(value, super::residues::load(place)));
            }
            store(place, value);
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
    let f = Field::new(m);
    let start = _mm256_set1_pd(GRID);
    let mut expanded = [[0; CHUNK_WORDS]; TERMS];
    for (number, (part_b, part_a)) in
        out_b.chunks_exact_mut(CHUNK_WORDS).zip(out_a.chunks_exact_mut(CHUNK_WORDS)).enumerate()
    {
        let range = number * CHUNK_WORDS..(number + 1) * CHUNK_WORDS;
        for first in (0..digits.len()).step_by(TERMS) {
            let count = TERMS.min(digits.len() - first);
            let (begin, end) = (first == 0, first + count == digits.len());
            for (row, words) in a[first..first + count].iter().zip(&mut expanded) {
                if let UniformRow::Seeded(seed, id, start) = row {
                    let number = start / CHUNK_WORDS + number;
                    chacha::chunk(&expander::initial_state(seed, *id, 0), number as u32, words);
                    chacha::accept(seed, *id, m, number, words);
                }
            }
            let mut rows: [[&[Words]; 3]; TERMS] = [[&[]; 3]; TERMS];
            for (j, row) in rows.iter_mut().enumerate().take(count) {
                let uniform = match &a[first + j] {
                    UniformRow::Stored(words) => &words[range.clone()],
                    UniformRow::Seeded(..) => &expanded[j][..],
                };
                let slices = [&digits[first + j][range.clone()], &b[first + j][range.clone()], uniform];
                *row = slices.map(|words| words.as_chunks::<4>().0);
            }
            let places = part_b.as_chunks_mut::<4>().0.iter_mut().zip(part_a.as_chunks_mut::<4>().0);
            for (i, (place_b, place_a)) in places.enumerate() {
                let (mut sum_b, mut sum_a) = (Sum::new(start), Sum::new(start));
                for [digit, b, a] in &rows[..count] {
                    let digit = load_words(&digit[i]);
                    sum_b.add(digit, load_words(&b[i]));
                    sum_a.add(digit, load_words(&a[i]));
                }
                for (place, sum) in [(place_b, sum_b), (place_a, sum_a)] {
                    let mut value = sum.reduce(f, start);
                    if !begin {
                        value = f.reduce(_mm256_add_pd(value, super::residues::load(place)));
                    }
                    if end {
                        store_words(place, f.make_positive(value));
                    } else {
                        store(place, value);
                    }
                }
            }
        }
    }
}
