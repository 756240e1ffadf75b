//! Uniform ternary samples.

/// `ceil(2^64 k / 3)` for `k = 1, 2`: `floor(3 w / 2^64)` counts those that are at most `w`.
#[cfg(any(target_arch = "x86_64", all(target_arch = "aarch64", target_feature = "neon")))]
pub(crate) const THRESHOLDS: [u64; 2] = [0x5555_5555_5555_5556, 0xAAAA_AAAA_AAAA_AAAB];

/// The samples for given uniform words: the definition of [`crate::backend::Sampling::ternary`].
pub(crate) fn samples(words: &[u64], out: &mut [i64]) {
    for (sample, &word) in out.iter_mut().zip(words) {
        // 3 w / 2^64 from the halves of a word, so that no product overflows.
        let low = (3 * (word & u64::from(u32::MAX))) >> 32;
        *sample = i64::from(((3 * (word >> 32) + low) >> 32) as i32 - 1);
    }
}
