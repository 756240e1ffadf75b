//! Values of a distribution from seeds and from uniform words.

use crate::{Modulus, Seed, StreamId};

/// Uniform residues from public seeds, key streams, and samples of secrets and errors.
pub trait Sampling: Send + Sync {
    /// A uniform limb from a seed, see [`crate::expander`].
    fn expand_uniform(&self, seed: &Seed, id: StreamId, m: &Modulus, out: &mut [u64]) {
        self.expand_part(seed, id, m, 0, out);
    }
    /// The residues of a uniform limb from residue `start` on, a multiple of [`crate::expander::CHUNK_WORDS`].
    fn expand_part(&self, seed: &Seed, id: StreamId, m: &Modulus, start: usize, out: &mut [u64]);
    /// ChaCha20's key stream as little-endian words, from block `first` on, a multiple of 16. Words 12 and 13 of the
    /// state `key` are replaced by the number of the block.
    fn key_stream(&self, key: &[u32; 16], first: u64, out: &mut [u64]);
    /// A discrete Gaussian sample for every uniform word, see [`crate::sampling::gaussian`]. Any length; constant time.
    fn gaussian(&self, words: &[u64], out: &mut [i64]);
    /// `floor(3 w / 2^64) - 1` for every uniform word `w`. Any length; constant time.
    fn ternary(&self, words: &[u64], out: &mut [i64]);
}
