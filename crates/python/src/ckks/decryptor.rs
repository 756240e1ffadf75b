use keywright_ckks::{Ciphertext, CkksError, CkksParameters, Complex64, Decryptor, Flooding, Packing};
use keywright_ring::sampling::SecretRng;
use numpy::{Element, IntoPyArray, PyArray1};
use pyo3::prelude::*;

use crate::arguments::array::{Numbers, log_slots};
use crate::arguments::integers::integers;
use crate::arguments::operand::unbound;
use crate::ckks::ciphertext::PyCiphertext;
use crate::ckks::encryptor::declaration;
use crate::ckks::flooding::PyFlooding;
use crate::ckks::seeded_ciphertext::PySeededCiphertext;
use crate::classes::getters::getters;
use crate::errors::Failure;
use crate::keys::secret_key::PySecretKey;
use crate::parameters::keys::KeyParameters;
use crate::randomness::Randomness;
use crate::stored::opaque;
use crate::threads::compute;

/// Decrypts with the secret, and encrypts with it into half the bytes of a public-key encryption.
///
/// Decrypted values contain the error of the ciphertext, which depends on the secret. Without flooding, do not give
/// them to anyone who knows the ciphertext and its message (IND-CPA-D, see SECURITY.md).
///
/// Thread safety: any number of threads may use one at the same time.
///
/// Args: secret: the secret key. entropy: 32 bytes that determine the randomness of encryptions and of flooding, for
/// tests only.
#[pyclass(name = "Decryptor", module = "keywright", frozen)]
pub(crate) struct PyDecryptor {
    secret: Py<PySecretKey>,
    rng: Randomness,
}

opaque!(PyDecryptor);

/// A decryption, with a flooding and a generator for it or without.
type Decrypt<T> =
    fn(&Decryptor<'_>, &Ciphertext, Option<(&Flooding, SecretRng)>) -> Result<Vec<T>, CkksError>;

#[integers]
#[pymethods]
impl PyDecryptor {
    #[new]
    #[pyo3(signature = (secret, entropy=None))]
    fn new(secret: Py<PySecretKey>, entropy: Option<[u8; 32]>) -> Result<Self, Failure> {
        Ok(Self { secret, rng: Randomness::new(entropy)? })
    }

    /// The real parts of the slots, or the coefficients, as float64: `ciphertext.slots` or N of them.
    ///
    /// Args:
    ///     ciphertext: a ciphertext, or a result of operators.
    ///     flooding: adds the noise with which the values may be shared; `Flooding.error_bound` bounds their error.
    ///         Every call is one of its queries.
    ///
    /// Raises:
    ///     MismatchError: the ciphertext belongs to other parameters.
    ///     MismatchError: it was made with another key.
    ///     NoiseError: its values are larger than its declared magnitude and its operations allow.
    ///     NoiseError: the noise would destroy the values, or no query is left.
    #[pyo3(signature = (ciphertext, flooding=None))]
    fn decrypt<'py>(
        &self,
        py: Python<'py>,
        ciphertext: &Bound<'py, PyAny>,
        flooding: Option<&PyFlooding>,
    ) -> Result<Bound<'py, PyArray1<f64>>, Failure> {
        self.values(py, ciphertext, flooding, |decryptor, ciphertext, flooding| match flooding {
            None => decryptor.decrypt_real(ciphertext),
            Some((flooding, mut rng)) => decryptor.decrypt_real_flooded(ciphertext, flooding, &mut rng),
        })
    }

    /// The slots as complex128; arguments as for `decrypt`.
    ///
    /// Raises:
    ///     MismatchError: the ciphertext belongs to other parameters.
    ///     MismatchError: it was made with another key.
    ///     NoiseError: its values are larger than its declared magnitude and its operations allow.
    ///     OperandError: its values are in coefficients.
    ///     NoiseError: as for `decrypt`.
    #[pyo3(signature = (ciphertext, flooding=None))]
    fn decrypt_complex<'py>(
        &self,
        py: Python<'py>,
        ciphertext: &Bound<'py, PyAny>,
        flooding: Option<&PyFlooding>,
    ) -> Result<Bound<'py, PyArray1<Complex64>>, Failure> {
        self.values(py, ciphertext, flooding, |decryptor, ciphertext, flooding| match flooding {
            None => decryptor.decrypt(ciphertext),
            Some((flooding, mut rng)) => decryptor.decrypt_flooded(ciphertext, flooding, &mut rng),
        })
    }

    /// Encrypts a vector of real numbers in slots; arguments and errors as for `Encryptor.encrypt`. `log_n` is log2 of
    /// the degree of the encryption's ring, that of the parameters by default.
    #[pyo3(signature = (values, slots=None, level=None, log_n=None, magnitude=None))]
    fn encrypt(
        &self,
        py: Python<'_>,
        values: &Bound<'_, PyAny>,
        slots: Option<usize>,
        level: Option<usize>,
        log_n: Option<u32>,
        magnitude: Option<f64>,
    ) -> Result<PySeededCiphertext, Failure> {
        let parameters = self.secret.get().parameters.ckks()?;
        let ring = parameters.ring_of_degree(log_n.unwrap_or(parameters.rlwe().log_n()))?;
        let packing = Packing::Slots { log_slots: log_slots(ring, slots)? };
        self.run(py, values, packing, level, ring, magnitude)
    }

    /// Encrypts up to N real numbers in coefficients; arguments and errors as for `Encryptor.encrypt_coefficients`.
    #[pyo3(signature = (values, level=None, magnitude=None))]
    fn encrypt_coefficients(
        &self,
        py: Python<'_>,
        values: &Bound<'_, PyAny>,
        level: Option<usize>,
        magnitude: Option<f64>,
    ) -> Result<PySeededCiphertext, Failure> {
        let ring = self.secret.get().parameters.ckks()?;
        self.run(py, values, Packing::Coefficients, level, ring, magnitude)
    }
}

getters! { PyDecryptor, self;
    /// The parameters of the secret.
    parameters: KeyParameters = self.secret.get().parameters.clone();
}

impl PyDecryptor {
    /// The values of a ciphertext, decrypted with a flooding and a generator for it, if there is one.
    fn values<'py, T: Element + Send>(
        &self,
        py: Python<'py>,
        ciphertext: &Bound<'py, PyAny>,
        flooding: Option<&PyFlooding>,
        decrypt: Decrypt<T>,
    ) -> Result<Bound<'py, PyArray1<T>>, Failure> {
        let ciphertext = unbound::<PyCiphertext>(ciphertext)?;
        let secret = self.secret.get();
        let parameters = secret.parameters.ckks()?;
        let flooding = flooding.map(|f| Ok::<_, Failure>((&f.0, self.rng.split()?))).transpose()?;
        let values = compute(py, || {
            decrypt(&Decryptor::new(parameters, &secret.key)?, &ciphertext.get().0, flooding)
        })?;
        Ok(values.into_pyarray(py))
    }

    fn run(
        &self,
        py: Python<'_>,
        values: &Bound<'_, PyAny>,
        packing: Packing,
        level: Option<usize>,
        ring: &CkksParameters,
        magnitude: Option<f64>,
    ) -> Result<PySeededCiphertext, Failure> {
        let values = Numbers::real_vector(values)?;
        let secret = self.secret.get();
        let parameters = secret.parameters.ckks()?;
        let level = level.unwrap_or(ring.max_level());
        let magnitude = declaration(ring, magnitude)?;
        let mut rng = self.rng.split()?;
        compute(py, || {
            let decryptor =
                Decryptor::new(parameters, &secret.key)?.in_ring(ring.rlwe().log_n())?.declaring(magnitude);
            decryptor.encrypt_real(&values, packing, level, &mut rng)
        })
        .map(PySeededCiphertext)
    }
}
