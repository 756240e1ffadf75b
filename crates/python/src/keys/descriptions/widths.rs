use std::collections::BTreeMap;
use std::ops::Range;

use keywright_circuits::Arithmetic;
use keywright_rlwe::{PrimeWidths, SwitchLayout, Work, noise};
use pyo3::prelude::*;

use crate::arguments::integers::integers;
use crate::errors::{Failure, Refusal};
use crate::stored::not_pickled;

/// Counts of kernels: transforms, products, conversions modulo narrow and modulo wide primes, stored products,
/// diagonals, multiplications, visits, embeddings, calls.
type Row = [i64; 12];

/// A use of a key: digits as (first prime, one past the last), removed primes, noise, and the work of the shared part,
/// and of the rest alone, as a baby step and as a giant step.
type Use = (Vec<(usize, usize)>, Vec<usize>, f64, [Row; 4]);

/// The widths of the primes of parameters, chosen or not, from which sizes of keys and operation counts are computed.
///
/// Primes are numbered through q_0 .. q_L, p_0, ...; those of at most 50 bits are narrow.
///
/// Thread safety: any number of threads may use one at the same time.
#[pyclass(name = "PrimeWidths", module = "keywright", frozen)]
pub(crate) struct PyPrimeWidths(PrimeWidths);

not_pickled!(PyPrimeWidths);

impl PyPrimeWidths {
    fn require(&self, level: usize, primes: &[usize]) -> Result<(), Failure> {
        let (levels, count) = (self.0.max_level() + 1, self.0.count());
        if level >= levels {
            return Err(Refusal::Outside { what: "level", value: level, count: levels }.into());
        }
        match primes.iter().find(|&&prime| prime >= count) {
            Some(&value) => Err(Refusal::Outside { what: "prime", value, count }.into()),
            None => Ok(()),
        }
    }

    fn key_digits(&self, level: usize, alpha: usize, special: &[usize]) -> Option<Vec<Range<usize>>> {
        self.0.digits(level, alpha, self.0.log2_product(special.iter().copied())).ok()
    }

    /// The digits of a key, and its use by the engine at a level. None above the key's level, or if its digits are
    /// illegal.
    fn best_use(
        &self,
        key_level: usize,
        alpha: usize,
        special: &[usize],
        level: usize,
    ) -> Option<(Vec<Range<usize>>, SwitchLayout)> {
        let digits = self.key_digits(key_level, alpha, special).filter(|_| level <= key_level)?;
        let rows = used_rows(&digits, level);
        let uses = SwitchLayout::all(&self.0, key_level, &digits, special, level);
        let layout = uses.min_by_key(|layout| layout.rank(&self.0, rows, false))?;
        Some((digits, layout))
    }
}

#[integers]
#[pymethods]
impl PyPrimeWidths {
    #[new]
    fn new(log_n: u32, q: Vec<f64>, p: Vec<f64>) -> Result<Self, Failure> {
        if log_n > keywright_ring::MAX_LOG_N {
            let (what, count) = ("log2 of the ring degree", keywright_ring::MAX_LOG_N as usize + 1);
            return Err(Refusal::Outside { what, value: log_n as usize, count }.into());
        }
        if q.is_empty() {
            return Err(Refusal::Outside { what: "level", value: 0, count: 0 }.into());
        }
        Ok(Self(PrimeWidths::new(log_n, &q, &p)))
    }

    /// The digits of a key as (first prime, one past the last): runs of at most alpha primes whose product is at most
    /// that of the special primes; None if a single prime exceeds it, or alpha is 0.
    fn digits(
        &self,
        level: usize,
        alpha: usize,
        special: Vec<usize>,
    ) -> Result<Option<Vec<(usize, usize)>>, Failure> {
        self.require(level, &special)?;
        let digits = self.key_digits(level, alpha, &special);
        Ok(digits.map(|digits| digits.iter().map(|digit| (digit.start, digit.end)).collect()))
    }

    /// Candidates for the special primes of a key at a level, in the order in which a key takes them: the special ones,
    /// then the ciphertext primes above it from the top down, while the key's modulus has at most `bound` bits.
    fn special_candidates(&self, level: usize, bound: f64) -> Result<Vec<usize>, Failure> {
        self.require(level, &[])?;
        Ok(self.0.special_candidates(level, bound))
    }

    /// Bytes of a key in memory: residues of one half and a seed, or of both.
    fn key_bytes(&self, digits: usize, primes: usize, seeded: bool) -> usize {
        self.0.key_bytes(digits, primes, seeded)
    }

    /// The engine's use of a key at a level: digits, removed primes, noise relative to the rounding of a division, and
    /// work. None above the key's level, or if its digits are illegal.
    fn switch(
        &self,
        key_level: usize,
        alpha: usize,
        special: Vec<usize>,
        seeded: bool,
        level: usize,
    ) -> Result<Option<Use>, Failure> {
        self.require(key_level, &special)?;
        let Some((digits, layout)) = self.best_use(key_level, alpha, &special, level) else {
            return Ok(None);
        };
        let work = layout.work(&self.0, used_rows(&digits, level), seeded);
        Ok(Some((
            layout.digits.iter().map(|digit| (digit.start, digit.end)).collect(),
            layout.removed().collect(),
            noise::over_rounding(&layout, &self.0, &digits),
            [work.shared, work.whole, work.baby, work.giant].map(|part: Work| part.row()),
        )))
    }

    /// The work of a switch between rings, in limbs of the ring of these widths, as `switch` gives for other switches.
    /// None where that is.
    ///
    /// Args:
    ///     key_level, alpha, special, seeded: of its keys, which belong to this ring.
    ///     level: of the ciphertext.
    ///     parts: for switching down from a larger ring, the ratio of the degrees; None for switching up from any
    ///         smaller ring.
    #[pyo3(signature = (key_level, alpha, special, seeded, level, parts=None))]
    fn ring_switch(
        &self,
        key_level: usize,
        alpha: usize,
        special: Vec<usize>,
        seeded: bool,
        level: usize,
        parts: Option<usize>,
    ) -> Result<Option<Row>, Failure> {
        self.require(key_level, &special)?;
        let Some((digits, layout)) = self.best_use(key_level, alpha, &special, level) else {
            return Ok(None);
        };
        let rows = used_rows(&digits, level);
        let work = match parts {
            Some(parts) => layout.ring_down_work(&self.0, rows, seeded, parts),
            None => layout.ring_up_work(&self.0, rows, seeded),
        };
        Ok(Some(work.row()))
    }

    /// Variance that a derivation with a master key adds to the errors of a derived key, relative to a fresh key's
    /// errors: of the first derivation, and of every other one. The secret is uniform ternary; sparse ones add less.
    /// None where `switch` is.
    ///
    /// Args:
    ///     key_level: of the master key, as are alpha and special.
    ///     level: of the derived key in the master key's chain.
    fn derivation_noise(
        &self,
        key_level: usize,
        alpha: usize,
        special: Vec<usize>,
        level: usize,
    ) -> Result<Option<[f64; 2]>, Failure> {
        self.require(key_level, &special)?;
        let best = self.best_use(key_level, alpha, &special, level);
        Ok(best.map(|(digits, layout)| noise::derivation_over_fresh(&layout, &self.0, &digits)))
    }

    /// The work of one operation other than a key switch: that of its counts, at a level.
    ///
    /// Args:
    ///     level: of its ciphertexts.
    ///     counts: by the names of `keywright.plan.Operation`.
    ///     removed: the primes that key switches at the level remove.
    ///     relinearization: the primes that the relinearization key of the level removes.
    fn operation(
        &self,
        level: usize,
        counts: BTreeMap<String, usize>,
        removed: Vec<usize>,
        relinearization: Vec<usize>,
    ) -> Result<Row, Failure> {
        self.require(level, &removed)?;
        self.require(level, &relinearization)?;
        let mut arithmetic = Arithmetic::default();
        for (name, count) in counts {
            match arithmetic.count_mut(&name) {
                Some(place) => *place = count,
                None => return Err(Refusal::Count(name).into()),
            }
        }
        Ok(arithmetic.work(&self.0, level, &removed, &relinearization).row())
    }
}

/// Rows of a key that a ciphertext at a level uses.
fn used_rows(digits: &[Range<usize>], level: usize) -> usize {
    digits.iter().filter(|row| row.start <= level).count()
}
