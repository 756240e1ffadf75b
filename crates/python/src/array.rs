//! Numbers of Python as vectors of the engine: anything that `numpy.asarray` takes.

use keywright_ckks::{CkksParameters, Complex64};
use numpy::{Element, PyArray1, PyArrayMethods};
use pyo3::prelude::*;

use crate::errors::{Failure, Refusal};

/// A vector or a scalar of numbers.
pub(crate) enum Numbers {
    Real(Vec<f64>),
    Complex(Vec<Complex64>),
    Integer(i64),
    Scalar(f64),
    ComplexScalar(Complex64),
}

fn contiguous<T: Element + Clone>(array: &Bound<'_, PyAny>, dtype: &str) -> Result<Vec<T>, Failure> {
    let converted = array.call_method1("astype", (dtype,))?;
    let vector = converted.cast::<PyArray1<T>>().map_err(PyErr::from)?;
    Ok(vector.to_vec().map_err(PyErr::from)?)
}

impl Numbers {
    /// # Errors
    /// [`Refusal::Values`] for more than one dimension and for what is not a number.
    pub(crate) fn from_python(values: &Bound<'_, PyAny>) -> Result<Self, Failure> {
        let py = values.py();
        let array = py.import("numpy")?.call_method1("asarray", (values,))?;
        let dimensions: usize = array.getattr("ndim")?.extract()?;
        let dtype = array.getattr("dtype")?;
        let kind: char = dtype.getattr("kind")?.extract()?;
        if !matches!(kind, 'b' | 'i' | 'u' | 'f' | 'c') {
            let name = dtype.str()?;
            return Err(Refusal::Values(format!(
                "values of dtype {name} are not numbers; pass integers, floats or complex"
            ))
            .into());
        }
        match (dimensions, kind) {
            (0, 'c') => Ok(Self::ComplexScalar(array.call_method0("item")?.extract()?)),
            (0, 'f') => Ok(Self::Scalar(array.call_method0("item")?.extract()?)),
            (0, _) => {
                let item = array.call_method0("item")?;
                // Integers beyond 64 bits are numbers all the same.
                item.extract().map(Self::Integer).or_else(|_| Ok(Self::Scalar(item.extract()?)))
            }
            (1, 'c') => contiguous(&array, "complex128").map(Self::Complex),
            (1, _) => contiguous(&array, "float64").map(Self::Real),
            _ => {
                let shape = array.getattr("shape")?.str()?.to_string();
                Err(Refusal::Values(format!(
                    "values have shape {shape}; pass a vector, for instance values.ravel()"
                ))
                .into())
            }
        }
    }

    /// The same, with a scalar refused.
    pub(crate) fn vector(values: &Bound<'_, PyAny>) -> Result<Self, Failure> {
        match Self::from_python(values)? {
            numbers @ (Self::Real(_) | Self::Complex(_)) => Ok(numbers),
            _ => {
                Err(Refusal::Values("values are a scalar; pass a vector, for instance [value]".into()).into())
            }
        }
    }

    /// A vector of real numbers.
    pub(crate) fn real_vector(values: &Bound<'_, PyAny>) -> Result<Vec<f64>, Failure> {
        match Self::vector(values)? {
            Self::Real(values) => Ok(values),
            _ => Err(Refusal::Values(
                "values are complex; this packing takes real ones, for instance values.real".into(),
            )
            .into()),
        }
    }
}

/// `log2` of a number of slots; all `N/2` if none is given.
pub(crate) fn log_slots(parameters: &CkksParameters, slots: Option<usize>) -> Result<u32, Failure> {
    let max = 1usize << parameters.max_log_slots();
    match slots {
        None => Ok(parameters.max_log_slots()),
        Some(slots) if slots.is_power_of_two() && slots <= max => Ok(slots.ilog2()),
        Some(slots) => Err(Refusal::Slots { slots, max }.into()),
    }
}
