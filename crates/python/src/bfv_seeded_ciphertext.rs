use std::path::PathBuf;

use keywright_bfv::SymmetricCiphertext;
use keywright_wire::Wire;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::bfv_ciphertext::PyBfvCiphertext;
use crate::bfv_parameters::PyBfvParameters;
use crate::errors::{Failure, file};
use crate::pool::compute;

/// A BFV ciphertext made with the secret key, one half of which is a 32-byte seed: half the bytes to send. `expand` gives
/// the ciphertext to compute with.
#[pyclass(name = "BfvSeededCiphertext", module = "keywright", frozen)]
pub(crate) struct PyBfvSeededCiphertext(pub(crate) SymmetricCiphertext);

#[pymethods]
impl PyBfvSeededCiphertext {
    /// The parameters it belongs to.
    #[getter]
    fn parameters(&self) -> PyBfvParameters {
        PyBfvParameters(self.0.parameters.clone())
    }

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

    /// The ciphertext as bytes, to be read by `from_bytes`.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>, Failure> {
        let bytes = compute(py, || self.0.to_bytes(&self.0.parameters))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// A ciphertext from the bytes of `to_bytes`.
    ///
    /// Raises:
    ///     FormatError: the bytes are not a whole, intact seeded ciphertext.
    ///     MixedParametersError: it belongs to other parameters.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8], parameters: &PyBfvParameters) -> Result<Self, Failure> {
        compute(py, || SymmetricCiphertext::from_bytes(data, &parameters.0)).map(Self)
    }

    /// Writes the ciphertext to a file, which appears whole or not at all.
    fn save(&self, py: Python<'_>, path: PathBuf) -> Result<(), Failure> {
        compute(py, || self.0.save(&path, &self.0.parameters).map_err(file(&path)))
    }

    /// Reads the ciphertext of a file; errors as of `from_bytes`.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf, parameters: &PyBfvParameters) -> Result<Self, Failure> {
        compute(py, || SymmetricCiphertext::load(&path, &parameters.0).map_err(file(&path))).map(Self)
    }

    fn __reduce__(&self) -> Result<(), Failure> {
        Err(Failure::Pickle("BfvSeededCiphertext"))
    }

    fn __repr__(&self) -> String {
        format!("Bfv{:?}", self.0)
    }
}
