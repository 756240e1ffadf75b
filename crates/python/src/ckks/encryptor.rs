use keywright_ckks::{CkksParameters, Encryptor, Magnitude, Packing};
use pyo3::prelude::*;

use crate::arguments::array::{Numbers, log_slots};
use crate::arguments::integers::integers;
use crate::ckks::ciphertext::PyCiphertext;
use crate::classes::getters::getters;
use crate::errors::Failure;
use crate::keys::public_key::PyPublicKey;
use crate::parameters::keys::KeyParameters;
use crate::randomness::Randomness;
use crate::stored::opaque;
use crate::threads::compute;

/// Encrypts with a public key.
///
/// Thread safety: any number of threads may use one at the same time.
///
/// Args:
///     public_key: of the owner who decrypts.
///     entropy: 32 bytes that determine the randomness, for tests only.
#[pyclass(name = "Encryptor", module = "keywright", frozen)]
pub(crate) struct PyEncryptor {
    key: Py<PyPublicKey>,
    rng: Randomness,
}

opaque!(PyEncryptor);

#[integers]
#[pymethods]
impl PyEncryptor {
    #[new]
    #[pyo3(signature = (public_key, entropy=None))]
    fn new(public_key: Py<PyPublicKey>, entropy: Option<[u8; 32]>) -> Result<Self, Failure> {
        Ok(Self { key: public_key, rng: Randomness::new(entropy)? })
    }

    /// Encrypts a vector of real or complex numbers in slots.
    ///
    /// Args:
    ///     values: at most `slots` numbers; zeros fill the rest.
    ///     slots: a power of two up to N/2, which is the default. Rotations act modulo this number.
    ///     level: level of the ciphertext, the highest by default. A lower one makes it smaller and faster.
    ///     magnitude: the largest absolute value that the message may have. The ciphertext states it, and its error bound
    ///         follows from it, so it must not depend on the values. `Parameters.default_magnitude` by default.
    ///
    /// Raises:
    ///     EncodeError: the values are not a vector of finite numbers, too many, above the declared magnitude, or too
    ///         large for the modulus.
    ///     ParameterError: slots is not a power of two up to N/2, or magnitude is not a positive number.
    ///     LevelError: there is no such level.
    #[pyo3(signature = (values, slots=None, level=None, magnitude=None))]
    fn encrypt(
        &self,
        py: Python<'_>,
        values: &Bound<'_, PyAny>,
        slots: Option<usize>,
        level: Option<usize>,
        magnitude: Option<f64>,
    ) -> Result<PyCiphertext, Failure> {
        let log_slots = log_slots(self.key.get().parameters.ckks()?, slots)?;
        let numbers = Numbers::vector(values)?;
        self.run(py, level, magnitude, move |encryptor, level| match &numbers {
            Numbers::Complex(values) => encryptor.encrypt(values, log_slots, level),
            Numbers::Real(values) => encryptor.encrypt_real(values, Packing::Slots { log_slots }, level),
            _ => encryptor.encrypt_real(&[], Packing::Slots { log_slots }, level),
        })
    }

    /// Encrypts up to N real numbers in the coefficients of the plaintext. A thin client needs no transform for this.
    /// The values support no rotations or slot-wise products until they are moved to slots.
    ///
    /// Raises:
    ///     EncodeError, ParameterError, LevelError: as for `encrypt`.
    #[pyo3(signature = (values, level=None, magnitude=None))]
    fn encrypt_coefficients(
        &self,
        py: Python<'_>,
        values: &Bound<'_, PyAny>,
        level: Option<usize>,
        magnitude: Option<f64>,
    ) -> Result<PyCiphertext, Failure> {
        let values = Numbers::real_vector(values)?;
        self.run(py, level, magnitude, move |encryptor, level| {
            encryptor.encrypt_real(&values, Packing::Coefficients, level)
        })
    }
}

getters! { PyEncryptor, self;
    /// The parameters of the key.
    parameters: KeyParameters = self.key.get().parameters.clone();
}

/// The magnitude that a caller declares, or the default of the parameters.
pub(crate) fn declaration(parameters: &CkksParameters, magnitude: Option<f64>) -> Result<Magnitude, Failure> {
    Ok(magnitude.map(Magnitude::new).transpose()?.unwrap_or_else(|| parameters.default_magnitude()))
}

impl PyEncryptor {
    fn run(
        &self,
        py: Python<'_>,
        level: Option<usize>,
        magnitude: Option<f64>,
        encrypt: impl FnOnce(
            &mut Encryptor<'_>,
            usize,
        ) -> Result<keywright_ckks::Ciphertext, keywright_ckks::CkksError>
        + Send,
    ) -> Result<PyCiphertext, Failure> {
        let key = self.key.get();
        let parameters = key.parameters.ckks()?;
        let level = level.unwrap_or(parameters.max_level());
        let magnitude = declaration(parameters, magnitude)?;
        let rng = self.rng.split()?;
        compute(py, || {
            let mut encryptor = Encryptor::new(parameters, &key.key, rng)?.declaring(magnitude);
            encrypt(&mut encryptor, level)
        })
        .map(PyCiphertext)
    }
}
