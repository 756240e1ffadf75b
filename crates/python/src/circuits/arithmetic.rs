use keywright_circuits::Arithmetic;
use keywright_ring::backend;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// What an operation computes, by name: the counts that are not 0.
pub(crate) fn named<'py>(py: Python<'py>, arithmetic: &Arithmetic) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    for (name, count) in arithmetic.counts().filter(|&(_, count)| count > 0) {
        out.set_item(name, count)?;
    }
    Ok(out)
}

/// The words that this process has computed so far, modulo primes of at most 50 bits and modulo wider ones: zeros
/// unless the back end is `KEYWRIGHT_BACKEND=counted`.
#[pyfunction]
pub(crate) fn kernel_counts(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let out = PyDict::new(py);
    for (name, [narrow, wide]) in backend::counts() {
        out.set_item(name, (narrow, wide))?;
    }
    Ok(out)
}
