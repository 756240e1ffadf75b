//! The right-hand side of a BFV operation: a ciphertext, or integers.

use keywright_bfv::{BfvParameters, Packing, Plaintext};
use pyo3::prelude::*;

use crate::array::Integers;
use crate::bfv::ciphertext::PyBfvCiphertext;
use crate::errors::{Failure, Refusal};

impl Integers {
    /// The plaintext in a packing.
    pub(crate) fn encode(&self, parameters: &BfvParameters, packing: Packing) -> Result<Plaintext, Failure> {
        Ok(match self {
            Self::Vector(values) => parameters.encode(values, packing)?,
            Self::Scalar(value) => parameters.encode_scalar(*value, packing)?,
        })
    }
}

/// The packing of a name, that of the parameters by default.
pub(crate) fn packing(parameters: &BfvParameters, name: Option<&str>) -> Result<Packing, Failure> {
    match name {
        None => Ok(parameters.default_packing()),
        Some("slots") => Ok(Packing::Slots),
        Some("coefficients") => Ok(Packing::Coefficients),
        Some(other) => Err(Refusal::Packing(other.into()).into()),
    }
}

pub(crate) enum Operand {
    Ciphertext(Py<PyBfvCiphertext>),
    Integers(Integers),
}

impl Operand {
    pub(crate) fn from_python(value: &Bound<'_, PyAny>) -> Result<Self, Failure> {
        match value.cast::<PyBfvCiphertext>() {
            Ok(ciphertext) => Ok(Self::Ciphertext(ciphertext.clone().unbind())),
            Err(_) => Ok(Self::Integers(Integers::from_python(value)?)),
        }
    }
}
