//! The widths of primes: the shapes of keys, their sizes and the work of their switches depend on nothing else.
//!
//! Everything here works before primes are chosen, so that keys of a published parameter set can be planned.

use alloc::vec::Vec;
use core::ops::Range;

use keywright_ring::{Modulus, NARROW_BITS, Seed};

use crate::RlweError;

/// The rounding slack in comparisons of logarithms; digits must not exceed the special modulus.
const LOG_SLACK: f64 = 1e-9;

/// Whether a product of `bits` fits a special modulus of `special_bits`.
pub(crate) fn fits(bits: f64, special_bits: f64) -> bool {
    bits <= special_bits + LOG_SLACK
}

/// The widths of the primes of parameters, in their numbering: index `i <= L` is `q_i`, index `L + 1 + j` is special
/// prime `p_j`.
#[derive(Debug, Clone, PartialEq)]
pub struct PrimeWidths {
    log_n: u32,
    ciphertext: usize,
    log2: Vec<f64>,
    narrow: Vec<bool>,
}

impl PrimeWidths {
    /// Primes of these widths, in bits; every one of at most 50 bits is narrow.
    pub fn new(log_n: u32, q: &[f64], p: &[f64]) -> Self {
        let log2: Vec<f64> = q.iter().chain(p).copied().collect();
        let narrow = log2.iter().map(|&bits| bits <= f64::from(NARROW_BITS)).collect();
        Self { log_n, ciphertext: q.len(), log2, narrow }
    }

    /// The widths of these primes; the first `ciphertext` of them are ciphertext primes.
    pub(crate) fn of(log_n: u32, primes: &[Modulus], ciphertext: usize) -> Self {
        Self {
            log_n,
            ciphertext,
            log2: primes.iter().map(|prime| log2(prime.value())).collect(),
            narrow: primes.iter().map(Modulus::is_narrow).collect(),
        }
    }

    /// `log2(N)`.
    pub fn log_n(&self) -> u32 {
        self.log_n
    }

    /// Highest level `L`.
    pub fn max_level(&self) -> usize {
        self.ciphertext - 1
    }

    /// Number of primes of both kinds.
    pub fn count(&self) -> usize {
        self.log2.len()
    }

    /// `log2` of prime `index`.
    pub fn log2(&self, index: usize) -> f64 {
        self.log2[index]
    }

    /// `log2` of the product of some primes.
    pub fn log2_product(&self, primes: impl IntoIterator<Item = usize>) -> f64 {
        primes.into_iter().map(|i| self.log2[i]).sum()
    }

    /// Whether prime `index` has the faster arithmetic.
    pub fn is_narrow(&self, index: usize) -> bool {
        self.narrow[index]
    }

    /// Refuses a level above the highest.
    pub(crate) fn require_level(&self, level: usize) -> Result<(), RlweError> {
        if level > self.max_level() {
            return Err(RlweError::Level { level, max: self.max_level(), object: "the parameters" });
        }
        Ok(())
    }

    /// The digits of levels `0..=level`: runs of at most `alpha` primes. A digit is closed early if one more prime
    /// would make its product larger than the special modulus.
    ///
    /// # Errors
    /// [`RlweError::Level`]; [`RlweError::Count`] if `alpha` is 0; [`RlweError::SpecialTooSmall`] if one prime alone is
    /// larger.
    pub fn digits(
        &self,
        level: usize,
        alpha: usize,
        special_bits: f64,
    ) -> Result<Vec<Range<usize>>, RlweError> {
        self.require_level(level)?;
        if alpha == 0 {
            return Err(RlweError::Count { what: "alpha", count: 0, min: 1, max: level + 1 });
        }
        let mut ranges = Vec::new();
        let mut start = 0;
        while start <= level {
            let mut end = start;
            let mut bits = 0.0;
            while end <= level && end - start < alpha {
                bits += self.log2[end];
                if !fits(bits, special_bits) {
                    break;
                }
                end += 1;
            }
            if end == start {
                return Err(RlweError::SpecialTooSmall { index: start, prime_bits: bits, special_bits });
            }
            ranges.push(start..end);
            start = end;
        }
        Ok(ranges)
    }

    /// Candidates for the special primes of a key for `level`, in the order in which a key takes them: the special
    /// primes, then the ciphertext primes above the level from the top down, while the key's modulus has at most
    /// `bound` bits.
    pub fn special_candidates(&self, level: usize, bound: f64) -> Vec<usize> {
        let mut left = bound - self.log2_product(0..=level);
        let within = |&prime: &usize| {
            left -= self.log2[prime];
            left >= 0.0
        };
        let dropped = (level + 1..self.ciphertext).rev();
        (self.ciphertext..self.count()).chain(dropped).take_while(within).collect()
    }

    /// Bytes of a key in memory: the residues of `digits` rows over `primes` primes, of one half with a seed for the
    /// other, or of both halves.
    pub fn key_bytes(&self, digits: usize, primes: usize, seeded: bool) -> usize {
        let half = (8 << self.log_n) * digits * primes;
        if seeded { half + size_of::<Seed>() } else { 2 * half }
    }
}

/// `log2` of a word, to about `2^-40`, without a floating-point library (none is in `core`): repeated squaring of the
/// mantissa.
pub(crate) fn log2(value: u64) -> f64 {
    let exponent = 63 - value.leading_zeros();
    let mut mantissa = value as f64 / (1u64 << exponent) as f64;
    let (mut result, mut bit) = (f64::from(exponent), 0.5);
    for _ in 0..44 {
        mantissa *= mantissa;
        if mantissa >= 2.0 {
            mantissa /= 2.0;
            result += bit;
        }
        bit /= 2.0;
    }
    result
}

/// `2^x`, for a `core` without a floating-point library; accurate to about `2^-45`.
pub(crate) fn exp2(x: f64) -> f64 {
    let whole = x as i32 - i32::from(x < 0.0);
    let fraction = (x - f64::from(whole)) * core::f64::consts::LN_2;
    // Taylor series of e^y for y in [0, ln 2).
    let (mut term, mut sum) = (1.0, 1.0);
    for k in 1..20 {
        term *= fraction / f64::from(k);
        sum += term;
    }
    let biased = (1023 + whole).clamp(1, 2046) as u64;
    sum * f64::from_bits(biased << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_two() {
        for x in [-300.5, -1.0, -0.25, 0.0, 0.5, 1.0, 49.999, 250.3] {
            assert!((exp2(x) / x.exp2() - 1.0).abs() < 1e-12, "{x}");
        }
    }
}
