use alloc::vec::Vec;
use core::fmt;
use core::ops::Deref;

use super::{SecretRng, gaussian, ternary};

/// The coefficients of a secret or an error, wiped when they are dropped.
pub struct Samples(Vec<i64>);

impl Samples {
    /// `n` independent discrete Gaussian samples.
    pub fn gaussian(n: usize, rng: &mut SecretRng) -> Self {
        let mut samples = Self(alloc::vec![0; n]);
        gaussian(rng, &mut samples.0);
        samples
    }

    /// `n` independent uniform samples of `{-1, 0, 1}`.
    pub fn ternary(n: usize, rng: &mut SecretRng) -> Self {
        let mut samples = Self(alloc::vec![0; n]);
        ternary(rng, &mut samples.0);
        samples
    }
}

impl Deref for Samples {
    type Target = [i64];

    fn deref(&self) -> &[i64] {
        &self.0
    }
}

impl Drop for Samples {
    fn drop(&mut self) {
        // A vector's own `zeroize` writes word by word, and all of it twice.
        self.0.fill(0);
        zeroize::optimization_barrier(&*self.0);
    }
}

impl fmt::Debug for Samples {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Samples({})", self.0.len())
    }
}
