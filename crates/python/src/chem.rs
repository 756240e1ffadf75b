use keywright_pool::PoolError;
use keywright_pool::insecure::attack::Distinguisher;
use keywright_pool::insecure::{ChemBfv, ChemCkks, ChemEncryptor, ChemScheme, InsecureAcknowledged};
use keywright_ring::{ForkMutex, sampling::SecretRng};
use keywright_rlwe::{Parameters, RlweCiphertext, RlweError};
use pyo3::prelude::*;

use crate::arguments::integers::integers;
use crate::bfv::ciphertext::PyBfvCiphertext;
use crate::ckks::ciphertext::PyCiphertext;
use crate::classes::getters::getters;
use crate::errors::{Failure, Refusal};
use crate::keys::public_key::PyPublicKey;
use crate::parameters::keys::KeyParameters;
use crate::randomness::rng;
use crate::stored::not_pickled;
use crate::threads::{compute, compute_detached};

/// The required acknowledgement.
const ACKNOWLEDGEMENT: &str = "Chem does not hide messages";

/// The cache, for either scheme.
enum Chem {
    Ckks(ForkMutex<ChemEncryptor<ChemCkks>>),
    Bfv(ForkMutex<ChemEncryptor<ChemBfv>>),
}

/// Evaluates a generic expression for either scheme. Waits outside of the computing threads, because the holder's work
/// runs on them.
macro_rules! on {
    ($self:expr, $chem:ident => $work:expr) => {
        match &$self.chem {
            Chem::Ckks(chem) => {
                let $chem = chem.lock()?;
                Ok($work)
            }
            Chem::Bfv(chem) => {
                let $chem = chem.lock()?;
                Ok($work)
            }
        }
    };
}

/// Fills the cache; called after the acknowledgement.
fn filled<S: ChemScheme>(
    scheme: S,
    key: &PyPublicKey,
    level: usize,
    bits: u32,
    radix: u64,
    rng: SecretRng,
) -> Result<ForkMutex<ChemEncryptor<S>>, PoolError> {
    let acknowledged = InsecureAcknowledged::ChemIsBroken;
    Ok(ForkMutex::new(ChemEncryptor::new(acknowledged, scheme, &key.key, level, bits, radix, rng)?))
}

/// NOT SECURE. Cached encryption after Protocol 1 of Zhao's Chem. Every ciphertext is a sum of cached ones, so linear
/// algebra distinguishes messages (`ChemDistinguisher`). It is here to be measured and broken; use
/// `keywright.EncryptionPool`.
///
/// Args:
///     public_key: of the owner who decrypts. With CKKS parameters `encrypt` makes ciphertexts, with BFV parameters
///         `encrypt_integers`.
///     bits: of a message, 1 to 128. The cache has that many encryptions of zero.
///     radix: of the cached powers.
///     acknowledge: "Chem does not hide messages".
///     unit: the integer message m represents the number m * unit; 1 by default, and always with BFV.
///     level: of every ciphertext, the highest by default.
///     entropy: 32 bytes that determine the randomness, for tests only.
///
/// Raises:
///     SecurityError: `acknowledge` is anything else.
///     ParameterError: bits, radix or unit outside their ranges.
///     EncodeError: the largest message does not fit the modulus.
#[pyclass(name = "ChemEncryptor", module = "keywright.insecure", frozen)]
pub(crate) struct PyChemEncryptor {
    chem: Chem,
}

not_pickled!(PyChemEncryptor, PyChemDistinguisher);

#[integers]
#[pymethods]
impl PyChemEncryptor {
    #[new]
    #[pyo3(signature = (public_key, bits, radix=2, *, acknowledge, unit=None, level=None, entropy=None))]
    fn new(
        py: Python<'_>,
        public_key: Py<PyPublicKey>,
        bits: u32,
        radix: u64,
        acknowledge: &str,
        unit: Option<f64>,
        level: Option<usize>,
        entropy: Option<[u8; 32]>,
    ) -> Result<Self, Failure> {
        if acknowledge != ACKNOWLEDGEMENT {
            return Err(Refusal::Insecure(ACKNOWLEDGEMENT).into());
        }
        let (key, rng) = (public_key.get(), rng(entropy)?);
        let level = level.unwrap_or(key.parameters.rlwe().max_level());
        let chem = compute(py, || {
            Ok::<_, PoolError>(match &key.parameters {
                KeyParameters::Ckks(parameters) => {
                    let scheme = ChemCkks::new(&parameters.0, level, bits, unit.unwrap_or(1.0))?;
                    Chem::Ckks(filled(scheme, key, level, bits, radix, rng)?)
                }
                KeyParameters::Bfv(parameters) => {
                    if let Some(unit) = unit.filter(|&unit| unit != 1.0) {
                        return Err(PoolError::ChemInteger { unit });
                    }
                    let scheme = ChemBfv::new(&parameters.0, level);
                    Chem::Bfv(filled(scheme, key, level, bits, radix, rng)?)
                }
            })
        })?;
        Ok(Self { chem })
    }

    /// Encrypts every integer of a list separately, the same in every slot.
    ///
    /// Raises:
    ///     EncodeError: a message has more bits.
    ///     MismatchError: the key was made for BFV.
    fn encrypt(&self, py: Python<'_>, messages: Vec<u128>) -> Result<Vec<PyCiphertext>, Failure> {
        let Chem::Ckks(chem) = &self.chem else {
            let (left, right) = ("a CKKS operation", "the key, which was made for BFV,");
            return Err(RlweError::MixedParameters { left, right }.into());
        };
        py.detach(|| {
            let chem = &mut *chem.lock()?;
            compute_detached(|| {
                messages
                    .iter()
                    .map(|&message| chem.encrypt(message).map(PyCiphertext))
                    .collect::<Result<Vec<_>, _>>()
            })
        })
    }

    /// Encrypts every integer of a list separately modulo t, the same in every slot.
    ///
    /// Raises:
    ///     EncodeError: a message has more bits.
    ///     NoiseError: the sum has no budget left.
    ///     MismatchError: the key was made for CKKS.
    fn encrypt_integers(&self, py: Python<'_>, messages: Vec<u128>) -> Result<Vec<PyBfvCiphertext>, Failure> {
        let Chem::Bfv(chem) = &self.chem else {
            let (left, right) = ("a BFV operation", "the key, which was made for CKKS,");
            return Err(RlweError::MixedParameters { left, right }.into());
        };
        py.detach(|| {
            let chem = &mut *chem.lock()?;
            compute_detached(|| {
                let mut encrypt = |&message: &u128| Ok(PyBfvCiphertext(chem.encrypt(message)??));
                messages.iter().map(&mut encrypt).collect::<Result<Vec<_>, PoolError>>()
            })
        })
    }

    fn __repr__(&self) -> Result<String, Failure> {
        on!(self, chem => format!("{chem:?}"))
    }
}

getters! { PyChemEncryptor, self;
    /// Cached ciphertexts.
    cached: Result<usize, Failure> = on!(self, chem => chem.cached());
    /// Bytes of the cache.
    bytes: Result<usize, Failure> = on!(self, chem => chem.bytes());
}

/// A ciphertext of either scheme.
#[derive(FromPyObject)]
enum PooledKey {
    Ckks(Py<PyCiphertext>),
    Bfv(Py<PyBfvCiphertext>),
}

impl PooledKey {
    fn rlwe(&self) -> &RlweCiphertext {
        match self {
            Self::Ckks(ciphertext) => &ciphertext.get().0.rlwe,
            Self::Bfv(ciphertext) => &ciphertext.get().0.rlwe,
        }
    }

    fn parameters(&self) -> &Parameters {
        match self {
            Self::Ckks(ciphertext) => ciphertext.get().0.parameters.rlwe(),
            Self::Bfv(ciphertext) => ciphertext.get().0.parameters.rlwe(),
        }
    }
}

/// The attack on `ChemEncryptor`: from ciphertexts of one message it learns, by linear algebra modulo the first prime,
/// which other ciphertexts encrypt that message. It needs no key. A few more ciphertexts than Chem has bits suffice.
///
/// Args:
///     known: ciphertexts of one message, at least one.
///
/// Raises:
///     EncodeError: there is none.
///     MismatchError: they belong to several parameters.
#[pyclass(name = "ChemDistinguisher", module = "keywright.insecure", frozen)]
pub(crate) struct PyChemDistinguisher {
    distinguisher: Distinguisher,
    parameters: Parameters,
}

#[pymethods]
impl PyChemDistinguisher {
    #[new]
    fn new(py: Python<'_>, known: Vec<PooledKey>) -> Result<Self, Failure> {
        py.detach(|| {
            let none = || Refusal::Values("pass at least one known ciphertext".into());
            let parameters = known.first().ok_or_else(none)?.parameters().clone();
            for ciphertext in &known {
                parameters.require_same(ciphertext.parameters(), "one ciphertext", "another")?;
            }
            let known: Vec<_> = known.iter().map(|ciphertext| ciphertext.rlwe().clone()).collect();
            let distinguisher = Distinguisher::learn(&known, parameters.modulus(0)).ok_or_else(none)?;
            Ok(Self { distinguisher, parameters })
        })
    }

    /// Whether a ciphertext encrypts the known message.
    ///
    /// Raises:
    ///     MismatchError: it belongs to other parameters.
    fn recognises(&self, py: Python<'_>, ciphertext: PooledKey) -> Result<bool, Failure> {
        self.parameters.require_same(ciphertext.parameters(), "the known ciphertexts", "the ciphertext")?;
        Ok(py.detach(|| self.distinguisher.recognises(ciphertext.rlwe())))
    }
}

getters! { PyChemDistinguisher, self;
    /// Dimension of the span of the differences of the known ciphertexts.
    rank: usize = self.distinguisher.rank();
}
