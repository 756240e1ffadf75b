use std::sync::Arc;

use keywright_client::{Client, ClientError};
use keywright_ring::ForkMutex;
use keywright_wire::WireSecret;
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use zeroize::Zeroizing;

use crate::arguments::array::Integers;
use crate::arguments::integers::integers;
use crate::classes::getters::getters;
use crate::errors::Failure;
use crate::keys::descriptions::spec::{PyKeySpec, specs_for};
use crate::keys::secret_key::PySecretKey;
use crate::parameters::keys::KeyParameters;
use crate::stored::opaque;
use crate::thin_client::entropy::platform;
use crate::thin_client::key_stream::PyClientKeyStream;
use crate::thin_client::parameters::{PyClientParameters, form};
use crate::threads::{compute, compute_detached};

/// A thin client with a new secret. It encrypts integers modulo one prime, decrypts answers, and makes the keys that a
/// server requests. It needs no floating point, no Fourier transform, no second prime.
///
/// Thread safety: any number of threads may use one at the same time.
///
/// Args:
///     parameters: those of the server for its clients.
///     entropy: 32 bytes that determine all randomness, for tests only: anyone who knows them knows the secret. The
///         operating system's by default.
///
/// Raises:
///     RandomnessError: the operating system returns no random bytes, or the given bytes are all equal.
#[pyclass(name = "Client", module = "keywright", frozen)]
pub(crate) struct PyClient {
    parameters: PyClientParameters,
    /// Locked outside of the computing threads.
    client: Arc<ForkMutex<Client>>,
}

impl PyClient {
    /// Computes with the client, one call at a time.
    fn compute<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Client) -> Result<T, ClientError> + Send,
    ) -> Result<T, Failure> {
        py.detach(|| {
            let client = &mut *self.client.lock()?;
            compute_detached(|| work(client))
        })
    }
}

opaque!(PyClient);

#[integers]
#[pymethods]
impl PyClient {
    #[new]
    #[pyo3(signature = (parameters, entropy=None))]
    fn new(
        py: Python<'_>,
        parameters: PyClientParameters,
        entropy: Option<[u8; 32]>,
    ) -> Result<Self, Failure> {
        let client = compute(py, || Client::generate(&parameters.0, &mut *platform(entropy)))?;
        Ok(Self { parameters, client: Arc::new(ForkMutex::new(client)) })
    }

    /// A client with a secret key of the server's parameters. Python gets no copy of the secret.
    ///
    /// Raises:
    ///     MismatchError: the secret belongs to other parameters.
    ///     RandomnessError: as for the constructor.
    #[staticmethod]
    #[pyo3(signature = (secret, parameters, entropy=None))]
    fn from_secret(
        py: Python<'_>,
        secret: &PySecretKey,
        parameters: PyClientParameters,
        entropy: Option<[u8; 32]>,
    ) -> Result<Self, Failure> {
        let client = compute(py, || -> Result<_, Failure> {
            let bytes = secret.key.to_secret_bytes(secret.parameters.rlwe())?;
            Ok(Client::from_secret_bytes(&parameters.0, &bytes, &mut *platform(entropy))?)
        })?;
        Ok(Self { parameters, client: Arc::new(ForkMutex::new(client)) })
    }

    /// A client with a secret from `secret_bytes`, or from `SecretKey.to_bytes` of the server's parameters.
    ///
    /// Raises:
    ///     FormatError: the bytes are not a whole, intact secret.
    ///     MismatchError: it belongs to other parameters.
    ///     RandomnessError: as for the constructor.
    #[staticmethod]
    #[pyo3(signature = (data, parameters, entropy=None))]
    fn from_secret_bytes(
        py: Python<'_>,
        data: &[u8],
        parameters: PyClientParameters,
        entropy: Option<[u8; 32]>,
    ) -> Result<Self, Failure> {
        let client = compute(py, || Client::from_secret_bytes(&parameters.0, data, &mut *platform(entropy)))?;
        Ok(Self { parameters, client: Arc::new(ForkMutex::new(client)) })
    }

    /// The secret as bytes, unencrypted: protect them like a password. `SecretKey.from_bytes` reads them. Python does
    /// not wipe them.
    fn secret_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>, Failure> {
        let bytes = self.compute(py, |client| client.secret_bytes())?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// A new public key as bytes, for a `ClientEncryptor`.
    fn public_key<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>, Failure> {
        let bytes = self.compute(py, |client| {
            let mut bytes = Vec::new();
            client.public_key(&mut bytes).map(|()| bytes)
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Encrypts integers with the secret: the bytes to send, half as many as with a public key.
    ///
    /// Args:
    ///     numbers: at most `parameters.capacity` integers in units of `2^-fraction_bits`, of absolute value at most
    ///         `parameters.maximum`.
    ///     dropped: None for a whole ciphertext. A number selects compact form: only the coefficients that carry
    ///         numbers, without this many low bits. That adds `2^(2 dropped) / 12` to the variance of the coefficients'
    ///         errors.
    ///
    /// Raises:
    ///     EncodeError: the numbers are not a vector of integers, too many or too large.
    ///     ParameterError: more dropped bits than there are.
    #[pyo3(signature = (numbers, *, dropped=None))]
    fn encrypt<'py>(
        &self,
        py: Python<'py>,
        numbers: &Bound<'py, PyAny>,
        dropped: Option<u32>,
    ) -> Result<Bound<'py, PyBytes>, Failure> {
        let (numbers, form) =
            (Zeroizing::new(Integers::vector(numbers)?), form(dropped.map(|bits| [bits, 0])));
        let bytes = self.compute(py, |client| {
            let mut bytes = Vec::with_capacity(self.parameters.0.form_bytes(form, true)?);
            client.encrypt(&numbers[..], form, &mut bytes)?;
            Ok(bytes)
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Decrypts the numbers of an answer, in units of `2^-fraction_bits`.
    ///
    /// Args:
    ///     answer: a ciphertext at level 0 as bytes, with its values in coefficients.
    ///     count: number of numbers; all by default.
    ///
    /// Raises:
    ///     FormatError: the bytes are not a whole, intact answer.
    ///     MismatchError: it belongs to other parameters.
    ///     EncodeError: count is above the capacity.
    ///     ParameterError: it is not at level 0, or its scale does not suit its numbers.
    #[pyo3(signature = (answer, count=None))]
    fn decrypt<'py>(
        &self,
        py: Python<'py>,
        answer: &[u8],
        count: Option<usize>,
    ) -> Result<Bound<'py, PyArray1<i64>>, Failure> {
        let capacity = self.parameters.0.capacity();
        let count = count.unwrap_or(capacity);
        let numbers = self.compute(py, |client| {
            if count > capacity {
                return Err(ClientError::Length {
                    what: "numbers to decrypt (at most)",
                    found: count,
                    expected: capacity,
                });
            }
            let mut numbers = vec![0; count];
            client.decrypt(answer, &mut numbers)?;
            Ok(numbers)
        })?;
        Ok(numbers.into_pyarray(py))
    }

    /// 32 secret bytes from which `key_stream` derives its keys. Store them with the secret until all keys have
    /// arrived: they make the same keys again. They serve any list of keys, since each key has its own randomness.
    fn session<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>, Failure> {
        let session = self.compute(py, |client| client.session())?;
        Ok(PyBytes::new(py, &*session))
    }

    /// The keys that a server requests, made one after another. For any size of keys this takes little memory.
    ///
    /// Args:
    ///     specs: seeded keys, of the server's parameters.
    ///     session: 32 bytes from `session`.
    ///
    /// Raises:
    ///     MismatchError: the keys belong to other parameters than the client.
    ///     ParameterError: a key is not seeded, or occurs twice, or a client cannot make it.
    ///     SecurityError: a key below 128 bits of security.
    fn key_stream(
        &self,
        py: Python<'_>,
        specs: Vec<PyRef<'_, PyKeySpec>>,
        session: [u8; 32],
    ) -> Result<PyClientKeyStream, Failure> {
        let parameters: Option<KeyParameters> = specs.first().map(|spec| spec.parameters.clone());
        let specs = match &parameters {
            Some(first) => specs_for(first.rlwe(), &specs, "the first spec", "another spec")?,
            None => Vec::new(),
        };
        PyClientKeyStream::new(py, self.client.clone(), parameters, specs, Zeroizing::new(session))
    }
}

getters! { PyClient, self;
    /// The server's parameters for its clients.
    parameters: PyClientParameters = self.parameters.clone();
}
