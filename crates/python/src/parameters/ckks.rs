use keywright_ckks::{Circuit, CkksLiteral, CkksParameters, PRESETS};
use keywright_rlwe::{SecretDistribution, Security};
use pyo3::prelude::*;

use crate::arguments::integers::integers;
use crate::classes::getters::getters;
use crate::errors::Failure;
use crate::parameters::methods::parameter_methods;

/// CKKS parameters: ring degree, primes, scale. Immutable, checked for security, cheap to share.
///
/// Made by `preset`, `from_bits` or `from_bytes`. Ciphertexts at level l have the primes q_0 .. q_l; a key also has
/// special primes. Unless `insecure` is set, every modulus is checked against the bound for 128 bits of classical
/// security with a uniform ternary secret (Security Guidelines for Implementing Homomorphic Encryption, 2024, table
/// 5.2).
///
/// Thread safety: any number of threads may use one at the same time.
#[pyclass(name = "Parameters", module = "keywright", frozen, eq)]
#[derive(Clone)]
pub(crate) struct PyParameters(pub(crate) CkksParameters);

parameter_methods!(PyParameters wraps CkksParameters, described by CkksLiteral);

#[integers]
#[pymethods]
impl PyParameters {
    /// Names of the shipped parameter sets, smallest first: ring degree, bits of all primes, bits of the scale.
    #[staticmethod]
    fn presets() -> Vec<&'static str> {
        PRESETS.iter().map(|preset| preset.name).collect()
    }

    /// A shipped parameter set.
    ///
    /// Args:
    ///     name: one of `presets()`.
    ///
    /// Raises:
    ///     ParameterError: there is no such set.
    #[staticmethod]
    fn preset(py: Python<'_>, name: &str) -> Result<Self, Failure> {
        Ok(Self(py.detach(|| CkksParameters::preset(name))?))
    }

    /// Parameters from widths of primes; the largest primes of each width are chosen.
    ///
    /// Args:
    ///     log_n: log2 of the ring degree N, 10 to 17.
    ///     q_bits: widths of the ciphertext primes q_0, q_1, ..., at most 61; one rescaling consumes one of them.
    ///     p_bits: widths of the special primes, which only keys use.
    ///     log_scale: log2 of the factor by which fresh messages are scaled; near the widths of q_1, q_2, ...
    ///     insecure: allow moduli above the 128-bit bound, for experiments on data that need no protection.
    ///     secret_weight: number of nonzero coefficients of the secret; about two thirds of all by default. The bound
    ///         is that of such secrets, which exists from degree 2^15 on, for weights of 192 or more.
    ///
    /// Raises:
    ///     SecurityError: the ciphertext modulus exceeds the bound, or no bound exists.
    ///     ParameterError: there are no such primes.
    ///     ScaleError: a value of 1 does not fit q_0 q_1, or q_0 alone if there is no other.
    #[staticmethod]
    #[pyo3(signature = (log_n, q_bits, p_bits, log_scale, insecure=false, *, secret_weight=None))]
    fn from_bits(
        py: Python<'_>,
        log_n: u32,
        q_bits: Vec<u32>,
        p_bits: Vec<u32>,
        log_scale: f64,
        insecure: bool,
        secret_weight: Option<usize>,
    ) -> Result<Self, Failure> {
        py.detach(|| {
            let mut literal = CkksLiteral::from_bits(log_n, &q_bits, &p_bits, log_scale)?;
            if let Some(weight) = secret_weight {
                literal.rlwe.secret = SecretDistribution::Sparse { weight };
            }
            if insecure {
                literal.rlwe.security = Security::InsecureForExperiments;
            }
            Ok(Self(CkksParameters::new(literal)?))
        })
    }

    /// The parameters of the smallest ring with this many levels, slots and bits at 128 bits of security.
    ///
    /// Args:
    ///     depth: multiplicative depth: successive products, matrices and polynomials.
    ///     precision: bits after the point of an encryption, in all slots at once except with probability below 2^-40.
    ///         Every operation adds its operands' errors and its own, which is smaller.
    ///     slots: values in a ciphertext.
    ///     magnitude: largest absolute value of a result.
    ///
    /// Raises:
    ///     ParameterError: a number is out of range, or no ring has that many levels of that many bits.
    #[staticmethod]
    #[pyo3(signature = (*, depth, precision=20, slots=1, magnitude=16.0))]
    fn for_circuit(
        py: Python<'_>,
        depth: usize,
        precision: u32,
        slots: usize,
        magnitude: f64,
    ) -> Result<Self, Failure> {
        py.detach(|| Ok(Self(CkksParameters::for_circuit(&Circuit { depth, precision, slots, magnitude })?)))
    }

    /// The same parameters with further subrings: smaller rings, to which ciphertexts of low levels can be switched.
    ///
    /// Parameters with other subrings are different parameters: they do not share secrets, keys and ciphertexts.
    ///
    /// Args:
    ///     subrings: for each, log2 of its degree, its highest level, and the indices of its special primes among q_0
    ///         .. q_L, p_0, ...: special primes, or ciphertext primes above its level. None for all special primes: a
    ///         key takes as many of them as its own bound allows.
    ///
    /// Raises:
    ///     SecurityError: the ciphertext modulus of a subring exceeds the bound of its degree.
    ///     ParameterError: a subring is not smaller than the ring, a degree is repeated, or a level or a special prime
    ///         is illegal.
    fn with_subrings(
        &self,
        py: Python<'_>,
        subrings: Vec<(u32, usize, Option<Vec<usize>>)>,
    ) -> Result<Self, Failure> {
        py.detach(|| {
            let CkksLiteral { rlwe, log_scale } = self.0.literal();
            Ok(Self(CkksParameters::new(CkksLiteral { rlwe: rlwe.with_subrings(&subrings), log_scale })?))
        })
    }

    /// The ring of a degree: these parameters themselves, or a subring.
    ///
    /// Raises:
    ///     ParameterError: they have no such ring.
    fn subring(&self, log_n: u32) -> Result<Self, Failure> {
        Ok(Self(self.0.ring_of_degree(log_n)?.clone()))
    }

    /// Distribution of the secret: "ternary", or "ternary of weight h".
    #[getter]
    fn secret_distribution(&self) -> String {
        match self.0.secret() {
            SecretDistribution::Ternary => "ternary".into(),
            SecretDistribution::Sparse { weight } => format!("ternary of weight {weight}"),
        }
    }

    fn __hash__(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        self.0.rlwe().literal().hash(&mut hasher);
        self.0.rlwe().as_subring().hash(&mut hasher);
        self.0.scale().to_bits().hash(&mut hasher);
        hasher.finish()
    }

    pub(crate) fn __repr__(&self) -> String {
        format!(
            "Parameters(N = 2^{}, {}, scale 2^{}, log Q = {:.1}, log QP = {:.1}, security {}, {}{})",
            self.log_n(),
            crate::classes::counted(self.max_level(), "level"),
            self.log_scale(),
            self.log_q(),
            self.log_qp(),
            self.security(),
            self.backend(),
            self.0.subrings().iter().fold(String::new(), |list, ring| {
                format!("{list}, subring 2^{} to level {}", ring.rlwe().log_n(), ring.max_level())
            }),
        )
    }
}

getters! { PyParameters, self;
    /// The parameters of the subrings, from the largest down: ordinary parameters, with their own levels and special
    /// primes.
    subrings: Vec<Self> = self.0.subrings().iter().cloned().map(Self).collect();
    /// Ring degree N.
    n: usize = self.0.rlwe().n();
    /// Highest level L, that of fresh ciphertexts: the number of rescalings that they allow.
    max_level: usize = self.0.max_level();
    /// Slots of a full packing, N/2.
    max_slots: usize = 1 << self.0.max_log_slots();
    /// Factor by which fresh messages are scaled.
    scale: f64 = self.0.scale();
    /// The largest absolute value that a message may have where `magnitude=` declares no other: the largest power of
    /// two of which the product of two still fits level 0, and at least 1.
    default_magnitude: f64 = self.0.default_magnitude().get();
    /// log2 of the scale.
    log_scale: f64 = self.0.literal().log_scale;
    /// Instruction set of the kernels: "portable", "avx2", "avx512" or "neon"; KEYWRIGHT_BACKEND forces one.
    backend: &'static str = self.0.rlwe().ring().backend().kind().name();
}
