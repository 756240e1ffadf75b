use keywright_ckks::SymmetricCiphertext;
use pyo3::prelude::*;

use crate::ckks::ciphertext::{PyCiphertext, packing_name, slots};
use crate::errors::Failure;
use crate::parameters::ckks::PyParameters;
use crate::stored::stored_ciphertext;
use crate::threads::compute;

/// A ciphertext made with the secret key, one half of which is a 32-byte seed: half the bytes to send. `expand` gives
/// the ciphertext to compute with.
#[pyclass(name = "SeededCiphertext", module = "keywright", frozen)]
pub(crate) struct PySeededCiphertext(pub(crate) SymmetricCiphertext);

stored_ciphertext!(PySeededCiphertext, "SeededCiphertext", PyParameters);

#[pymethods]
impl PySeededCiphertext {
    /// Number of rescalings it admits.
    #[getter]
    fn level(&self) -> usize {
        self.0.seeded.c0.limb_count() - 1
    }

    /// "slots" or "coefficients": where its values are.
    #[getter]
    fn packing(&self) -> &'static str {
        packing_name(self.0.packing)
    }

    /// Number of slots; None if its values are in coefficients.
    #[getter]
    fn slots(&self) -> Option<usize> {
        slots(self.0.packing)
    }

    /// Bytes of its residues and its seed in memory.
    #[getter]
    fn bytes(&self) -> usize {
        self.0.bytes()
    }

    /// The ciphertext to compute with.
    fn expand(&self, py: Python<'_>) -> Result<PyCiphertext, Failure> {
        compute(py, || -> Result<_, Failure> { Ok(PyCiphertext(self.0.expand())) })
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}
