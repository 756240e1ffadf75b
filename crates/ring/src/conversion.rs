//! Exact basis conversion between residue systems.
//!
//! For `x` in `(-Q/2, Q/2]` given modulo the primes `q_1..q_a` of `Q`, and `y_i = [x (Q/q_i)^-1]_{q_i}`,
//!
//! ```text
//! x = sum_i y_i (Q/q_i) - v Q,      v = round(sum_i y_i / q_i).
//! ```
//!
//! The `y_i` are the *scaled residues* of `x`: the last pass of an inverse transform multiplies by `(Q/q_i)^-1` to make
//! them. A residue modulo another prime `p` is an inner product of *terms* with constants modulo `p`. The terms are the
//! `y_i` and `v`. Each `y_i` of a wide prime is split at bit 30, so that every term is below `2^50` and products stay
//! in 52-bit arithmetic; `v` thus costs no more than another source prime. The terms that differ from the `y_i` are
//! derived where they are used, a part of a limb at a time.
//!
//! `v` is computed in fixed point with [`FRACTION_BITS`] fractional bits, in integers, identically on every back end.
//! Each `y_i` contributes an error below two units, so the result is `x` or, only when `|x|` is within
//! `Q * a * 2^(1 - FRACTION_BITS)` of `Q/2`, `x - Q` or `x + Q`: it is bounded by `Q/2 (1 + a 2^(2 - FRACTION_BITS))`.

use alloc::vec::Vec;
use core::ops::Range;

use crate::{Modulus, ShoupFactor};

/// Fractional bits of the quotient estimate.
pub const FRACTION_BITS: u32 = 18;
/// Source primes are above `2^MIN_SOURCE_BITS`.
pub const MIN_SOURCE_BITS: u32 = FRACTION_BITS + 1;
/// Where scaled residues of wide primes are split.
pub const SPLIT_BITS: u32 = 30;
/// At most this many terms are accumulated without reduction.
pub const MAX_TERMS: usize = 255;

/// The order of the words of a limb of scaled residues: part after part, so that one sweep reads what is converted
/// together. A part of a limb of `n` words is `runs` runs of `words` words, which begin `n / runs` apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScaledLayout {
    /// Runs of a part.
    pub runs: usize,
    /// Words of a run.
    pub words: usize,
}

impl ScaledLayout {
    /// Words of a part.
    pub const fn part_words(self) -> usize {
        self.runs * self.words
    }

    /// The words of a limb of `n` words that part `part` has, run by run.
    pub fn ranges(self, n: usize, part: usize) -> impl Iterator<Item = Range<usize>> {
        (0..self.runs).map(move |run| {
            let start = run * (n / self.runs) + part * self.words;
            start..start + self.words
        })
    }

    /// The position of word `word` of a limb of `n` words among the scaled residues.
    pub const fn position(self, n: usize, word: usize) -> usize {
        let stride = n / self.runs;
        let (run, offset) = (word / stride, word % stride);
        offset / self.words * self.part_words() + run * self.words + offset % self.words
    }
}

/// One part of the scaled residues of a polynomial, with the terms that are derived from them.
#[derive(Debug, Clone, Copy)]
pub struct ScaledPart<'r> {
    /// The source primes.
    pub sources: &'r [Source],
    /// A whole limb for every source.
    pub residues: &'r [&'r [u64]],
    /// The derived terms of this part, one after another, see [`crate::backend::KeySwitching::derive_terms`].
    pub derived: &'r [u64],
    /// Number of the part.
    pub part: usize,
    /// Words of a part.
    pub words: usize,
    /// Scaled residues whose next part is prefetched, where the CPU has such an instruction.
    pub fetch: (usize, usize),
}

impl<'r> ScaledPart<'r> {
    /// The words of every term, in the order of a column's constants.
    pub fn terms(self) -> impl Iterator<Item = &'r [u64]> {
        let range = self.part * self.words..(self.part + 1) * self.words;
        let mut derived = self.derived.chunks_exact(self.words);
        let mut source_index = 0;
        let mut high = false;
        core::iter::from_fn(move || {
            let source = self.sources.get(source_index);
            if high || source.is_none_or(|source| !source.modulus.is_narrow()) {
                (source_index, high) =
                    if high { (source_index + 1, false) } else { (source_index, source.is_some()) };
                return derived.next();
            }
            source_index += 1;
            Some(&self.residues[source_index - 1][range.clone()])
        })
    }
}

/// One source prime of a [`Decomposer`].
#[derive(Debug, Clone, Copy)]
pub struct Source {
    /// The source prime.
    pub modulus: Modulus,
    /// `(Q/q_i)^-1 mod q_i`.
    pub factor: ShoupFactor,
    /// Contribution to the quotient of the scaled residue (of its low part, for a wide prime):
    /// `floor(2^(52 + F) / q_i)`.
    pub fraction: u64,
    /// Contribution of the high part of a wide prime: `floor(2^(52 + F + 30) / q_i)`; 0 for a narrow one.
    pub fraction_high: u64,
}

/// The constants that make the scaled residues modulo `Q = q_1 ... q_a`.
#[derive(Debug, Clone)]
pub struct Decomposer {
    sources: Vec<Source>,
}

/// The product of some moduli modulo `p`.
fn product_mod(moduli: impl Iterator<Item = u64>, p: &Modulus) -> u64 {
    moduli.fold(1, |acc, q| p.mul(acc, p.reduce(q)))
}

impl Decomposer {
    /// Prepares conversion from the given distinct primes.
    ///
    /// # Panics
    /// If a prime is below `2^`[`MIN_SOURCE_BITS`]: its fraction would not fit 52-bit arithmetic.
    pub fn new(moduli: &[Modulus]) -> Self {
        assert!(
            moduli.iter().all(|m| m.bits() > MIN_SOURCE_BITS),
            "source primes are above 2^{MIN_SOURCE_BITS}"
        );
        let sources = moduli
            .iter()
            .map(|m| {
                let q = m.value();
                let others = product_mod(moduli.iter().map(Modulus::value).filter(|&o| o != q), m);
                let wide = !m.is_narrow();
                Source {
                    modulus: *m,
                    factor: m.shoup(m.inv(others)),
                    fraction: ((1u128 << (52 + FRACTION_BITS)) / u128::from(q)) as u64,
                    fraction_high: if wide {
                        ((1u128 << (52 + FRACTION_BITS + SPLIT_BITS)) / u128::from(q)) as u64
                    } else {
                        0
                    },
                }
            })
            .collect();
        Self { sources }
    }

    /// The source primes.
    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// Number of terms: one per narrow prime, two per wide prime, one for the quotient.
    pub fn term_count(&self) -> usize {
        1 + self.sources.iter().map(|s| if s.modulus.is_narrow() { 1 } else { 2 }).sum::<usize>()
    }

    /// Number of terms that are not scaled residues themselves: two per wide prime, and the quotient.
    pub fn derived_count(&self) -> usize {
        1 + 2 * self.sources.iter().filter(|s| !s.modulus.is_narrow()).count()
    }
}

/// The constants that convert terms to one target prime.
#[derive(Debug, Clone)]
pub struct Column {
    /// The target prime.
    pub modulus: Modulus,
    /// One constant per term, canonical.
    pub constants: Vec<u64>,
    /// `constants * 2^52 mod p`, for 52-bit Montgomery reduction; empty for a wide target.
    pub montgomery: Vec<u64>,
}

/// Conversion from one list of primes to another.
#[derive(Debug, Clone)]
pub struct Conversion {
    decomposer: Decomposer,
    columns: Vec<Column>,
}

impl Conversion {
    /// Prepares conversion from `sources` to `targets`. A target that is itself a source gets its own residue back.
    pub fn new(sources: &[Modulus], targets: &[Modulus]) -> Self {
        let decomposer = Decomposer::new(sources);
        let columns = targets
            .iter()
            .map(|p| {
                let mut constants = Vec::with_capacity(decomposer.term_count());
                for m in sources {
                    let q = m.value();
                    let factor = product_mod(sources.iter().map(Modulus::value).filter(|&o| o != q), p);
                    constants.push(factor);
                    if !m.is_narrow() {
                        constants.push(p.mul(factor, p.reduce(1 << SPLIT_BITS)));
                    }
                }
                constants.push(p.neg(product_mod(sources.iter().map(Modulus::value), p)));
                let montgomery = if p.is_narrow() {
                    constants.iter().map(|&c| p.reduce_u128(u128::from(c) << 52)).collect()
                } else {
                    Vec::new()
                };
                Column { modulus: *p, constants, montgomery }
            })
            .collect();
        Self { decomposer, columns }
    }

    /// The source half of the conversion.
    pub fn decomposer(&self) -> &Decomposer {
        &self.decomposer
    }

    /// The constants of target `i`.
    pub fn column(&self, i: usize) -> &Column {
        &self.columns[i]
    }

    /// All targets.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }
}
