use std::path::PathBuf;

use keywright_ckks::{CkksLiteral, CkksParameters, PRESETS};
use keywright_rlwe::{SecretDistribution, Security};
use keywright_wire::Wire;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::{Failure, file};

/// CKKS parameters: ring degree, primes, scale. Immutable, checked for security, cheap to share.
///
/// Made by `preset`, `from_bits` or `from_bytes`. Ciphertexts at level l have the primes q_0 .. q_l; a key also has
/// special primes. Unless `insecure` is asked for, every modulus is checked against the bound for 128 bits of classical
/// security with a uniform ternary secret (Security Guidelines for Implementing Homomorphic Encryption, 2024, table 5.2).
#[pyclass(name = "Parameters", module = "keywright", frozen, eq)]
#[derive(Clone)]
pub(crate) struct PyParameters(pub(crate) CkksParameters);

impl PartialEq for PyParameters {
    fn eq(&self, other: &Self) -> bool {
        self.0.literal() == other.0.literal()
    }
}

/// Names of the shipped parameter sets, smallest first: ring degree, bits of all primes, bits of the scale.
#[pyfunction]
pub(crate) fn presets() -> Vec<&'static str> {
    PRESETS.iter().map(|preset| preset.name).collect()
}

#[pymethods]
impl PyParameters {
    /// A shipped parameter set.
    ///
    /// Args:
    ///     name: one of `keywright.presets()`.
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
    ///     p_bits: widths of the special primes, which only keys have.
    ///     log_scale: log2 of the factor by which fresh messages are scaled; near the widths of q_1, q_2, ...
    ///     insecure: allow moduli above the 128-bit bound, for experiments on data that need no protection.
    ///
    /// Raises:
    ///     SecurityError: the ciphertext modulus is above the bound.
    ///     ParameterError: there are no such primes.
    ///     ScaleError: a value of 1 does not fit q_0.
    #[staticmethod]
    #[pyo3(signature = (log_n, q_bits, p_bits, log_scale, insecure=false))]
    fn from_bits(
        py: Python<'_>,
        log_n: u32,
        q_bits: Vec<u32>,
        p_bits: Vec<u32>,
        log_scale: f64,
        insecure: bool,
    ) -> Result<Self, Failure> {
        py.detach(|| {
            let mut literal = CkksLiteral::from_bits(log_n, &q_bits, &p_bits, log_scale)?;
            if insecure {
                literal.rlwe.security = Security::InsecureForExperiments;
            }
            Ok(Self(CkksParameters::new(literal)?))
        })
    }

    /// log2 of the ring degree.
    #[getter]
    fn log_n(&self) -> u32 {
        self.0.rlwe().log_n()
    }

    /// Ring degree N.
    #[getter]
    fn n(&self) -> usize {
        self.0.rlwe().n()
    }

    /// Highest level L, that of fresh ciphertexts: the number of rescalings they admit.
    #[getter]
    fn max_level(&self) -> usize {
        self.0.max_level()
    }

    /// Slots of a full packing, N/2.
    #[getter]
    fn max_slots(&self) -> usize {
        1 << self.0.max_log_slots()
    }

    /// Factor by which fresh messages are scaled.
    #[getter]
    fn scale(&self) -> f64 {
        self.0.scale()
    }

    /// log2 of the scale.
    #[getter]
    fn log_scale(&self) -> f64 {
        self.0.literal().log_scale
    }

    /// Ciphertext primes q_0 .. q_L.
    #[getter]
    fn q(&self) -> Vec<u64> {
        self.0.rlwe().literal().q.clone()
    }

    /// Special primes.
    #[getter]
    fn p(&self) -> Vec<u64> {
        self.0.rlwe().literal().p.clone()
    }

    /// log2 of the ciphertext modulus at the highest level.
    #[getter]
    fn log_q(&self) -> f64 {
        self.0.rlwe().log2_q(self.0.max_level())
    }

    /// log2 of the modulus of all primes.
    #[getter]
    fn log_qp(&self) -> f64 {
        let rlwe = self.0.rlwe();
        (0..rlwe.prime_count()).map(|i| rlwe.log2_prime(i)).sum()
    }

    /// What is enforced of every key: "128-bit classical", or "none (insecure)".
    #[getter]
    fn security(&self) -> &'static str {
        if self.insecure() { "none (insecure)" } else { "128-bit classical" }
    }

    /// Whether the security bound is switched off.
    #[getter]
    fn insecure(&self) -> bool {
        self.0.security() == Security::InsecureForExperiments
    }

    /// Distribution of the secret: "ternary", or "ternary of weight h".
    #[getter]
    fn secret_distribution(&self) -> String {
        match self.0.secret() {
            SecretDistribution::Ternary => "ternary".into(),
            SecretDistribution::Sparse { weight } => format!("ternary of weight {weight}"),
        }
    }

    /// Instruction set of the kernels: "portable", "avx2" or "avx512"; KEYWRIGHT_BACKEND forces one.
    #[getter]
    fn backend(&self) -> &'static str {
        self.0.rlwe().ring().backend().kind().name()
    }

    /// The parameters as bytes, to be read by `from_bytes`.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>, Failure> {
        Ok(PyBytes::new(py, &self.0.literal().to_bytes(&())?))
    }

    /// Parameters from the bytes of `to_bytes`, checked like any others.
    ///
    /// Raises:
    ///     FormatError: the bytes are not whole, intact parameters.
    ///     SecurityError: they are above the bound and not marked insecure.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8]) -> Result<Self, Failure> {
        py.detach(|| Ok(Self(CkksParameters::new(CkksLiteral::from_bytes(data, &())?)?)))
    }

    /// Writes the parameters to a file, which appears whole or not at all.
    fn save(&self, py: Python<'_>, path: PathBuf) -> Result<(), Failure> {
        py.detach(|| self.0.literal().save(&path, &()).map_err(file(&path)))
    }

    /// Reads the parameters of a file; errors as of `from_bytes`.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> Result<Self, Failure> {
        py.detach(|| Ok(Self(CkksParameters::new(CkksLiteral::load(&path, &()).map_err(file(&path))?)?)))
    }

    fn __hash__(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        self.0.rlwe().literal().hash(&mut hasher);
        self.0.scale().to_bits().hash(&mut hasher);
        hasher.finish()
    }

    fn __reduce__(&self) -> Result<(), Failure> {
        Err(Failure::Pickle("Parameters"))
    }

    pub(crate) fn __repr__(&self) -> String {
        format!(
            "Parameters(N = 2^{}, {} levels, scale 2^{}, log Q = {:.1}, log QP = {:.1}, security {}, {})",
            self.log_n(),
            self.max_level(),
            self.log_scale(),
            self.log_q(),
            self.log_qp(),
            self.security(),
            self.backend(),
        )
    }
}
