use keywright_bfv::SymmetricCiphertext;
use pyo3::prelude::*;

use crate::bfv::ciphertext::PyBfvCiphertext;
use crate::errors::Failure;
use crate::parameters::bfv::PyBfvParameters;
use crate::stored::stored_ciphertext;
use crate::threads::compute;

/// A BFV ciphertext made with the secret key, one half of which is a 32-byte seed: half the bytes to send. `expand` gives
/// the ciphertext to compute with.
#[pyclass(name = "BfvSeededCiphertext", module = "keywright", frozen)]
pub(crate) struct PyBfvSeededCiphertext(pub(crate) SymmetricCiphertext);

stored_ciphertext!(PyBfvSeededCiphertext, "BfvSeededCiphertext", PyBfvParameters);

#[pymethods]
impl PyBfvSeededCiphertext {
    /// Number of times that `mod_switch` can drop a prime.
    #[getter]
    fn level(&self) -> usize {
        self.0.level()
    }

    /// "slots" or "coefficients": where its values are.
    #[getter]
    fn packing(&self) -> String {
        self.0.packing.to_string()
    }

    /// Bytes of its residues and its seed in memory.
    #[getter]
    fn bytes(&self) -> usize {
        self.0.bytes()
    }

    /// The ciphertext to compute with.
    fn expand(&self, py: Python<'_>) -> Result<PyBfvCiphertext, Failure> {
        compute(py, || -> Result<_, Failure> { Ok(PyBfvCiphertext(self.0.expand())) })
    }

    fn __repr__(&self) -> String {
        format!("Bfv{:?}", self.0)
    }
}
