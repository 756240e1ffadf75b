//! Search.

use keywright_search::SearchError;
use pyo3::prelude::*;

use super::description::{Described, described};
use super::schemes::bfv::bfv;

pub(super) fn search<'py>(py: Python<'py>, error: &SearchError) -> PyResult<Described<'py>> {
    match error {
        SearchError::Bfv(error) => bfv(py, error),
        SearchError::Range { what, value, min, max } => {
            described!(py, "ParameterError", what = what, value = value, minimum = min, maximum = max)
        }
        SearchError::Norm { row, value, max } => {
            described!(py, "EncodeError", index = row, value = value, bound = max)
        }
        SearchError::Empty => {
            described!(py, "ParameterError", what = "number of vectors", value = 0, minimum = 1)
        }
        SearchError::Noise { noise, modulus, scores } => {
            described!(py, "NoiseError", operation = "search", budget = modulus - scores - noise - 1.0)
        }
        _ => described!(py, "KeywrightError"),
    }
}
