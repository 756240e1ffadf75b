use keywright_bfv::SeededCiphertext;
use pyo3::prelude::*;

use crate::bfv::ciphertext::{PyBfvCiphertext, packing_name};
use crate::classes::ciphertext::seeded_ciphertext;
use crate::classes::getters::getters;
use crate::parameters::bfv::PyBfvParameters;

/// A BFV ciphertext made with the secret key. One half of it is a 32-byte seed: half the bytes to send. `expand`
/// returns the ciphertext for computation.
///
/// Thread safety: any number of threads may use one at the same time.
#[pyclass(name = "BfvSeededCiphertext", module = "keywright", frozen)]
pub(crate) struct PyBfvSeededCiphertext(pub(crate) SeededCiphertext);

seeded_ciphertext!(PyBfvSeededCiphertext of PyBfvParameters, packed as packing_name, expanded to PyBfvCiphertext);

#[pymethods]
impl PyBfvSeededCiphertext {
    fn __repr__(&self) -> String {
        format!("Bfv{:?}", self.0)
    }
}

getters! { PyBfvSeededCiphertext, self;
    /// Number of times that `mod_switch` can drop a prime.
    level: usize = self.0.level();
}
