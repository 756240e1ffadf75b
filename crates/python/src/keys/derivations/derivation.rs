use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use keywright_rlwe::derive::{DEFAULT_HOPS, Derivation};
use keywright_rlwe::{EvaluationKeys, SwitchingKey};
use pyo3::prelude::*;

use crate::arguments::integers::integers;
use crate::classes::getters::getters;
use crate::errors::Failure;
use crate::keys::descriptions::spec::{PyKeySpec, specs_for};
use crate::keys::evaluation_keys::PyEvaluationKeys;
use crate::keys::master_keys::PyMasterKeys;
use crate::keys::progress::report;
use crate::keys::switching_key::PySwitchingKey;
use crate::parameters::keys::KeyParameters;
use crate::stored::not_pickled;
use crate::threads::{compute, compute_interruptible};

/// The next key. A signal interrupts it, and the key can be requested again later.
fn next(py: Python<'_>, derivation: &mut Derivation) -> Result<Option<SwitchingKey>, Failure> {
    let stopped = AtomicBool::new(false);
    py.detach(|| {
        compute_interruptible(
            || stopped.store(true, Ordering::Relaxed),
            || derivation.next_unless(&|| stopped.load(Ordering::Relaxed)).transpose(),
        )
    })
}

impl PyMasterKeys {
    fn start(
        &self,
        py: Python<'_>,
        specs: &[PyRef<'_, PyKeySpec>],
        max_hops: usize,
    ) -> Result<Derivation, Failure> {
        let required = specs_for(self.parameters.rlwe(), specs, "the master keys", "the spec")?;
        compute(py, || self.keys.derive(&required, max_hops))
    }
}

#[integers]
#[pymethods]
impl PyMasterKeys {
    /// Derives keys, on the server. The same specs always give the same keys again, even after eviction.
    ///
    /// Args:
    ///     specs: the keys. A derived key cannot be seeded, so that field is ignored.
    ///     max_hops: most derivations from the master keys to a key, from 1 to `MAX_DERIVATION_HOPS`; each adds to its
    ///         noise. `DEFAULT_DERIVATION_HOPS` by default.
    ///     progress: called after each key with the number of keys made and their total; may raise to stop.
    ///
    /// Raises:
    ///     MissingKeyError: the master keys do not reach a key, or it is not a Galois key.
    ///     MismatchError: a spec is for other parameters.
    #[pyo3(signature = (specs, max_hops=DEFAULT_HOPS, progress=None))]
    fn derive(
        &self,
        py: Python<'_>,
        specs: Vec<PyRef<'_, PyKeySpec>>,
        max_hops: usize,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> Result<PyEvaluationKeys, Failure> {
        let mut derivation = self.start(py, &specs, max_hops)?;
        let total = derivation.len();
        let mut keys = EvaluationKeys::new(self.parameters.rlwe());
        while let Some(key) = next(py, &mut derivation)? {
            keys.insert(key)?;
            report(py, progress, total - derivation.len(), total)?;
        }
        Ok(PyEvaluationKeys::new(self.parameters.clone(), keys))
    }

    /// The same keys one by one, so that they need not all be in memory: an iterator of `SwitchingKey`.
    #[pyo3(signature = (specs, max_hops=DEFAULT_HOPS))]
    fn derivation(
        &self,
        py: Python<'_>,
        specs: Vec<PyRef<'_, PyKeySpec>>,
        max_hops: usize,
    ) -> Result<PyDerivation, Failure> {
        let derivation = self.start(py, &specs, max_hops)?;
        let trees = derivation.plan().trees().map(|(_, tree)| tree);
        let (derived, decomposed, depth) = trees.fold((0, 0, 0), |(derived, decomposed, depth), tree| {
            (derived + tree.steps().len(), decomposed + tree.parents(), depth.max(tree.depth()))
        });
        let parameters = self.parameters.clone();
        Ok(PyDerivation { parameters, derivation, derived, decomposed, depth })
    }
}

/// Keys that are derived on request: the result of `MasterKeys.derivation`. An iterator; its length is the number of
/// keys left.
///
/// Thread safety: one thread at a time; another one gets RuntimeError while a key is being made.
#[pyclass(name = "Derivation", module = "keywright")]
pub(crate) struct PyDerivation {
    parameters: KeyParameters,
    derivation: Derivation,
    derived: usize,
    decomposed: usize,
    depth: usize,
}

not_pickled!(PyDerivation);

#[pymethods]
impl PyDerivation {
    fn __len__(&self) -> usize {
        self.derivation.len()
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&mut self, py: Python<'_>) -> Result<Option<PySwitchingKey>, Failure> {
        let key = next(py, &mut self.derivation)?;
        Ok(key.map(|key| PySwitchingKey { parameters: self.parameters.clone(), key: Arc::new(key) }))
    }

    fn __repr__(&self) -> String {
        format!("Derivation({} left)", crate::classes::counted(self.derivation.len(), "key"))
    }
}

getters! { PyDerivation, self;
    /// Derived keys, including intermediate ones.
    derived: usize = self.derived;
    /// Keys from which others are derived.
    decomposed: usize = self.decomposed;
    /// Most derivations from the master keys to a key.
    depth: usize = self.depth;
}
