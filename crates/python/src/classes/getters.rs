//! Attributes of Python's classes that are one expression.

/// Attributes of a class, read only: documentation, name and type of each, and its value as an expression of the
/// object.
macro_rules! getters {
    ($class:ty, $this:ident; $($(#[$doc:meta])* $name:ident: $type:ty = $value:expr;)*) => {
        #[pyo3::pymethods]
        impl $class {
            $(
                $(#[$doc])*
                #[getter]
                fn $name(&$this) -> $type {
                    $value
                }
            )*
        }
    };
}
pub(crate) use getters;
