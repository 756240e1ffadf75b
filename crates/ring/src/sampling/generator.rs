//! ChaCha20 as a generator of secrets.

use zeroize::{Zeroize, Zeroizing};

use crate::chacha::{self, CHUNK_BLOCKS, CHUNK_WORDS};
use crate::{Backend, Seed, backend};

/// ChaCha20 (RFC 8439's block function with a 64-bit block number and a nonce of zero) as a generator of secrets. Its state is wiped
/// on drop and never shown.
pub struct SecretRng {
    key: [u32; 16],
    /// Number of the next block, a multiple of [`CHUNK_BLOCKS`].
    next_block: u64,
    /// Key stream that was made and not yet given out.
    chunk: [u64; CHUNK_WORDS],
    /// How much of it was, in units of 32 bits.
    used: usize,
    backend: &'static dyn Backend,
}

impl SecretRng {
    /// A generator from 32 bytes of entropy. The same bytes give the same secrets: only for tests and vectors, or for
    /// a platform that hands in its own entropy.
    pub fn from_entropy(entropy: &Zeroizing<[u8; 32]>) -> Self {
        // Where the environment names a back end that is not there, rings cannot be made and say so.
        let backend = backend::default().unwrap_or_else(|_| backend::portable());
        let key = chacha::keyed(entropy);
        Self { key, next_block: 0, chunk: [0; CHUNK_WORDS], used: 2 * CHUNK_WORDS, backend }
    }

    /// What samplers compute with.
    pub(super) fn backend(&self) -> &'static dyn Backend {
        self.backend
    }

    /// Makes the next chunk.
    fn refill(&mut self) {
        self.backend.key_stream(&self.key, self.next_block, &mut self.chunk);
        self.next_block += CHUNK_BLOCKS as u64;
        self.used = 0;
    }

    fn next_half(&mut self) -> u32 {
        if self.used == 2 * CHUNK_WORDS {
            self.refill();
        }
        let half = self.chunk[self.used / 2] >> (32 * (self.used % 2));
        self.used += 1;
        half as u32
    }

    /// Next 64 uniform bits.
    #[inline]
    pub fn next_word(&mut self) -> u64 {
        u64::from(self.next_half()) | u64::from(self.next_half()) << 32
    }

    /// Fills a slice with uniform words.
    pub fn fill_words(&mut self, out: &mut [u64]) {
        if !self.used.is_multiple_of(2) {
            out.iter_mut().for_each(|word| *word = self.next_word());
            return;
        }
        let left = &self.chunk[self.used / 2..];
        let (first, rest) = out.split_at_mut(left.len().min(out.len()));
        first.copy_from_slice(&left[..first.len()]);
        self.used += 2 * first.len();
        // Whole chunks go where they are wanted.
        let (whole, last) = rest.split_at_mut(rest.len() / CHUNK_WORDS * CHUNK_WORDS);
        self.backend.key_stream(&self.key, self.next_block, whole);
        self.next_block += (whole.len() / CHUNK_WORDS * CHUNK_BLOCKS) as u64;
        last.iter_mut().for_each(|word| *word = self.next_word());
    }

    /// Fills a slice with uniform bytes.
    pub fn fill_bytes(&mut self, out: &mut [u8]) {
        for bytes in out.chunks_mut(4) {
            bytes.copy_from_slice(&self.next_half().to_le_bytes()[..bytes.len()]);
        }
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

impl Drop for SecretRng {
    fn drop(&mut self) {
        self.key.zeroize();
        self.chunk.zeroize();
    }
}

impl core::fmt::Debug for SecretRng {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("SecretRng(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chacha20::ChaCha20Rng;
    use rand_core::{Rng, SeedableRng};

    /// Every mixture of requests gives the key stream of an independent implementation.
    #[test]
    fn requests_read_one_stream() {
        let key = [5; 32];
        let (mut ours, mut reference) = (SecretRng::from_entropy(&key.into()), ChaCha20Rng::from_seed(key));
        for round in 0..200usize {
            let length = [0, 1, 2, 7, 63, 64, 127, 128, 129, 300, 1000][round % 11];
            let mut words = alloc::vec![0; length];
            ours.fill_words(&mut words);
            assert!(words.iter().all(|&word| word == reference.next_u64()), "round {round}");
            assert_eq!(ours.next_word(), reference.next_u64());
            let (mut bytes, mut expected) = (alloc::vec![0; round % 41], alloc::vec![0; round % 41]);
            ours.fill_bytes(&mut bytes);
            reference.fill_bytes(&mut expected);
            assert_eq!(bytes, expected, "round {round}");
        }
    }

    /// The block number has 64 bits.
    #[test]
    fn block_numbers_carry() {
        let key = [6; 32];
        let mut ours = SecretRng::from_entropy(&key.into());
        ours.next_block = u64::from(u32::MAX - 15);
        let mut reference = ChaCha20Rng::from_seed(key);
        reference.set_block_pos(u64::from(u32::MAX - 15));
        let mut words = alloc::vec![0; 5 * CHUNK_WORDS];
        ours.fill_words(&mut words);
        assert!(words.iter().all(|&word| word == reference.next_u64()));
        assert_eq!(ours.next_word(), reference.next_u64());
    }
}
