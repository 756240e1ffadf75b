//! Serialization of objects to bytes and files. Never by pickling: unpickling runs code.

use std::io::Read;
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

pub(crate) fn from_bytes<T: Wire<Context: Sync> + Send>(
    py: Python<'_>,
    data: &[u8],
    context: &T::Context,
) -> Result<T, Failure> {
    compute(py, || T::from_bytes(data, context))
}

/// Parameters with several rings, to any of which an object may belong.
pub(crate) trait Rings: Sized {
    /// The parameters of the ring that an object claims.
    fn of_object(&self, reader: &mut impl Read) -> Result<Self, Failure>;

    /// The parameters of the ring that the object in a file claims.
    fn of_file(&self, path: &Path) -> Result<Self, Failure> {
        self.of_object(&mut open_file(path).map_err(file(path))?)
    }
}

impl Rings for CkksParameters {
    fn of_object(&self, reader: &mut impl Read) -> Result<Self, Failure> {
        if self.subrings().is_empty() {
            return Ok(self.clone());
        }
        let ring = ring_of(reader, self.rlwe())?;
        Ok(self.ring_like(ring, "the parameters", "the object")?.clone())
    }
}

/// BFV has one ring.
impl Rings for BfvParameters {
    fn of_object(&self, _: &mut impl Read) -> Result<Self, Failure> {
        Ok(self.clone())
    }
}

impl Rings for KeyParameters {
    fn of_object(&self, reader: &mut impl Read) -> Result<Self, Failure> {
        match self {
            Self::Ckks(parameters) => Ok(Self::Ckks(PyParameters(parameters.0.of_object(reader)?))),
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

pub(crate) fn load<T: Wire<Context: Sync> + Send>(
    py: Python<'_>,
    path: &Path,
    context: &T::Context,
) -> Result<T, Failure> {
    compute(py, || T::load(path, context).map_err(file(path)))
}

/// Refuses to pickle objects of these classes.
macro_rules! not_pickled {
    ($($class:ident),+ $(,)?) => {$(
        #[pyo3::pymethods]
        impl $class {
            fn __reduce__(&self) -> Result<(), $crate::errors::Failure> {
                Err($crate::errors::Failure::Pickle(<Self as pyo3::PyClass>::NAME))
            }
        }
    )+};
}

/// Prints nothing of objects of these classes, and refuses to pickle them: secrets, and objects with a generator.
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

pub(crate) use {not_pickled, opaque};
