//! Exact basis conversion between residue systems.
//!
//! For `x` in `(-Q/2, Q/2]` given modulo the primes `q_1..q_a` of `Q`, and `y_i = [x (Q/q_i)^-1]_{q_i}`,
//!
//! ```text
//! x = sum_i y_i (Q/q_i) - v Q,      v = round(sum_i y_i / q_i).
//! ```
//!
//! The `y_i` and `v` are the *rows* of `x`; a residue modulo another prime `p` is their inner product with constants
//! modulo `p`, so `v` costs no more than another source prime. Rows of wide primes are split at bit 30, so that every
//! row entry is below `2^50` and products stay in 52-bit arithmetic.
//!
//! `v` is computed in fixed point with [`FRACTION_BITS`] fractional bits, in integers, identically on every back end.
//! Each row contributes an error below two units, so the result is `x` or, only when `|x|` is within
//! `Q * rows * 2^(1 - FRACTION_BITS)` of `Q/2`, `x - Q` or `x + Q`: it is bounded by `Q/2 (1 + rows 2^(2 - FRACTION_BITS))`.

use alloc::vec::Vec;

use crate::{Backend, Modulus, ShoupFactor};

/// Fractional bits of the quotient estimate.
pub const FRACTION_BITS: u32 = 18;
/// Source primes are above `2^MIN_SOURCE_BITS`.
pub const MIN_SOURCE_BITS: u32 = FRACTION_BITS + 1;
/// Where rows of wide primes are split.
pub const SPLIT_BITS: u32 = 30;
/// At most this many rows are accumulated without reduction.
pub const MAX_ROWS: usize = 255;

/// One source prime of a [`Decomposer`].
#[derive(Debug, Clone, Copy)]
pub struct Source {
    /// The prime.
    pub modulus: Modulus,
    /// `(Q/q_i)^-1 mod q_i`.
    pub factor: ShoupFactor,
    /// Contribution to the quotient of the row (of the low part, for a wide prime): `floor(2^(52 + F) / q_i)`.
    pub fraction: u64,
    /// Contribution of the high part of a wide prime: `floor(2^(52 + F + 30) / q_i)`; 0 for a narrow one.
    pub fraction_high: u64,
}

/// Splits residues modulo `Q = q_1 ... q_a` into rows.
#[derive(Debug, Clone)]
pub struct Decomposer {
    sources: Vec<Source>,
}

/// The product of some moduli modulo `p`.
fn product_mod(moduli: impl Iterator<Item = u64>, p: &Modulus) -> u64 {
    moduli.fold(1, |acc, q| p.mul(acc, p.reduce(q)))
}

impl Decomposer {
    /// For the given distinct primes.
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

    /// Number of rows: one per narrow prime, two per wide prime, one for the quotient.
    pub fn row_count(&self) -> usize {
        1 + self.sources.iter().map(|s| if s.modulus.is_narrow() { 1 } else { 2 }).sum::<usize>()
    }

    /// Writes the rows of `limbs` (coefficient form, one per source prime) into `rows`, [`Self::row_count`] times `n` words.
    pub fn rows(&self, backend: &dyn Backend, limbs: &[&[u64]], rows: &mut [u64]) {
        assert_eq!(limbs.len(), self.sources.len(), "one limb per source prime");
        backend.digit_rows(self, limbs, rows);
    }
}

/// The constants that take rows to one target prime.
#[derive(Debug, Clone)]
pub struct Column {
    /// The target prime.
    pub modulus: Modulus,
    /// One constant per row, canonical.
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
    /// From `sources` to `targets`. A target that is itself a source gets back its own residue.
    pub fn new(sources: &[Modulus], targets: &[Modulus]) -> Self {
        let decomposer = Decomposer::new(sources);
        let columns = targets
            .iter()
            .map(|p| {
                let mut constants = Vec::with_capacity(decomposer.row_count());
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

    /// The splitting half.
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
