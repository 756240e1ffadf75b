use std::fmt;
use std::sync::Arc;

use keywright_ring::{Backend, backend};
use keywright_rlwe::{Parameters, ParametersLiteral, RlweError, SecretDistribution, Security};

use crate::encoder::Embedding;
use crate::{CkksError, Magnitude};

/// Plain description of CKKS parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct CkksLiteral {
    /// Ring, primes, secret.
    pub rlwe: ParametersLiteral,
    /// `log2` of the scale of fresh messages.
    pub log_scale: f64,
}

/// A named parameter set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Preset {
    /// The name: ring degree, bits of the largest key modulus, bits of the scale.
    pub name: &'static str,
    /// `log2(N)`.
    pub log_n: u32,
    /// Widths of `q_0, q_1, ...`; runs as `(bits, count)`.
    pub q: &'static [(u32, usize)],
    /// Widths of the special primes.
    pub p: &'static [(u32, usize)],
    /// `log2` of the scale.
    pub log_scale: u32,
}

/// The shipped leveled parameter sets: 128-bit secure for every key that uses all special primes at the top level, or
/// less. Precision and failure probability follow from the error estimate ([`crate::ErrorEstimate`]): errors stay
/// within [`crate::PRODUCT_TAIL`] deviations except with probability below `2^-40` per operation.
pub const PRESETS: [Preset; 6] = [
    Preset { name: "N13_QP214_S38", log_n: 13, q: &[(50, 1), (38, 3)], p: &[(50, 1)], log_scale: 38 },
    Preset { name: "N14_QP415_S45", log_n: 14, q: &[(50, 1), (45, 7)], p: &[(50, 1)], log_scale: 45 },
    Preset { name: "N14_QP430_S40", log_n: 14, q: &[(50, 1), (40, 8)], p: &[(60, 1)], log_scale: 40 },
    // Digits of four primes, hence small keys, for networks whose scores may be imprecise.
    Preset { name: "N14_QP426_S33", log_n: 14, q: &[(45, 1), (33, 7)], p: &[(50, 3)], log_scale: 33 },
    Preset { name: "N15_QP830_S45", log_n: 15, q: &[(50, 1), (45, 14)], p: &[(50, 3)], log_scale: 45 },
    Preset { name: "N16_QP1660_S50", log_n: 16, q: &[(60, 1), (50, 26)], p: &[(50, 6)], log_scale: 50 },
];

/// The preset of that name.
///
/// # Errors
/// [`CkksError::UnknownPreset`] listing all names.
pub fn preset(name: &str) -> Result<Preset, CkksError> {
    PRESETS.iter().find(|p| p.name == name).copied().ok_or_else(|| CkksError::UnknownPreset {
        name: name.into(),
        known: PRESETS.map(|p| p.name).join(", "),
    })
}

impl Preset {
    /// The literal, with its primes chosen.
    ///
    /// # Errors
    /// [`RlweError::Ring`] if there are not enough primes.
    pub fn literal(&self) -> Result<CkksLiteral, RlweError> {
        Ok(CkksLiteral {
            rlwe: ParametersLiteral::from_runs(self.log_n, self.q, self.p)?,
            log_scale: f64::from(self.log_scale),
        })
    }
}

impl CkksLiteral {
    /// Uniform ternary secret, 128 bits enforced, largest primes of the given widths.
    ///
    /// # Errors
    /// [`RlweError`] if there are not enough primes or too many widths.
    pub fn from_bits(log_n: u32, q_bits: &[u32], p_bits: &[u32], log_scale: f64) -> Result<Self, RlweError> {
        Ok(Self { rlwe: ParametersLiteral::from_bits(log_n, q_bits, p_bits)?, log_scale })
    }

    /// The same without the security bound, for experiments on data that need no protection.
    pub fn insecure(self) -> Self {
        Self { rlwe: self.rlwe.insecure(), ..self }
    }
}

struct Inner {
    rlwe: Parameters,
    log_scale: f64,
    embedding: Embedding,
    subrings: Vec<CkksParameters>,
}

/// Checked CKKS parameters with every precomputed table. Cheap to clone.
#[derive(Clone)]
pub struct CkksParameters(Arc<Inner>);

impl CkksParameters {
    /// Checks a literal and precomputes its tables on the back end of this process.
    ///
    /// # Errors
    /// [`CkksError::Rlwe`]; [`CkksError::Scale`] if a value of 1 at that scale does not fit `q_0 q_1`, or `q_0` alone
    /// if there is no other.
    pub fn new(literal: CkksLiteral) -> Result<Self, CkksError> {
        Self::with_backend(literal, backend::default().map_err(RlweError::from)?)
    }

    /// The same on a given back end.
    ///
    /// # Errors
    /// As [`CkksParameters::new`].
    pub fn with_backend(literal: CkksLiteral, backend: &'static dyn Backend) -> Result<Self, CkksError> {
        let log_scale = literal.log_scale;
        let rlwe = Parameters::with_backend(literal.rlwe, backend)?;
        // A client's `q_0` may be narrower than the scale: what is sent at level 0 has a scale of its own.
        let level = rlwe.max_level().min(1);
        let log_q = rlwe.log2_q(level);
        if !(log_scale > 0.0 && log_scale < log_q) {
            return Err(CkksError::Scale { log_scale, log_q, level });
        }
        let subrings = rlwe.subrings().iter().map(|ring| Self::build(ring, log_scale, Vec::new())).collect();
        Ok(Self::build(&rlwe, log_scale, subrings))
    }

    fn build(rlwe: &Parameters, log_scale: f64, subrings: Vec<Self>) -> Self {
        let embedding = Embedding::new(rlwe.log_n());
        Self(Arc::new(Inner { rlwe: rlwe.clone(), log_scale, embedding, subrings }))
    }

    /// A preset by name.
    ///
    /// # Errors
    /// [`CkksError::UnknownPreset`].
    pub fn preset(name: &str) -> Result<Self, CkksError> {
        Self::new(preset(name)?.literal()?)
    }

    /// The literal of these parameters.
    pub fn literal(&self) -> CkksLiteral {
        CkksLiteral { rlwe: self.0.rlwe.literal().clone(), log_scale: self.0.log_scale }
    }

    /// The parameters below the scheme.
    #[inline]
    pub fn rlwe(&self) -> &Parameters {
        &self.0.rlwe
    }

    /// Scale of fresh messages.
    pub fn scale(&self) -> f64 {
        self.0.log_scale.exp2()
    }

    /// The largest absolute value that a message may have where its owner declares no other: the largest power of two
    /// of which the product of two still fits `q_0`, and at least 1.
    ///
    /// A ciphertext states the magnitude that was *declared* for its message, never one computed from the message.
    pub fn default_magnitude(&self) -> Magnitude {
        let spare = self.rlwe().log2_q(0) - self.0.log_scale - 1.0;
        Magnitude::of((spare / 2.0).floor().max(0.0).exp2())
    }

    /// `log2(N/2)`: slots of a full packing.
    pub fn max_log_slots(&self) -> u32 {
        self.0.rlwe.log_n() - 1
    }

    /// Highest level.
    pub fn max_level(&self) -> usize {
        self.0.rlwe.max_level()
    }

    /// The canonical embedding of the ring.
    pub fn embedding(&self) -> &Embedding {
        &self.0.embedding
    }

    /// The parameters of the subrings, from the largest down, at the same scale.
    pub fn subrings(&self) -> &[Self] {
        &self.0.subrings
    }

    /// The ring of that degree: these parameters themselves, or a subring.
    ///
    /// # Errors
    /// [`RlweError::NoRing`].
    pub fn ring_of_degree(&self, log_n: u32) -> Result<&Self, RlweError> {
        let ring = self.rlwe().ring_of_degree(log_n)?;
        self.ring_like(ring, "the parameters", "the ring")
    }

    /// The ring of these parameters to which an object of other parameters belongs.
    ///
    /// # Errors
    /// [`RlweError::MixedParameters`] if it belongs to none of them.
    pub fn ring_like(
        &self,
        other: &Parameters,
        left: &'static str,
        right: &'static str,
    ) -> Result<&Self, RlweError> {
        std::iter::once(self)
            .chain(self.subrings())
            .find(|ring| ring.rlwe().same(other))
            .ok_or(RlweError::MixedParameters { left, right })
    }

    /// Refuses objects of other parameters.
    ///
    /// # Errors
    /// [`RlweError::MixedParameters`].
    pub fn require_same(
        &self,
        other: &Self,
        left: &'static str,
        right: &'static str,
    ) -> Result<(), RlweError> {
        self.0.rlwe.require_same(&other.0.rlwe, left, right)
    }

    /// Distribution of the secret.
    pub fn secret(&self) -> SecretDistribution {
        self.0.rlwe.secret()
    }

    /// Whether the 128-bit bound is enforced.
    pub fn security(&self) -> Security {
        self.0.rlwe.security()
    }
}

impl fmt::Debug for CkksParameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ckks{:?} at scale 2^{}", self.0.rlwe, self.0.log_scale)
    }
}
