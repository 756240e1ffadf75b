use std::sync::Arc;

use keywright_ckks::Packing;
use keywright_pool::bfv::BfvPool;
use keywright_pool::ckks::{CkksPool, CkksZero, Encoded};
use keywright_pool::{EncryptionPool, PoolError, PoolFileOptions, PoolOptions, WhenEmpty, ZeroKey};
use keywright_rlwe::{PublicKey, SecretKey};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};
use zeroize::Zeroizing;

use crate::arguments::array::{Integers, Numbers, log_slots};
use crate::arguments::integers::integers;
use crate::arguments::path::FilePath;
use crate::bfv::plaintext;
use crate::ckks::encryptor::declaration;
use crate::classes::getters::getters;
use crate::errors::{Failure, Refusal};
use crate::keys::public_key::PyPublicKey;
use crate::keys::secret_key::PySecretKey;
use crate::parameters::keys::KeyParameters;
use crate::pools::pooled::{PATIENCE, Pooled, scalars, wait};
use crate::randomness::rng;
use crate::stored::not_pickled;
use crate::threads::{compute, compute_detached};

/// A pool of either kind of key.
enum Pool {
    Public(EncryptionPool<Arc<PublicKey>>),
    Secret(EncryptionPool<Arc<SecretKey>>),
}

/// Evaluates a generic expression for either kind of pool.
macro_rules! on {
    ($self:expr, $pool:ident => $work:expr) => {
        match &$self.pool {
            Pool::Public($pool) => $work,
            Pool::Secret($pool) => $work,
        }
    };
}

/// A key of either kind.
#[derive(FromPyObject)]
enum Key {
    Public(Py<PyPublicKey>),
    Secret(Py<PySecretKey>),
}

/// Encryptions of zero made ahead of time, in background threads, each used for one message: encrypting a message is
/// then one addition. As secure as encrypting directly; see docs/explanation/cached-encryption.md.
///
/// Entries are one-time masks of their messages: a file of them is encrypted, and must not be on a disk that is cloned
/// or rolled back. A forked process cannot use its parent's pool.
///
/// Thread safety: any number of threads may use one at the same time.
///
/// Args:
///     key: a public key, which gives `Ciphertext`s, or a secret key, which gives `SeededCiphertext`s at half the
///         memory. With a key of BFV parameters `encrypt_integers` returns a `BfvCiphertext` or `BfvSeededCiphertext`.
///     capacity: most entries in memory.
///     level: of every ciphertext, the highest by default.
///     threads: background threads. With 0, only `fill` makes entries.
///     when_empty: "encrypt" makes an entry directly, "block" waits for a thread, "error" raises `PoolError`.
///     file: the file of the entries beyond those in memory; created if it does not exist.
///     file_key: 32 secret bytes with which the file is encrypted.
///     file_capacity: entries of a new file; `capacity` by default.
///     register: folder of the record of used entries; $XDG_STATE_HOME/keywright/pools by default.
///     entropy: 32 bytes that determine the randomness, for tests only.
///
/// Raises:
///     ParameterError: a number outside its range, an unknown `when_empty`, a file without its key.
///     LevelError: there is no such level.
///     PoolError: the file is damaged, copied, or of another pool.
#[pyclass(name = "EncryptionPool", module = "keywright", frozen)]
pub(crate) struct PyEncryptionPool {
    pool: Pool,
    parameters: KeyParameters,
}

not_pickled!(PyEncryptionPool);

#[integers]
#[pymethods]
impl PyEncryptionPool {
    #[new]
    #[pyo3(signature = (
        key, capacity, *, level=None, threads=1, when_empty="encrypt", file=None, file_key=None, file_capacity=None,
        register=None, entropy=None
    ))]
    fn new(
        py: Python<'_>,
        key: Key,
        capacity: usize,
        level: Option<usize>,
        threads: usize,
        when_empty: &str,
        file: Option<FilePath>,
        file_key: Option<[u8; 32]>,
        file_capacity: Option<u64>,
        register: Option<FilePath>,
        entropy: Option<[u8; 32]>,
    ) -> Result<Self, Failure> {
        let choices =
            [("encrypt", WhenEmpty::Encrypt), ("block", WhenEmpty::Block), ("error", WhenEmpty::Error)];
        let when_empty = Refusal::choice("when_empty", when_empty, &choices, None)?;
        let file = match (file, file_key.map(Zeroizing::new)) {
            (None, None) => None,
            (Some(path), Some(key)) => {
                let capacity = file_capacity.unwrap_or(capacity as u64);
                Some(PoolFileOptions { path: path.0, key, capacity, register: register.map(|each| each.0) })
            }
            _ => return Err(Refusal::FileKey.into()),
        };
        let parameters = match &key {
            Key::Public(key) => key.get().parameters.clone(),
            Key::Secret(key) => key.get().parameters.clone(),
        };
        let level = level.unwrap_or(parameters.rlwe().max_level());
        let options = PoolOptions { level, capacity, threads, when_empty, file };
        let rng = rng(entropy)?;
        let pool = py.detach(|| {
            Ok::<_, PoolError>(match &key {
                Key::Public(key) => Pool::Public(EncryptionPool::new(key.get().key.clone(), options, rng)?),
                Key::Secret(key) => Pool::Secret(EncryptionPool::new(key.get().key.clone(), options, rng)?),
            })
        })?;
        Ok(Self { pool, parameters })
    }

    /// `EncryptionPool[Ciphertext]` in annotations.
    #[classmethod]
    #[pyo3(signature = (item, /))]
    fn __class_getitem__<'py>(
        cls: &Bound<'py, PyType>,
        item: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        cls.py().import("types")?.getattr("GenericAlias")?.call1((cls, item))
    }

    /// Bytes of one entry in memory.
    #[getter]
    fn entry_bytes(&self) -> usize {
        let poly = (self.level() + 1) * self.parameters.rlwe().n() * 8;
        match self.pool {
            Pool::Public(_) => 2 * poly,
            Pool::Secret(_) => poly + 32,
        }
    }

    /// Statistics: "capacity", "fill" (entries in memory), "in_file" (None without a file), "made", "taken", "hits"
    /// (taken from memory without waiting), "misses", "hit_rate", and "failure": why its threads ended, None while they
    /// run.
    #[getter]
    fn metrics<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>, Failure> {
        let (metrics, in_file) =
            py.detach(|| on!(self, pool => Ok::<_, PoolError>((pool.metrics()?, pool.in_file()?))))?;
        let out = PyDict::new(py);
        out.set_item("capacity", metrics.capacity)?;
        out.set_item("fill", metrics.fill)?;
        out.set_item("in_file", in_file)?;
        out.set_item("made", metrics.made)?;
        out.set_item("taken", metrics.taken)?;
        out.set_item("hits", metrics.hits)?;
        out.set_item("misses", metrics.misses())?;
        out.set_item("hit_rate", metrics.hit_rate())?;
        out.set_item("failure", metrics.failure)?;
        Ok(out)
    }

    /// Makes entries now, on the threads of `keywright.set_threads`, as far as there is room in memory; takes those of
    /// the file first.
    ///
    /// Args:
    ///     count: the most to make; by default until memory is full.
    ///
    /// Returns:
    ///     the number of entries in memory.
    #[pyo3(signature = (count=None))]
    fn fill(&self, py: Python<'_>, count: Option<usize>) -> Result<usize, Failure> {
        compute(py, || {
            on!(self, pool => {
                pool.fill(count.unwrap_or(usize::MAX))?;
                Ok::<_, PoolError>(pool.metrics()?.fill)
            })
        })
    }

    /// Encrypts a vector of real or complex numbers in slots; arguments and errors as for `Encryptor.encrypt`.
    ///
    /// Raises:
    ///     PoolError: there is no entry and `when_empty` is "error", or the pool blocks and was closed.
    ///     RandomnessError: the pool belongs to another process.
    #[pyo3(signature = (values, slots=None, magnitude=None))]
    fn encrypt(
        &self,
        py: Python<'_>,
        values: &Bound<'_, PyAny>,
        slots: Option<usize>,
        magnitude: Option<f64>,
    ) -> Result<Pooled, Failure> {
        let log_slots = log_slots(self.parameters.ckks()?, slots)?;
        let numbers = Numbers::vector(values)?;
        self.run(py, magnitude, &|pool| match &numbers {
            Numbers::Complex(values) => pool.encode(values, log_slots),
            Numbers::Real(values) => pool.encode_real(values, Packing::Slots { log_slots }),
            _ => pool.encode_real(&[], Packing::Slots { log_slots }),
        })
    }

    /// Encrypts up to N real numbers in coefficients; errors as for `encrypt`.
    #[pyo3(signature = (values, magnitude=None))]
    fn encrypt_coefficients(
        &self,
        py: Python<'_>,
        values: &Bound<'_, PyAny>,
        magnitude: Option<f64>,
    ) -> Result<Pooled, Failure> {
        let values = Numbers::real_vector(values)?;
        self.run(py, magnitude, &|pool| pool.encode_real(&values, Packing::Coefficients))
    }

    /// Encrypts one real number, the same in every slot, without FFT or NTT. Errors as for `encrypt`.
    #[pyo3(signature = (value, slots=None, magnitude=None))]
    fn encrypt_scalar(
        &self,
        py: Python<'_>,
        value: f64,
        slots: Option<usize>,
        magnitude: Option<f64>,
    ) -> Result<Pooled, Failure> {
        let parameters = self.parameters.ckks()?;
        let (log_slots, magnitude) = (log_slots(parameters, slots)?, declaration(parameters, magnitude)?);
        on!(self, pool => scalars(py, parameters, pool, &[value], log_slots, magnitude))?
            .pop()
            .ok_or_else(|| Refusal::Values("no value".into()).into())
    }

    /// Encrypts every number of a vector separately, as `encrypt_scalar` does. Checks all before taking an entry.
    #[pyo3(signature = (values, slots=None, magnitude=None))]
    fn encrypt_scalars(
        &self,
        py: Python<'_>,
        values: &Bound<'_, PyAny>,
        slots: Option<usize>,
        magnitude: Option<f64>,
    ) -> Result<Vec<Pooled>, Failure> {
        let parameters = self.parameters.ckks()?;
        let (log_slots, magnitude) = (log_slots(parameters, slots)?, declaration(parameters, magnitude)?);
        let values = Numbers::real_vector(values)?;
        on!(self, pool => scalars(py, parameters, pool, &values, log_slots, magnitude))
    }

    /// Encrypts integers, with a key of BFV parameters; arguments and errors as for `BfvEncryptor.encrypt`. A single
    /// integer fills all slots without a transform.
    ///
    /// Raises:
    ///     PoolError, RandomnessError: as for `encrypt`.
    #[pyo3(signature = (values, packing=None))]
    fn encrypt_integers(
        &self,
        py: Python<'_>,
        values: &Bound<'_, PyAny>,
        packing: Option<&str>,
    ) -> Result<Pooled, Failure> {
        let parameters = self.parameters.bfv()?;
        let packing = plaintext::packing(parameters, packing)?;
        let message = Integers::from_python(values)?.encode(parameters, packing)?;
        on!(self, pool => {
            let messages = BfvPool::new(parameters, pool)?;
            wait(py, pool, || messages.encrypt_within(&message, PATIENCE))
        })
    }

    /// Ends the threads. Entries in memory go to the file, if there is one, as far as it has room.
    fn close(&self, py: Python<'_>) -> Result<(), Failure> {
        py.detach(|| on!(self, pool => pool.close()))?;
        Ok(())
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyAny>) -> Result<(), Failure> {
        self.close(py)
    }

    /// Entries in memory.
    fn __len__(&self) -> Result<usize, Failure> {
        Ok(on!(self, pool => pool.metrics())?.fill)
    }

    fn __bool__(&self) -> bool {
        true
    }

    fn __repr__(&self) -> String {
        let (level, capacity) = (self.level(), self.capacity());
        match self.__len__() {
            Ok(fill) => format!("EncryptionPool(level {level}, {fill} of {capacity} entries)"),
            Err(_) => format!("EncryptionPool(level {level}, of another process)"),
        }
    }
}

getters! { PyEncryptionPool, self;
    /// The parameters of its key.
    parameters: KeyParameters = self.parameters.clone();
    /// Level of its ciphertexts.
    level: usize = on!(self, pool => pool.level());
    /// Most entries in memory.
    capacity: usize = on!(self, pool => pool.capacity());
}

/// The encoding of a message, for either kind of pool.
trait Encode {
    fn encode(&self, values: &[keywright_ckks::Complex64], log_slots: u32) -> Result<Encoded, PoolError>;
    fn encode_real(&self, values: &[f64], packing: Packing) -> Result<Encoded, PoolError>;
}

impl<K: ZeroKey<Zero: CkksZero>> Encode for CkksPool<'_, K> {
    fn encode(&self, values: &[keywright_ckks::Complex64], log_slots: u32) -> Result<Encoded, PoolError> {
        self.encode(values, log_slots)
    }

    fn encode_real(&self, values: &[f64], packing: Packing) -> Result<Encoded, PoolError> {
        self.encode_real(values, packing)
    }
}

type Encoding<'e> = dyn Fn(&dyn Encode) -> Result<Encoded, PoolError> + Sync + 'e;

impl PyEncryptionPool {
    fn run(&self, py: Python<'_>, magnitude: Option<f64>, encode: &Encoding<'_>) -> Result<Pooled, Failure> {
        let parameters = self.parameters.ckks()?;
        let magnitude = declaration(parameters, magnitude)?;
        on!(self, pool => {
            let messages = CkksPool::new(parameters, pool)?.declaring(magnitude);
            let message = py.detach(|| compute_detached(|| encode(&messages)))?;
            wait(py, pool, || messages.encrypt_within(&message, PATIENCE))
        })
    }
}
