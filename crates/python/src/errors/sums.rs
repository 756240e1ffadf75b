//! Encrypted sums.

use keywright_aggregation::AggregationError;
use pyo3::prelude::*;

use super::description::{Described, described};
use super::rlwe::rlwe;

pub(super) fn aggregation<'py>(py: Python<'py>, error: &AggregationError) -> PyResult<Described<'py>> {
    match error {
        AggregationError::Rlwe(error) => rlwe(py, error),
        AggregationError::Range { what, value, min, max } => {
            described!(py, "ParameterError", what = what, value = value, minimum = min, maximum = max)
        }
        AggregationError::NoModulus { bits, max, .. } => {
            described!(py, "ParameterError", what = "bits of the modulus", value = bits, maximum = max)
        }
        AggregationError::Magnitude { index, value, magnitude } => {
            described!(py, "EncodeError", value = value, index = index, bound = magnitude)
        }
        AggregationError::Mismatch { what, client, found, expected } => described!(
            py,
            "AggregationError",
            reason = what,
            client = client,
            found = found,
            expected = expected
        ),
        AggregationError::Duplicate(client) => {
            described!(py, "AggregationError", reason = "duplicate", client = client)
        }
        AggregationError::RepeatedKey { parties } => {
            described!(py, "AggregationError", reason = "set-up", found = parties[1], expected = py.None())
        }
        AggregationError::Undecodable { .. } => {
            described!(py, "AggregationError", reason = "undecodable")
        }
        _ => described!(py, "KeywrightError"),
    }
}
