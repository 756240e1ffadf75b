//! Plain descriptions of parameters and their subrings, not yet checked.

use alloc::string::ToString;
use alloc::vec::Vec;

use keywright_ring::ntt_primes;

use crate::{RlweError, SecretDistribution};

/// Whether 128-bit security is enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Security {
    /// Every key and the ciphertext modulus are checked against the 128-bit bound.
    Classical128,
    /// Nothing is checked: for experiments on insecure parameters. Every report shows it.
    InsecureForExperiments,
}

/// Most ciphertext primes, and most special primes.
pub(super) const MAX_PRIMES: usize = 64;

/// Plain description of parameters, not yet checked.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ParametersLiteral {
    /// `log2(N)`.
    pub log_n: u32,
    /// Ciphertext primes `q_0 .. q_L`.
    pub q: Vec<u64>,
    /// Special primes that are never part of a ciphertext.
    pub p: Vec<u64>,
    /// Distribution of the secret.
    pub secret: SecretDistribution,
    /// Whether the bound is enforced.
    pub security: Security,
    /// Smaller rings that ciphertexts of low levels can be switched to, from the largest down.
    pub subrings: Vec<SubringLiteral>,
}

impl ParametersLiteral {
    /// Chooses the largest primes of the given widths: special primes first, so that they are not below ciphertext
    /// primes of the same width, then `q_0, q_1, ...` in order.
    ///
    /// # Errors
    /// [`RlweError::Count`] for no or too many widths, [`RlweError::Ring`] if there are not enough primes of a width.
    pub fn from_bits(log_n: u32, q_bits: &[u32], p_bits: &[u32]) -> Result<Self, RlweError> {
        for (what, list, min) in [("ciphertext primes", q_bits, 1), ("special primes", p_bits, 0)] {
            if list.len() < min || list.len() > MAX_PRIMES {
                return Err(RlweError::Count { what, count: list.len(), min, max: MAX_PRIMES });
            }
        }
        let mut taken: Vec<u64> = Vec::new();
        let mut choose = |widths: &[u32]| -> Result<Vec<u64>, RlweError> {
            let mut chosen = Vec::with_capacity(widths.len());
            for &bits in widths {
                let prime = ntt_primes(log_n, bits, 1, &taken)?[0];
                taken.push(prime);
                chosen.push(prime);
            }
            Ok(chosen)
        };
        let p = choose(p_bits)?;
        let q = choose(q_bits)?;
        let (secret, security) = (SecretDistribution::Ternary, Security::Classical128);
        Ok(Self { log_n, q, p, secret, security, subrings: Vec::new() })
    }

    /// The same for runs of equal widths, as `(bits, count)`.
    ///
    /// # Errors
    /// As [`Self::from_bits`].
    pub fn from_runs(log_n: u32, q: &[(u32, usize)], p: &[(u32, usize)]) -> Result<Self, RlweError> {
        let widths = |runs: &[(u32, usize)]| -> Vec<u32> {
            runs.iter().flat_map(|&(bits, count)| core::iter::repeat_n(bits, count)).collect()
        };
        Self::from_bits(log_n, &widths(q), &widths(p))
    }

    /// The same without the security bound, for experiments on data that need no protection.
    pub fn insecure(self) -> Self {
        Self { security: Security::InsecureForExperiments, ..self }
    }
}

/// Most subrings of one ring.
pub const MAX_SUBRINGS: usize = 7;

/// Description of a subring, not yet checked.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SubringLiteral {
    /// `log2` of its degree `n`.
    pub log_n: u32,
    /// Its highest level: its ciphertext primes are `q_0 .. q_level`.
    pub level: usize,
    /// Its special primes, as indices in the larger ring's parameters: special primes, or ciphertext primes above the
    /// level.
    pub special: Vec<usize>,
}

impl ParametersLiteral {
    /// The literal with further subrings, sorted. Subrings without named special primes get all those of these
    /// parameters, and a key takes as many of them as its own bound allows. [`crate::Parameters::new`] checks the
    /// result.
    #[must_use]
    pub fn with_subrings(mut self, subrings: &[(u32, usize, Option<Vec<usize>>)]) -> Self {
        for (log_n, level, special) in subrings {
            let (log_n, level) = (*log_n, *level);
            let all = self.q.len()..self.q.len() + self.p.len();
            let special = special.clone().unwrap_or_else(|| all.collect());
            self.subrings.push(SubringLiteral { log_n, level, special });
        }
        self.subrings.sort_by_key(|subring| core::cmp::Reverse(subring.log_n));
        self
    }

    /// The literals of the subrings, as parameters of their own. Their secrets are uniform ternary for every secret of
    /// the larger ring.
    ///
    /// # Errors
    /// [`RlweError::Count`] for too many of them; [`RlweError::Subring`] for an invalid one.
    pub(crate) fn subring_literals(&self) -> Result<Vec<Self>, RlweError> {
        let count = self.subrings.len();
        if count > MAX_SUBRINGS {
            return Err(RlweError::Count { what: "subrings", count, min: 0, max: MAX_SUBRINGS });
        }
        let mut above = self.log_n;
        let mut literals = Vec::with_capacity(count);
        for SubringLiteral { log_n, level, special } in &self.subrings {
            let refuse = |reason: &str| {
                Err(RlweError::Subring { log_n: *log_n, level: *level, reason: reason.to_string() })
            };
            if *log_n >= above {
                return refuse("subrings are listed from the largest down, each smaller than the one before");
            }
            above = *log_n;
            if *level >= self.q.len() {
                return refuse("the parameters have no such level");
            }
            let prime = |&index: &usize| self.q.iter().chain(&self.p).nth(index).copied();
            let primes: Option<Vec<u64>> = special.iter().map(prime).collect();
            let Some(p) = primes else { return refuse("the parameters have no such special prime") };
            if special.iter().any(|index| index <= level) {
                return refuse("one of its special primes is among its ciphertext primes");
            }
            literals.push(Self {
                log_n: *log_n,
                q: self.q[..=*level].to_vec(),
                p,
                secret: SecretDistribution::Ternary,
                security: self.security,
                subrings: Vec::new(),
            });
        }
        Ok(literals)
    }
}
