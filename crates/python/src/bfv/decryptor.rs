use keywright_bfv::Decryptor;
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;

use crate::arguments::integers::integers;
use crate::arguments::operand::unbound;
use crate::bfv::ciphertext::PyBfvCiphertext;
use crate::bfv::plaintext;
use crate::bfv::seeded_ciphertext::PyBfvSeededCiphertext;
use crate::classes::getters::getters;
use crate::errors::Failure;
use crate::keys::secret_key::PySecretKey;
use crate::parameters::keys::KeyParameters;
use crate::randomness::Randomness;
use crate::stored::opaque;
use crate::threads::compute;

/// Decrypts with a secret of BFV parameters, measures noise, and encrypts with the secret into half the bytes of a
/// public-key encryption.
///
/// Thread safety: any number of threads may use one at the same time.
///
/// Args:
///     secret: the secret key.
///     entropy: 32 bytes that determine the randomness of encryptions, for tests only.
///
/// Raises:
///     MismatchError: the secret was made for CKKS.
#[pyclass(name = "BfvDecryptor", module = "keywright", frozen)]
pub(crate) struct PyBfvDecryptor {
    secret: Py<PySecretKey>,
    rng: Randomness,
}

opaque!(PyBfvDecryptor);

#[integers]
#[pymethods]
impl PyBfvDecryptor {
    #[new]
    #[pyo3(signature = (secret, entropy=None))]
    fn new(secret: Py<PySecretKey>, entropy: Option<[u8; 32]>) -> Result<Self, Failure> {
        secret.get().parameters.bfv()?;
        Ok(Self { secret, rng: Randomness::new(entropy)? })
    }

    /// The N values as int64, centred: above -t/2 and at most t/2.
    ///
    /// Args:
    ///     ciphertext: a ciphertext, or a result of operators.
    ///
    /// Raises:
    ///     NoiseError: the noise is too large to recover the values, or the ciphertext belongs to another key.
    ///     MismatchError: the ciphertext belongs to other parameters.
    fn decrypt<'py>(
        &self,
        py: Python<'py>,
        ciphertext: &Bound<'py, PyAny>,
    ) -> Result<Bound<'py, PyArray1<i64>>, Failure> {
        let ciphertext = unbound::<PyBfvCiphertext>(ciphertext)?;
        let ciphertext = &ciphertext.get().0;
        let secret = self.secret.get();
        let values = compute(py, || -> Result<_, Failure> {
            let decryptor = Decryptor::new(secret.parameters.bfv()?, &secret.key)?;
            Ok(decryptor.decrypt(ciphertext)?.decode())
        })?;
        Ok(values.into_pyarray(py))
    }

    /// Bits by which the noise may still grow before decryption fails, measured; decryption needs at least 1.
    ///
    /// The result depends on the secret: do not share it.
    ///
    /// Raises:
    ///     MismatchError: the ciphertext belongs to other parameters.
    fn noise_budget(&self, py: Python<'_>, ciphertext: &Bound<'_, PyAny>) -> Result<f64, Failure> {
        let ciphertext = unbound::<PyBfvCiphertext>(ciphertext)?;
        let ciphertext = &ciphertext.get().0;
        let secret = self.secret.get();
        compute(py, || -> Result<_, Failure> {
            Ok(Decryptor::new(secret.parameters.bfv()?, &secret.key)?.noise_budget(ciphertext)?)
        })
    }

    /// Encrypts integers; arguments and errors as for `BfvEncryptor.encrypt`.
    #[pyo3(signature = (values, packing=None, level=None))]
    fn encrypt(
        &self,
        py: Python<'_>,
        values: &Bound<'_, PyAny>,
        packing: Option<&str>,
        level: Option<usize>,
    ) -> Result<PyBfvSeededCiphertext, Failure> {
        let secret = self.secret.get();
        let parameters = secret.parameters.bfv()?;
        plaintext::encrypt(py, parameters, values, packing, level, &self.rng, |plaintext, level, mut rng| {
            Decryptor::new(parameters, &secret.key)?.encrypt(plaintext, level, &mut rng)
        })
        .map(PyBfvSeededCiphertext)
    }
}

getters! { PyBfvDecryptor, self;
    /// The parameters of the secret.
    parameters: KeyParameters = self.secret.get().parameters.clone();
}
