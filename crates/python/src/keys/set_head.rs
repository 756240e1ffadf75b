use keywright_wire::{KeySetReader, KeySetWriter};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::descriptions::spec::{PyKeySpec, specs_for};
use crate::errors::Failure;
use crate::parameters::keys::KeyParameters;

/// The first bytes of a stored set of these keys: its header, with every key and the length of the whole.
///
/// They are known before any key is made, so a server uses them to request keys in a certain order.
///
/// Args:
///     specs: at least one, all of the same parameters.
///     parameters: those of the specs, if some belong to subrings; by default those of the first spec.
///
/// Raises:
///     ValueError: there are none.
///     MismatchError: they belong to different parameters.
#[pyfunction]
#[pyo3(signature = (specs, parameters=None))]
pub(crate) fn key_set_head<'py>(
    py: Python<'py>,
    specs: Vec<PyRef<'py, PyKeySpec>>,
    parameters: Option<KeyParameters>,
) -> PyResult<Bound<'py, PyBytes>> {
    let Some(first) = specs.first() else {
        return Err(PyValueError::new_err("the head of a key set needs at least one key"));
    };
    let rlwe = parameters.as_ref().unwrap_or(&first.parameters).rlwe();
    let required = specs_for(rlwe, &specs, "the first spec", "another spec")?;
    let mut head = Vec::new();
    KeySetWriter::new(&mut head, &required, rlwe).map_err(Failure::from)?;
    Ok(PyBytes::new(py, &head))
}

/// The keys in the head of a set, in order. Each is checked for security.
///
/// Raises:
///     FormatError: the bytes do not begin with a whole, intact header of a key set.
///     MismatchError: it belongs to other parameters.
#[pyfunction]
pub(crate) fn read_key_set_head(data: &[u8], parameters: KeyParameters) -> Result<Vec<PyKeySpec>, Failure> {
    let reader = KeySetReader::new(data, parameters.rlwe())?;
    let spec = |entry: &keywright_wire::KeyEntry| PyKeySpec::of(&parameters, entry.spec.clone());
    reader.entries().iter().map(spec).collect()
}
