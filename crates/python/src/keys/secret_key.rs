use std::sync::Arc;

use keywright_rlwe::SecretKey;
use keywright_wire::WireSecret;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arguments::path::FilePath;
use crate::classes::getters::getters;
use crate::errors::{Failure, file};
use crate::parameters::keys::KeyParameters;
use crate::randomness::rng;
use crate::stored::opaque;
use crate::threads::compute;

/// The secret of the owner of the data. Wiped from memory when dropped, never printed, never given to a server.
///
/// Thread safety: any number of threads may use one at the same time.
#[pyclass(name = "SecretKey", module = "keywright", frozen)]
pub(crate) struct PySecretKey {
    pub(crate) parameters: KeyParameters,
    pub(crate) key: Arc<SecretKey>,
}

opaque!(PySecretKey);

#[pymethods]
impl PySecretKey {
    /// A new secret.
    ///
    /// Args:
    ///     parameters: of the secret.
    ///     entropy: 32 bytes that determine the secret, for tests only: anyone who knows them knows the secret. The
    ///         operating system's randomness by default.
    ///
    /// Raises:
    ///     RandomnessError: the operating system returns no random bytes.
    #[staticmethod]
    #[pyo3(signature = (parameters, entropy=None))]
    fn generate(
        py: Python<'_>,
        parameters: KeyParameters,
        entropy: Option<[u8; 32]>,
    ) -> Result<Self, Failure> {
        let key = compute(py, || -> Result<_, Failure> {
            Ok(SecretKey::sample(parameters.rlwe(), &mut rng(entropy)?)?)
        })?;
        Ok(Self { parameters, key: Arc::new(key) })
    }

    /// Identifies keys and ciphertexts of this secret: 32 hexadecimal digits, which do not reveal it. None for a secret
    /// of less than 128 bits, which a digest would let others guess.
    #[getter]
    fn key_identity(&self) -> Option<String> {
        let identity = self.key.identity();
        identity.is_known().then(|| identity.to_string())
    }

    /// The secret as bytes, unencrypted: protect them like a password. Python does not wipe them.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>, Failure> {
        Ok(PyBytes::new(py, &self.key.to_secret_bytes(self.parameters.rlwe())?))
    }

    /// A secret from the bytes of `to_bytes`.
    ///
    /// Raises:
    ///     FormatError: the bytes are not a whole, intact secret.
    ///     MismatchError: it belongs to other parameters.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8], parameters: KeyParameters) -> Result<Self, Failure> {
        let key = compute(py, || SecretKey::from_secret_bytes(data, parameters.rlwe()))?;
        Ok(Self { parameters, key: Arc::new(key) })
    }

    /// Writes the secret, unencrypted, to a file that only its owner can read and that appears whole or not at all.
    fn save(&self, py: Python<'_>, path: FilePath) -> Result<(), Failure> {
        py.detach(|| self.key.save_secret(&path, self.parameters.rlwe()).map_err(file(&path)))
    }

    /// Reads the secret of a file; errors as for `from_bytes`.
    #[staticmethod]
    fn load(py: Python<'_>, path: FilePath, parameters: KeyParameters) -> Result<Self, Failure> {
        let key = compute(py, || SecretKey::load_secret(&path, parameters.rlwe()).map_err(file(&path)))?;
        Ok(Self { parameters, key: Arc::new(key) })
    }
}

getters! { PySecretKey, self;
    /// The parameters of the secret.
    parameters: KeyParameters = self.parameters.clone();
}
