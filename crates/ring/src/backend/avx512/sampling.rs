//! Samples from uniform words, eight at a time, in registers. No branch and no address depends on them.

use core::arch::x86_64::*;

use crate::randomness::gaussian::CUMULATIVE;
use crate::randomness::{gaussian_samples, ternary};

/// The cumulative distribution as a search tree of 31 nodes, level by level. Node `p` of level `l` is one below the
/// threshold of rank `(2 p + 1) 2^(4 - l) - 1`. Ranks beyond the table are never reached, since no uniform 63-bit value
/// is above their node.
const TREE: [[i64; 16]; 5] = {
    let mut tree = [[i64::MAX; 16]; 5];
    let mut level = 0;
    while level < 5 {
        let mut p = 0;
        while p < 1 << level {
            let rank = ((2 * p + 1) << (4 - level)) - 1;
            if rank < CUMULATIVE.len() {
                tree[level][p] = CUMULATIVE[rank].cast_signed() - 1;
            }
            p += 1;
        }
        level += 1;
    }
    tree
};

/// Half a level, as a register.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma")]
fn table(level: usize, half: usize) -> __m512i {
    // SAFETY: a level has two vectors.
    unsafe { TREE[level].as_ptr().cast::<__m512i>().add(half).read_unaligned() }
}

/// [`gaussian_samples`]: a search of five steps. Register permutations select the thresholds.
///
/// Nodes and uniform values `u` are in `[0, 2^63)`, so the sign of `node - u` tells whether `u` reaches the threshold.
/// A funnel shift appends that bit to the rank.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
pub(super) fn gaussian(words: &[u64], out: &mut [i64]) {
    let (root, last) = (_mm512_set1_epi64(TREE[0][0]), [table(4, 0), table(4, 1)]);
    let inner = [table(1, 0), table(2, 0), table(3, 0)];
    let (one, zero) = (_mm512_set1_epi64(1), _mm512_setzero_si512());
    let ((words, words_left), (out, out_left)) = (words.as_chunks::<8>(), out.as_chunks_mut::<8>());
    for (words, samples) in words.iter().zip(out) {
        // SAFETY: eight words.
        let word = unsafe { words.as_ptr().cast::<__m512i>().read_unaligned() };
        let uniform = _mm512_srli_epi64::<1>(word);
        let mut rank = _mm512_srli_epi64::<63>(_mm512_sub_epi64(root, uniform));
        for level in inner {
            let node = _mm512_permutexvar_epi64(rank, level);
            rank = _mm512_shldi_epi64::<1>(rank, _mm512_sub_epi64(node, uniform));
        }
        let node = _mm512_permutex2var_epi64(last[0], rank, last[1]);
        rank = _mm512_shldi_epi64::<1>(rank, _mm512_sub_epi64(node, uniform));
        let sample = _mm512_mask_sub_epi64(rank, _mm512_test_epi64_mask(word, one), zero, rank);
        // SAFETY: eight samples.
        unsafe { samples.as_mut_ptr().cast::<__m512i>().write_unaligned(sample) };
    }
    gaussian_samples(words_left, out_left);
}

/// [`ternary::samples`].
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma")]
pub(super) fn ternary(words: &[u64], out: &mut [i64]) {
    let thresholds = ternary::THRESHOLDS.map(u64::cast_signed);
    let [first, second] = [_mm512_set1_epi64(thresholds[0]), _mm512_set1_epi64(thresholds[1])];
    let (minus, zero, one) = (_mm512_set1_epi64(-1), _mm512_setzero_si512(), _mm512_set1_epi64(1));
    let ((words, words_left), (out, out_left)) = (words.as_chunks::<8>(), out.as_chunks_mut::<8>());
    for (words, samples) in words.iter().zip(out) {
        // SAFETY: eight words.
        let word = unsafe { words.as_ptr().cast::<__m512i>().read_unaligned() };
        let low = _mm512_mask_mov_epi64(minus, _mm512_cmpge_epu64_mask(word, first), zero);
        let sample = _mm512_mask_mov_epi64(low, _mm512_cmpge_epu64_mask(word, second), one);
        // SAFETY: eight samples.
        unsafe { samples.as_mut_ptr().cast::<__m512i>().write_unaligned(sample) };
    }
    ternary::samples(words_left, out_left);
}
