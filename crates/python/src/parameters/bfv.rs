use keywright_bfv::{BfvLiteral, BfvParameters, PRESETS};
use keywright_rlwe::Security;
use pyo3::prelude::*;

use crate::arguments::integers::integers;
use crate::classes::getters::getters;
use crate::errors::Failure;
use crate::parameters::methods::parameter_methods;

/// BFV parameters: ring degree, primes, plaintext modulus. Immutable, checked for security, cheap to share.
///
/// Made by `preset`, `from_bits` or `from_bytes`. Values are integers modulo the plaintext modulus t, and results are
/// exact. If t is a prime that is 1 modulo 2N there are N slots, in 2 rows of N/2; otherwise values are packed in
/// coefficients. `SecretKey` and `KeyGenerator` make keys as for CKKS, with the same check for security.
///
/// Thread safety: any number of threads may use one at the same time.
#[pyclass(name = "BfvParameters", module = "keywright", frozen, eq)]
#[derive(Clone)]
pub(crate) struct PyBfvParameters(pub(crate) BfvParameters);

parameter_methods!(PyBfvParameters wraps BfvParameters, described by BfvLiteral);

#[integers]
#[pymethods]
impl PyBfvParameters {
    /// Names of the shipped parameter sets, smallest first: ring degree, bits of all primes, bits of the plaintext
    /// modulus.
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
        Ok(Self(py.detach(|| BfvParameters::preset(name))?))
    }

    /// Parameters from widths of primes; the largest primes of each width are chosen.
    ///
    /// Args:
    ///     log_n: log2 of the ring degree N, 10 to 17.
    ///     q_bits: widths of the ciphertext primes q_0, q_1, ..., at most 61.
    ///     p_bits: widths of the special primes, which only keys use.
    ///     plaintext_modulus: t, below 2^60 and below every ciphertext prime.
    ///     insecure: allow moduli above the 128-bit bound, for experiments on data that need no protection.
    ///
    /// Raises:
    ///     SecurityError: the ciphertext modulus exceeds the bound.
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

    fn __hash__(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        self.0.literal().hash(&mut hasher);
        hasher.finish()
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

getters! { PyBfvParameters, self;
    /// Ring degree N: values of one ciphertext.
    n: usize = self.0.rlwe().n();
    /// Plaintext modulus t.
    plaintext_modulus: u64 = self.0.plaintext_modulus();
    /// Whether values can be packed in slots.
    has_slots: bool = self.0.has_slots();
    /// Highest level, that of fresh ciphertexts: the number of times that `mod_switch` can drop a prime.
    max_level: usize = self.0.max_level();
}
