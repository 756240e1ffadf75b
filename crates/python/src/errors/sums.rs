//! Encrypted sums.

use keywright_aggregation::AggregationError;

use super::description::table;
use super::schemes::rlwe::rlwe;

table! { aggregation(py, AggregationError);
    E::Rlwe(error) => rlwe(error),
    E::Range { what, value, min, max } => "ParameterError" { what, value, minimum = min, maximum = max },
    E::NoModulus { bits, max, .. } =>
        "ParameterError" { what = "bits of the modulus", value = bits, maximum = max },
    E::Magnitude { index, value, magnitude } => "EncodeError" { value, index, bound = magnitude },
    E::Mismatch { what, client, found, expected } =>
        "AggregationError" { code = what.replace(' ', "_"), client, found, expected },
    E::Duplicate(client) => "AggregationError" { code = "duplicate", client },
    E::RepeatedKey { parties } =>
        "AggregationError" { code = "set_up", found = parties[1], expected = py.None() },
    E::Undecodable { .. } => "AggregationError" { code = "undecodable" },
    _ => "KeywrightError" {},
}
