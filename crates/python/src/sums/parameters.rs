use keywright_aggregation::SumParameters;
use pyo3::prelude::*;

use crate::arguments::integers::integers;
use crate::classes::getters::getters;
use crate::errors::Failure;
use crate::stored::not_pickled;

/// Ring, modulus and scale for exact sums of encrypted vectors of integers.
///
/// The modulus has the smallest whole number of bytes, 4 to 7, that holds the sums and their error; the ring is the
/// smallest of 128-bit security for it.
///
/// Thread safety: any number of threads may use one at the same time.
///
/// Args:
///     max_inputs: vectors of one sum, at most 2^20.
///     magnitude: largest absolute value of an integer of one vector, at most 2^48.
///
/// Raises:
///     ParameterError: one of them is outside its range, or no modulus holds the sums.
#[pyclass(name = "SumParameters", module = "keywright.federated", frozen, eq)]
#[derive(Clone)]
pub(crate) struct PySumParameters(pub(crate) SumParameters);

impl PartialEq for PySumParameters {
    fn eq(&self, other: &Self) -> bool {
        self.0.same(&other.0)
    }
}

not_pickled!(PySumParameters);

#[integers]
#[pymethods]
impl PySumParameters {
    #[new]
    fn new(py: Python<'_>, max_inputs: u32, magnitude: u64) -> Result<Self, Failure> {
        Ok(Self(py.detach(|| SumParameters::new(max_inputs, magnitude))?))
    }

    fn __hash__(&self) -> u64 {
        self.0.magnitude() ^ u64::from(self.0.max_inputs()) << 49
    }

    fn __repr__(&self) -> String {
        format!(
            "SumParameters(up to {} vectors of integers up to {}, N = 2^{}, log q = {}, 128-bit classical)",
            self.0.capacity(),
            self.0.magnitude(),
            self.0.rlwe().log_n(),
            self.0.modulus().bits(),
        )
    }
}

getters! { PySumParameters, self;
    /// Requested number of vectors.
    max_inputs: u32 = self.0.max_inputs();
    /// Number of vectors that the modulus can hold: at least `max_inputs`. More are refused.
    capacity: u32 = self.0.capacity();
    /// Largest absolute value of an integer of one vector.
    magnitude: u64 = self.0.magnitude();
    /// log2 of the ring degree.
    log_n: u32 = self.0.rlwe().log_n();
    /// The modulus, a prime.
    modulus: u64 = self.0.modulus().value();
    /// Bytes of one encrypted integer.
    value_bytes: usize = self.0.value_bytes();
    /// log2 of the factor that keeps integers above the error.
    noise_bits: u32 = self.0.noise_bits();
}
