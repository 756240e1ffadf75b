//! Encrypted sums.

use keywright_aggregation::AggregationError;

use super::description::table;
use super::rlwe::rlwe;

table! { aggregation(py, AggregationError);
    E::Rlwe(error) => rlwe(error),
    E::Range { what, value, min, max } => "ParameterError" { what, value, minimum = min, maximum = max },
    E::NoModulus { bits, max, .. } =>
        "ParameterError" { what = "bits of the modulus", value = bits, maximum = max },
    E::Magnitude { index, value, magnitude } => "EncodeError" { value, index, bound = magnitude },
    E::Mismatch { what, client, found, expected } =>
        "AggregationError" { reason = what, client, found, expected },
    E::Duplicate(client) => "AggregationError" { reason = "duplicate", client },
    E::RepeatedKey { parties } =>
        "AggregationError" { reason = "set-up", found = parties[1], expected = py.None() },
    E::Undecodable { .. } => "AggregationError" { reason = "undecodable" },
    _ => "KeywrightError" {},
}
