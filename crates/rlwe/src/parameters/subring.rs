//! Subrings: parameters of a smaller degree over primes of larger ones.
//!
//! With `Y = X^k`, `k = N / n`, the polynomials in `Y` are a copy of `Z[Y]/(Y^n + 1)` in `Z[X]/(X^N + 1)`. It holds the
//! messages of at most `n/2` slots. Ciphertexts at low levels can be switched to a secret of the subring
//! ([`mod@crate::switch::ring_down`]) and back ([`mod@crate::switch::ring_up`]). In between, keys, transforms and
//! ciphertexts are a `k`-th as large. Security depends on the degree of the key's ring, so a subring has its own
//! highest level.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::{Parameters, ParametersLiteral, RlweError, SecretDistribution};

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
    /// parameters, and a key takes as many of them as its own bound allows. [`Parameters::new`] checks the result.
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

impl Parameters {
    /// The parameters of the subrings, from the largest down. They are ordinary parameters, over primes of these.
    pub fn subrings(&self) -> &[Self] {
        self.subring_list()
    }

    /// The ring of that degree: these parameters themselves, or a subring.
    ///
    /// # Errors
    /// [`RlweError::NoRing`] with the available rings.
    pub fn ring_of_degree(&self, log_n: u32) -> Result<&Self, RlweError> {
        if log_n == self.log_n() {
            return Ok(self);
        }
        self.subrings().iter().find(|ring| ring.log_n() == log_n).ok_or_else(|| self.no_ring(log_n))
    }

    /// The ring that a key or a ciphertext names: `None` is the ring of these parameters. A subring is identified by
    /// the `log2` of its degree, also within its own parameters.
    ///
    /// # Errors
    /// [`RlweError::NoRing`].
    pub fn ring_named(&self, subring: Option<u32>) -> Result<&Self, RlweError> {
        match subring {
            _ if subring == self.as_subring() => Ok(self),
            None => Err(self.no_ring(0)),
            Some(log_n) => {
                self.subrings().iter().find(|ring| ring.log_n() == log_n).ok_or_else(|| self.no_ring(log_n))
            }
        }
    }

    /// The ring of these parameters to which an object of other parameters belongs.
    ///
    /// # Errors
    /// [`RlweError::MixedParameters`] if it belongs to none of them.
    pub fn ring_like(
        &self,
        other: &Self,
        left: &'static str,
        right: &'static str,
    ) -> Result<&Self, RlweError> {
        core::iter::once(self)
            .chain(self.subrings())
            .find(|ring| ring.same(other))
            .ok_or(RlweError::MixedParameters { left, right })
    }

    pub(crate) fn no_ring(&self, log_n: u32) -> RlweError {
        let known = core::iter::once(self).chain(self.subrings());
        let known: Vec<String> = known.map(|ring| ring.log_n().to_string()).collect();
        RlweError::NoRing { log_n, known: known.join(", ") }
    }
}
