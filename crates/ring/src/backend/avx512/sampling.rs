//! The portable samplers, compiled for wider registers: they are comparisons and additions side by side.

use crate::sampling::{gaussian_of, ternary_of};

/// # Safety
/// The CPU has the features.
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
pub(super) unsafe fn gaussian(words: &[u64], out: &mut [i64]) {
    gaussian_of(words, out);
}

/// # Safety
/// The CPU has the features.
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
pub(super) unsafe fn ternary(words: &[u64], out: &mut [i64]) {
    ternary_of(words, out);
}
