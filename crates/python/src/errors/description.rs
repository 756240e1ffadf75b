//! The attributes of an exception of `keywright.errors`, besides its message.

use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Class and attributes of an exception.
pub(super) type Described<'py> = (&'static str, Bound<'py, PyDict>);

/// A class, and its attributes by name.
macro_rules! described {
    ($py:expr, $class:literal $(, $name:ident = $value:expr)* $(,)?) => {{
        let details = ::pyo3::types::PyDict::new($py);
        $(details.set_item(stringify!($name), $value)?;)*
        Ok(($class, details))
    }};
}
pub(super) use described;

/// The exception of that class.
pub(super) fn exception(
    py: Python<'_>,
    message: &str,
    described: PyResult<Described<'_>>,
) -> PyResult<PyErr> {
    let (class, details) = described?;
    let class = py.import("keywright.errors")?.getattr(class)?;
    Ok(PyErr::from_value(class.call((message,), Some(&details))?))
}
