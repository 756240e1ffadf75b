//! The right-hand side of a BFV operation: a ciphertext, or integers.

use keywright_bfv::{BfvParameters, Packing, Plaintext};
use numpy::{PyArray1, PyArrayMethods};
use pyo3::prelude::*;

use crate::bfv::ciphertext::PyBfvCiphertext;
use crate::errors::{Failure, Refusal};

/// A vector or a scalar of integers: anything that `numpy.asarray` takes.
pub(crate) enum Integers {
    Vector(Vec<i64>),
    Scalar(i64),
}

impl Integers {
    /// # Errors
    /// [`Refusal::Values`] for what is not a vector or scalar of integers that fit 64 bits.
    pub(crate) fn from_python(values: &Bound<'_, PyAny>) -> Result<Self, Failure> {
        let py = values.py();
        let array = py.import("numpy")?.call_method1("asarray", (values,))?;
        let (size, dimensions): (usize, usize) =
            (array.getattr("size")?.extract()?, array.getattr("ndim")?.extract()?);
        let dtype = array.getattr("dtype")?;
        let kind: char = dtype.getattr("kind")?.extract()?;
        if !matches!(kind, 'b' | 'i' | 'u') && size > 0 {
            let name = dtype.str()?;
            return Err(Refusal::Values(format!(
                "values of dtype {name} are not integers of 64 bits; round floats first, for instance values.round().astype(int)"
            )).into());
        }
        if dimensions > 1 {
            let shape = array.getattr("shape")?.str()?.to_string();
            return Err(Refusal::Values(format!(
                "values have shape {shape}; pass a vector, for instance values.ravel()"
            ))
            .into());
        }
        let converted = array.call_method1("astype", ("int64",))?.call_method1("reshape", (size,))?;
        let vector = converted.cast::<PyArray1<i64>>().map_err(PyErr::from)?;
        let vector = vector.to_vec().map_err(PyErr::from)?;
        // Unsigned numbers from 2^63 on have become negative.
        if kind == 'u' && vector.iter().any(|&v| v < 0) {
            return Err(Refusal::Values("values are above 2^63; no plaintext modulus is".into()).into());
        }
        match (dimensions, &vector[..]) {
            (0, &[value]) => Ok(Self::Scalar(value)),
            _ => Ok(Self::Vector(vector)),
        }
    }

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
