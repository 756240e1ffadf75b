use std::path::PathBuf;
use std::sync::Arc;

use keywright_rlwe::PublicKey;
use keywright_wire::Wire;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::{Failure, file};
use crate::parameters::keys::KeyParameters;
use crate::threads::compute;

/// A key that anyone may have, to encrypt for the owner of the secret.
#[pyclass(name = "PublicKey", module = "keywright", frozen)]
pub(crate) struct PyPublicKey {
    pub(crate) parameters: KeyParameters,
    pub(crate) key: Arc<PublicKey>,
}

#[pymethods]
impl PyPublicKey {
    /// The parameters it belongs to.
    #[getter]
    fn parameters(&self) -> KeyParameters {
        self.parameters.clone()
    }

    /// The key as bytes, to be read by `from_bytes`.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>, Failure> {
        let bytes = compute(py, || self.key.to_bytes(self.parameters.rlwe()))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// A key from the bytes of `to_bytes`.
    ///
    /// Raises:
    ///     FormatError: the bytes are not a whole, intact public key.
    ///     MixedParametersError: it belongs to other parameters.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8], parameters: KeyParameters) -> Result<Self, Failure> {
        let key = compute(py, || PublicKey::from_bytes(data, parameters.rlwe()))?;
        Ok(Self { parameters: parameters.clone(), key: Arc::new(key) })
    }

    /// Writes the key to a file, which appears whole or not at all.
    fn save(&self, py: Python<'_>, path: PathBuf) -> Result<(), Failure> {
        compute(py, || self.key.save(&path, self.parameters.rlwe()).map_err(file(&path)))
    }

    /// Reads the key of a file; errors as of `from_bytes`.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf, parameters: KeyParameters) -> Result<Self, Failure> {
        let key = compute(py, || PublicKey::load(&path, parameters.rlwe()).map_err(file(&path)))?;
        Ok(Self { parameters: parameters.clone(), key: Arc::new(key) })
    }

    fn __reduce__(&self) -> Result<(), Failure> {
        Err(Failure::Pickle("PublicKey"))
    }

    fn __repr__(&self) -> String {
        format!("PublicKey({})", self.parameters.__repr__())
    }
}
