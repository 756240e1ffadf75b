//! Integers of Python as those of the engine, which have bounds.

use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyString};

pub(crate) use keywright_python_macros::integers;

use crate::errors::out_of_bounds;

/// The bounds of a type of integers.
pub(crate) trait Bounded {
    const MINIMUM: i128;
    const MAXIMUM: u128;
}

macro_rules! bounded {
    ($($integer:ident),*) => {$(
        impl Bounded for $integer {
            const MINIMUM: i128 = $integer::MIN as i128;
            const MAXIMUM: u128 = $integer::MAX as u128;
        }
    )*};
}

bounded!(usize, u32, u64, u128, i32, i64);

/// The argument with integers of type `I` that has the name in `A` and `B`, as [`macro@integers`] packs it.
///
/// # Errors
/// `ParameterError` for an integer out of range, with the name, the integer and the bounds; otherwise as PyO3 extracts
/// it.
pub(crate) fn argument<'a, 'py, const A: u128, const B: u128, I: Bounded, T: FromPyObject<'a, 'py>>(
    value: &'a Bound<'py, PyAny>,
) -> PyResult<T> {
    let bytes = [A.to_le_bytes(), B.to_le_bytes()].concat();
    named::<I, T>(String::from_utf8_lossy(&bytes).trim_end_matches('\0'), value)
}

/// The same for an argument of this name.
pub(crate) fn named<'a, 'py, I: Bounded, T: FromPyObject<'a, 'py>>(
    name: &str,
    value: &'a Bound<'py, PyAny>,
) -> PyResult<T> {
    value.extract().map_err(Into::into).map_err(|error: PyErr| {
        if !error.is_instance_of::<PyOverflowError>(value.py()) {
            return error;
        }
        let culprit = outside::<I>(value).unwrap_or_else(|| value.clone());
        out_of_bounds(name, &culprit, I::MINIMUM, I::MAXIMUM)
    })
}

/// The first integer in an object that is out of range.
fn outside<'py, I: Bounded>(value: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    let has = |name: &str| value.hasattr(name).is_ok_and(|has| has);
    if value.is_instance_of::<PyInt>() || has("__index__") && !has("__len__") {
        let small = value.lt(I::MINIMUM).is_ok_and(|less| less);
        return (small || value.gt(I::MAXIMUM).is_ok_and(|more| more)).then(|| value.clone());
    }
    if value.is_instance_of::<PyString>() {
        return None;
    }
    let items = match value.cast::<PyDict>() {
        Ok(dict) => dict.items().into_any(),
        Err(_) => value.clone(),
    };
    items.try_iter().ok()?.find_map(|item| outside::<I>(&item.ok()?))
}

/// A count, or a name that stands for one.
pub(crate) enum CountOrName {
    Count(usize),
    Name(String),
}

impl<'py> FromPyObject<'_, 'py> for CountOrName {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if value.is_instance_of::<PyString>() {
            value.extract().map(Self::Name)
        } else {
            value.extract().map(Self::Count)
        }
    }
}
