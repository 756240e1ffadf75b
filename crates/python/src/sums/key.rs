use std::sync::Arc;

use keywright_aggregation::{Binding, SumKey};
use keywright_rlwe::SecretKey;
use keywright_wire::WireSecret;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use zeroize::Zeroizing;

use crate::arguments::integers::integers;
use crate::arguments::path::FilePath;
use crate::classes::getters::getters;
use crate::errors::{Failure, file};
use crate::randomness::{Randomness, rng};
use crate::stored::opaque;
use crate::sums::encrypted::{PyEncryptedSum, PyEncryptedUpdate};
use crate::sums::parameters::PySumParameters;
use crate::threads::compute;

/// The secret that the clients share and the server does not have. It encrypts updates and decrypts sums.
///
/// Thread safety: any number of threads may use one at the same time.
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

#[integers]
#[pymethods]
impl PySumKey {
    /// A new secret.
    ///
    /// Args:
    ///     parameters: of the sums.
    ///     entropy: 32 bytes that determine the secret and all randomness of its encryptions, for tests only.
    ///
    /// Raises:
    ///     RandomnessError: the operating system returns no random bytes.
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

    /// Encrypts a vector of integers.
    ///
    /// Args:
    ///     values: int64 vector, with absolute values up to the declared magnitude.
    ///     session: 16 bytes that name the run.
    ///     round: number of the round.
    ///     client: number of the client.
    ///     weight: the factor by which the values were multiplied, at least 1. Public.
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

    /// The sum of the integers, exactly. It contains no part of the encryption's error and may be published.
    ///
    /// Raises:
    ///     AggregationError: the bytes are not a sum of as many updates as they claim, or made with another key.
    ///     ParameterError: they have another shape.
    fn decrypt<'py>(
        &self,
        py: Python<'py>,
        sum: &PyEncryptedSum,
    ) -> Result<Bound<'py, PyArray1<i64>>, Failure> {
        let values = compute(py, || self.key.decrypt(&sum.sum))?;
        Ok(values.to_vec().into_pyarray(py))
    }

    /// The secret as bytes, unencrypted: protect them like a password. Python does not wipe them.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>, Failure> {
        Ok(PyBytes::new(py, &self.key.secret().to_secret_bytes(self.key.parameters().rlwe())?))
    }

    /// A secret from the bytes of `to_bytes`.
    ///
    /// Raises:
    ///     FormatError: the bytes are not a whole, intact secret.
    ///     MismatchError: it belongs to another ring.
    #[staticmethod]
    fn from_bytes(data: &[u8], parameters: &PySumParameters) -> Result<Self, Failure> {
        Self::from_secret(parameters, SecretKey::from_secret_bytes(data, parameters.0.rlwe())?)
    }

    /// Writes the secret, unencrypted, to a file that only its owner can read and that appears whole or not at all.
    fn save(&self, py: Python<'_>, path: FilePath) -> Result<(), Failure> {
        let rlwe = self.key.parameters().rlwe();
        py.detach(|| self.key.secret().save_secret(&path, rlwe).map_err(file(&path)))
    }

    /// Reads the secret of a file; errors as for `from_bytes`.
    #[staticmethod]
    fn load(py: Python<'_>, path: FilePath, parameters: &PySumParameters) -> Result<Self, Failure> {
        let rlwe = parameters.0.rlwe();
        let secret = py.detach(|| SecretKey::load_secret(&path, rlwe).map_err(file(&path)))?;
        Self::from_secret(parameters, secret)
    }
}

getters! { PySumKey, self;
    /// The parameters of the sums.
    parameters: PySumParameters = PySumParameters(self.key.parameters().clone());
}
