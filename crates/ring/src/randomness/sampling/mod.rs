//! Secret randomness: a seedable cryptographic generator and the distributions of secrets and errors.
//!
//! All samplers write small signed integers; [`crate::Ring::lift_small`] takes them into a residue basis. Branches,
//! memory addresses and running time do not depend on the sampled values.

mod gaussian;
mod generator;
mod samples;
#[cfg(any(target_arch = "arm", test))]
mod sliced;
mod ternary;

pub use gaussian::{GAUSSIAN_BOUND, SIGMA, gaussian};
pub use generator::SecretRng;
pub use samples::Samples;
pub use ternary::{sparse_ternary, ternary};

#[cfg(any(target_arch = "x86_64", all(target_arch = "aarch64", target_feature = "neon")))]
pub(crate) use gaussian::CUMULATIVE;
#[cfg(not(target_arch = "arm"))]
pub(crate) use gaussian::samples as gaussian_samples;
#[cfg(target_arch = "arm")]
pub(crate) use sliced::samples as gaussian_samples;
#[cfg(any(target_arch = "x86_64", all(target_arch = "aarch64", target_feature = "neon")))]
pub(crate) use ternary::THRESHOLDS as TERNARY_THRESHOLDS;
pub(crate) use ternary::samples as ternary_samples;

use zeroize::Zeroizing;

/// Random words that are turned into samples at once: they fit the first-level cache.
const BLOCK: usize = 1024;
/// The same for few samples: a small machine requests no more, and has no larger stack.
const SMALL_BLOCK: usize = super::expander::CHUNK_WORDS;

/// Fills `out` with the samples that `sampler` makes, one per fresh random word.
fn sample(rng: &mut SecretRng, out: &mut [i64], sampler: impl Fn(&[u64], &mut [i64])) {
    if out.len() <= SMALL_BLOCK {
        sample_by::<SMALL_BLOCK>(rng, out, sampler);
    } else {
        sample_by::<BLOCK>(rng, out, sampler);
    }
}

#[inline(never)]
fn sample_by<const SIZE: usize>(rng: &mut SecretRng, out: &mut [i64], sampler: impl Fn(&[u64], &mut [i64])) {
    let mut words = Zeroizing::new([0; SIZE]);
    for samples in out.chunks_mut(SIZE) {
        let words = &mut words[..samples.len()];
        rng.fill_words(words);
        sampler(words, samples);
    }
}
