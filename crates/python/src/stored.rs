//! Serialization of objects to bytes and files. Never by pickling: unpickling runs code.

use std::path::Path;

use keywright_bfv::BfvParameters;
use keywright_ckks::CkksParameters;
use keywright_rlwe::KeyIdentity;
use keywright_wire::{Wire, open_file, ring_of};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::{Failure, file};
use crate::parameters::ckks::PyParameters;
use crate::parameters::keys::KeyParameters;
use crate::threads::compute;

/// An identity in hexadecimal digits, if known.
pub(crate) fn known(identity: KeyIdentity) -> Option<String> {
    identity.is_known().then(|| identity.to_string())
}

pub(crate) fn to_bytes<'py, T: Wire<Context: Sync> + Sync>(
    py: Python<'py>,
    object: &T,
    context: &T::Context,
) -> Result<Bound<'py, PyBytes>, Failure> {
    Ok(PyBytes::new(py, &compute(py, || object.to_bytes(context))?))
}

/// Where an object is stored.
pub(crate) enum Source<'s> {
    Bytes(&'s [u8]),
    File(&'s Path),
}

/// Reads an object.
pub(crate) fn read<T: Wire<Context: Sync> + Send>(
    py: Python<'_>,
    source: &Source<'_>,
    context: &T::Context,
) -> Result<T, Failure> {
    compute(py, || match *source {
        Source::Bytes(data) => Ok(T::from_bytes(data, context)?),
        Source::File(path) => T::load(path, context).map_err(file(path)),
    })
}

/// Parameters with several rings, to any of which an object may belong.
pub(crate) trait Rings: Sized {
    /// The parameters of the ring that an object claims.
    fn of(&self, source: &Source<'_>) -> Result<Self, Failure>;
}

impl Rings for CkksParameters {
    fn of(&self, source: &Source<'_>) -> Result<Self, Failure> {
        if self.subrings().is_empty() {
            return Ok(self.clone());
        }
        let ring = match *source {
            Source::Bytes(mut data) => ring_of(&mut data, self.rlwe()),
            Source::File(path) => ring_of(&mut open_file(path).map_err(file(path))?, self.rlwe()),
        }?;
        Ok(self.ring_like(ring, "the parameters", "the object")?.clone())
    }
}

/// BFV has one ring.
impl Rings for BfvParameters {
    fn of(&self, _: &Source<'_>) -> Result<Self, Failure> {
        Ok(self.clone())
    }
}

impl Rings for KeyParameters {
    fn of(&self, source: &Source<'_>) -> Result<Self, Failure> {
        match self {
            Self::Ckks(parameters) => Ok(Self::Ckks(PyParameters(parameters.0.of(source)?))),
            Self::Bfv(_) => Ok(self.clone()),
        }
    }
}

pub(crate) fn save<T: Wire<Context: Sync> + Sync>(
    py: Python<'_>,
    object: &T,
    path: &Path,
    context: &T::Context,
) -> Result<(), Failure> {
    compute(py, || object.save(path, context).map_err(file(path)))
}

/// The methods of a class whose objects are stored as bytes and, `with files`, in files. In sentences, `$the` is an
/// object, `$a` one with its article, and `$whole` its kind in the format. `$object` is written in `$context`. `$new`
/// makes one from a [`Source`] and the parameters of a caller.
macro_rules! serialized {
    (
        $class:ident of $parameters:ty: $the:literal, $a:literal, $whole:literal;
        $this:ident => $object:expr, $context:expr;
        |$py:ident, $source:ident, $given:ident| $new:expr $(; with $files:ident)?
    ) => {
        impl $class {
            fn read(
                $py: pyo3::Python<'_>,
                $source: &$crate::stored::Source<'_>,
                $given: $parameters,
            ) -> Result<Self, $crate::errors::Failure> {
                $new
            }
        }

        #[pyo3::pymethods]
        impl $class {
            #[doc = concat!("The ", $the, " as bytes, for `from_bytes`.")]
            fn to_bytes<'py>(
                &$this,
                py: pyo3::Python<'py>,
            ) -> Result<pyo3::Bound<'py, pyo3::types::PyBytes>, $crate::errors::Failure> {
                $crate::stored::to_bytes(py, $object, $context)
            }

            #[doc = concat!($a, " from the bytes of `to_bytes`.\n\nRaises:")]
            #[doc = concat!("    FormatError: the bytes are not a whole, intact ", $whole, ".")]
            #[doc = "    MismatchError: it belongs to other parameters."]
            #[staticmethod]
            fn from_bytes(
                py: pyo3::Python<'_>,
                data: &[u8],
                parameters: $parameters,
            ) -> Result<Self, $crate::errors::Failure> {
                Self::read(py, &$crate::stored::Source::Bytes(data), parameters)
            }
        }

        $($crate::stored::serialized!(@$files $class of $parameters: $the; $this => $object, $context);)?
    };
    (@files $class:ident of $parameters:ty: $the:literal; $this:ident => $object:expr, $context:expr) => {
        #[pyo3::pymethods]
        impl $class {
            #[doc = concat!("Writes the ", $the, " to a file, which appears whole or not at all.")]
            fn save(
                &$this,
                py: pyo3::Python<'_>,
                path: $crate::arguments::path::FilePath,
            ) -> Result<(), $crate::errors::Failure> {
                $crate::stored::save(py, $object, &path, $context)
            }

            #[doc = concat!("Reads the ", $the, " of a file; errors as for `from_bytes`.")]
            #[staticmethod]
            fn load(
                py: pyo3::Python<'_>,
                path: $crate::arguments::path::FilePath,
                parameters: $parameters,
            ) -> Result<Self, $crate::errors::Failure> {
                Self::read(py, &$crate::stored::Source::File(&path), parameters)
            }
        }
    };
}

/// Refuses to pickle and to copy objects of these classes, and says how another process gets one.
macro_rules! not_pickled {
    ($($class:ident),+ $(,)?) => {$(
        #[pyo3::pymethods]
        impl $class {
            fn __reduce__(slf: &pyo3::Bound<'_, Self>) -> Result<(), $crate::errors::Failure> {
                let stored = [("to_bytes", "from_bytes"), ("secret_bytes", "from_secret_bytes")]
                    .into_iter()
                    .find(|(to, _)| pyo3::types::PyAnyMethods::hasattr(slf.as_any(), *to).unwrap_or(false));
                Err($crate::errors::Failure::Pickle { class: <Self as pyo3::PyClass>::NAME, stored })
            }
        }
    )+};
}

/// Prints nothing of objects of these classes, and refuses to pickle and to copy them: secrets, and objects with a
/// generator.
macro_rules! opaque {
    ($($class:ident),+ $(,)?) => {
        $crate::stored::not_pickled!($($class),+);
        $(
            #[pyo3::pymethods]
            impl $class {
                fn __repr__(&self) -> String {
                    format!("{}(..)", <Self as pyo3::PyClass>::NAME)
                }
            }
        )+
    };
}

pub(crate) use {not_pickled, opaque, serialized};
