use keywright_bfv::Encryptor;
use pyo3::prelude::*;

use crate::arguments::integers::integers;
use crate::bfv::ciphertext::PyBfvCiphertext;
use crate::bfv::plaintext;
use crate::classes::getters::getters;
use crate::errors::Failure;
use crate::keys::public_key::PyPublicKey;
use crate::parameters::keys::KeyParameters;
use crate::randomness::Randomness;
use crate::stored::opaque;

/// Encrypts integers modulo t with a public key of BFV parameters.
///
/// Thread safety: any number of threads may use one at the same time.
///
/// Args:
///     public_key: of the owner who decrypts.
///     entropy: 32 bytes that determine the randomness, for tests only.
///
/// Raises:
///     MismatchError: the key was made for CKKS.
#[pyclass(name = "BfvEncryptor", module = "keywright", frozen)]
pub(crate) struct PyBfvEncryptor {
    key: Py<PyPublicKey>,
    rng: Randomness,
}

opaque!(PyBfvEncryptor);

#[integers]
#[pymethods]
impl PyBfvEncryptor {
    #[new]
    #[pyo3(signature = (public_key, entropy=None))]
    fn new(public_key: Py<PyPublicKey>, entropy: Option<[u8; 32]>) -> Result<Self, Failure> {
        public_key.get().parameters.bfv()?;
        Ok(Self { key: public_key, rng: Randomness::new(entropy)? })
    }

    /// Encrypts integers.
    ///
    /// Args:
    ///     values: at most N integers from -t/2 to t - 1, which represent their residues; zeros fill the rest. A single
    ///         integer fills all slots, without a transform, or all coefficients.
    ///     packing: "slots" or "coefficients"; slots by default, if there are any.
    ///     level: level of the ciphertext, the highest by default.
    ///
    /// Raises:
    ///     EncodeError: the values are not a vector of integers in that range, or too many.
    ///     ParameterError: there are no slots.
    ///     LevelError: there is no such level.
    ///     NoiseError: the level's modulus is too small for the plaintext modulus.
    #[pyo3(signature = (values, packing=None, level=None))]
    fn encrypt(
        &self,
        py: Python<'_>,
        values: &Bound<'_, PyAny>,
        packing: Option<&str>,
        level: Option<usize>,
    ) -> Result<PyBfvCiphertext, Failure> {
        let key = self.key.get();
        let parameters = key.parameters.bfv()?;
        plaintext::encrypt(py, parameters, values, packing, level, &self.rng, |plaintext, level, rng| {
            Encryptor::new(parameters, &key.key, rng)?.encrypt(plaintext, level)
        })
        .map(PyBfvCiphertext)
    }
}

getters! { PyBfvEncryptor, self;
    /// The parameters of the key.
    parameters: KeyParameters = self.key.get().parameters.clone();
}
