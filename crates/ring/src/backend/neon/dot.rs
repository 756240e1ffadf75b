//! Sums of products modulo a narrow prime, and the key inner product.
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

use core::arch::aarch64::*;

use super::chacha;
use super::residues::{Field, load, load_words, store, store_integers};
use crate::Modulus;
use crate::backend::UniformRow;
use crate::randomness::expander::{self, CHUNK_WORDS};

/// Products between reductions.
pub(super) const TERMS: usize = 6;
/// `2^103`.
pub(super) const GRID: f64 = 10_141_204_801_825_835_211_973_625_643_008.0;

/// A sum of at most [`TERMS`] products.
#[derive(Clone, Copy)]
pub(super) struct Sum {
    high: float64x2_t,
    /// The negative of the sum of low parts.
    low: float64x2_t,
}

impl Sum {
    #[inline]
    #[target_feature(enable = "neon")]
    pub(super) fn new(start: float64x2_t) -> Self {
        Self { high: start, low: vdupq_n_f64(0.0) }
    }

    #[inline]
    #[target_feature(enable = "neon")]
    pub(super) fn add(&mut self, x: float64x2_t, y: float64x2_t) {
        let next = vfmaq_f64(self.high, x, y);
        let step = vsubq_f64(next, self.high);
        self.low = vaddq_f64(self.low, vfmsq_f64(step, x, y));
        self.high = next;
    }

    /// The sum modulo `q`, at most `(1/2 + 2^-9) q`.
    #[inline]
    #[target_feature(enable = "neon")]
    pub(super) fn reduce(self, f: Field, start: float64x2_t) -> float64x2_t {
        let sum = vsubq_f64(self.high, start);
        let h = vrndnq_f64(vmulq_f64(sum, f.inverse));
        f.reduce(vsubq_f64(vfmsq_f64(sum, h, f.q), self.low))
    }
}

/// Both halves of a key inner product modulo a narrow prime; each digit is loaded once.
#[target_feature(enable = "neon")]
pub(super) fn inner_product(
    m: &Modulus,
    digits: &[&[u64]],
    b: &[&[u64]],
    a: &[UniformRow<'_>],
    out_b: &mut [u64],
    out_a: &mut [u64],
) {
    let mut expanded = [[0; CHUNK_WORDS]; TERMS];
    for (number, (part_b, part_a)) in out_b
        .as_chunks_mut::<CHUNK_WORDS>()
        .0
        .iter_mut()
        .zip(out_a.as_chunks_mut::<CHUNK_WORDS>().0)
        .enumerate()
    {
        for first in (0..digits.len()).step_by(TERMS) {
            let count = TERMS.min(digits.len() - first);
            for (row, words) in a[first..first + count].iter().zip(&mut expanded) {
                if let UniformRow::Seeded(seed, id, start) = row {
                    let number = start / CHUNK_WORDS + number;
                    chacha::chunk(&expander::initial_state(seed, *id, 0), number as u32, words);
                    chacha::accept(seed, *id, m, number, words);
                }
            }
            let chunk = |limb| chunk(limb, number);
            let row = |j: usize| {
                let uniform = match a[first + j] {
                    UniformRow::Stored(words) => chunk(words),
                    UniformRow::Seeded(..) => &expanded[j],
                };
                [chunk(digits[first + j]), chunk(b[first + j]), uniform]
            };
            match (first == 0, first + count == digits.len()) {
                (true, true) => sum_rows::<true, true>(m, count, row, part_b, part_a),
                (true, false) => sum_rows::<true, false>(m, count, row, part_b, part_a),
                (false, true) => sum_rows::<false, true>(m, count, row, part_b, part_a),
                (false, false) => sum_rows::<false, false>(m, count, row, part_b, part_a),
            }
        }
    }
}

/// [`sum_group`] of `count` digits.
#[target_feature(enable = "neon")]
fn sum_rows<'a, const BEGIN: bool, const END: bool>(
    m: &Modulus,
    count: usize,
    row: impl Fn(usize) -> [&'a Chunk; 3],
    part_b: &mut Chunk,
    part_a: &mut Chunk,
) {
    match count {
        1 => sum_group::<1, BEGIN, END>(m, row, part_b, part_a),
        2 => sum_group::<2, BEGIN, END>(m, row, part_b, part_a),
        3 => sum_group::<3, BEGIN, END>(m, row, part_b, part_a),
        4 => sum_group::<4, BEGIN, END>(m, row, part_b, part_a),
        5 => sum_group::<5, BEGIN, END>(m, row, part_b, part_a),
        _ => sum_group::<TERMS, BEGIN, END>(m, row, part_b, part_a),
    }
}

type Chunk = [u64; CHUNK_WORDS];

/// Chunk `number` of a limb.
fn chunk(limb: &[u64], number: usize) -> &Chunk {
    &limb.as_chunks::<CHUNK_WORDS>().0[number]
}

/// Adds `J` digits times their two rows; `BEGIN` and `END` tell whether they are the first and the last ones.
#[target_feature(enable = "neon")]
fn sum_group<'a, const J: usize, const BEGIN: bool, const END: bool>(
    m: &Modulus,
    row: impl Fn(usize) -> [&'a Chunk; 3],
    part_b: &mut Chunk,
    part_a: &mut Chunk,
) {
    let f = Field::new(m);
    let start = vdupq_n_f64(GRID);
    let rows: [[&[[u64; 4]]; 3]; J] = core::array::from_fn(|j| row(j).map(|words| words.as_chunks::<4>().0));
    let places = part_b.as_chunks_mut::<4>().0.iter_mut().zip(part_a.as_chunks_mut::<4>().0);
    for (i, (places_b, places_a)) in places.enumerate() {
        let mut sums = [[Sum::new(start); 2]; 2];
        for [digit, b, a] in &rows {
            let [digit, b, a] = [&digit[i], &b[i], &a[i]].map(|words| words.as_chunks::<2>().0);
            for half in 0..2 {
                let digit = load_words(&digit[half]);
                sums[0][half].add(digit, load_words(&b[half]));
                sums[1][half].add(digit, load_words(&a[half]));
            }
        }
        for (places, sums) in [places_b, places_a].into_iter().zip(sums) {
            for (place, sum) in places.as_chunks_mut::<2>().0.iter_mut().zip(sums) {
                let mut value = sum.reduce(f, start);
                if !BEGIN {
                    value = f.reduce(vaddq_f64(value, load(place)));
                }
                if END {
                    store_integers(place, f.make_positive(value));
                } else {
                    store(place, value);
                }
            }
        }
    }
}
