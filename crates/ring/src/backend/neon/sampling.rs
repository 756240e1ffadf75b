//! Samples from uniform words, two to a register. No branch and no address depends on them.

use core::arch::aarch64::*;

use super::residues::{Words, load_integers};
use crate::randomness::gaussian::CUMULATIVE;
use crate::randomness::{gaussian_samples, ternary};

/// Words compared with one threshold: eight registers.
const BLOCK: usize = 16;

#[inline]
#[target_feature(enable = "neon")]
fn load(words: &[u64; BLOCK]) -> [uint64x2_t; BLOCK / 2] {
    let mut registers = [vdupq_n_u64(0); BLOCK / 2];
    for (register, words) in registers.iter_mut().zip(words.as_chunks::<2>().0) {
        *register = load_integers(words);
    }
    registers
}

#[inline]
#[target_feature(enable = "neon")]
fn store(samples: &mut [i64; BLOCK], registers: [int64x2_t; BLOCK / 2]) {
    for (register, samples) in registers.into_iter().zip(samples.as_chunks_mut::<2>().0) {
        // SAFETY: the array has 16 bytes; the store needs no alignment.
        unsafe { vst1q_s64(samples.as_mut_ptr(), register) };
    }
}

/// [`gaussian_samples`]: every threshold is compared with every word.
#[target_feature(enable = "neon")]
pub(super) fn gaussian(words: &[u64], out: &mut [i64]) {
    let ((words, words_left), (out, out_left)) = (words.as_chunks::<BLOCK>(), out.as_chunks_mut::<BLOCK>());
    for (words, samples) in words.iter().zip(out) {
        let loaded = load(words);
        let uniform = loaded.map(|word| vshrq_n_u64::<1>(word));
        let mut ranks = [vdupq_n_s64(0); BLOCK / 2];
        for threshold in CUMULATIVE {
            let threshold = vdupq_n_u64(threshold);
            for (rank, word) in ranks.iter_mut().zip(uniform) {
                // Subtracts the -1 of a threshold that is reached.
                *rank = vsubq_s64(*rank, vreinterpretq_s64_u64(vcgeq_u64(word, threshold)));
            }
        }
        for (rank, word) in ranks.iter_mut().zip(loaded) {
            let negative = vnegq_s64(vreinterpretq_s64_u64(vandq_u64(word, vdupq_n_u64(1))));
            *rank = vsubq_s64(veorq_s64(*rank, negative), negative);
        }
        store(samples, ranks);
    }
    gaussian_samples(words_left, out_left);
}

/// [`ternary::samples`].
#[target_feature(enable = "neon")]
pub(super) fn ternary(words: &[u64], out: &mut [i64]) {
    let ((words, words_left), (out, out_left)) = (words.as_chunks::<BLOCK>(), out.as_chunks_mut::<BLOCK>());
    for (words, samples) in words.iter().zip(out) {
        let mut ranks = [vdupq_n_s64(-1); BLOCK / 2];
        for (rank, word) in ranks.iter_mut().zip(load(words)) {
            for threshold in ternary::THRESHOLDS {
                *rank = vsubq_s64(*rank, vreinterpretq_s64_u64(vcgeq_u64(word, vdupq_n_u64(threshold))));
            }
        }
        store(samples, ranks);
    }
    ternary::samples(words_left, out_left);
}

const _: () = assert!(size_of::<Words>() == size_of::<uint64x2_t>());
