use keywright_ckks::SeededCiphertext;
use pyo3::prelude::*;

use crate::ckks::ciphertext::{PyCiphertext, packing_name, slots};
use crate::classes::ciphertext::seeded_ciphertext;
use crate::classes::getters::getters;
use crate::parameters::ckks::PyParameters;

/// A ciphertext made with the secret key. One half of it is a 32-byte seed: half the bytes to send. `expand` returns
/// the ciphertext for computation.
///
/// Thread safety: any number of threads may use one at the same time.
#[pyclass(name = "SeededCiphertext", module = "keywright", frozen)]
pub(crate) struct PySeededCiphertext(pub(crate) SeededCiphertext);

seeded_ciphertext!(PySeededCiphertext of PyParameters, packed as packing_name, expanded to PyCiphertext);

#[pymethods]
impl PySeededCiphertext {
    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}

getters! { PySeededCiphertext, self;
    /// log2 of the degree of its ring.
    log_n: u32 = self.0.parameters.rlwe().log_n();
    /// Number of rescalings left.
    level: usize = self.0.seeded.c0.limb_count() - 1;
    /// Number of slots; None if its values are in coefficients.
    slots: Option<usize> = slots(self.0.packing);
}
