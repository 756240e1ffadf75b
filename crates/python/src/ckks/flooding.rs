use keywright_ckks::Flooding;
use pyo3::prelude::*;

use crate::arguments::integers::integers;
use crate::ckks::ciphertext::PyCiphertext;
use crate::classes::getters::getters;
use crate::errors::Failure;
use crate::stored::not_pickled;

/// The flooding of decryptions under one secret before they are shared, and the number of decryptions left.
///
/// Gaussian noise hides the error of a ciphertext, which depends on the secret. An observer of the ciphertexts and all
/// flooded decryptions who could not find the secret without the errors finds it with a probability of at most 2^-bits.
/// The decryptions can be distinguished from decryptions that are independent of the secret with an advantage of at
/// most 2^-(bits/2 + 2). See docs/explanation/handing-out.md (Li, Micciancio, Schultz and Sorrell, CRYPTO 2022).
///
/// Make one per secret and keep it: every decryption that leaves the owner counts, in any process.
///
/// Thread safety: any number of threads may use one at the same time.
///
/// Args: bits: statistical bits over all queries, 1 to 64. queries: the number of decryptions that will be shared in
/// all, of one ciphertext each, 1 to 2^32.
///
/// Raises: ParameterError: bits or queries are outside their range.
#[pyclass(name = "Flooding", module = "keywright", frozen)]
pub(crate) struct PyFlooding(pub(crate) Flooding);

not_pickled!(PyFlooding);

#[integers]
#[pymethods]
impl PyFlooding {
    #[new]
    fn new(bits: u32, queries: u64) -> Result<Self, Failure> {
        Ok(Self(Flooding::new(bits, queries)?))
    }

    /// Bound on the absolute error of every value of a flooded decryption of this ciphertext; exceeded with
    /// probability below 2^-40.
    ///
    /// Raises: NoiseError: the bound reaches the largest possible value, or does not fit the modulus.
    fn error_bound(&self, ciphertext: &PyCiphertext) -> Result<f64, Failure> {
        Ok(self.0.error_bound(&ciphertext.0)?)
    }

    fn __repr__(&self) -> String {
        format!("Flooding(bits={}, queries={}, remaining={})", self.bits(), self.queries(), self.remaining())
    }
}

getters! { PyFlooding, self;
    /// Statistical bits over all queries.
    bits: u32 = self.0.bits();
    /// The planned number of decryptions.
    queries: u64 = self.0.queries();
    /// The number of decryptions left.
    remaining: u64 = self.0.remaining();
}
