use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use keywright_rlwe::EvaluationKeys;
use keywright_wire::Wire;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyIterator, PyList};

use crate::errors::{Failure, file};
use crate::key_parameters::KeyParameters;
use crate::key_spec::PyKeySpec;
use crate::pool::compute;
use crate::switching_key::PySwitchingKey;

/// The switching keys that a server holds: any number per rotation, at any levels. Iterates over its `KeySpec`s.
///
/// For each operation the evaluator takes the key, and the number of its rows per digit, that make the fewest transforms.
#[pyclass(name = "EvaluationKeys", module = "keywright", frozen)]
pub(crate) struct PyEvaluationKeys {
    parameters: KeyParameters,
    keys: RwLock<Arc<EvaluationKeys>>,
}

impl PyEvaluationKeys {
    pub(crate) fn new(parameters: KeyParameters, keys: EvaluationKeys) -> Self {
        Self { parameters, keys: RwLock::new(Arc::new(keys)) }
    }

    /// The keys as they are now.
    pub(crate) fn snapshot(&self) -> Arc<EvaluationKeys> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[pymethods]
impl PyEvaluationKeys {
    /// An empty set.
    #[new]
    fn empty(parameters: KeyParameters) -> Self {
        Self::new(parameters.clone(), EvaluationKeys::new(parameters.rlwe()))
    }

    /// The parameters of its keys.
    #[getter]
    fn parameters(&self) -> KeyParameters {
        self.parameters.clone()
    }

    /// Adds a key; operations that run already go on without it.
    ///
    /// Raises:
    ///     MixedParametersError: the key belongs to other parameters.
    fn add(&self, key: &PySwitchingKey) -> Result<(), Failure> {
        let mut keys = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        Ok(Arc::make_mut(&mut keys).insert(key.key.clone())?)
    }

    /// Bytes of all keys in memory.
    #[getter]
    fn bytes(&self) -> usize {
        self.snapshot().bytes()
    }

    fn __len__(&self) -> usize {
        self.snapshot().len()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        let specs: Vec<_> = self
            .snapshot()
            .iter()
            .map(|key| PyKeySpec { parameters: self.parameters.clone(), spec: key.spec().clone() })
            .collect();
        PyList::new(py, specs)?.try_iter()
    }

    /// The keys as bytes, to be read by `from_bytes`.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>, Failure> {
        let keys = self.snapshot();
        let bytes = compute(py, || keys.to_bytes(self.parameters.rlwe()))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Keys from the bytes of `to_bytes`. Each key is checked for security.
    ///
    /// Raises:
    ///     FormatError: the bytes are not a whole, intact key set.
    ///     MixedParametersError: it belongs to other parameters.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8], parameters: KeyParameters) -> Result<Self, Failure> {
        let keys = compute(py, || EvaluationKeys::from_bytes(data, parameters.rlwe()))?;
        Ok(Self::new(parameters.clone(), keys))
    }

    /// Writes the keys to a file, which appears whole or not at all.
    fn save(&self, py: Python<'_>, path: PathBuf) -> Result<(), Failure> {
        let keys = self.snapshot();
        compute(py, || keys.save(&path, self.parameters.rlwe()).map_err(file(&path)))
    }

    /// Reads the keys of a file; errors as of `from_bytes`.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf, parameters: KeyParameters) -> Result<Self, Failure> {
        let keys = compute(py, || EvaluationKeys::load(&path, parameters.rlwe()).map_err(file(&path)))?;
        Ok(Self::new(parameters.clone(), keys))
    }

    fn __reduce__(&self) -> Result<(), Failure> {
        Err(Failure::Pickle("EvaluationKeys"))
    }

    fn __repr__(&self) -> String {
        let keys = self.snapshot();
        format!("EvaluationKeys({} keys, {} bytes)", keys.len(), keys.bytes())
    }
}
