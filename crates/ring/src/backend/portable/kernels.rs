//! Pointwise, conversion and inner-product kernels on 64-bit words.

use crate::backend::UniformRow;
use crate::conversion::{Column, Decomposer, FRACTION_BITS, SPLIT_BITS};
use crate::expander::{self, CHUNK_WORDS};
use crate::{Automorphism, Modulus, ShoupFactor};

/// Products of canonical residues that a 128-bit sum holds: `64 * 2^122 = 2^128`, less one for the remainder.
const LAZY_TERMS: usize = 63;

pub(crate) fn permute(automorphism: &Automorphism, input: &[u64], out: &mut [u64]) {
    let tables = automorphism.groups.iter().zip(&automorphism.lanes);
    for (eight, (&group, &lanes)) in out.as_chunks_mut::<8>().0.iter_mut().zip(tables) {
        let source = &input[8 * group as usize..8 * group as usize + 8];
        for (k, word) in eight.iter_mut().enumerate() {
            *word = source[(lanes >> (3 * k) & 7) as usize];
        }
    }
}

pub(crate) fn digit_rows(decomposer: &Decomposer, limbs: &[&[u64]], rows: &mut [u64]) {
    let n = limbs.first().map_or(0, |limb| limb.len());
    let (rows, quotient) = rows.split_at_mut((decomposer.row_count() - 1) * n);
    quotient.fill(1 << (FRACTION_BITS - 1));
    let mut rows = rows.chunks_exact_mut(n);
    for (source, limb) in decomposer.sources().iter().zip(limbs) {
        let m = &source.modulus;
        let (Some(low), high) =
            (rows.next(), if m.is_narrow() { None } else { rows.next() })
        else {
            unreachable!("row_count counts these rows")
        };
        if let Some(high) = high {
            for i in 0..n {
                let y = m.mul_shoup(limb[i], source.factor);
                low[i] = y & ((1 << SPLIT_BITS) - 1);
                high[i] = y >> SPLIT_BITS;
                quotient[i] += ((u128::from(low[i]) * u128::from(source.fraction)) >> 52) as u64
                    + ((u128::from(high[i]) * u128::from(source.fraction_high)) >> 52) as u64;
            }
        } else {
            for i in 0..n {
                let y = m.mul_shoup(limb[i], source.factor);
                low[i] = y;
                quotient[i] += ((u128::from(y) * u128::from(source.fraction)) >> 52) as u64;
            }
        }
    }
    for word in quotient {
        *word >>= FRACTION_BITS;
    }
}

pub(crate) fn convert(column: &Column, rows: &[&[u64]], out: &mut [u64]) {
    // Rows are below 2^50 and constants below 2^61: 2^17 terms would fit 128 bits.
    debug_assert_eq!(rows.len(), column.constants.len());
    for (i, word) in out.iter_mut().enumerate() {
        let sum = rows
            .iter()
            .zip(&column.constants)
            .map(|(row, &c)| u128::from(row[i]) * u128::from(c))
            .sum::<u128>();
        *word = column.modulus.reduce_u128(sum);
    }
}

/// `out = sum_j digits[j] * row(j)`, where `row(j)` gives a chunk of a key row.
fn dot_chunk<'a>(m: &Modulus, digits: &[&[u64]], row: impl Fn(usize) -> &'a [u64], start: usize, out: &mut [u64]) {
    for (i, word) in out.iter_mut().enumerate() {
        let mut sum = 0u128;
        for (j, digit) in digits.iter().enumerate() {
            sum += u128::from(digit[start + i]) * u128::from(row(j)[i]);
            if j % LAZY_TERMS == LAZY_TERMS - 1 {
                sum = u128::from(m.reduce_u128(sum));
            }
        }
        *word = m.reduce_u128(sum);
    }
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
    let mut expanded = alloc::vec![[0; CHUNK_WORDS]; a.len()];
    let states: alloc::vec::Vec<_> = a
        .iter()
        .map(|row| match row {
            UniformRow::Stored(_) => [0; 16],
            UniformRow::Seeded(seed, id) => expander::initial_state(seed, *id, 0),
        })
        .collect();
    let chunks = out_b.chunks_mut(CHUNK_WORDS).zip(out_a.chunks_mut(CHUNK_WORDS));
    for (number, (part_b, part_a)) in chunks.enumerate() {
        let start = number * CHUNK_WORDS;
        for ((row, state), words) in a.iter().zip(&states).zip(&mut expanded) {
            if let UniformRow::Seeded(seed, id) = row {
                expander::chunk(state, number as u32, words);
                expander::accept(seed, *id, m, start, words);
            }
        }
        let end = start + part_b.len();
        dot_chunk(m, digits, |j| &b[j][start..end], start, part_b);
        let row = |j: usize| match &a[j] {
            UniformRow::Stored(words) => &words[start..end],
            UniformRow::Seeded(..) => &expanded[j][..],
        };
        dot_chunk(m, digits, row, start, part_a);
    }
}

pub(crate) fn mul(m: &Modulus, a: &[u64], b: &[u64], out: &mut [u64]) {
    for ((&x, &y), word) in a.iter().zip(b).zip(out) {
        *word = m.mul(x, y);
    }
}

pub(crate) fn mul_add_assign(m: &Modulus, acc: &mut [u64], a: &[u64], b: &[u64]) {
    for ((&x, &y), word) in a.iter().zip(b).zip(acc) {
        *word = m.reduce_u128(u128::from(x) * u128::from(y) + u128::from(*word));
    }
}

pub(crate) fn sub_mul_scalar(m: &Modulus, a: &[u64], b: &[u64], w: ShoupFactor, out: &mut [u64]) {
    for ((&x, &y), word) in a.iter().zip(b).zip(out) {
        *word = m.mul_shoup(x + m.value() - y, w);
    }
}
