use std::path::PathBuf;
use std::sync::Arc;

use keywright_aggregation::{Binding, EncryptedSum, EncryptedUpdate, SumKey, SumParameters};
use keywright_rlwe::SecretKey;
use keywright_wire::WireSecret;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use zeroize::Zeroizing;

use crate::errors::{Failure, file};
use crate::randomness::{Randomness, rng};
use crate::stored::{self, not_pickled, opaque};
use crate::threads::compute;

/// Ring, modulus and scale for exact sums of encrypted vectors of integers.
///
/// The modulus is the smallest whole number of bytes, 4 to 7, that has room for the sums and their error; the ring is the
/// smallest of 128-bit security for it.
///
/// Args:
///     max_inputs: vectors of one sum, at most 2^20.
///     magnitude: largest absolute value of an integer of one vector, at most 2^48.
///
/// Raises:
///     ParameterError: one of them is outside its range, or no modulus has room for the sums.
#[pyclass(name = "SumParameters", module = "keywright.federated", frozen, eq)]
#[derive(Clone)]
pub(crate) struct PySumParameters(pub(crate) SumParameters);

impl PartialEq for PySumParameters {
    fn eq(&self, other: &Self) -> bool {
        self.0.same(&other.0)
    }
}

not_pickled!(PySumParameters);

#[pymethods]
impl PySumParameters {
    #[new]
    fn new(py: Python<'_>, max_inputs: u32, magnitude: u64) -> Result<Self, Failure> {
        Ok(Self(py.detach(|| SumParameters::new(max_inputs, magnitude))?))
    }

    /// Number of vectors that was asked for.
    #[getter]
    fn max_inputs(&self) -> u32 {
        self.0.max_inputs()
    }

    /// Number of vectors that the modulus has room for: at least `max_inputs`. More are refused.
    #[getter]
    fn capacity(&self) -> u32 {
        self.0.capacity()
    }

    /// Largest absolute value of an integer of one vector.
    #[getter]
    fn magnitude(&self) -> u64 {
        self.0.magnitude()
    }

    /// log2 of the ring degree.
    #[getter]
    fn log_n(&self) -> u32 {
        self.0.rlwe().log_n()
    }

    /// The modulus, a prime.
    #[getter]
    fn modulus(&self) -> u64 {
        self.0.modulus().value()
    }

    /// Bytes of one encrypted integer.
    #[getter]
    fn value_bytes(&self) -> usize {
        self.0.value_bytes()
    }

    /// log2 of the factor that keeps integers above the error.
    #[getter]
    fn noise_bits(&self) -> u32 {
        self.0.noise_bits()
    }

    fn __hash__(&self) -> u64 {
        self.0.magnitude() ^ u64::from(self.0.max_inputs()) << 49
    }

    fn __repr__(&self) -> String {
        format!(
            "SumParameters(up to {} vectors of integers up to {}, N = 2^{}, log q = {}, 128-bit classical)",
            self.0.capacity(),
            self.0.magnitude(),
            self.0.rlwe().log_n(),
            self.0.modulus().bits(),
        )
    }
}

/// The secret that the clients share and the server does not have: it encrypts updates and decrypts sums.
#[pyclass(name = "SumKey", module = "keywright.federated", frozen)]
pub(crate) struct PySumKey {
    key: Arc<SumKey>,
    rng: Randomness,
}

impl PySumKey {
    fn from_secret(parameters: &PySumParameters, secret: SecretKey) -> Result<Self, Failure> {
        let key = Arc::new(SumKey::new(&parameters.0, secret)?);
        Ok(Self { key, rng: Randomness::new(None)? })
    }
}

opaque!(PySumKey);

#[pymethods]
impl PySumKey {
    /// A new secret.
    ///
    /// Args:
    ///     parameters: what it is for.
    ///     entropy: 32 bytes that decide the secret and all randomness of its encryptions, for tests only.
    ///
    /// Raises:
    ///     RandomnessError: the operating system gives no randomness.
    #[staticmethod]
    #[pyo3(signature = (parameters, entropy=None))]
    fn generate(
        py: Python<'_>,
        parameters: &PySumParameters,
        entropy: Option<[u8; 32]>,
    ) -> Result<Self, Failure> {
        let mut rng = rng(entropy)?;
        let key = compute(py, || SumKey::sample(&parameters.0, &mut rng))?;
        Ok(Self { key: Arc::new(key), rng: rng.into() })
    }

    /// What it is for.
    #[getter]
    fn parameters(&self) -> PySumParameters {
        PySumParameters(self.key.parameters().clone())
    }

    /// Encrypts a vector of integers.
    ///
    /// Args:
    ///     values: int64 vector, nothing above the declared magnitude.
    ///     session: 16 bytes that name the run.
    ///     round: number of the round.
    ///     client: number of the client.
    ///     weight: what the values were multiplied with, at least 1. Public.
    ///
    /// Raises:
    ///     EncodeError: a value is above the declared magnitude.
    ///     ParameterError: there is no value, or the weight is 0.
    #[pyo3(signature = (values, *, session, round, client, weight))]
    fn encrypt(
        &self,
        py: Python<'_>,
        values: PyReadonlyArray1<'_, i64>,
        session: [u8; 16],
        round: u32,
        client: u64,
        weight: u32,
    ) -> Result<PyEncryptedUpdate, Failure> {
        let values = Zeroizing::new(values.as_array().to_vec());
        let binding = Binding { session, round, client, weight };
        let mut rng = self.rng.split()?;
        let update = compute(py, || self.key.encrypt(&values, binding, &mut rng))?;
        Ok(PyEncryptedUpdate { parameters: self.key.parameters().clone(), update: Arc::new(update) })
    }

    /// The sum of the integers, exactly. It contains nothing of the encryption's error and may be published.
    ///
    /// Raises:
    ///     AggregationError: the bytes are no sum of as many updates as they claim, or made with another key.
    ///     ParameterError: they have another shape.
    fn decrypt<'py>(
        &self,
        py: Python<'py>,
        sum: &PyEncryptedSum,
    ) -> Result<Bound<'py, PyArray1<i64>>, Failure> {
        let values = compute(py, || self.key.decrypt(&sum.sum))?;
        Ok(values.to_vec().into_pyarray(py))
    }

    /// The secret as bytes, unencrypted: keep them as you keep a password. Python does not wipe them.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>, Failure> {
        Ok(PyBytes::new(py, &self.key.secret().to_secret_bytes(self.key.parameters().rlwe())?))
    }

    /// A secret from the bytes of `to_bytes`.
    ///
    /// Raises:
    ///     FormatError: the bytes are not a whole, intact secret.
    ///     MixedParametersError: it belongs to another ring.
    #[staticmethod]
    fn from_bytes(data: &[u8], parameters: &PySumParameters) -> Result<Self, Failure> {
        Self::from_secret(parameters, SecretKey::from_secret_bytes(data, parameters.0.rlwe())?)
    }

    /// Writes the secret, unencrypted, to a file that only its owner can read and that appears whole or not at all.
    fn save(&self, py: Python<'_>, path: PathBuf) -> Result<(), Failure> {
        let rlwe = self.key.parameters().rlwe();
        py.detach(|| self.key.secret().save_secret(&path, rlwe).map_err(file(&path)))
    }

    /// Reads the secret of a file; errors as of `from_bytes`.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf, parameters: &PySumParameters) -> Result<Self, Failure> {
        let rlwe = parameters.0.rlwe();
        let secret = py.detach(|| SecretKey::load_secret(&path, rlwe).map_err(file(&path)))?;
        Self::from_secret(parameters, secret)
    }
}

/// One client's encrypted vector, bound to session, round, client and weight: with other claims it does not decrypt.
#[pyclass(name = "EncryptedUpdate", module = "keywright.federated", frozen)]
pub(crate) struct PyEncryptedUpdate {
    parameters: SumParameters,
    update: Arc<EncryptedUpdate>,
}

not_pickled!(PyEncryptedUpdate);

#[pymethods]
impl PyEncryptedUpdate {
    /// The run it claims to belong to, 16 bytes.
    #[getter]
    fn session<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.update.binding().session)
    }

    /// The round it claims to be made in.
    #[getter]
    fn round(&self) -> u32 {
        self.update.binding().round
    }

    /// Who claims to have made it.
    #[getter]
    fn client(&self) -> u64 {
        self.update.binding().client
    }

    /// The weight it claims.
    #[getter]
    fn weight(&self) -> u32 {
        self.update.binding().weight
    }

    /// Number of values.
    #[getter]
    fn count(&self) -> usize {
        self.update.count()
    }

    /// The update as bytes, to be read by `from_bytes`.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>, Failure> {
        stored::to_bytes(py, &*self.update, &self.parameters)
    }

    /// An update from the bytes of `to_bytes`.
    ///
    /// Raises:
    ///     FormatError: the bytes are not a whole, intact update, or declare other bounds.
    ///     MixedParametersError: it belongs to another ring.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8], parameters: &PySumParameters) -> Result<Self, Failure> {
        let update = stored::from_bytes(py, data, &parameters.0)?;
        Ok(Self { parameters: parameters.0.clone(), update: Arc::new(update) })
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.update)
    }
}

/// A sum of updates, made without any key.
#[pyclass(name = "EncryptedSum", module = "keywright.federated", frozen)]
pub(crate) struct PyEncryptedSum {
    parameters: SumParameters,
    sum: EncryptedSum,
}

not_pickled!(PyEncryptedSum);

#[pymethods]
impl PyEncryptedSum {
    /// Adds updates of one session and round, each client once.
    ///
    /// Raises:
    ///     AggregationError: they differ in session, round or number of values, or a client is there twice.
    ///     ParameterError: there is none, or more than the modulus has room for.
    #[staticmethod]
    fn of(
        py: Python<'_>,
        updates: Vec<Bound<'_, PyEncryptedUpdate>>,
        parameters: &PySumParameters,
    ) -> Result<Self, Failure> {
        let updates: Vec<_> = updates.iter().map(|update| update.get().update.clone()).collect();
        let sum = compute(py, || {
            EncryptedSum::of(&parameters.0, &updates.iter().map(AsRef::as_ref).collect::<Vec<_>>())
        })?;
        Ok(Self { parameters: parameters.0.clone(), sum })
    }

    /// The run of its updates, 16 bytes.
    #[getter]
    fn session<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.sum.session())
    }

    /// The round of its updates.
    #[getter]
    fn round(&self) -> u32 {
        self.sum.round()
    }

    /// Client and weight of every update, in the order in which they were added.
    #[getter]
    fn contributors(&self) -> Vec<(u64, u32)> {
        self.sum.contributors().iter().map(|c| (c.client, c.weight)).collect()
    }

    /// Sum of the weights.
    #[getter]
    fn total_weight(&self) -> u64 {
        self.sum.total_weight()
    }

    /// Number of values.
    #[getter]
    fn count(&self) -> usize {
        self.sum.count()
    }

    /// The sum as bytes, to be read by `from_bytes`.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>, Failure> {
        stored::to_bytes(py, &self.sum, &self.parameters)
    }

    /// A sum from the bytes of `to_bytes`; errors as of `EncryptedUpdate.from_bytes`.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8], parameters: &PySumParameters) -> Result<Self, Failure> {
        let sum = stored::from_bytes(py, data, &parameters.0)?;
        Ok(Self { parameters: parameters.0.clone(), sum })
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.sum)
    }
}
