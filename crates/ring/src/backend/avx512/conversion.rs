//! Basis conversion: rows of residues, and their inner products with columns of constants.

use core::arch::x86_64::*;

use super::lanes::{LAZY_TERMS, Lanes, Sum, splat_factor};
use super::narrow::Narrow;
use super::wide::Wide;
use crate::conversion::{Column, Decomposer, FRACTION_BITS, SPLIT_BITS, Source};

/// Vectors that are summed side by side.
const SIDE: usize = 4;

/// Vectors ahead of the sums at which rows are prefetched: the tile of [`super::ntt`] that comes next.
const AHEAD: usize = 8;

/// Inner products of words `start..start + count` of the rows with a column: lazy words below `4q`.
///
/// # Safety
/// Every row has these words, `out` addresses `count` words, `count` is a multiple of 32, and there is a constant for
/// every row; the CPU has the enabled features.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma")]
pub(super) unsafe fn words<L: Lanes>(
    l: L,
    column: &Column,
    rows: &[&[u64]],
    start: usize,
    count: usize,
    out: *mut u64,
) {
    // SAFETY: by contract.
    unsafe {
        let zero = _mm512_setzero_si512();
        for at in (0..count).step_by(8 * SIDE) {
            let mut total = [zero; SIDE];
            let groups = rows.chunks(LAZY_TERMS).zip(L::constants(column).chunks(LAZY_TERMS));
            for (group, (rows, constants)) in groups.enumerate() {
                let mut sums = [Sum { high: zero, low: zero }; SIDE];
                for (row, &constant) in rows.iter().zip(constants) {
                    let constant = _mm512_set1_epi64(constant as i64);
                    let row = row.as_ptr().add(start + at).cast::<__m512i>();
                    for k in 0..SIDE {
                        _mm_prefetch::<_MM_HINT_T0>(row.wrapping_add(k + AHEAD).cast());
                        sums[k] = l.accumulate(sums[k], row.add(k).read_unaligned(), constant);
                    }
                }
                for k in 0..SIDE {
                    let value = l.converted(sums[k]);
                    // Both summands below 2q.
                    total[k] = if group == 0 {
                        value
                    } else {
                        _mm512_add_epi64(l.reduce(total[k]), l.reduce(value))
                    };
                }
            }
            for k in 0..SIDE {
                out.add(at).cast::<__m512i>().add(k).write_unaligned(total[k]);
            }
        }
    }
}

/// Inner products of rows with a column, canonical.
///
/// # Safety
/// Rows are as long as `out`, a multiple of 32 words; there is a constant for every row; the CPU has the enabled features.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma")]
pub(super) unsafe fn convert<L: Lanes>(column: &Column, rows: &[&[u64]], out: &mut [u64]) {
    const TILE: usize = 512;
    // SAFETY: by contract; tiles are parts of `out`.
    unsafe {
        let l = L::new(&column.modulus);
        for (number, tile) in out.chunks_mut(TILE).enumerate() {
            words::<L>(l, column, rows, number * TILE, tile.len(), tile.as_mut_ptr());
            for eight in tile.as_chunks_mut::<8>().0 {
                let p = eight.as_mut_ptr().cast::<__m512i>();
                p.write_unaligned(l.canonical(l.reduce(p.read_unaligned())));
            }
        }
    }
}

/// Writes the rows of `limbs`, see [`crate::conversion`].
///
/// # Safety
/// All limbs have `n` words, a multiple of 8, `rows` has `n` words for each row of the decomposer; the CPU has the enabled
/// features. Fractions are below `2^52`, see [`crate::conversion::MIN_SOURCE_BITS`].
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma")]
pub(super) unsafe fn digit_rows(decomposer: &Decomposer, limbs: &[&[u64]], n: usize, rows: &mut [u64]) {
    // The quotients of a tile stay in the first-level cache while the sources are visited.
    const TILE: usize = 512;
    let quotients = (decomposer.row_count() - 1) * n;
    for start in (0..n).step_by(TILE) {
        let count = TILE.min(n - start);
        rows[quotients + start..quotients + start + count].fill(1 << (FRACTION_BITS - 1));
        let mut row = 0;
        for (source, limb) in decomposer.sources().iter().zip(limbs) {
            let (base, limb) = (rows.as_mut_ptr(), &limb[start..start + count]);
            // SAFETY: each row and the quotients have `count` words from `start`.
            unsafe {
                let (low, quotient) = (base.add(row * n + start), base.add(quotients + start));
                if source.modulus.is_narrow() {
                    row += 1;
                    narrow_row(source, limb, low, quotient);
                } else {
                    row += 2;
                    wide_rows(source, limb, low, low.add(n), quotient);
                }
            }
        }
        for eight in rows[quotients + start..quotients + start + count].as_chunks_mut::<8>().0 {
            let p = eight.as_mut_ptr().cast::<__m512i>();
            // SAFETY: eight words.
            unsafe { p.write_unaligned(_mm512_srli_epi64::<FRACTION_BITS>(p.read_unaligned())) };
        }
    }
}

/// The row of a narrow source, and its share of the quotients.
///
/// # Safety
/// `row` and `quotient` address as many words as `limb` has, a multiple of 8; the CPU has the enabled features.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma")]
unsafe fn narrow_row(source: &Source, limb: &[u64], row: *mut u64, quotient: *mut u64) {
    // SAFETY: by contract.
    unsafe {
        let l = Narrow::new(&source.modulus);
        let factor = splat_factor::<Narrow>(source.factor);
        let fraction = _mm512_set1_epi64(source.fraction as i64);
        for i in (0..limb.len()).step_by(8) {
            let y = l.canonical(l.product(limb.as_ptr().add(i).cast::<__m512i>().read_unaligned(), factor));
            row.add(i).cast::<__m512i>().write_unaligned(y);
            let v = quotient.add(i).cast::<__m512i>();
            v.write_unaligned(_mm512_madd52hi_epu64(v.read_unaligned(), y, fraction));
        }
    }
}

/// The two rows of a wide source, and their share of the quotients.
///
/// # Safety
/// `low`, `high` and `quotient` address as many words as `limb` has, a multiple of 8; the CPU has the enabled features.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma")]
unsafe fn wide_rows(source: &Source, limb: &[u64], low: *mut u64, high: *mut u64, quotient: *mut u64) {
    // SAFETY: by contract.
    unsafe {
        let l = Wide::new(&source.modulus);
        let factor = splat_factor::<Wide>(source.factor);
        let fraction = _mm512_set1_epi64(source.fraction as i64);
        let fraction_high = _mm512_set1_epi64(source.fraction_high as i64);
        let mask = _mm512_set1_epi64((1 << SPLIT_BITS) - 1);
        for i in (0..limb.len()).step_by(8) {
            let y = l.canonical(l.product(limb.as_ptr().add(i).cast::<__m512i>().read_unaligned(), factor));
            let (y0, y1) = (_mm512_and_si512(y, mask), _mm512_srli_epi64::<SPLIT_BITS>(y));
            low.add(i).cast::<__m512i>().write_unaligned(y0);
            high.add(i).cast::<__m512i>().write_unaligned(y1);
            let v = quotient.add(i).cast::<__m512i>();
            let sum = _mm512_madd52hi_epu64(v.read_unaligned(), y0, fraction);
            v.write_unaligned(_mm512_madd52hi_epu64(sum, y1, fraction_high));
        }
    }
}
