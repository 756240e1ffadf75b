use keywright_aggregation::threshold;
use keywright_ring::Seed;
use keywright_rlwe::PublicKey;
use keywright_wire::sequence_to_bytes;
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use zeroize::Zeroizing;

use crate::errors::Failure;
use crate::randomness::rng;
use crate::stored::{self, not_pickled};
use crate::sums::threshold_parameters::PyThresholdParameters;
use crate::threads::compute;

/// The joint public key, of the sum of all parties' secrets, which no party has.
///
/// Thread safety: any number of threads may use one at the same time.
#[pyclass(name = "ThresholdKey", module = "keywright.federated", frozen)]
pub(crate) struct PyThresholdKey {
    parameters: PyThresholdParameters,
    key: PublicKey,
}

not_pickled!(PyThresholdKey);

#[pymethods]
impl PyThresholdKey {
    /// The key from the published halves of all parties for one seed.
    ///
    /// Raises:
    ///     FormatError, ParameterError: a half is invalid or missing.
    #[staticmethod]
    fn combine(
        py: Python<'_>,
        parameters: &PyThresholdParameters,
        seed: [u8; 32],
        halves: Vec<Vec<u8>>,
    ) -> Result<Self, Failure> {
        let key = compute(py, || -> Result<_, Failure> {
            let halves =
                halves.iter().map(|data| parameters.polynomial(data)).collect::<Result<Vec<_>, _>>()?;
            Ok(threshold::joint_public_key(&parameters.0, Seed(seed), &halves)?)
        })?;
        Ok(Self { parameters: parameters.clone(), key })
    }

    /// Encrypts a vector of integers.
    ///
    /// Raises:
    ///     EncodeError: a value is above the declared magnitude.
    ///     ParameterError: there is no value, or more than declared.
    fn encrypt<'py>(
        &self,
        py: Python<'py>,
        values: PyReadonlyArray1<'_, i64>,
    ) -> Result<Bound<'py, PyBytes>, Failure> {
        let values = Zeroizing::new(values.as_array().to_vec());
        let bytes = compute(py, || -> Result<_, Failure> {
            let parameters = &self.parameters.0;
            let vector = threshold::encrypt(parameters, &self.key, &values, &mut rng(None)?)?;
            Ok(sequence_to_bytes(&vector, parameters.rlwe())?)
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// The key as bytes, for `from_bytes`. Public.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>, Failure> {
        stored::to_bytes(py, &self.key, self.parameters.0.rlwe())
    }

    /// A key from the bytes of `to_bytes`.
    ///
    /// Raises:
    ///     FormatError, MixedParametersError: the bytes are not a whole, intact key of these parameters.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8], parameters: &PyThresholdParameters) -> Result<Self, Failure> {
        let key = stored::from_bytes(py, data, parameters.0.rlwe())?;
        Ok(Self { parameters: parameters.clone(), key })
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.key)
    }
}
