use keywright_bfv::BfvParameters;
use keywright_ckks::CkksParameters;
use keywright_rlwe::{Parameters, RlweError};
use pyo3::prelude::*;

use crate::errors::Failure;
use crate::parameters::bfv::PyBfvParameters;
use crate::parameters::ckks::PyParameters;

/// The parameters of keys, of either scheme. Keys themselves are independent of the scheme.
#[derive(Clone, PartialEq, IntoPyObject)]
pub(crate) enum KeyParameters {
    Ckks(PyParameters),
    Bfv(PyBfvParameters),
}

impl<'a, 'py> FromPyObject<'a, 'py> for KeyParameters {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(parameters) = value.cast::<PyBfvParameters>() {
            return Ok(Self::Bfv(parameters.get().clone()));
        }
        Ok(Self::Ckks(value.cast::<PyParameters>()?.get().clone()))
    }
}

impl KeyParameters {
    pub(crate) fn rlwe(&self) -> &Parameters {
        match self {
            Self::Ckks(parameters) => parameters.0.rlwe(),
            Self::Bfv(parameters) => parameters.0.rlwe(),
        }
    }

    /// The parameters of one of the rings, identified as in keys.
    ///
    /// # Errors
    /// `ParameterError` for a ring that the parameters lack.
    pub(crate) fn ring_named(&self, subring: Option<u32>) -> Result<Self, Failure> {
        self.ring_like(self.rlwe().ring_named(subring)?)
    }

    /// The parameters of the ring of that degree.
    ///
    /// # Errors
    /// `ParameterError` for a ring that the parameters lack.
    pub(crate) fn ring_of_degree(&self, log_n: u32) -> Result<Self, Failure> {
        self.ring_like(self.rlwe().ring_of_degree(log_n)?)
    }

    fn ring_like(&self, rlwe: &Parameters) -> Result<Self, Failure> {
        match self {
            Self::Ckks(parameters) => {
                let ring = parameters.0.ring_like(rlwe, "the parameters", "the ring")?;
                Ok(Self::Ckks(PyParameters(ring.clone())))
            }
            // BFV has one ring.
            Self::Bfv(_) => Ok(self.clone()),
        }
    }

    /// # Errors
    /// `MismatchError` for keys of BFV parameters.
    pub(crate) fn ckks(&self) -> Result<&CkksParameters, Failure> {
        match self {
            Self::Ckks(parameters) => Ok(&parameters.0),
            Self::Bfv(_) => Err(RlweError::MixedParameters {
                left: "a CKKS operation",
                right: "the key, which was made for BFV,",
            }
            .into()),
        }
    }

    /// # Errors
    /// `MismatchError` for keys of CKKS parameters.
    pub(crate) fn bfv(&self) -> Result<&BfvParameters, Failure> {
        match self {
            Self::Bfv(parameters) => Ok(&parameters.0),
            Self::Ckks(_) => Err(RlweError::MixedParameters {
                left: "a BFV operation",
                right: "the key, which was made for CKKS,",
            }
            .into()),
        }
    }

    pub(crate) fn __repr__(&self) -> String {
        match self {
            Self::Ckks(parameters) => parameters.__repr__(),
            Self::Bfv(parameters) => parameters.__repr__(),
        }
    }
}
