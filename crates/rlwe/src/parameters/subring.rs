//! Subrings: parameters of a smaller degree over primes of larger ones.
//!
//! With `Y = X^k`, `k = N / n`, the polynomials in `Y` are a copy of `Z[Y]/(Y^n + 1)` in `Z[X]/(X^N + 1)`. It holds the
//! messages of at most `n/2` slots. Ciphertexts at low levels can be switched to a secret of the subring
//! ([`mod@crate::switch::ring_down`]) and back ([`mod@crate::switch::ring_up`]). In between, keys, transforms and
//! ciphertexts are a `k`-th as large. Security depends on the degree of the key's ring, so a subring has its own
//! highest level.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::{Parameters, RlweError};

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
