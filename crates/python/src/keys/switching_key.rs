use std::sync::Arc;

use keywright_rlwe::SwitchingKey;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::Failure;
use crate::getters::getters;
use crate::integers::integers;
use crate::keys::spec::PyKeySpec;
use crate::parameters::keys::KeyParameters;
use crate::stored::{self, known, not_pickled};
use crate::threads::compute;

/// A key with which a server rotates, conjugates, relinearizes, or switches to another secret.
///
/// Thread safety: any number of threads may use one at the same time.
#[pyclass(name = "SwitchingKey", module = "keywright", frozen)]
pub(crate) struct PySwitchingKey {
    pub(crate) parameters: KeyParameters,
    pub(crate) key: Arc<SwitchingKey>,
}

not_pickled!(PySwitchingKey);

#[integers]
#[pymethods]
impl PySwitchingKey {
    /// The same key for ciphertexts up to a lower level: fewer bytes.
    ///
    /// Raises:
    ///     LevelError: the level is above the key's.
    fn truncate(&self, py: Python<'_>, level: usize) -> Result<Self, Failure> {
        let key = compute(py, || self.key.truncate(level))?;
        Ok(Self { parameters: self.parameters.clone(), key: Arc::new(key) })
    }

    /// The key as bytes, for `from_bytes`.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>, Failure> {
        stored::to_bytes(py, &*self.key, self.parameters.rlwe())
    }

    /// A key from the bytes of `to_bytes`.
    ///
    /// Raises:
    ///     FormatError: the bytes are not a whole, intact switching key.
    ///     MixedParametersError: it belongs to other parameters.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8], parameters: KeyParameters) -> Result<Self, Failure> {
        let key = Arc::new(stored::from_bytes(py, data, parameters.rlwe())?);
        Ok(Self { parameters, key })
    }

    fn __repr__(&self) -> Result<String, Failure> {
        Ok(format!("SwitchingKey({}, {} bytes)", self.spec()?.describe(), self.bytes()))
    }
}

getters! { PySwitchingKey, self;
    /// The parameters of the key.
    parameters: KeyParameters = self.parameters.clone();
    /// Identifies the secret of keys and ciphertexts: 32 hexadecimal digits; None if unknown.
    key_identity: Option<String> = known(self.key.identity());
    /// The description of the key.
    spec: Result<PyKeySpec, Failure> = PyKeySpec::of(&self.parameters, self.key.spec().clone());
    /// Bytes in memory; a seeded key has half of an unseeded one.
    bytes: usize = self.key.bytes();
    /// Variance of a coefficient of its rows' errors; larger for derived keys.
    error_variance: f64 = self.key.error_variance();
}
