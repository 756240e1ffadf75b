use std::path::PathBuf;
use std::sync::Arc;

use keywright_rlwe::PublicKey;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::Failure;
use crate::getters::getters;
use crate::parameters::keys::KeyParameters;
use crate::stored::{self, Rings, known, not_pickled};

/// A key for encrypting to the owner of the secret; anyone may have it.
///
/// Thread safety: any number of threads may use one at the same time.
#[pyclass(name = "PublicKey", module = "keywright", frozen)]
pub(crate) struct PyPublicKey {
    pub(crate) parameters: KeyParameters,
    pub(crate) key: Arc<PublicKey>,
}

not_pickled!(PyPublicKey);

#[pymethods]
impl PyPublicKey {
    /// The key as bytes, for `from_bytes`.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>, Failure> {
        stored::to_bytes(py, &*self.key, self.parameters.rlwe())
    }

    /// A key from the bytes of `to_bytes`.
    ///
    /// Raises:
    ///     FormatError: the bytes are not a whole, intact public key.
    ///     MixedParametersError: it belongs to other parameters.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8], parameters: KeyParameters) -> Result<Self, Failure> {
        let parameters = parameters.of_object(&mut &*data)?;
        let key = Arc::new(stored::from_bytes(py, data, parameters.rlwe())?);
        Ok(Self { parameters, key })
    }

    /// Writes the key to a file, which appears whole or not at all.
    fn save(&self, py: Python<'_>, path: PathBuf) -> Result<(), Failure> {
        stored::save(py, &*self.key, &path, self.parameters.rlwe())
    }

    /// Reads the key of a file; errors as for `from_bytes`.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf, parameters: KeyParameters) -> Result<Self, Failure> {
        let parameters = parameters.of_file(&path)?;
        let key = Arc::new(stored::load(py, &path, parameters.rlwe())?);
        Ok(Self { parameters, key })
    }

    fn __repr__(&self) -> String {
        format!("PublicKey({})", self.parameters.__repr__())
    }
}

getters! { PyPublicKey, self;
    /// The parameters of the key.
    parameters: KeyParameters = self.parameters.clone();
    /// Identifies the secret of keys and ciphertexts: 32 hexadecimal digits; None if unknown.
    key_identity: Option<String> = known(self.key.identity());
}
