//! Sums of products in 128 bits: basis conversion and key inner product, a chunk at a time, reduced once per sum.

use alloc::vec::Vec;

use super::ntt::canonical;
use crate::backend::UniformRow;
use crate::conversion::Column;
use crate::expander::{self, CHUNK_WORDS};
use crate::{Modulus, Seed, StreamId};

/// Products of canonical residues that a 128-bit sum holds: `64 * 2^122 = 2^128`, less one for the remainder.
const LAZY_TERMS: usize = 63;

type Chunk = [u64; CHUNK_WORDS];
type Sums = [u128; CHUNK_WORDS];

/// Barrett reduction with one high product.
///
/// # Invariant
/// `shift = b - 1` for a modulus of `b` bits, `ratio = floor(2^(64 + shift) / q)`, which is below `2^64`. For
/// `x < 2^(64 + shift)` the quotient `floor(floor(x / 2^shift) ratio / 2^64)` is less than 3 below `x / q`: less than 1 for
/// each of the three roundings, as `2^shift < q` and `x / 2^shift < 2^64`. The remainder is below `4q`.
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

#[inline(always)]
fn accumulate<const J: usize>(sums: &mut Sums, x: [&Chunk; J], y: impl Fn(usize, usize) -> u64) {
    for (i, sum) in sums.iter_mut().enumerate() {
        for (j, words) in x.iter().enumerate() {
            *sum += u128::from(words[i]) * u128::from(y(j, i));
        }
    }
}

/// Chunk `number` of a limb.
#[inline(always)]
fn chunk(limb: &[u64], number: usize) -> &Chunk {
    &limb.as_chunks::<CHUNK_WORDS>().0[number]
}

/// Inner product of rows with a column: canonical, or with `CANONICAL` false below `4p`. Rows are below `2^50`, so a sum of
/// at most [`crate::conversion::MAX_ROWS`] products is below `2^58 p < 2^(64 + shift)`.
pub(crate) fn convert<const CANONICAL: bool>(column: &Column, rows: &[&[u64]], out: &mut [u64]) {
    debug_assert_eq!(rows.len(), column.constants.len());
    let (barrett, c) = (LazyBarrett::new(&column.modulus), &column.constants);
    for (number, part) in out.as_chunks_mut::<CHUNK_WORDS>().0.iter_mut().enumerate() {
        let mut sums = [0; CHUNK_WORDS];
        let row = |j: usize| chunk(rows[j], number);
        let mut j = 0;
        while j < rows.len() {
            match rows.len() - j {
                1 => accumulate(&mut sums, [row(j)], |_, _| c[j]),
                2 => accumulate(&mut sums, [row(j), row(j + 1)], |k, _| [c[j], c[j + 1]][k]),
                _ => accumulate(&mut sums, [row(j), row(j + 1), row(j + 2)], |k, _| {
                    [c[j], c[j + 1], c[j + 2]][k]
                }),
            }
            j += 3;
        }
        for (word, sum) in part.iter_mut().zip(sums) {
            let lazy = barrett.reduce(sum);
            *word = if CANONICAL { canonical(barrett.q, lazy) } else { lazy };
        }
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
    let mut sums = [0; CHUNK_WORDS];
    let digit = |j: usize| chunk(digits[j], number);
    let mut j = 0;
    while j < digits.len() {
        match digits.len() - j {
            1 => accumulate(&mut sums, [digit(j)], |_, i| row(j)[i]),
            2 => {
                let y = [row(j), row(j + 1)];
                accumulate(&mut sums, [digit(j), digit(j + 1)], |k, i| y[k][i]);
            }
            _ => {
                let y = [row(j), row(j + 1), row(j + 2)];
                accumulate(&mut sums, [digit(j), digit(j + 1), digit(j + 2)], |k, i| y[k][i]);
            }
        }
        j += 3;
        if j % LAZY_TERMS == 0 {
            sums.iter_mut().for_each(|sum| *sum = u128::from(m.reduce_u128(*sum)));
        }
    }
    for (word, sum) in out.iter_mut().zip(sums) {
        // Narrow: 63 q^2 + q < 2^(56 + b) < 2^(64 + shift).
        *word = if m.is_narrow() { canonical(barrett.q, barrett.reduce(sum)) } else { m.reduce_u128(sum) };
    }
}

/// Where the rows of a key's uniform half come from, chunk by chunk.
enum Source<'a> {
    Stored(&'a [u64]),
    Expanded { seed: &'a Seed, id: StreamId, state: [u32; 16], words: Chunk },
}

pub(crate) fn inner_product(
    m: &Modulus,
    digits: &[&[u64]],
    b: &[&[u64]],
    a: &[UniformRow<'_>],
    out_b: &mut [u64],
    out_a: &mut [u64],
) {
    debug_assert!(digits.len() == b.len() && digits.len() == a.len());
    let barrett = LazyBarrett::new(m);
    let mut sources: Vec<Source<'_>> = a
        .iter()
        .map(|row| match *row {
            UniformRow::Stored(words) => Source::Stored(words),
            UniformRow::Seeded(seed, id) => {
                let state = expander::initial_state(seed, id, 0);
                Source::Expanded { seed, id, state, words: [0; CHUNK_WORDS] }
            }
        })
        .collect();
    let parts = out_b.as_chunks_mut().0.iter_mut().zip(out_a.as_chunks_mut().0);
    for (number, (part_b, part_a)) in parts.enumerate() {
        for source in &mut sources {
            if let Source::Expanded { seed, id, state, words } = source {
                expander::chunk(state, number as u32, words);
                expander::accept(seed, *id, m, number * CHUNK_WORDS, words);
            }
        }
        dot_chunk(m, &barrett, digits, |j| chunk(b[j], number), number, part_b);
        let row = |j: usize| match &sources[j] {
            Source::Stored(words) => chunk(words, number),
            Source::Expanded { words, .. } => words,
        };
        dot_chunk(m, &barrett, digits, row, number, part_a);
    }
}
