use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::IntoRawFd;
use std::sync::{Arc, PoisonError, RwLock};

use keywright_ring::SharedFile;
use keywright_rlwe::derive::{DEFAULT_HOPS, DerivationPlan, DerivedKeys};
use keywright_rlwe::residency::{KeyLoader, KeyStore, Loaders};
use keywright_rlwe::{EvaluationKeys, Hop, KeyRoutes, Route, threads};
use keywright_wire::{KeySetLoader, KeySharing, SharedKeyLoader, Wire, WireError, shared_keys};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyIterator, PyList};

use super::descriptions::spec::{PyKeySpec, specs_for};
use crate::arguments::integers::integers;
use crate::arguments::path::FilePath;
use crate::classes::getters::getters;
use crate::errors::{Failure, file};
use crate::keys::master_keys::PyMasterKeys;
use crate::keys::switching_key::PySwitchingKey;
use crate::parameters::keys::KeyParameters;
use crate::stored::{Source, known, not_pickled, read};
use crate::threads::{compute, compute_detached, compute_interruptible, signals};

/// The switching keys of a server: any number per rotation, at any levels. Iterates over its `KeySpec`s.
///
/// For each operation the evaluator uses the key, and the number of its rows per digit, that need the fewest
/// transforms. A set that follows a plan uses what the plan prescribes.
///
/// Thread safety: any number of threads may use one at the same time.
#[pyclass(name = "EvaluationKeys", module = "keywright", frozen)]
pub(crate) struct PyEvaluationKeys {
    parameters: KeyParameters,
    keys: RwLock<Arc<EvaluationKeys>>,
    /// The source of keys that are not all in memory.
    store: Option<Arc<KeyStore>>,
    /// The shared memory of the keys.
    sharing: Option<Arc<KeySharing>>,
}

impl PyEvaluationKeys {
    pub(crate) fn new(parameters: KeyParameters, keys: EvaluationKeys) -> Self {
        Self { parameters, keys: RwLock::new(Arc::new(keys)), store: None, sharing: None }
    }

    /// Computes with the current keys. Operations with keys of one store run one at a time: on the computing threads,
    /// one would wait for another. A signal ends them while they take keys, which may have to be derived first.
    pub(crate) fn compute<T: Send, E: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&EvaluationKeys) -> Result<T, E> + Send,
    ) -> Result<T, Failure>
    where
        Failure: From<E>,
    {
        let keys = self.snapshot();
        py.detach(|| {
            let Some(store) = &self.store else { return compute_detached(|| work(&keys)) };
            let mut raised = Ok(());
            let access = store.access(|| {
                raised = signals();
                raised.is_err()
            });
            raised?;
            let access = access?;
            compute_interruptible(|| access.interrupt(), || work(&keys))
        })
    }

    /// The current keys.
    pub(crate) fn snapshot(&self) -> Arc<EvaluationKeys> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

not_pickled!(PyEvaluationKeys);

#[integers]
#[pymethods]
impl PyEvaluationKeys {
    /// An empty set.
    #[new]
    pub(crate) fn empty(parameters: KeyParameters) -> Self {
        Self::new(parameters.clone(), EvaluationKeys::new(parameters.rlwe()))
    }

    /// A set with the descriptions of its keys only. It tells which errors they would add before any is made
    /// (`ErrorModel`). Computing with one raises KeySourceError.
    ///
    /// Raises:
    ///     MismatchError: a spec is for other parameters.
    ///     ParameterError: there are two keys to or from an ephemeral secret of one weight.
    #[staticmethod]
    fn outline(parameters: KeyParameters, specs: Vec<PyRef<'_, PyKeySpec>>) -> Result<Self, Failure> {
        let specs = specs_for(parameters.rlwe(), &specs, "the key set", "the key spec")?;
        let keys = EvaluationKeys::outline(parameters.rlwe(), specs)?;
        Ok(Self::new(parameters, keys))
    }

    /// Adds a key; running operations continue without it.
    ///
    /// Raises:
    ///     MismatchError: the key was made with another secret than the others.
    ///     MismatchError: the key belongs to other parameters.
    fn add(&self, key: &PySwitchingKey) -> Result<(), Failure> {
        let mut keys = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        Ok(Arc::make_mut(&mut keys).insert(key.key.clone())?)
    }

    /// The same keys, used as planned: each group of automorphisms by its hops, each relinearization with the key of
    /// its level. Keys to and from ephemeral secrets are used as without a plan.
    ///
    /// Args:
    ///     routes: for each group its level, the required Galois elements, and its hops as (parent, child, key): every
    ///         parent is 1, the ciphertext itself, or an earlier child; the key is that of child / parent.
    ///     relinearizations: the key for each level.
    ///
    /// Raises:
    ///     MismatchError: hops that do not make the required elements.
    ///     MissingKeyError: the set lacks one of the keys.
    #[expect(clippy::type_complexity, reason = "tuples in tuples, as Python has them")]
    fn following(
        &self,
        routes: Vec<(usize, Vec<u64>, Vec<(u64, u64, PyRef<'_, PyKeySpec>)>)>,
        relinearizations: Vec<(usize, PyRef<'_, PyKeySpec>)>,
    ) -> Result<Self, Failure> {
        let routes = routes.into_iter().map(|(level, targets, hops)| Route {
            level,
            targets: targets.into_iter().collect(),
            hops: hops
                .into_iter()
                .map(|(parent, child, key)| Hop { parent, child, spec: key.spec.clone() })
                .collect(),
        });
        let relinearizations = relinearizations.into_iter().map(|(level, key)| (level, key.spec.clone()));
        let routes = KeyRoutes::new(self.parameters.rlwe(), routes, relinearizations)?;
        let keys = (*self.snapshot()).clone().with_routes(Arc::new(routes))?;
        let (store, sharing) = (self.store.clone(), self.sharing.clone());
        Ok(Self { store, sharing, ..Self::new(self.parameters.clone(), keys) })
    }

    /// Keys that take at most `memory` bytes of memory at a time. Keys of a file are read; others are derived from
    /// master keys, again after an eviction. A thread makes the keys of coming steps. When memory is full, the idle key
    /// needed furthest in the future is evicted. An operation whose keys do not fit takes them one after the other.
    /// Operations with these keys run one at a time.
    ///
    /// Args:
    ///     path: a file of `save` or `KeyGenerator.save_evaluation_keys`.
    ///     memory: bytes of keys, including the master keys.
    ///     steps: the keys that each step of the program uses, in order; it may run any number of times. Other keys are
    ///         made too, at use.
    ///     masters: the master keys of the derived ones; as many threads as compute derive them.
    ///     derived: the keys to derive. A derived key cannot be seeded, so that field is ignored.
    ///     max_hops: as for `MasterKeys.derive`.
    ///
    /// Raises:
    ///     FormatError, MismatchError: as for `from_bytes`.
    ///     OutOfMemoryError: a key does not fit.
    ///     MissingKeyError: as for `MasterKeys.derive`.
    #[staticmethod]
    #[pyo3(signature = (path, parameters, memory, steps, masters=None, derived=Vec::new(), max_hops=DEFAULT_HOPS))]
    fn stream(
        py: Python<'_>,
        path: FilePath,
        parameters: KeyParameters,
        memory: usize,
        steps: Vec<Vec<PyRef<'_, PyKeySpec>>>,
        masters: Option<PyRef<'_, PyMasterKeys>>,
        derived: Vec<PyRef<'_, PyKeySpec>>,
        max_hops: usize,
    ) -> Result<Self, Failure> {
        let steps: Vec<Vec<_>> =
            steps.iter().map(|step| step.iter().map(|key| key.spec.clone()).collect()).collect();
        let derived = specs_for(parameters.rlwe(), &derived, "the master keys", "the spec")?;
        let masters = masters.map(|masters| masters.keys.clone());
        let rlwe = parameters.rlwe();
        let store = compute(py, || -> Result<_, Failure> {
            let read = KeySetLoader::open(&path, rlwe).map_err(file(&path))?;
            let mut loaders: Vec<Box<dyn KeyLoader>> = vec![Box::new(read)];
            if let Some(masters) = masters {
                let plan = DerivationPlan::new(&masters, &derived, max_hops)?;
                loaders.push(Box::new(DerivedKeys::new(Arc::new(plan), threads())?));
            }
            Ok(Arc::new(KeyStore::new(Loaders::new(loaders), &steps, memory)?))
        })?;
        let keys = store.keys(rlwe)?;
        Ok(Self { store: Some(store), ..Self::new(parameters.clone(), keys) })
    }

    /// The keys of a file, read in the order in which a program uses them, into memory that other processes can map:
    /// see `share`. Operations begin with the first keys and wait for the others, while a thread reads.
    ///
    /// Args:
    ///     path: a file of `save` or `KeyGenerator.save_evaluation_keys`.
    ///     steps: the keys that each step of the program uses, in order. Other keys are read after them.
    ///     arrival: for a file that is being written, whose length and head, up to that of its first key, are there.
    ///         Called before a key is read, with where its bytes begin and end. Returns when they are there, or raises
    ///         `OSError` if they will not come.
    ///
    /// Raises:
    ///     FormatError, MismatchError: as for `from_bytes`, for the head; for a key, raised by the operation
    ///         that uses it.
    ///     OSError: the file cannot be read, or the system has no sealed shared memory, as Linux has.
    #[staticmethod]
    #[pyo3(signature = (path, parameters, steps, arrival=None))]
    fn load_shared(
        py: Python<'_>,
        path: FilePath,
        parameters: KeyParameters,
        steps: Vec<Vec<PyRef<'_, PyKeySpec>>>,
        arrival: Option<Py<PyAny>>,
    ) -> Result<Self, Failure> {
        let mut steps: Vec<Vec<_>> =
            steps.iter().map(|step| step.iter().map(|key| key.spec.clone()).collect()).collect();
        let rlwe = parameters.rlwe();
        let (store, sharing) = compute(py, || -> Result<_, Failure> {
            let read = match arrival {
                None => KeySetLoader::open(&path, rlwe),
                Some(arrival) => {
                    let wait = move |begin: u64, end: u64| {
                        Python::attach(|py| arrival.call1(py, (begin, end)).map(drop))
                            .map_err(|error| io::Error::other(error.to_string()))
                    };
                    KeySetLoader::open_arriving(&path, rlwe, Box::new(wait))
                }
            }
            .map_err(file(&path))?;
            steps.push(read.layouts().iter().map(|layout| layout.spec.clone()).collect());
            let bytes = read.layouts().iter().map(|layout| layout.bytes).sum();
            let loader = SharedKeyLoader::new(read, rlwe)?;
            let sharing = loader.sharing();
            Ok((Arc::new(KeyStore::new(loader, &steps, bytes)?), sharing))
        })?;
        let keys = store.keys(rlwe)?;
        let (store, sharing) = (Some(store), Some(sharing));
        Ok(Self { store, sharing, ..Self::new(parameters.clone(), keys) })
    }

    /// Waits until all keys of `load_shared` are read, and returns a descriptor of their memory, which is sealed
    /// against writes. The caller closes it. Other processes of this machine that get the descriptor map the same
    /// memory: `open_shared`.
    ///
    /// Raises:
    ///     OSError: a key cannot be read, or the keys are not those of `load_shared`.
    fn share(&self, py: Python<'_>) -> Result<i32, Failure> {
        let Some(sharing) = &self.sharing else {
            let error = io::Error::new(
                io::ErrorKind::InvalidInput,
                "these keys are not shared; use those of load_shared",
            );
            return Err(WireError::Io(error).into());
        };
        py.detach(|| {
            let mut raised = Ok(());
            let file = sharing.wait(|| {
                raised = signals();
                raised.is_err()
            });
            raised?;
            Ok(file?.into_descriptor().into_raw_fd())
        })
    }

    /// The keys in the memory of a descriptor from `share`. The caller may close it: the keys stay mapped while this
    /// object exists.
    ///
    /// Raises:
    ///     OSError: it is not a descriptor of such memory.
    ///     FormatError, MismatchError: as for `from_bytes`.
    #[staticmethod]
    fn open_shared(py: Python<'_>, descriptor: i32, parameters: KeyParameters) -> Result<Self, Failure> {
        let rlwe = parameters.rlwe();
        let keys = compute(py, || shared_keys(&SharedFile::of_descriptor(descriptor)?, rlwe))?;
        Ok(Self::new(parameters.clone(), keys))
    }

    /// Statistics of streamed keys: "loads" of keys, by reading or deriving; those "ahead" of their use; their "bytes";
    /// "peak_bytes" in memory at once; and "waited_s", how long operations waited for keys. None for keys that are all
    /// in memory.
    #[getter]
    fn streaming<'py>(&self, py: Python<'py>) -> Result<Option<Bound<'py, PyDict>>, Failure> {
        let Some(store) = &self.store else { return Ok(None) };
        let seen = store.statistics()?;
        let out = PyDict::new(py);
        out.set_item("loads", seen.loads)?;
        out.set_item("ahead", seen.ahead)?;
        out.set_item("bytes", seen.bytes)?;
        out.set_item("peak_bytes", seen.peak_bytes)?;
        out.set_item("waited_s", seen.waited.as_secs_f64())?;
        Ok(Some(out))
    }

    fn __len__(&self) -> usize {
        self.snapshot().len()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        let specs: Vec<_> = self
            .snapshot()
            .iter()
            .map(|key| PyKeySpec::of(&self.parameters, key.spec().clone()))
            .collect::<Result<_, Failure>>()?;
        PyList::new(py, specs)?.try_iter()
    }

    /// The keys as bytes, for `from_bytes`.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>, Failure> {
        let bytes = self.compute(py, |keys| keys.to_bytes(self.parameters.rlwe()))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Keys from the bytes of `to_bytes`. Each key is checked for security.
    ///
    /// Raises:
    ///     FormatError: the bytes are not a whole, intact key set.
    ///     MismatchError: it belongs to other parameters.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8], parameters: KeyParameters) -> Result<Self, Failure> {
        let keys = read(py, &Source::Bytes(data), parameters.rlwe())?;
        Ok(Self::new(parameters, keys))
    }

    /// Writes the keys to a file, which appears whole or not at all.
    fn save(&self, py: Python<'_>, path: FilePath) -> Result<(), Failure> {
        self.compute(py, |keys| keys.save(&path, self.parameters.rlwe()).map_err(file(&path)))
    }

    /// Reads the keys of a file; errors as for `from_bytes`.
    #[staticmethod]
    fn load(py: Python<'_>, path: FilePath, parameters: KeyParameters) -> Result<Self, Failure> {
        let keys = read(py, &Source::File(&path), parameters.rlwe())?;
        Ok(Self::new(parameters, keys))
    }

    fn __repr__(&self) -> String {
        let keys = self.snapshot();
        format!("EvaluationKeys({}, {} bytes)", crate::classes::counted(keys.len(), "key"), keys.bytes())
    }
}

getters! { PyEvaluationKeys, self;
    /// The parameters of its keys.
    parameters: KeyParameters = self.parameters.clone();
    /// Identifies the secret of keys and ciphertexts: 32 hexadecimal digits; None if unknown.
    key_identity: Option<String> = known(self.snapshot().identity());
    /// Bytes of all keys, in memory or not.
    bytes: usize = self.snapshot().bytes();
}
