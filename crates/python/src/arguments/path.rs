//! Paths of files.

use std::ops::Deref;
use std::path::{Path, PathBuf};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// The path of a file: text, or an object that has a path as text.
pub(crate) struct FilePath(pub(crate) PathBuf);

impl<'py> FromPyObject<'_, 'py> for FilePath {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        value.extract().map(Self).map_err(|error| {
            let given = value.call_method0("__fspath__").unwrap_or_else(|_| value.to_owned());
            if given.is_instance_of::<PyBytes>() {
                return PyTypeError::new_err(
                    "a path is str or os.PathLike[str], not bytes; pass os.fsdecode of it",
                );
            }
            error
        })
    }
}

impl Deref for FilePath {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl AsRef<Path> for FilePath {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}
