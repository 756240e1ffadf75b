//! Parameters: their description, its checks, and the tables made from them; descriptions of switching keys.

pub(crate) mod distribution;
pub(crate) mod key_spec;
pub(crate) mod literal;
#[cfg(feature = "std")]
mod memo;
pub(crate) mod security;
pub(crate) mod subring;
pub(crate) mod widths;

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use keywright_ring::conversion::MIN_SOURCE_BITS;
use keywright_ring::{Backend, Modulus, Ring, backend};

use self::literal::MAX_PRIMES;
use crate::{ParametersLiteral, PrimeWidths, RlweError, SecretDistribution, Security, require_secure};

struct Inner {
    literal: ParametersLiteral,
    ring: Ring,
    widths: PrimeWidths,
    #[cfg(feature = "std")]
    memo: memo::Memo,
    subrings: Vec<Parameters>,
    is_subring: bool,
}

/// Checked, immutable parameters with every precomputed table. Cheap to clone.
///
/// Primes have one numbering: index `i <= L` is `q_i`, index `L + 1 + j` is special prime `p_j`.
#[derive(Clone)]
pub struct Parameters(Arc<Inner>);

impl Parameters {
    /// Checks a literal and precomputes its tables on the back end of this process.
    ///
    /// # Errors
    /// [`RlweError::Ring`], [`RlweError::Count`], [`RlweError::PrimeTooSmall`], [`RlweError::NoBound`];
    /// [`RlweError::Insecure`] if the ciphertext modulus alone exceeds the bound; the same for subrings,
    /// [`RlweError::Subring`].
    pub fn new(literal: ParametersLiteral) -> Result<Self, RlweError> {
        Self::with_backend(literal, backend::default()?)
    }

    /// The same on a given back end.
    ///
    /// # Errors
    /// As [`Parameters::new`].
    pub fn with_backend(
        literal: ParametersLiteral,
        backend: &'static dyn Backend,
    ) -> Result<Self, RlweError> {
        let subrings = literal.subring_literals()?;
        let subrings = subrings
            .into_iter()
            .map(|literal| Self::build(literal, backend, Vec::new(), true))
            .collect::<Result<_, _>>()?;
        Self::build(literal, backend, subrings, false)
    }

    fn build(
        literal: ParametersLiteral,
        backend: &'static dyn Backend,
        subrings: Vec<Self>,
        is_subring: bool,
    ) -> Result<Self, RlweError> {
        for (what, list, min) in [("ciphertext primes", &literal.q, 1), ("special primes", &literal.p, 0)] {
            if list.len() < min || list.len() > MAX_PRIMES {
                return Err(RlweError::Count { what, count: list.len(), min, max: MAX_PRIMES });
            }
        }
        if let SecretDistribution::Sparse { weight } = literal.secret {
            let max = 1usize.checked_shl(literal.log_n).unwrap_or(usize::MAX);
            if weight == 0 || weight > max {
                return Err(RlweError::Count {
                    what: "Hamming weight of the secret",
                    count: weight,
                    min: 1,
                    max,
                });
            }
        }
        let primes: Vec<u64> = literal.q.iter().chain(&literal.p).copied().collect();
        // Moduli are checked before their logarithms are taken: zero has none.
        let moduli: Vec<Modulus> = primes.iter().map(|&q| Modulus::new(q)).collect::<Result<_, _>>()?;
        let widths = PrimeWidths::of(literal.log_n, &moduli, literal.q.len());
        if let Some(&prime) = primes.iter().find(|&&q| q >> MIN_SOURCE_BITS == 0) {
            return Err(RlweError::PrimeTooSmall { prime, bits: MIN_SOURCE_BITS });
        }
        if literal.security == Security::Classical128 {
            let log_q = widths.log2_product(0..literal.q.len());
            let object = if is_subring { "a ciphertext of a subring" } else { "a ciphertext" };
            require_secure(|| object.into(), literal.log_n, log_q, literal.secret)?;
        }
        let ring = Ring::new(literal.log_n, &primes, backend)?;
        Ok(Self(Arc::new(Inner {
            literal,
            ring,
            widths,
            #[cfg(feature = "std")]
            memo: memo::Memo::default(),
            subrings,
            is_subring,
        })))
    }

    /// The literal of these parameters.
    pub fn literal(&self) -> &ParametersLiteral {
        &self.0.literal
    }

    /// Ring over all primes, ciphertext primes first.
    #[inline]
    pub fn ring(&self) -> &Ring {
        &self.0.ring
    }

    /// `log2(N)`.
    pub fn log_n(&self) -> u32 {
        self.0.literal.log_n
    }

    /// Ring degree.
    pub fn n(&self) -> usize {
        self.0.ring.n()
    }

    /// Highest level `L`.
    pub fn max_level(&self) -> usize {
        self.0.literal.q.len() - 1
    }

    /// Number of primes of both kinds.
    pub fn prime_count(&self) -> usize {
        self.0.widths.count()
    }

    /// Prime `index` as a modulus.
    #[inline]
    pub fn modulus(&self, index: usize) -> &Modulus {
        self.0.ring.modulus(index)
    }

    /// Indices of the special primes.
    pub fn special_primes(&self) -> core::ops::Range<usize> {
        self.0.literal.q.len()..self.prime_count()
    }

    /// The widths of all primes.
    pub fn widths(&self) -> &PrimeWidths {
        &self.0.widths
    }

    /// `log2` of prime `index`.
    pub fn log2_prime(&self, index: usize) -> f64 {
        self.0.widths.log2(index)
    }

    /// `log2(q_0 ... q_level)`.
    pub fn log2_q(&self, level: usize) -> f64 {
        self.0.widths.log2_product(0..level + 1)
    }

    /// Secret distribution.
    pub fn secret(&self) -> SecretDistribution {
        self.0.literal.secret
    }

    /// Whether the bound is enforced.
    pub fn security(&self) -> Security {
        self.0.literal.security
    }

    /// Product of some primes modulo `m`.
    pub fn product(&self, primes: &[usize], m: &Modulus) -> u64 {
        primes.iter().fold(1, |acc, &i| m.mul(acc, m.reduce(self.modulus(i).value())))
    }

    /// Whether two values represent the same parameters.
    pub fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
            || self.0.is_subring == other.0.is_subring && self.0.literal == other.0.literal
    }

    /// Refuses objects of other parameters.
    ///
    /// # Errors
    /// [`RlweError::MixedParameters`], [`RlweError::MixedRings`].
    pub fn require_same(
        &self,
        other: &Self,
        left: &'static str,
        right: &'static str,
    ) -> Result<(), RlweError> {
        if self.same(other) {
            return Ok(());
        }
        let (left_log_n, right_log_n) = (self.log_n(), other.log_n());
        if left_log_n != right_log_n && (self.0.is_subring || other.0.is_subring) {
            return Err(RlweError::MixedRings { left, right, left_log_n, right_log_n });
        }
        Err(RlweError::MixedParameters { left, right })
    }

    /// Refuses a level above the highest.
    ///
    /// # Errors
    /// [`RlweError::Level`].
    pub fn require_level(&self, level: usize) -> Result<(), RlweError> {
        self.0.widths.require_level(level)
    }

    /// `log2` of the degree if these are the parameters of a subring; keys identify their ring by it.
    pub fn as_subring(&self) -> Option<u32> {
        self.0.is_subring.then(|| self.log_n())
    }

    pub(crate) fn subring_list(&self) -> &[Self] {
        &self.0.subrings
    }

    #[cfg(feature = "std")]
    pub(crate) fn memo(&self) -> &memo::Memo {
        &self.0.memo
    }
}

impl core::fmt::Debug for Parameters {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let l = self.literal();
        let text = format!(
            "Parameters(N = 2^{}, log Q = {:.1} in {} primes, log P = {:.1} in {}, secret {}{}{}, {})",
            l.log_n,
            self.log2_q(self.max_level()),
            l.q.len(),
            self.special_primes().map(|i| self.log2_prime(i)).sum::<f64>(),
            l.p.len(),
            l.secret,
            l.subrings.iter().fold(String::new(), |list, ring| {
                format!("{list}, subring 2^{} to level {}", ring.log_n, ring.level)
            }),
            if l.security == Security::InsecureForExperiments { ", INSECURE" } else { "" },
            self.ring().backend().kind().name(),
        );
        f.write_str(&text)
    }
}
