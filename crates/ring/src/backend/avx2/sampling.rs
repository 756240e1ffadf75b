//! Samples from uniform words, four to a register. No branch and no address depends on them.

use core::arch::x86_64::*;

use crate::randomness::gaussian::CUMULATIVE;
use crate::randomness::{gaussian_samples, ternary};

/// Words compared with one threshold: four registers.
const BLOCK: usize = 16;

#[inline]
#[target_feature(enable = "avx2,fma")]
fn load(words: &[u64; BLOCK]) -> [__m256i; 4] {
    let mut registers = [_mm256_setzero_si256(); 4];
    for (register, words) in registers.iter_mut().zip(words.as_chunks::<4>().0) {
        // SAFETY: the array has 32 bytes; the load needs no alignment.
        *register = unsafe { _mm256_loadu_si256(words.as_ptr().cast()) };
    }
    registers
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn store(samples: &mut [i64; BLOCK], registers: [__m256i; 4]) {
    for (register, samples) in registers.into_iter().zip(samples.as_chunks_mut::<4>().0) {
        // SAFETY: the array has 32 bytes; the store needs no alignment.
        unsafe { _mm256_storeu_si256(samples.as_mut_ptr().cast(), register) };
    }
}

/// [`gaussian_samples`]: every threshold is compared with every word.
#[target_feature(enable = "avx2,fma")]
pub(super) fn gaussian(words: &[u64], out: &mut [i64]) {
    let all = _mm256_set1_epi64x(CUMULATIVE.len() as i64);
    let (zero, one) = (_mm256_setzero_si256(), _mm256_set1_epi64x(1));
    let ((words, words_left), (out, out_left)) = (words.as_chunks::<BLOCK>(), out.as_chunks_mut::<BLOCK>());
    for (words, samples) in words.iter().zip(out) {
        let loaded = load(words);
        let (mut uniform, mut ranks) = (loaded, [all; 4]);
        for word in &mut uniform {
            *word = _mm256_srli_epi64::<1>(*word);
        }
        for threshold in CUMULATIVE {
            // Both are below 2^63, so the signed comparison is right. It subtracts 1 where the threshold is larger.
            let threshold = _mm256_set1_epi64x(threshold.cast_signed());
            for (rank, word) in ranks.iter_mut().zip(uniform) {
                *rank = _mm256_add_epi64(*rank, _mm256_cmpgt_epi64(threshold, word));
            }
        }
        for (rank, word) in ranks.iter_mut().zip(loaded) {
            let negative = _mm256_sub_epi64(zero, _mm256_and_si256(word, one));
            *rank = _mm256_sub_epi64(_mm256_xor_si256(*rank, negative), negative);
        }
        store(samples, ranks);
    }
    gaussian_samples(words_left, out_left);
}

/// [`ternary::samples`].
#[target_feature(enable = "avx2,fma")]
pub(super) fn ternary(words: &[u64], out: &mut [i64]) {
    // Unsigned order is that of signed words whose first bit is flipped.
    let flip = _mm256_set1_epi64x(i64::MIN);
    let minus = _mm256_set1_epi64x(-1);
    let ((words, words_left), (out, out_left)) = (words.as_chunks::<BLOCK>(), out.as_chunks_mut::<BLOCK>());
    for (words, samples) in words.iter().zip(out) {
        let mut registers = load(words);
        for register in &mut registers {
            let (word, mut sample) = (_mm256_xor_si256(*register, flip), minus);
            for threshold in ternary::THRESHOLDS {
                let below = _mm256_set1_epi64x((threshold - 1).cast_signed() ^ i64::MIN);
                sample = _mm256_sub_epi64(sample, _mm256_cmpgt_epi64(word, below));
            }
            *register = sample;
        }
        store(samples, registers);
    }
    ternary::samples(words_left, out_left);
}
