use std::sync::{Mutex, PoisonError};

use keywright_pool::insecure::attack::Distinguisher;
use keywright_pool::insecure::{ChemCkks, ChemEncryptor, InsecureAcknowledged};
use pyo3::prelude::*;

use crate::ciphertext::PyCiphertext;
use crate::errors::{Failure, Refusal};
use crate::pool::{compute, compute_detached};
use crate::public_key::PyPublicKey;
use crate::secret_key::rng;

/// What has to be said.
const ACKNOWLEDGEMENT: &str = "Chem does not hide messages";

/// NOT SECURE. Cached encryption after Protocol 1 of Zhao's Chem: every ciphertext is a sum of cached ones, so that linear
/// algebra tells messages apart (`ChemDistinguisher`). Here to be measured and broken; use `keywright.EncryptionPool`.
///
/// Args:
///     public_key: of whoever is to decrypt.
///     bits: of a message, 1 to 128. The cache has that many encryptions of zero.
///     radix: of the cached powers.
///     acknowledge: "Chem does not hide messages".
///     unit: the integer message m stands for the number m * unit.
///     level: of every ciphertext, the highest by default.
///     entropy: 32 bytes that decide the randomness, for tests only.
///
/// Raises:
///     SecurityError: `acknowledge` is anything else.
///     ParameterError: bits, radix or unit outside their ranges.
///     EncodeError: the largest message does not fit the modulus.
#[pyclass(name = "ChemEncryptor", module = "keywright.insecure", frozen)]
pub(crate) struct PyChemEncryptor {
    chem: Mutex<ChemEncryptor<ChemCkks>>,
}

#[pymethods]
impl PyChemEncryptor {
    #[new]
    #[pyo3(signature = (public_key, bits, radix=2, *, acknowledge, unit=1.0, level=None, entropy=None))]
    fn new(
        py: Python<'_>,
        public_key: Py<PyPublicKey>,
        bits: u32,
        radix: u64,
        acknowledge: &str,
        unit: f64,
        level: Option<usize>,
        entropy: Option<[u8; 32]>,
    ) -> Result<Self, Failure> {
        if acknowledge != ACKNOWLEDGEMENT {
            return Err(Refusal::Insecure(ACKNOWLEDGEMENT).into());
        }
        let (key, rng) = (public_key.get(), rng(entropy)?);
        let parameters = key.parameters.ckks()?;
        let level = level.unwrap_or(parameters.max_level());
        let chem = compute(py, || {
            let scheme = ChemCkks::new(parameters, level, bits, unit)?;
            let acknowledged = InsecureAcknowledged::ChemIsBroken;
            ChemEncryptor::new(acknowledged, scheme, &key.key, level, bits, radix, rng)
        })?;
        Ok(Self { chem: Mutex::new(chem) })
    }

    /// Encrypts every integer of a list by itself, the same in every slot.
    ///
    /// Raises:
    ///     EncodeError: a message has more bits.
    fn encrypt(&self, py: Python<'_>, messages: Vec<u128>) -> Result<Vec<PyCiphertext>, Failure> {
        py.detach(|| {
            compute_detached(|| {
                let mut chem = self.chem.lock().unwrap_or_else(PoisonError::into_inner);
                messages
                    .iter()
                    .map(|&message| chem.encrypt(message).map(PyCiphertext))
                    .collect::<Result<Vec<_>, _>>()
            })
        })
    }

    /// Cached ciphertexts.
    #[getter]
    fn cached(&self) -> usize {
        self.chem.lock().unwrap_or_else(PoisonError::into_inner).cached()
    }

    /// Bytes of the cache.
    #[getter]
    fn bytes(&self) -> usize {
        self.chem.lock().unwrap_or_else(PoisonError::into_inner).bytes()
    }

    fn __reduce__(&self) -> Result<(), Failure> {
        Err(Failure::Pickle("ChemEncryptor"))
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.chem.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The attack on `ChemEncryptor`: learns from ciphertexts of one message, by linear algebra modulo the first prime, which other
/// ciphertexts are of it. It needs no key. A few more ciphertexts than Chem has bits are enough.
///
/// Args:
///     known: ciphertexts of one message, at least one.
#[pyclass(name = "ChemDistinguisher", module = "keywright.insecure", frozen)]
pub(crate) struct PyChemDistinguisher {
    distinguisher: Distinguisher,
}

#[pymethods]
impl PyChemDistinguisher {
    #[new]
    fn new(py: Python<'_>, known: Vec<Py<PyCiphertext>>) -> Result<Self, Failure> {
        let distinguisher = py.detach(|| {
            let first = known.first()?.get();
            let modulus = first.0.parameters.rlwe().modulus(0);
            let known: Vec<_> = known.iter().map(|ciphertext| ciphertext.get().0.rlwe.clone()).collect();
            Distinguisher::learn(&known, modulus)
        });
        let distinguisher =
            distinguisher.ok_or_else(|| Refusal::Values("no ciphertext to learn from".into()))?;
        Ok(Self { distinguisher })
    }

    /// Whether a ciphertext is of the known message.
    fn recognises(&self, py: Python<'_>, ciphertext: &PyCiphertext) -> bool {
        py.detach(|| self.distinguisher.recognises(&ciphertext.0.rlwe))
    }

    /// Dimension of the span of the differences of the known ciphertexts.
    #[getter]
    fn rank(&self) -> usize {
        self.distinguisher.rank()
    }
}
