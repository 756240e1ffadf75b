//! Secret randomness: a seedable cryptographic generator and the distributions of secrets and errors.
//!
//! All samplers write small signed integers; [`crate::Ring::lift_small`] takes them into a residue basis. Branches,
//! memory addresses and running time do not depend on the sampled values.

mod gaussian;
mod ternary;

pub(crate) use gaussian::gaussian_of;
pub use gaussian::{GAUSSIAN_BOUND, SIGMA, gaussian};
pub(crate) use ternary::ternary_of;
pub use ternary::{sparse_ternary, ternary};

use chacha20::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use zeroize::{Zeroize, Zeroizing};

use crate::{Backend, Seed, backend};

/// Words drawn at once.
const WORDS: usize = 128;

/// Samples of one word each, on the kernels of this process. Whichever they are, they give the same samples.
fn from_words(rng: &mut SecretRng, out: &mut [i64], sample: impl Fn(&dyn Backend, &[u64], &mut [i64])) {
    let kernels = backend::default().unwrap_or_else(|_| backend::portable());
    let mut words = Zeroizing::new([0; WORDS]);
    for part in out.chunks_mut(WORDS) {
        let words = &mut words[..part.len()];
        rng.fill_words(words);
        sample(kernels, words, part);
    }
}

/// ChaCha20 as a generator of secrets. Its state is wiped on drop and never shown.
pub struct SecretRng(ChaCha20Rng);

impl SecretRng {
    /// A generator from 32 bytes of entropy. The same bytes give the same secrets: only for tests and vectors, or for
    /// a platform that hands in its own entropy.
    pub fn from_entropy(entropy: &Zeroizing<[u8; 32]>) -> Self {
        let mut key = **entropy;
        let rng = Self(ChaCha20Rng::from_seed(key));
        key.zeroize();
        rng
    }

    /// Next 64 uniform bits.
    #[inline]
    pub fn next_word(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Fills a slice with uniform words.
    pub fn fill_words(&mut self, out: &mut [u64]) {
        let mut bytes = Zeroizing::new([0; 8 * WORDS]);
        for part in out.chunks_mut(WORDS) {
            let bytes = &mut bytes[..8 * part.len()];
            self.0.fill_bytes(bytes);
            for (word, bytes) in part.iter_mut().zip(bytes.as_chunks::<8>().0) {
                *word = u64::from_le_bytes(*bytes);
            }
        }
    }

    /// Fills a slice with uniform bytes.
    pub fn fill_bytes(&mut self, out: &mut [u8]) {
        self.0.fill_bytes(out);
    }

    /// A fresh seed for public, expandable data.
    pub fn public_seed(&mut self) -> Seed {
        let mut bytes = [0; 32];
        self.fill_bytes(&mut bytes);
        Seed(bytes)
    }

    /// An independent generator, for a parallel worker.
    pub fn split(&mut self) -> Self {
        let mut entropy = Zeroizing::new([0; 32]);
        self.fill_bytes(&mut *entropy);
        Self::from_entropy(&entropy)
    }
}

impl core::fmt::Debug for SecretRng {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("SecretRng(..)")
    }
}
