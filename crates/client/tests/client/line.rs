//! A line of `vectors/client.txt`, for the tests of the C interfaces as well.

use keywright_client::ClientParameters;

#[path = "line_parameters.rs"]
mod line_parameters;

/// The numbers of each line, as vectors/README.md names them.
pub(crate) fn lines() -> Vec<Vec<u64>> {
    let lines = include_str!("../../../../vectors/client.txt").lines();
    lines.map(|line| line.split(' ').map(|word| word.parse().unwrap()).collect()).collect()
}

/// The parameters of a line's client.
pub(crate) fn parameters(fields: &[u64]) -> ClientParameters {
    line_parameters::parameters(fields).unwrap()
}
