use keywright_bfv::{Ciphertext, Packing};
use pyo3::prelude::*;

use crate::classes::ciphertext::whole_ciphertext;
use crate::classes::getters::getters;
use crate::parameters::bfv::PyBfvParameters;

/// Encrypted integers modulo t, with their level and an estimate of their noise. Immutable.
///
/// Thread safety: any number of threads may use one at the same time.
#[pyclass(name = "BfvCiphertext", module = "keywright", frozen)]
pub(crate) struct PyBfvCiphertext(pub(crate) Ciphertext);

/// "slots" or "coefficients".
pub(crate) fn packing_name(packing: Packing) -> &'static str {
    match packing {
        Packing::Slots => "slots",
        Packing::Coefficients => "coefficients",
    }
}

whole_ciphertext!(PyBfvCiphertext of PyBfvParameters, packed as packing_name);

#[pymethods]
impl PyBfvCiphertext {
    fn __repr__(&self) -> String {
        format!("Bfv{:?}", self.0)
    }
}

getters! { PyBfvCiphertext, self;
    /// Number of times that `mod_switch` can still drop a prime.
    level: usize = self.0.level();
    /// Lower bound on the noise budget in bits, derived without decrypting; the budget is smaller with probability
    /// below 2^-40.
    budget_bound: f64 = self.0.estimate.budget_bits();
}
