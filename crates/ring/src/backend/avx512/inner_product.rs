//! Inner products of digits with a switching key: both components in one pass over the digits, one reduction per sum.
//! Inner products of diagonals with four rows each.

use core::arch::x86_64::*;
use core::mem::MaybeUninit;

use super::arithmetic::lanes::{LAZY_TERMS, Lanes, Sum};
use super::chacha::{self, Chunk};
use crate::Modulus;
use crate::backend::{Term, UniformRow};
use crate::randomness::expander::{self, CHUNK_WORDS};

/// Rows of one group of digits at one chunk: digits, `b` rows and `a` rows.
type Pointers = [[*const u64; 3]; LAZY_TERMS];

/// `out_b = sum_j digits[j] * b[j]` and `out_a = sum_j digits[j] * a[j]`. Seeded rows are expanded a chunk at a time
/// into the first-level cache.
///
/// # Safety
/// There are as many rows in `b` and in `a` as digits, all slices have the length of `out_b`, a multiple of
/// [`CHUNK_WORDS`], and the CPU has the enabled features.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma")]
pub(super) unsafe fn inner_product<L: Lanes>(
    m: &Modulus,
    digits: &[&[u64]],
    b: &[&[u64]],
    a: &[UniformRow<'_>],
    out_b: &mut [u64],
    out_a: &mut [u64],
) {
    let n = out_b.len();
    let mut expanded = [const { MaybeUninit::<Chunk>::uninit() }; LAZY_TERMS];
    let mut states = [[0; 16]; LAZY_TERMS];
    if digits.is_empty() {
        out_b.fill(0);
        out_a.fill(0);
    }
    // SAFETY: by contract.
    let l = unsafe { L::new(m) };
    for first in (0..digits.len()).step_by(LAZY_TERMS) {
        let count = LAZY_TERMS.min(digits.len() - first);
        for (state, row) in states.iter_mut().zip(&a[first..first + count]) {
            if let UniformRow::Seeded(seed, id, _) = row {
                *state = expander::initial_state(seed, *id, 0);
            }
        }
        for start in (0..n).step_by(CHUNK_WORDS) {
            let mut pointers: Pointers = [[core::ptr::null(); 3]; LAZY_TERMS];
            for j in 0..count {
                let row = match a[first + j] {
                    UniformRow::Stored(words) => words[start..].as_ptr(),
                    UniformRow::Seeded(seed, id, first) => {
                        let words = expanded[j].as_mut_ptr().cast::<u64>();
                        let number = ((first + start) / CHUNK_WORDS) as u32;
                        // SAFETY: a chunk; the CPU features are there by contract.
                        unsafe { chacha::residues(&states[j], seed, id, m, number, words) };
                        words.cast_const()
                    }
                };
                pointers[j] = [digits[first + j][start..].as_ptr(), b[first + j][start..].as_ptr(), row];
            }
            let (part_b, part_a) = (out_b[start..].as_mut_ptr(), out_a[start..].as_mut_ptr());
            // SAFETY: `count` rows of a chunk each, and the outputs' chunks.
            unsafe { chunk::<L>(l, &pointers[..count], first > 0, part_b, part_a) };
        }
    }
}

/// Distance in words at which rows are prefetched ahead of the sums. Eighteen streams are more than the hardware
/// prefetcher follows.
const AHEAD: usize = 2 * CHUNK_WORDS;

/// The sums of one chunk, added to the outputs if `resume`.
///
/// # Safety
/// All pointers address a chunk, there are at most [`LAZY_TERMS`] rows, and the CPU has the enabled features.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma")]
unsafe fn chunk<L: Lanes>(l: L, rows: &[[*const u64; 3]], resume: bool, out_b: *mut u64, out_a: *mut u64) {
    // SAFETY: by contract.
    unsafe {
        let zero = _mm512_setzero_si512();
        for i in (0..CHUNK_WORDS).step_by(8) {
            let (to_b, to_a) = (out_b.add(i).cast::<__m512i>(), out_a.add(i).cast::<__m512i>());
            let start =
                |p: *mut __m512i| Sum { high: zero, low: if resume { p.read_unaligned() } else { zero } };
            let (mut sum_b, mut sum_a) = (start(to_b), start(to_a));
            for &[digit, b, a] in rows {
                for row in [digit, b, a] {
                    _mm_prefetch::<_MM_HINT_T0>(row.wrapping_add(i + AHEAD).cast());
                }
                let digit = digit.add(i).cast::<__m512i>().read_unaligned();
                sum_b = l.accumulate(sum_b, digit, b.add(i).cast::<__m512i>().read_unaligned());
                sum_a = l.accumulate(sum_a, digit, a.add(i).cast::<__m512i>().read_unaligned());
            }
            to_b.write_unaligned(l.canonical(l.value(sum_b)));
            to_a.write_unaligned(l.canonical(l.value(sum_a)));
        }
    }
}

/// `out[k] = sum_j factor_j * rows_j[k]`, added to what `out` holds if `add`. Factors come from main memory, in more
/// streams than the hardware prefetcher follows, and rows from the second-level cache: a factor is loaded once, for
/// eight multiplications.
///
/// # Safety
/// All slices of rows have the length of `out[0]`, a multiple of 8; those of factors have that length over `repeat`,
/// which is 1, 2, 4 or 8. The CPU has the enabled features.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma")]
pub(super) unsafe fn inner_products<L: Lanes>(
    m: &Modulus,
    terms: &[Term<'_>],
    repeat: usize,
    add: bool,
    out: [&mut [u64]; 4],
) {
    // SAFETY: by contract; so below.
    unsafe {
        match repeat {
            1 => repeated::<L, 1>(m, terms, add, out),
            2 => repeated::<L, 2>(m, terms, add, out),
            4 => repeated::<L, 4>(m, terms, add, out),
            _ => repeated::<L, 8>(m, terms, add, out),
        }
    }
}

/// [`inner_products`] with words of factors that repeat `R` times.
///
/// # Safety
/// As there.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma")]
unsafe fn repeated<L: Lanes, const R: usize>(
    m: &Modulus,
    terms: &[Term<'_>],
    add: bool,
    out: [&mut [u64]; 4],
) {
    let n = out[0].len();
    let out = out.map(|out| out.as_mut_ptr());
    // SAFETY: by contract; `i + 8 <= n`, because `n` is a multiple of 8.
    unsafe {
        let l = L::new(m);
        let zero = _mm512_setzero_si512();
        for i in (0..n).step_by(8) {
            let start =
                |out: *mut u64| if add { out.add(i).cast::<__m512i>().read_unaligned() } else { zero };
            let mut values = out.map(start);
            for terms in terms.chunks(LAZY_TERMS) {
                let mut sums = values.map(|low| Sum { high: zero, low });
                for term in terms {
                    _mm_prefetch::<_MM_HINT_T0>(term.upcoming.as_ptr().add(i / R).cast());
                    let factor = load_repeated::<R>(term.factor.as_ptr().add(i / R));
                    for (sum, row) in sums.iter_mut().zip(term.rows) {
                        let row = row.as_ptr().add(i).cast::<__m512i>().read_unaligned();
                        *sum = l.accumulate(*sum, factor, row);
                    }
                }
                values = sums.map(|sum| l.canonical(l.value(sum)));
            }
            for (out, value) in out.into_iter().zip(values) {
                out.add(i).cast::<__m512i>().write_unaligned(value);
            }
        }
    }
}

/// `8 / R` words, each in `R` lanes.
///
/// # Safety
/// `p` addresses so many words; the CPU has AVX-512 F.
#[inline(always)]
unsafe fn load_repeated<const R: usize>(p: *const u64) -> __m512i {
    // SAFETY: by contract.
    unsafe {
        match R {
            1 => p.cast::<__m512i>().read_unaligned(),
            2 => {
                let words = _mm512_castsi256_si512(p.cast::<__m256i>().read_unaligned());
                _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 0, 1, 1, 2, 2, 3, 3), words)
            }
            4 => {
                let words = _mm512_castsi128_si512(p.cast::<__m128i>().read_unaligned());
                _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 0, 0, 0, 1, 1, 1, 1), words)
            }
            _ => _mm512_set1_epi64(p.read_unaligned() as i64),
        }
    }
}
