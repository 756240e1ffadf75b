//! Pools of encryptions, and their files.

use keywright_pool::{FileProblem, PoolError};
use pyo3::prelude::*;

use super::description::{Described, described};

pub(super) fn pool<'py>(py: Python<'py>, error: &PoolError) -> PyResult<Described<'py>> {
    match error {
        PoolError::Range { what, value, min, max } => {
            described!(py, "ParameterError", what = what, value = value, minimum = min, maximum = max)
        }
        PoolError::Stopped(_) => described!(py, "PoolEmptyError", made = py.None(), taken = py.None()),
        PoolError::Empty { made, taken } => described!(py, "PoolEmptyError", made = made, taken = taken),
        PoolError::Threads { requested, .. } => {
            described!(py, "ParameterError", what = "threads", value = requested)
        }
        PoolError::Forked { owner, process } => {
            described!(py, "ForkedError", owner = owner, process = process)
        }
        PoolError::Producer(error) => pool(py, error),
        #[cfg(feature = "insecure")]
        PoolError::ChemUnit { unit, smallest } => {
            described!(py, "ParameterError", what = "unit", value = unit, minimum = smallest)
        }
        #[cfg(feature = "insecure")]
        PoolError::ChemInteger { unit } => {
            described!(py, "ParameterError", what = "unit", value = unit)
        }
        #[cfg(feature = "insecure")]
        PoolError::ChemMessage { value, bits } => {
            described!(py, "EncodeError", value = value, available_bits = f64::from(*bits))
        }
        PoolError::File { path, problem } => {
            described!(py, "PoolFileError", reason = file_reason(problem), path = path)
        }
        _ => described!(py, "KeywrightError"),
    }
}

pub(super) fn file_reason(problem: &FileProblem) -> &'static str {
    match problem {
        FileProblem::Foreign => "foreign",
        FileProblem::Length { .. } => "length",
        FileProblem::Key => "file key",
        FileProblem::ForeignParameters { .. } => "parameters",
        FileProblem::ForeignKey => "key",
        FileProblem::ForeignEntries { .. } => "entries",
        FileProblem::Unregistered { .. } => "unregistered",
        FileProblem::Copied { .. } => "copied",
        FileProblem::Register { .. } => "register",
        FileProblem::Tampered { .. } => "tampered",
        _ => "contents",
    }
}
