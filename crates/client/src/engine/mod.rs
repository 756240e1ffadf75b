//! Engines: the arithmetic modulo one prime that encryption and decryption need.

pub(crate) mod choice;
pub mod reduction;
#[cfg(feature = "std")]
mod ring_engine;
#[cfg(any(target_arch = "arm", test))]
pub(crate) mod signed;
mod small_engine;
mod word;

pub use choice::EngineChoice;
#[cfg(feature = "std")]
pub use ring_engine::RingEngine;
pub use small_engine::SmallEngine;
pub use word::Word;

use keywright_ring::{Modulus, Seed, StreamId};
use zeroize::Zeroizing;

/// Residues made and packed at once: a chunk of the expander.
pub const CHUNK: usize = keywright_ring::expander::CHUNK_WORDS;

/// Samples made at once, on the stack: few where memory is scarce, many where calls and wiping would be noticeable.
pub(crate) const BLOCK: usize = if cfg!(feature = "std") { 2048 } else { CHUNK };

/// A block of signed values on the stack, wiped when dropped.
pub(crate) fn values() -> Zeroizing<[i64; BLOCK]> {
    Zeroizing::new([0; BLOCK])
}

/// Zeros that stay, at the speed of memory.
pub(crate) fn wipe<W: Word>(words: &mut [W]) {
    words.fill(W::default());
    zeroize::optimization_barrier(words);
}

/// The residue of an integer below `q` in absolute value, without a branch.
#[inline(always)]
pub(crate) fn residue(q: u64, value: i64) -> u64 {
    (value as u64).wrapping_add(q & ((value >> 63) as u64))
}

/// Arithmetic of one ring modulo one prime. All residues are canonical, and evaluations have the order of
/// `docs/reference/conventions.md`, so every engine gives the same words.
pub trait Engine: Send + Sync {
    /// A word for a residue.
    type Word: Word;

    /// `log2(N)`.
    fn log_n(&self) -> u32;
    /// The prime.
    fn modulus(&self) -> &Modulus;
    /// Coefficients to evaluations, in place.
    fn forward(&self, limb: &mut [Self::Word]);
    /// Evaluations to coefficients, in place.
    fn inverse(&self, limb: &mut [Self::Word]);
    /// `acc += a b`.
    fn mul_add(&self, acc: &mut [Self::Word], a: &[Self::Word], b: &[Self::Word]);
    /// `acc -= a b`.
    fn mul_sub(&self, acc: &mut [Self::Word], a: &[Self::Word], b: &[Self::Word]);
    /// Residues of integers below `q` in absolute value; no branch on them.
    fn lift(&self, values: &[i64], out: &mut [Self::Word]);
    /// Adds the residues of such integers.
    fn lift_add(&self, values: &[i64], acc: &mut [Self::Word]);
    /// Residues of a uniform limb from residue `start` on, a multiple of [`CHUNK`].
    fn uniform(&self, seed: &Seed, id: StreamId, start: usize, out: &mut [Self::Word]);

    /// Ring degree.
    fn n(&self) -> usize {
        1 << self.log_n()
    }
}
