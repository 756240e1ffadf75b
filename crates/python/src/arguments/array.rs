//! Python numbers as vectors of the engine: anything that `numpy.asarray` accepts.

use keywright_ckks::{CkksParameters, Complex64};
use keywright_ring::OutOfMemory;
use numpy::{Element, PyArray1, PyArrayMethods};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

use crate::errors::{Failure, Refusal};

/// A value converted by numpy.
struct Array<'py> {
    array: Bound<'py, PyAny>,
    dimensions: usize,
    dtype: Bound<'py, PyAny>,
    /// One letter for the family of types: integers are `b`, `i` and `u`.
    kind: char,
}

impl<'py> Array<'py> {
    fn new(values: &Bound<'py, PyAny>) -> Result<Self, Failure> {
        let numpy = values.py().import("numpy")?;
        if numpy.getattr("ma")?.call_method1("is_masked", (values,))?.extract()? {
            let reason = "values are masked; give the masked ones a number, for instance values.filled(0)";
            return Err(Refusal::Values(reason.into()).into());
        }
        let array = numpy.call_method1("asarray", (values,)).map_err(|error| {
            if error.is_instance_of::<PyException>(values.py()) {
                Refusal::Values(format!("values are not an array of numbers: {error}")).into()
            } else {
                Failure::from(error)
            }
        })?;
        if array.getattr("size")?.extract::<usize>()? == 0 {
            return Err(Refusal::Values("values are empty; pass at least one number".into()).into());
        }
        let dimensions = array.getattr("ndim")?.extract()?;
        let dtype = array.getattr("dtype")?;
        let kind = dtype.getattr("kind")?.extract()?;
        Ok(Self { array, dimensions, dtype, kind })
    }

    /// Its numbers, in order, with a dtype.
    fn contiguous<T: Element + Clone>(&self, dtype: &str) -> Result<Vec<T>, Failure> {
        let numpy = self.array.py().import("numpy")?;
        let converted =
            numpy.call_method1("ascontiguousarray", (&self.array, dtype))?.call_method1("reshape", (-1,))?;
        let vector = converted.cast::<PyArray1<T>>().map_err(PyErr::from)?.readonly();
        let numbers = vector.as_slice().map_err(PyErr::from)?;
        let mut out = Vec::new();
        let bytes = std::mem::size_of_val(numbers);
        out.try_reserve_exact(numbers.len()).map_err(|_| Failure::Memory(OutOfMemory { bytes }))?;
        out.extend_from_slice(numbers);
        Ok(out)
    }

    /// The error for more than one dimension.
    fn refuse_shape(&self) -> Result<Failure, Failure> {
        let shape = self.array.getattr("shape")?.str()?;
        let reason = format!("values have shape {shape}; pass a vector, for instance values.ravel()");
        Ok(Refusal::Values(reason).into())
    }
}

/// The error for a scalar.
fn refuse_scalar() -> Failure {
    Refusal::Values("values are a scalar; pass a vector, for instance [value]".into()).into()
}

/// A vector or a scalar of numbers.
pub(crate) enum Numbers {
    Real(Vec<f64>),
    Complex(Vec<Complex64>),
    Integer(i64),
    Scalar(f64),
    ComplexScalar(Complex64),
}

impl Numbers {
    /// # Errors
    /// [`Refusal::Values`] for more than one dimension and for what is not a number.
    pub(crate) fn from_python(values: &Bound<'_, PyAny>) -> Result<Self, Failure> {
        let view = Array::new(values)?;
        if !matches!(view.kind, 'b' | 'i' | 'u' | 'f' | 'c') {
            let name = view.dtype.str()?;
            return Err(Refusal::Values(format!(
                "values of dtype {name} are not numbers; pass integers of at most 64 bits, floats or complex"
            ))
            .into());
        }
        let item = || view.array.call_method0("item");
        match (view.dimensions, view.kind) {
            (0, 'c') => Ok(Self::ComplexScalar(item()?.extract()?)),
            (0, 'f') => Ok(Self::Scalar(item()?.extract()?)),
            (0, _) => {
                let item = item()?;
                // Integers beyond 64 bits are numbers nevertheless.
                item.extract().map(Self::Integer).or_else(|_| Ok(Self::Scalar(item.extract()?)))
            }
            (1, 'c') => view.contiguous("complex128").map(Self::Complex),
            (1, _) => view.contiguous("float64").map(Self::Real),
            _ => Err(view.refuse_shape()?),
        }
    }

    /// The same, but refuses a scalar.
    pub(crate) fn vector(values: &Bound<'_, PyAny>) -> Result<Self, Failure> {
        match Self::from_python(values)? {
            numbers @ (Self::Real(_) | Self::Complex(_)) => Ok(numbers),
            _ => Err(refuse_scalar()),
        }
    }

    /// A vector of real numbers.
    pub(crate) fn real_vector(values: &Bound<'_, PyAny>) -> Result<Vec<f64>, Failure> {
        match Self::vector(values)? {
            Self::Real(values) => Ok(values),
            _ => Err(Refusal::Values(
                "values are complex; this packing needs real ones, for instance values.real".into(),
            )
            .into()),
        }
    }
}

/// The rows of a matrix of real numbers one after the other, and the length of a row.
///
/// # Errors
/// [`Refusal::Values`] unless it is such a matrix with `count` rows.
pub(crate) fn real_rows(values: &Bound<'_, PyAny>, count: usize) -> Result<(Vec<f64>, usize), Failure> {
    let view = Array::new(values)?;
    let shape: Vec<usize> = view.array.getattr("shape")?.extract()?;
    match (&shape[..], view.kind) {
        (&[rows, length], 'b' | 'i' | 'u' | 'f') if rows == count => {
            Ok((view.contiguous("float64")?, length))
        }
        _ => {
            let (shape, dtype) = (view.array.getattr("shape")?.str()?, view.dtype.str()?);
            Err(Refusal::Values(format!(
                "values have shape {shape} and dtype {dtype}; pass a row of real numbers for each of the {count} indices"
            ))
            .into())
        }
    }
}

/// The numbers of a matrix, row by row, and its number of columns.
///
/// # Errors
/// [`Refusal::Values`] unless it is a matrix of numbers.
pub(crate) fn matrix_rows(values: &Bound<'_, PyAny>) -> Result<(Vec<Complex64>, usize), Failure> {
    let view = Array::new(values)?;
    let shape: Vec<usize> = view.array.getattr("shape")?.extract()?;
    match (&shape[..], view.kind) {
        (&[_, columns], 'b' | 'i' | 'u' | 'f' | 'c') => Ok((view.contiguous("complex128")?, columns)),
        _ => {
            let (shape, dtype) = (view.array.getattr("shape")?.str()?, view.dtype.str()?);
            let reason = format!(
                "values have shape {shape} and dtype {dtype}; pass a matrix of numbers, (rows, columns)"
            );
            Err(Refusal::Values(reason).into())
        }
    }
}

/// A vector or a scalar of integers.
pub(crate) enum Integers {
    Vector(Vec<i64>),
    Scalar(i64),
}

impl Integers {
    /// # Errors
    /// [`Refusal::Values`] unless it is a vector or scalar of integers that fit 64 bits.
    pub(crate) fn from_python(values: &Bound<'_, PyAny>) -> Result<Self, Failure> {
        let view = Array::new(values)?;
        if !matches!(view.kind, 'b' | 'i' | 'u') {
            let name = view.dtype.str()?;
            return Err(Refusal::Values(format!(
                "values of dtype {name} are not integers of 64 bits; round floats first, for instance \
                 values.round().astype(int)"
            ))
            .into());
        }
        if view.dimensions > 1 {
            return Err(view.refuse_shape()?);
        }
        let vector: Vec<i64> = view.contiguous("int64")?;
        // Unsigned numbers from 2^63 on have become negative.
        if view.kind == 'u' && vector.iter().any(|&v| v < 0) {
            return Err(Refusal::Values("values are not below 2^63, the limit of integers".into()).into());
        }
        match (view.dimensions, &vector[..]) {
            (0, &[value]) => Ok(Self::Scalar(value)),
            _ => Ok(Self::Vector(vector)),
        }
    }

    /// The numbers of a vector; refuses a scalar.
    pub(crate) fn vector(values: &Bound<'_, PyAny>) -> Result<Vec<i64>, Failure> {
        match Self::from_python(values)? {
            Self::Vector(values) => Ok(values),
            Self::Scalar(_) => Err(refuse_scalar()),
        }
    }
}

/// `log2` of a number of slots; that of all `N/2` by default.
pub(crate) fn log_slots(parameters: &CkksParameters, slots: Option<usize>) -> Result<u32, Failure> {
    let max = 1usize << parameters.max_log_slots();
    match slots {
        None => Ok(parameters.max_log_slots()),
        Some(slots) if slots.is_power_of_two() && slots <= max => Ok(slots.ilog2()),
        Some(slots) => Err(Refusal::Slots { slots, max }.into()),
    }
}
