use std::path::PathBuf;

use keywright_bfv::{BfvLiteral, BfvParameters, PRESETS};
use keywright_rlwe::Security;
use keywright_wire::Wire;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::{Failure, file};

/// BFV parameters: ring degree, primes, plaintext modulus. Immutable, checked for security, cheap to share.
///
/// Made by `preset`, `from_bits` or `from_bytes`. Values are integers modulo the plaintext modulus t, and results are exact. If t is a
/// prime that is 1 modulo 2N there are N slots, in 2 rows of N/2; else values are packed in coefficients. Keys are made by
/// `SecretKey` and `KeyGenerator` as for CKKS, and checked for security in the same way.
#[pyclass(name = "BfvParameters", module = "keywright", frozen, eq)]
#[derive(Clone)]
pub(crate) struct PyBfvParameters(pub(crate) BfvParameters);

impl PartialEq for PyBfvParameters {
    fn eq(&self, other: &Self) -> bool {
        self.0.literal() == other.0.literal()
    }
}

/// Names of the shipped BFV parameter sets, smallest first: ring degree, bits of all primes, bits of the plaintext modulus.
#[pyfunction]
pub(crate) fn bfv_presets() -> Vec<&'static str> {
    PRESETS.iter().map(|preset| preset.name).collect()
}

#[pymethods]
impl PyBfvParameters {
    /// A shipped parameter set.
    ///
    /// Args:
    ///     name: one of `keywright.bfv_presets()`.
    ///
    /// Raises:
    ///     ParameterError: there is no such set.
    #[staticmethod]
    fn preset(py: Python<'_>, name: &str) -> Result<Self, Failure> {
        Ok(Self(py.detach(|| BfvParameters::preset(name))?))
    }

    /// Parameters from widths of primes; the largest primes of each width are chosen.
    ///
    /// Args:
    ///     log_n: log2 of the ring degree N, 10 to 17.
    ///     q_bits: widths of the ciphertext primes q_0, q_1, ..., at most 61.
    ///     p_bits: widths of the special primes, which only keys have.
    ///     plaintext_modulus: t, below 2^60 and below every ciphertext prime.
    ///     insecure: allow moduli above the 128-bit bound, for experiments on data that need no protection.
    ///
    /// Raises:
    ///     SecurityError: the ciphertext modulus is above the bound.
    ///     ParameterError: there are no such primes, or the plaintext modulus is out of range.
    #[staticmethod]
    #[pyo3(signature = (log_n, q_bits, p_bits, plaintext_modulus, insecure=false))]
    fn from_bits(
        py: Python<'_>,
        log_n: u32,
        q_bits: Vec<u32>,
        p_bits: Vec<u32>,
        plaintext_modulus: u64,
        insecure: bool,
    ) -> Result<Self, Failure> {
        py.detach(|| {
            let mut literal = BfvLiteral::from_bits(log_n, &q_bits, &p_bits, plaintext_modulus)?;
            if insecure {
                literal.rlwe.security = Security::InsecureForExperiments;
            }
            Ok(Self(BfvParameters::new(literal)?))
        })
    }

    /// log2 of the ring degree.
    #[getter]
    fn log_n(&self) -> u32 {
        self.0.rlwe().log_n()
    }

    /// Ring degree N: values of one ciphertext.
    #[getter]
    fn n(&self) -> usize {
        self.0.rlwe().n()
    }

    /// Plaintext modulus t.
    #[getter]
    fn plaintext_modulus(&self) -> u64 {
        self.0.plaintext_modulus()
    }

    /// Whether values can be packed in slots.
    #[getter]
    fn has_slots(&self) -> bool {
        self.0.has_slots()
    }

    /// Highest level, that of fresh ciphertexts: the number of times that `mod_switch` can drop a prime.
    #[getter]
    fn max_level(&self) -> usize {
        self.0.max_level()
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
        py.detach(|| Ok(Self(BfvParameters::new(BfvLiteral::from_bytes(data, &())?)?)))
    }

    /// Writes the parameters to a file, which appears whole or not at all.
    fn save(&self, py: Python<'_>, path: PathBuf) -> Result<(), Failure> {
        py.detach(|| self.0.literal().save(&path, &()).map_err(file(&path)))
    }

    /// Reads the parameters of a file; errors as of `from_bytes`.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> Result<Self, Failure> {
        py.detach(|| Ok(Self(BfvParameters::new(BfvLiteral::load(&path, &()).map_err(file(&path))?)?)))
    }

    fn __hash__(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        self.0.literal().hash(&mut hasher);
        hasher.finish()
    }

    fn __reduce__(&self) -> Result<(), Failure> {
        Err(Failure::Pickle("BfvParameters"))
    }

    pub(crate) fn __repr__(&self) -> String {
        format!(
            "BfvParameters(N = 2^{}, modulo {}, {}, log Q = {:.1}, log QP = {:.1}, security {}, {})",
            self.log_n(),
            self.plaintext_modulus(),
            self.0.default_packing(),
            self.log_q(),
            self.log_qp(),
            self.security(),
            self.0.rlwe().ring().backend().kind().name(),
        )
    }
}
