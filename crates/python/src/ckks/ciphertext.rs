use keywright_ckks::{Ciphertext, Packing};
use pyo3::prelude::*;

use crate::classes::ciphertext::whole_ciphertext;
use crate::classes::getters::getters;
use crate::parameters::ckks::PyParameters;

/// An encrypted vector, with its level, its scale and a bound on its error. Immutable.
///
/// Thread safety: any number of threads may use one at the same time.
#[pyclass(name = "Ciphertext", module = "keywright", frozen)]
pub(crate) struct PyCiphertext(pub(crate) Ciphertext);

/// "slots" or "coefficients".
pub(crate) fn packing_name(packing: Packing) -> &'static str {
    match packing {
        Packing::Slots { .. } => "slots",
        Packing::Coefficients => "coefficients",
    }
}

/// Number of slots, if values are in slots.
pub(crate) fn slots(packing: Packing) -> Option<usize> {
    match packing {
        Packing::Slots { log_slots } => Some(1 << log_slots),
        Packing::Coefficients => None,
    }
}

whole_ciphertext!(PyCiphertext of PyParameters, packed as packing_name);

#[pymethods]
impl PyCiphertext {
    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}

getters! { PyCiphertext, self;
    /// log2 of the degree of its ring.
    log_n: u32 = self.0.parameters.rlwe().log_n();
    /// Degree of its ring.
    n: usize = self.0.parameters.rlwe().n();
    /// Number of rescalings left.
    level: usize = self.0.level();
    /// Factor by which the message is scaled.
    scale: f64 = self.0.scale;
    /// log2 of the scale.
    log_scale: f64 = self.0.scale.log2();
    /// Number of slots; None if its values are in coefficients.
    slots: Option<usize> = slots(self.0.packing);
    /// Bound on the absolute error of every value, derived without decrypting; exceeded with probability below 2^-40.
    /// Infinite if values as large as `magnitude_bound` do not fit the modulus, since they may have overflowed.
    error_bound: f64 = self.0.error_bound();
    /// Bound on the absolute value of every value, derived without decrypting.
    magnitude_bound: f64 = self.0.estimate.magnitude;
    /// Whether all values are real, by what was encrypted and by its operations: imaginary parts are errors then.
    real: bool = self.0.estimate.real;
    /// -log2 of the error bound: bits after the point that are right.
    precision_bits: f64 = -self.0.error_bound().log2();
}
