use core::fmt;
use core::ops::Deref;

use zeroize::Zeroize;

use super::{SecretRng, gaussian, ternary};
use crate::Buffer;

/// The coefficients of a secret or an error, in recycled memory that is wiped when they are dropped.
pub struct Samples(Buffer);

impl Samples {
    /// `n` independent discrete Gaussian samples.
    pub fn gaussian(n: usize, rng: &mut SecretRng) -> Self {
        let mut samples = Self(Buffer::unspecified(n));
        gaussian(rng, samples.0.signed_mut());
        samples
    }

    /// `n` independent uniform samples of `{-1, 0, 1}`.
    pub fn ternary(n: usize, rng: &mut SecretRng) -> Self {
        let mut samples = Self(Buffer::unspecified(n));
        ternary(rng, samples.0.signed_mut());
        samples
    }
}

impl Deref for Samples {
    type Target = [i64];

    fn deref(&self) -> &[i64] {
        self.0.signed()
    }
}

impl Drop for Samples {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for Samples {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Samples({})", self.len())
    }
}
