//! Named parameter sets. Other libraries are measured on the same sets, with wider special primes:
//! `benchmarks/sets.json`.

use keywright_ckks::{CkksError, CkksLiteral, CkksParameters};
use keywright_rlwe::Security;

/// Bits of the prime of the measured transforms: the widest narrow one.
pub const NTT_LOG_Q: u32 = keywright_ring::NARROW_BITS;

/// One parameter set.
#[derive(Debug, Clone, Copy)]
pub struct BenchSet {
    /// Its name.
    pub name: &'static str,
    /// `log2(N)`.
    pub log_n: u32,
    /// Bits of `q_0` and of every further ciphertext prime.
    pub widths: (u32, u32),
    /// Number of ciphertext primes.
    pub primes: usize,
    /// Bits of each of the `alpha` special primes. Other libraries use 60; narrow ones make the same digits with faster
    /// limbs.
    pub special: u32,
    /// Measured numbers of primes per digit.
    pub alphas: &'static [usize],
    /// Measured levels.
    pub levels: &'static [usize],
    /// Ring degrees of the transforms.
    pub ntt_log_n: &'static [u32],
    /// Whether the set exceeds the 128-bit bound; such a set is other libraries' own choice.
    pub insecure: bool,
}

/// All sets.
pub const SETS: [BenchSet; 2] = [
    BenchSet {
        name: "main",
        log_n: 16,
        widths: (60, 50),
        primes: 27,
        special: 50,
        alphas: &[5, 3],
        levels: &[26, 13, 3],
        ntt_log_n: &[13, 14, 15, 16],
        insecure: false,
    },
    BenchSet {
        name: "quick",
        log_n: 14,
        widths: (60, 45),
        primes: 8,
        special: 60,
        alphas: &[1],
        levels: &[7, 3],
        ntt_log_n: &[13, 14],
        insecure: true,
    },
];

impl BenchSet {
    /// Bits of every ciphertext prime.
    pub fn q_bits(&self) -> Vec<u32> {
        let rest = std::iter::repeat_n(self.widths.1, self.primes - 1);
        std::iter::once(self.widths.0).chain(rest).collect()
    }

    /// Parameters with as many special primes as a digit has primes; two, if one cannot hold `q_0`.
    ///
    /// # Errors
    /// [`CkksError`] if the primes do not exist.
    pub fn parameters(&self, alpha: usize) -> Result<CkksParameters, CkksError> {
        let q = self.q_bits();
        let count = alpha.max(self.widths.0.div_ceil(self.special) as usize);
        let mut literal =
            CkksLiteral::from_bits(self.log_n, &q, &vec![self.special; count], f64::from(self.widths.1))?;
        if self.insecure {
            literal.rlwe.security = Security::InsecureForExperiments;
        }
        CkksParameters::new(literal)
    }
}
