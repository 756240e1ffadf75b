use keywright_client::{ClientError, Encryptor};
use keywright_ring::ForkMutex;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use zeroize::Zeroizing;

use crate::arguments::array::Integers;
use crate::arguments::integers::integers;
use crate::classes::getters::getters;
use crate::errors::Failure;
use crate::stored::opaque;
use crate::thin_client::entropy::platform;
use crate::thin_client::parameters::{PyClientParameters, form};
use crate::threads::{compute, compute_detached};

/// Encrypts integers under another owner's public key, and can do nothing else: for a camera or a sensor.
///
/// Thread safety: any number of threads may use one at the same time.
///
/// Args:
///     public_key: bytes of `Client.public_key`.
///     parameters: those of the server for its clients.
///     entropy: 32 bytes that determine the randomness, for tests only.
///
/// Raises:
///     FormatError: the bytes are not a whole, intact public key at the first prime.
///     MismatchError: it belongs to other parameters.
///     RandomnessError: the operating system returns no random bytes, or the given bytes are all equal.
#[pyclass(name = "ClientEncryptor", module = "keywright", frozen)]
pub(crate) struct PyClientEncryptor {
    parameters: PyClientParameters,
    encryptor: ForkMutex<Encryptor>,
}

opaque!(PyClientEncryptor);

#[integers]
#[pymethods]
impl PyClientEncryptor {
    #[new]
    #[pyo3(signature = (public_key, parameters, entropy=None))]
    fn new(
        py: Python<'_>,
        public_key: &[u8],
        parameters: PyClientParameters,
        entropy: Option<[u8; 32]>,
    ) -> Result<Self, Failure> {
        let encryptor = compute(py, || Encryptor::new(&parameters.0, public_key, &mut *platform(entropy)))?;
        Ok(Self { parameters, encryptor: ForkMutex::new(encryptor) })
    }

    /// Encrypts integers: the bytes to send.
    ///
    /// Args:
    ///     numbers: as for `Client.encrypt`.
    ///     dropped: None for a whole ciphertext. Two numbers select compact form, without these many low bits of the
    ///         coefficients of each half. That adds `2^(2 dropped[0]) / 12 + |s|^2 2^(2 dropped[1]) / 12` to the
    ///         variance of the errors, for the secret's `|s|^2`, about 2N/3 or its weight.
    ///
    /// Raises:
    ///     EncodeError, ParameterError: as for `Client.encrypt`.
    #[pyo3(signature = (numbers, *, dropped=None))]
    fn encrypt<'py>(
        &self,
        py: Python<'py>,
        numbers: &Bound<'py, PyAny>,
        dropped: Option<[u32; 2]>,
    ) -> Result<Bound<'py, PyBytes>, Failure> {
        let (numbers, form) = (Zeroizing::new(Integers::vector(numbers)?), form(dropped));
        let bytes = py.detach(|| {
            let encryptor = &mut *self.encryptor.lock()?;
            compute_detached(|| {
                let mut bytes = Vec::with_capacity(self.parameters.0.form_bytes(form, false)?);
                encryptor.encrypt(&numbers[..], form, &mut bytes)?;
                Ok::<_, ClientError>(bytes)
            })
        })?;
        Ok(PyBytes::new(py, &bytes))
    }
}

getters! { PyClientEncryptor, self;
    /// The server's parameters for its clients.
    parameters: PyClientParameters = self.parameters.clone();
}
