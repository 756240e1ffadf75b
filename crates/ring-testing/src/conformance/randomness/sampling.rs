use keywright_ring::Backend;
use keywright_ring::expander::CHUNK_WORDS;

use crate::conformance::{assert_limb, portable};
use crate::samples::SplitMix64;

/// The key stream equals that of the portable back end, also where the block number exceeds 32 bits.
pub fn key_stream_equals_portable(backend: &'static dyn Backend) {
    let key = core::array::from_fn(|i| (i as u32).wrapping_mul(0x9E37_79B9));
    for first in [0, 16, (1 << 32) - 32, 1 << 40, u64::MAX - 127] {
        for chunks in [0, 1, 2, 3, 8] {
            let (mut seen, mut expected) =
                (vec![u64::MAX; chunks * CHUNK_WORDS], vec![0; chunks * CHUNK_WORDS]);
            backend.key_stream(&key, first, &mut seen);
            portable().key_stream(&key, first, &mut expected);
            assert_limb(&seen, &expected, || format!("{chunks} chunks from block {first} on"));
        }
    }
}

/// Samples equal those of the portable back end, for words around every boundary between samples and for any length.
pub fn samples_equal_portable(backend: &'static dyn Backend) {
    let mut random = SplitMix64(11);
    let mut words: Vec<u64> = (0..4096).map(|_| random.next_word()).collect();
    // Bisection finds the boundary between two words with different samples.
    for kernel in [gaussian, ternary] {
        let mut sorted = words.clone();
        sorted.extend([0, 1, 2, 3, u64::MAX - 3, u64::MAX - 2, u64::MAX - 1, u64::MAX]);
        for step in 0..64 {
            sorted.extend([u64::MAX << step, !(u64::MAX << step)]);
        }
        // The first bit of a Gaussian word is its sign.
        sorted.iter_mut().for_each(|word| *word &= !1);
        sorted.sort_unstable();
        for pair in sorted.windows(2) {
            let (mut low, mut high) = (pair[0], pair[1]);
            if kernel(portable(), &[low]) == kernel(portable(), &[high]) {
                continue;
            }
            while high - low > 2 {
                let middle = (low + (high - low) / 2) & !1;
                let same = kernel(portable(), &[middle]) == kernel(portable(), &[low]);
                *(if same { &mut low } else { &mut high }) = middle;
            }
            words.extend([low, low | 1, high, high | 1]);
        }
    }
    for length in (0..40).chain([words.len()]) {
        for kernel in [gaussian, ternary] {
            assert_eq!(
                kernel(backend, &words[..length]),
                kernel(portable(), &words[..length]),
                "{length} words"
            );
        }
    }
}

fn gaussian(backend: &dyn Backend, words: &[u64]) -> Vec<i64> {
    let mut out = vec![i64::MAX; words.len()];
    backend.gaussian(words, &mut out);
    out
}

fn ternary(backend: &dyn Backend, words: &[u64]) -> Vec<i64> {
    let mut out = vec![i64::MAX; words.len()];
    backend.ternary(words, &mut out);
    out
}
