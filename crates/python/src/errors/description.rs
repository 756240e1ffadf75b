//! The attributes of an exception of `keywright.errors`, besides its message.

use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Class and attributes of an exception.
pub(crate) type Described<'py> = (&'static str, Bound<'py, PyDict>);

/// A class, and its attributes by name.
macro_rules! described {
    ($py:expr, $class:literal $(, $name:ident = $value:expr)* $(,)?) => {{
        let details = ::pyo3::types::PyDict::new($py);
        $(::pyo3::types::PyDictMethods::set_item(&details, stringify!($name), $value)?;)*
        Ok(($class, details))
    }};
}
pub(super) use described;

/// A function that describes each variant of an error: by its class and attributes, by the function of another error in
/// it, or by an expression. An attribute without a value has that of the variant's field.
macro_rules! table {
    ($name:ident($py:ident, $error:ident); $($(#[$meta:meta])* $variant:pat =>
        $($class:literal { $($attribute:ident $(= $value:expr)?),* })? $($inner:ident($field:ident))? $($other:block)?,
    )*) => {
        pub(crate) fn $name<'py>(
            $py: ::pyo3::Python<'py>,
            error: &$error,
        ) -> ::pyo3::PyResult<$crate::errors::description::Described<'py>> {
            use $error as E;
            match error {
                $($(#[$meta])* $variant => {
                    $($crate::errors::description::described!(
                        $py, $class $(, $attribute = $crate::errors::description::table!(@ $attribute $($value)?))*
                    ))?
                    $($inner($py, $field))?
                    $($other)?
                })*
            }
        }
    };
    (@ $attribute:ident) => { $attribute };
    (@ $attribute:ident $value:expr) => { $value };
}
pub(super) use table;

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
