use keywright_bfv::Ciphertext;
use pyo3::prelude::*;

use crate::parameters::bfv::PyBfvParameters;
use crate::stored::stored_ciphertext;

/// Encrypted integers modulo t, with their level and an estimate of their noise. Immutable.
#[pyclass(name = "BfvCiphertext", module = "keywright", frozen)]
pub(crate) struct PyBfvCiphertext(pub(crate) Ciphertext);

stored_ciphertext!(PyBfvCiphertext, "BfvCiphertext", PyBfvParameters);

#[pymethods]
impl PyBfvCiphertext {
    /// Number of times that `mod_switch` can still drop a prime.
    #[getter]
    fn level(&self) -> usize {
        self.0.level()
    }

    /// Degree in the secret: 1, or 2 after `multiply_lazy`.
    #[getter]
    fn degree(&self) -> usize {
        self.0.degree()
    }

    /// "slots" or "coefficients": where its values are.
    #[getter]
    fn packing(&self) -> String {
        self.0.packing.to_string()
    }

    /// Bytes of its residues in memory.
    #[getter]
    fn bytes(&self) -> usize {
        self.0.bytes()
    }

    /// Lower bound on the noise budget in bits, derived without decrypting; the budget is below it with probability below 2^-40.
    #[getter]
    fn budget_bound(&self) -> f64 {
        self.0.estimate.budget_bits()
    }

    fn __repr__(&self) -> String {
        format!("Bfv{:?}", self.0)
    }
}
