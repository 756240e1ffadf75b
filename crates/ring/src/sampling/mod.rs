//! Secret randomness: a seedable cryptographic generator and the distributions of secrets and errors.
//!
//! All samplers write small signed integers; [`crate::Ring::lift_small`] takes them into a residue basis. Branches,
//! memory addresses and running time do not depend on the sampled values.

mod generator;
mod samples;
mod sparse;

pub use crate::randomness::gaussian::{GAUSSIAN_BOUND, SIGMA};
pub use generator::SecretRng;
pub use samples::Samples;
pub use sparse::sparse_ternary;

use zeroize::Zeroizing;

/// Random words that are turned into samples at once: they fit the first-level cache.
const BLOCK: usize = 1024;
/// The same for few samples: a small machine requests no more, and has no larger stack.
const SMALL_BLOCK: usize = crate::expander::CHUNK_WORDS;

/// Fills `out` with independent discrete Gaussian samples. One random word each: 63 bits select the magnitude, one the
/// sign.
pub fn gaussian(rng: &mut SecretRng, out: &mut [i64]) {
    let backend = rng.backend();
    sample(rng, out, |words, samples| backend.gaussian(words, samples));
}

/// Fills `out` with independent uniform samples of `{-1, 0, 1}` (bias below `2^-62`).
pub fn ternary(rng: &mut SecretRng, out: &mut [i64]) {
    let backend = rng.backend();
    sample(rng, out, |words, samples| backend.ternary(words, samples));
}

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

#[cfg(test)]
mod tests {
    use super::*;

    /// Chi-square against the density itself, not against the table.
    #[test]
    fn distribution_is_the_discrete_gaussian() {
        const COUNT: usize = 1 << 20;
        let mut samples = alloc::vec![0; COUNT];
        gaussian(&mut SecretRng::from_entropy(&Zeroizing::new([1; 32])), &mut samples);
        assert!(samples.iter().all(|x| x.abs() <= GAUSSIAN_BOUND));
        let rho = |k: i64| (-((k * k) as f64) / (2.0 * SIGMA * SIGMA)).exp();
        let total: f64 = (-60..=60).map(rho).sum();
        let mut chi2 = 0.0;
        for k in -12..=12 {
            let expected = COUNT as f64 * rho(k) / total;
            let seen = samples.iter().filter(|&&x| x == k).count() as f64;
            chi2 += (seen - expected) * (seen - expected) / expected;
        }
        // 25 classes: mean 24, deviation sqrt(48); six deviations.
        assert!(chi2 < 24.0 + 6.0 * 48.0f64.sqrt(), "chi-square {chi2}");
    }

    #[test]
    fn uniform_ternary_is_uniform() {
        let mut out = alloc::vec![0; 300_000];
        ternary(&mut SecretRng::from_entropy(&Zeroizing::new([7; 32])), &mut out);
        for value in -1..=1 {
            let seen = out.iter().filter(|&&x| x == value).count() as f64;
            // Binomial with mean 100000 and deviation 258.
            assert!((seen - 100_000.0).abs() < 6.0 * 258.2, "{value}: {seen}");
        }
    }
}
