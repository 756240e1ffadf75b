use std::fmt;
use std::sync::Arc;

use keywright_ring::{Backend, RaceOnce, Ring, ShoupFactor, backend, ntt_primes};
use keywright_rlwe::{Parameters, ParametersLiteral, RlweError, SecretDistribution, Security};

use crate::arithmetic::batching::Batching;
use crate::arithmetic::plain_modulus::PlainModulus;
use crate::arithmetic::scaling::Scaling;
use crate::{BfvError, Packing};

/// Plaintext moduli are below `2^MAX_PLAINTEXT_BITS`.
pub const MAX_PLAINTEXT_BITS: u32 = 60;
/// Width of the auxiliary primes of ciphertext multiplication: the widest that run on 52-bit arithmetic.
const AUXILIARY_BITS: u32 = 50;

/// Plain description of BFV parameters.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BfvLiteral {
    /// Ring, primes, secret.
    pub rlwe: ParametersLiteral,
    /// Plaintext modulus `t`. There are slots if it is a prime that is 1 modulo `2N`.
    pub plaintext_modulus: u64,
}

impl BfvLiteral {
    /// Uniform ternary secret, 128 bits enforced, largest primes of the given widths.
    ///
    /// # Errors
    /// [`RlweError`] if there are not enough primes or too many widths.
    pub fn from_bits(
        log_n: u32,
        q_bits: &[u32],
        p_bits: &[u32],
        plaintext_modulus: u64,
    ) -> Result<Self, RlweError> {
        Ok(Self { rlwe: ParametersLiteral::from_bits(log_n, q_bits, p_bits)?, plaintext_modulus })
    }

    /// The same without the security bound, for experiments on data that need no protection.
    pub fn insecure(self) -> Self {
        Self { rlwe: self.rlwe.insecure(), ..self }
    }
}

/// The constants of a level for encoding and decryption.
pub(crate) struct LevelConstants {
    /// `q_0 ... q_level mod t`.
    pub(crate) q_mod_t: u64,
    /// Per prime, `t (Q/q_i)^-1 mod q_i`.
    pub(crate) row_factors: Vec<ShoupFactor>,
}

struct Inner {
    rlwe: Parameters,
    t: PlainModulus,
    batching: Option<Batching>,
    levels: Vec<LevelConstants>,
    /// Per ciphertext prime, `-t^-1 mod q_i`.
    negated_t_inverse: Vec<ShoupFactor>,
    /// Per ciphertext prime, `-q_i^-1 mod t`.
    negated_q_inverse: Vec<u64>,
    /// The auxiliary primes of multiplication.
    auxiliary: Ring,
    scalings: Vec<RaceOnce<Scaling>>,
}

/// Checked BFV parameters with every precomputed table. Cheap to clone.
#[derive(Clone)]
pub struct BfvParameters(Arc<Inner>);

impl BfvParameters {
    /// Checks a literal and precomputes its tables on the back end of this process.
    ///
    /// # Errors
    /// [`BfvError::Rlwe`]; [`BfvError::PlaintextModulus`] unless `2 <= t < 2^60` and `t` is below every ciphertext
    /// prime.
    pub fn new(literal: BfvLiteral) -> Result<Self, BfvError> {
        Self::with_backend(literal, backend::default().map_err(RlweError::from)?)
    }

    /// The same on a given back end.
    ///
    /// # Errors
    /// As [`BfvParameters::new`].
    pub fn with_backend(literal: BfvLiteral, backend: &'static dyn Backend) -> Result<Self, BfvError> {
        let t = literal.plaintext_modulus;
        let rlwe = Parameters::with_backend(literal.rlwe, backend)?;
        let primes = &rlwe.literal().q;
        let smallest = primes.iter().copied().min().unwrap_or(0);
        if t < 2 || t >> MAX_PLAINTEXT_BITS != 0 || t >= smallest {
            return Err(BfvError::PlaintextModulus { value: t, smallest });
        }
        // A prime q_i above t is a unit modulo t, and t is one modulo q_i.
        let t = PlainModulus::new(t);
        let log_n = rlwe.log_n();
        let batching = Batching::new(log_n, t.value(), backend);
        let moduli = &rlwe.ring().moduli()[..primes.len()];
        let negated_t_inverse = moduli.iter().map(|m| m.shoup(m.neg(m.inv(t.value())))).collect();
        let negated_q_inverse = primes.iter().map(|&q| t.value() - t.inverse(q)).collect();
        let levels = (0..primes.len()).map(|level| LevelConstants::new(&rlwe, t, level)).collect();
        // The fewest auxiliary primes whose product is at least Q, see `Scaling`.
        let count = (rlwe.log2_q(rlwe.max_level()) / f64::from(AUXILIARY_BITS - 1)).ceil() as usize + 1;
        let used: Vec<u64> = rlwe.ring().moduli().iter().map(|m| m.value()).collect();
        let auxiliary = ntt_primes(log_n, AUXILIARY_BITS, count, &used)
            .and_then(|primes| Ring::new(log_n, &primes, backend))
            .map_err(RlweError::from)?;
        let scalings = primes.iter().map(|_| RaceOnce::new()).collect();
        Ok(Self(Arc::new(Inner {
            t,
            batching,
            levels,
            negated_t_inverse,
            negated_q_inverse,
            auxiliary,
            scalings,
            rlwe,
        })))
    }

    /// The literal of these parameters.
    pub fn literal(&self) -> BfvLiteral {
        BfvLiteral { rlwe: self.0.rlwe.literal().clone(), plaintext_modulus: self.plaintext_modulus() }
    }

    /// The parameters below the scheme.
    #[inline]
    pub fn rlwe(&self) -> &Parameters {
        &self.0.rlwe
    }

    /// Plaintext modulus `t`.
    pub fn plaintext_modulus(&self) -> u64 {
        self.0.t.value()
    }

    /// Whether there are slots: `t` is a prime that is 1 modulo `2N`.
    pub fn has_slots(&self) -> bool {
        self.0.batching.is_some()
    }

    /// The default packing: slots if there are any.
    pub fn default_packing(&self) -> Packing {
        if self.has_slots() { Packing::Slots } else { Packing::Coefficients }
    }

    /// Highest level.
    pub fn max_level(&self) -> usize {
        self.0.rlwe.max_level()
    }

    /// Distribution of the secret.
    pub fn secret(&self) -> SecretDistribution {
        self.0.rlwe.secret()
    }

    /// Whether the 128-bit bound is enforced.
    pub fn security(&self) -> Security {
        self.0.rlwe.security()
    }

    /// Refuses objects of other parameters.
    ///
    /// # Errors
    /// [`RlweError::MixedParameters`], [`BfvError::MixedPlaintextModuli`].
    pub fn require_same(
        &self,
        other: &Self,
        left: &'static str,
        right: &'static str,
    ) -> Result<(), BfvError> {
        self.0.rlwe.require_same(&other.0.rlwe, left, right)?;
        if self.0.t != other.0.t {
            return Err(BfvError::MixedPlaintextModuli {
                left: self.plaintext_modulus(),
                right: other.plaintext_modulus(),
            });
        }
        Ok(())
    }

    pub(crate) fn t(&self) -> PlainModulus {
        self.0.t
    }

    /// The slots.
    ///
    /// # Errors
    /// [`BfvError::NoSlots`].
    pub(crate) fn batching(&self) -> Result<&Batching, BfvError> {
        self.0
            .batching
            .as_ref()
            .ok_or(BfvError::NoSlots { modulus: self.plaintext_modulus(), two_n: 2 << self.0.rlwe.log_n() })
    }

    pub(crate) fn level_constants(&self, level: usize) -> &LevelConstants {
        &self.0.levels[level]
    }

    pub(crate) fn negated_t_inverse(&self, i: usize) -> ShoupFactor {
        self.0.negated_t_inverse[i]
    }

    pub(crate) fn negated_q_inverse(&self, i: usize) -> u64 {
        self.0.negated_q_inverse[i]
    }

    /// The ring of the auxiliary primes.
    pub(crate) fn auxiliary(&self) -> &Ring {
        &self.0.auxiliary
    }

    /// The constants of a multiplication at a level, precomputed once.
    pub(crate) fn scaling(&self, level: usize) -> &Scaling {
        self.0.scalings[level].get_or_init(|| Scaling::new(&self.0.rlwe, &self.0.auxiliary, self.0.t, level))
    }
}

impl LevelConstants {
    fn new(rlwe: &Parameters, t: PlainModulus, level: usize) -> Self {
        let moduli = &rlwe.ring().moduli()[..=level];
        let q_mod_t = moduli.iter().fold(1, |acc, m| t.mul(acc, m.value() % t.value()));
        let row_factors = moduli
            .iter()
            .map(|m| {
                let others = moduli.iter().filter(|o| o.value() != m.value());
                let others = others.fold(1, |acc, o| m.mul(acc, m.reduce(o.value())));
                m.shoup(m.mul(m.inv(others), t.value()))
            })
            .collect();
        Self { q_mod_t: q_mod_t % t.value(), row_factors }
    }
}

impl fmt::Debug for BfvParameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bfv{:?} modulo {}", self.0.rlwe, self.0.t.value())
    }
}
