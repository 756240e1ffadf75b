use std::path::PathBuf;

use keywright_bfv::Ciphertext;
use keywright_wire::Wire;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::bfv_parameters::PyBfvParameters;
use crate::errors::{Failure, file};
use crate::pool::compute;

/// Encrypted integers modulo t, with their level and an estimate of their noise. Immutable.
#[pyclass(name = "BfvCiphertext", module = "keywright", frozen)]
pub(crate) struct PyBfvCiphertext(pub(crate) Ciphertext);

#[pymethods]
impl PyBfvCiphertext {
    /// The parameters it belongs to.
    #[getter]
    fn parameters(&self) -> PyBfvParameters {
        PyBfvParameters(self.0.parameters.clone())
    }

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

    /// The ciphertext as bytes, to be read by `from_bytes`.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>, Failure> {
        let bytes = compute(py, || self.0.to_bytes(&self.0.parameters))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// A ciphertext from the bytes of `to_bytes`.
    ///
    /// Raises:
    ///     FormatError: the bytes are not a whole, intact ciphertext.
    ///     MixedParametersError: it belongs to other parameters.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8], parameters: &PyBfvParameters) -> Result<Self, Failure> {
        compute(py, || Ciphertext::from_bytes(data, &parameters.0)).map(Self)
    }

    /// Writes the ciphertext to a file, which appears whole or not at all.
    fn save(&self, py: Python<'_>, path: PathBuf) -> Result<(), Failure> {
        compute(py, || self.0.save(&path, &self.0.parameters).map_err(file(&path)))
    }

    /// Reads the ciphertext of a file; errors as of `from_bytes`.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf, parameters: &PyBfvParameters) -> Result<Self, Failure> {
        compute(py, || Ciphertext::load(&path, &parameters.0).map_err(file(&path))).map(Self)
    }

    fn __reduce__(&self) -> Result<(), Failure> {
        Err(Failure::Pickle("BfvCiphertext"))
    }

    fn __repr__(&self) -> String {
        format!("Bfv{:?}", self.0)
    }
}
