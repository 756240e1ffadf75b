//! Permutation, rows and pointwise products on 64-bit words.

use crate::conversion::{Decomposer, FRACTION_BITS, SPLIT_BITS};
use crate::{Automorphism, Modulus, ShoupFactor};

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
        let (Some(low), high) = (rows.next(), if m.is_narrow() { None } else { rows.next() }) else {
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
