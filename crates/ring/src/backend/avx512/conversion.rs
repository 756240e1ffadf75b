//! Basis conversion: terms, and their inner products with columns of constants.

use core::arch::x86_64::*;
use core::mem::MaybeUninit;

use super::arithmetic::lanes::{LAZY_TERMS, Lanes, Sum};
use crate::conversion::{Column, Decomposer, FRACTION_BITS, MAX_TERMS, SPLIT_BITS};

/// Vectors that are summed side by side.
const SIDE: usize = 4;
/// The words of these vectors.
pub(super) const SUM_WORDS: usize = 8 * SIDE;

/// Inner products of `count` words of terms with a column: lazy words below `2U`. Calls `meanwhile` with the index of
/// each block of [`SUM_WORDS`] words.
///
/// # Safety
/// `count` is a multiple of [`SUM_WORDS`]; `out` addresses `count` words; the CPU has the enabled features.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma")]
pub(super) unsafe fn words<'t, L: Lanes>(
    l: L,
    column: &Column,
    terms: impl Iterator<Item = &'t [u64]>,
    count: usize,
    out: *mut u64,
    mut meanwhile: impl FnMut(usize),
) {
    let constants = L::constants(column);
    let mut pointers = [MaybeUninit::<*const u64>::uninit(); MAX_TERMS];
    let mut given = 0;
    for (pointer, term) in pointers.iter_mut().zip(terms) {
        assert_eq!(term.len(), count, "terms of the announced length");
        pointer.write(term.as_ptr());
        given += 1;
    }
    assert_eq!(given, constants.len(), "a term for every constant");
    // SAFETY: as many pointers as there are constants were written, each to `count` words.
    unsafe {
        let zero = _mm512_setzero_si512();
        for at in (0..count).step_by(SUM_WORDS) {
            meanwhile(at / SUM_WORDS);
            let mut total = [zero; SIDE];
            let groups = pointers.chunks(LAZY_TERMS).zip(constants.chunks(LAZY_TERMS));
            for (group, (pointers, constants)) in groups.enumerate() {
                let mut sums = [Sum { high: zero, low: zero }; SIDE];
                for (term, &constant) in pointers.iter().zip(constants) {
                    let constant = _mm512_set1_epi64(constant as i64);
                    let term = term.assume_init().add(at).cast::<__m512i>();
                    for k in 0..SIDE {
                        sums[k] = l.accumulate(sums[k], term.add(k).read_unaligned(), constant);
                    }
                }
                for k in 0..SIDE {
                    let value = l.converted(sums[k]);
                    // Both summands below U.
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

/// The derived terms of `n` words of every row, see [`crate::backend::KeySwitching::derive_terms`].
///
/// # Safety
/// All rows have `n` words, a multiple of 8, and `out` has `n` for every derived term; the CPU has the enabled
/// features. Fractions are below `2^52`, see [`crate::conversion::MIN_SOURCE_BITS`].
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma")]
pub(super) unsafe fn derive_terms(decomposer: &Decomposer, rows: &[&[u64]], n: usize, out: &mut [u64]) {
    let mask = _mm512_set1_epi64((1 << SPLIT_BITS) - 1);
    let out = out.as_mut_ptr();
    // SAFETY: `at` is a multiple of 8 below `n`; each wide source has two derived terms, and the quotients are the
    // last.
    unsafe {
        for at in (0..n).step_by(8) {
            let mut sum = _mm512_set1_epi64(1 << (FRACTION_BITS - 1));
            let mut place = out.add(at);
            for (source, row) in decomposer.sources().iter().zip(rows) {
                let y = row.as_ptr().add(at).cast::<__m512i>().read_unaligned();
                let fraction = _mm512_set1_epi64(source.fraction as i64);
                if source.modulus.is_narrow() {
                    sum = _mm512_madd52hi_epu64(sum, y, fraction);
                } else {
                    let (low, high) = (_mm512_and_si512(y, mask), _mm512_srli_epi64::<SPLIT_BITS>(y));
                    place.cast::<__m512i>().write_unaligned(low);
                    place.add(n).cast::<__m512i>().write_unaligned(high);
                    place = place.add(2 * n);
                    sum = _mm512_madd52hi_epu64(sum, low, fraction);
                    sum = _mm512_madd52hi_epu64(sum, high, _mm512_set1_epi64(source.fraction_high as i64));
                }
            }
            place.cast::<__m512i>().write_unaligned(_mm512_srli_epi64::<FRACTION_BITS>(sum));
        }
    }
}
