use std::sync::Arc;

use keywright_rlwe::SwitchingKey;
use pyo3::prelude::*;

use super::descriptions::spec::PyKeySpec;
use crate::arguments::integers::integers;
use crate::classes::getters::getters;
use crate::errors::Failure;
use crate::parameters::keys::KeyParameters;
use crate::stored::{known, not_pickled, read, serialized};
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

serialized! {
    PySwitchingKey of KeyParameters: "key", "A key", "switching key";
    self => &*self.key, self.parameters.rlwe();
    |py, source, parameters| {
        let key = Arc::new(read(py, source, parameters.rlwe())?);
        Ok(Self { parameters, key })
    }
}

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
