//! Key switching: the terms of basis conversions, and the inner product of digits with a key.

use super::Kernels;
use crate::conversion::{Decomposer, ScaledLayout};
use crate::{Modulus, Seed, StreamId};

/// One row of the uniform half of a key, for one digit and one prime.
#[derive(Debug, Clone, Copy)]
pub enum UniformRow<'a> {
    /// Stored residues.
    Stored(&'a [u64]),
    /// Residues expanded at use, from this residue of the stream on, a multiple of [`crate::expander::CHUNK_WORDS`].
    Seeded(&'a Seed, StreamId, usize),
}

/// Kernels of key switching. Slices are those of [`Kernels`].
pub trait KeySwitching: Kernels {
    /// The order in which this back end lays the words of scaled residues of polynomials of degree `n`.
    /// Back ends that do not fuse conversion with the first pass keep the words of a limb in their order: eight rows of
    /// a part are 128 KiB.
    fn scaled_layout(&self, n: usize) -> ScaledLayout {
        ScaledLayout { runs: 1, words: if n < 2048 { n } else { 2048 } }
    }
    /// Derives the terms that are not scaled residues, for equal words of every source: the low and the high part of
    /// each wide prime, then the quotient, one after another in `out`.
    fn derive_terms(&self, decomposer: &Decomposer, residues: &[&[u64]], out: &mut [u64]);
    /// `out_b = sum_j digits[j] * b[j]` and `out_a = sum_j digits[j] * a[j]`, reduced once per sum; at least one digit.
    fn inner_product(
        &self,
        m: &Modulus,
        digits: &[&[u64]],
        b: &[&[u64]],
        a: &[UniformRow<'_>],
        out_b: &mut [u64],
        out_a: &mut [u64],
    );
}
