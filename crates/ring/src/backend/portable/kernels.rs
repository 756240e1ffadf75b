//! Permutation, rows and pointwise products on 64-bit words.

use crate::backend::Quotient;
use crate::conversion::{Decomposer, FRACTION_BITS, SPLIT_BITS};
use crate::{Automorphism, Modulus};

pub(crate) fn permute(automorphism: &Automorphism, input: &[u64], out: &mut [u64]) {
    let tables = automorphism.groups.iter().zip(&automorphism.lanes);
    for (eight, (&group, &lanes)) in out.as_chunks_mut::<8>().0.iter_mut().zip(tables) {
        let source = &input[8 * group as usize..8 * group as usize + 8];
        for (k, word) in eight.iter_mut().enumerate() {
            *word = source[(lanes >> (3 * k) & 7) as usize];
        }
    }
}

/// Residues of small integers: the modulus is added to the negative ones.
pub(crate) fn lift_small(m: &Modulus, values: &[i64], out: &mut [u64]) {
    for (residue, &value) in out.iter_mut().zip(values) {
        *residue = (value as u64).wrapping_add(m.value() & ((value >> 63) as u64));
    }
}

pub(crate) fn quotient(m: &Modulus, quotient: &Quotient<'_>, out: &mut [u64]) {
    let Quotient { dividend, remainder, factor, addend, addend_factor } = *quotient;
    for ((&x, &r), word) in dividend.iter().zip(remainder).zip(&mut *out) {
        *word = m.mul_shoup(x + m.value() - r, factor);
    }
    for (&x, word) in addend.unwrap_or(&[]).iter().zip(out) {
        *word = m.add(*word, addend_factor.map_or(x, |w| m.mul_shoup(x, w)));
    }
}

pub(crate) fn derive_terms(decomposer: &Decomposer, rows: &[&[u64]], out: &mut [u64]) {
    let n = rows.first().map_or(0, |row| row.len());
    let (split, quotients) = out.split_at_mut((decomposer.derived_count() - 1) * n);
    quotients.fill(1 << (FRACTION_BITS - 1));
    let mut split = split.chunks_exact_mut(n);
    let share = |term: u64, fraction: u64| ((u128::from(term) * u128::from(fraction)) >> 52) as u64;
    for (source, row) in decomposer.sources().iter().zip(rows) {
        if source.modulus.is_narrow() {
            for (quotient, &y) in quotients.iter_mut().zip(*row) {
                *quotient += share(y, source.fraction);
            }
        } else if let (Some(low), Some(high)) = (split.next(), split.next()) {
            for i in 0..n {
                low[i] = row[i] & ((1 << SPLIT_BITS) - 1);
                high[i] = row[i] >> SPLIT_BITS;
                quotients[i] += share(low[i], source.fraction) + share(high[i], source.fraction_high);
            }
        }
    }
    for word in quotients {
        *word >>= FRACTION_BITS;
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

/// Below `4q` to canonical.
#[inline(always)]
pub(crate) fn canonical(q: u64, x: u64) -> u64 {
    debug_assert!(x < 4 * q);
    let r = x.min(x.wrapping_sub(2 * q));
    r.min(r.wrapping_sub(q))
}
