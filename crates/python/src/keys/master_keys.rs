use std::sync::Arc;

use keywright_ring::rotation_element;
use keywright_rlwe::derive::{MasterKeys, MasterParameters};
use keywright_rlwe::{KeyElement, KeySpec, RlweError, StoredKey};
use pyo3::prelude::*;

use crate::arguments::integers::integers;
use crate::classes::getters::getters;
use crate::errors::Failure;
use crate::keys::progress::report;
use crate::keys::secret_key::PySecretKey;
use crate::parameters::keys::KeyParameters;
use crate::randomness::rng;
use crate::stored::{not_pickled, read, serialized};
use crate::threads::compute;

/// Keys from which a server derives the Galois keys of a program. The client makes these few keys once, and sends them
/// instead.
///
/// A master key is over the primes of the parameters and extra ones; the product of all is checked against the 128-bit
/// bound. Not a secret.
///
/// Thread safety: any number of threads may use one at the same time.
#[pyclass(name = "MasterKeys", module = "keywright", frozen)]
pub(crate) struct PyMasterKeys {
    pub(crate) parameters: KeyParameters,
    pub(crate) keys: Arc<MasterKeys>,
}

/// The master key of an element, with this many special primes, or the smallest one.
fn spec(
    chain: &MasterParameters,
    element: u64,
    level: usize,
    special: Option<usize>,
) -> Result<KeySpec, RlweError> {
    match special {
        Some(special) => chain.spec_of(element, level, special, true),
        None => chain.spec(element, level, true),
    }
}

not_pickled!(PyMasterKeys);
serialized! {
    PyMasterKeys of KeyParameters: "keys", "Keys", "set of master keys";
    self => &*self.keys, self.parameters.rlwe();
    |py, source, parameters| {
        let keys = Arc::new(read(py, source, parameters.rlwe())?);
        Ok(Self { parameters, keys })
    };
    with files
}

#[integers]
#[pymethods]
impl PyMasterKeys {
    /// Makes master keys, on the client.
    ///
    /// Args:
    ///     secret: the secret of the owner of the data.
    ///     rotations: steps of the rotations with a master key.
    ///     extra_bits: widths of the extra primes, at most 61 bits. More of them make fewer and smaller rows.
    ///     level: highest level of the derived keys; the parameters' highest by default.
    ///     conjugation: whether to make a master key of the conjugation too.
    ///     galois_elements: further automorphisms with a master key.
    ///     special: number of primes by which a master key divides: the extra ones, then ciphertext primes above the
    ///         level. By default the number that needs the fewest bytes.
    ///     entropy: 32 bytes that determine the keys, for tests only. The operating system's randomness by default.
    ///     progress: called after each key with the number of keys made and their total; may raise to stop.
    ///
    /// Raises:
    ///     SecurityError: the modulus of a master key exceeds the bound.
    ///     ParameterError: there are no such primes, or they are too narrow for a digit of one prime.
    #[staticmethod]
    #[pyo3(signature = (secret, rotations, extra_bits, level=None, conjugation=false, galois_elements=Vec::new(), special=None, entropy=None, progress=None))]
    fn generate(
        py: Python<'_>,
        secret: &PySecretKey,
        rotations: Vec<i64>,
        extra_bits: Vec<u32>,
        level: Option<usize>,
        conjugation: bool,
        galois_elements: Vec<u64>,
        special: Option<usize>,
        entropy: Option<[u8; 32]>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> Result<Self, Failure> {
        let rlwe = secret.parameters.rlwe();
        let mut elements: Vec<u64> =
            rotations.iter().map(|&steps| rotation_element(rlwe.log_n(), steps)).collect();
        elements.extend(conjugation.then_some((2 << rlwe.log_n()) - 1));
        elements.extend(galois_elements);
        elements.sort_unstable();
        elements.dedup();
        let level = level.unwrap_or(rlwe.max_level());
        let chain = compute(py, || MasterParameters::from_bits(rlwe, &extra_bits))?;
        let mut rng = rng(entropy)?;
        let mut keys = MasterKeys::new(&chain);
        for (count, &element) in (1..).zip(&elements) {
            let spec = [spec(&chain, element, level, special)?];
            let rng = rng.split()?;
            compute(py, || keys.generate_specs(&secret.key, rng, &spec))?;
            report(py, progress, count, elements.len())?;
        }
        Ok(Self { parameters: secret.parameters.clone(), keys: Arc::new(keys) })
    }

    /// The keys over their chain, by element: Galois element, level, most primes per digit, and number of special
    /// primes.
    #[getter]
    fn shapes(&self) -> Vec<(u64, usize, usize, usize)> {
        let shape = |key: &StoredKey| match key.spec() {
            KeySpec { element: KeyElement::Galois(g), level, alpha, special, .. } => {
                Some((*g, *level, *alpha, special.len()))
            }
            _ => None,
        };
        self.keys.keys().iter().filter_map(shape).collect()
    }

    /// Bits of the largest modulus of a master key, for comparison with the security bound.
    #[getter]
    fn modulus_bits(&self) -> f64 {
        let chain = self.keys.parameters().chain();
        let bits = |key: &StoredKey| chain.log2_q(key.spec().level) + key.spec().special_bits(chain);
        self.keys.keys().iter().map(bits).fold(0.0, f64::max)
    }

    fn __len__(&self) -> usize {
        self.keys.keys().len()
    }

    fn __repr__(&self) -> String {
        format!(
            "MasterKeys({}, {} bytes)",
            crate::classes::counted(self.keys.keys().len(), "key"),
            self.keys.bytes()
        )
    }
}

getters! { PyMasterKeys, self;
    /// The parameters of derived keys.
    parameters: KeyParameters = self.parameters.clone();
    /// The extra primes.
    extra: Vec<u64> = self.keys.parameters().extra().to_vec();
    /// Galois elements of the master keys.
    galois_elements: Vec<u64> = self.keys.elements(0);
    /// Bytes of all master keys in memory.
    bytes: usize = self.keys.bytes();
}

/// Bytes of one master key from `MasterKeys.generate` with the same arguments, with its uniform halves as a seed.
///
/// Raises:
///     SecurityError, ParameterError, LevelError: as for `MasterKeys.generate`.
#[integers]
#[pyfunction]
#[pyo3(signature = (parameters, extra_bits, level=None, special=None))]
pub(crate) fn master_key_bytes(
    py: Python<'_>,
    parameters: KeyParameters,
    extra_bits: Vec<u32>,
    level: Option<usize>,
    special: Option<usize>,
) -> Result<usize, Failure> {
    let rlwe = parameters.rlwe();
    compute(py, || {
        let chain = MasterParameters::from_bits(rlwe, &extra_bits)?;
        // For any element.
        spec(&chain, 5, level.unwrap_or(rlwe.max_level()), special)?.bytes(chain.chain())
    })
}

/// The most bits of a key's modulus at 128 bits of security.
///
/// Args:
///     log_n: log2 of the ring degree, 10 to 17.
///     weight: Hamming weight of a sparse secret; None for a uniform ternary one.
///
/// Raises:
///     SecurityError: there is no bound for that degree and secret.
#[integers]
#[pyfunction]
#[pyo3(signature = (log_n, weight = None))]
pub(crate) fn maximum_log_qp(log_n: u32, weight: Option<usize>) -> Result<u32, Failure> {
    let secret = weight.map_or(keywright_rlwe::SecretDistribution::Ternary, |weight| {
        keywright_rlwe::SecretDistribution::Sparse { weight }
    });
    Ok(keywright_rlwe::maximum_log_qp(log_n, secret)?)
}
