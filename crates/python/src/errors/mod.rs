//! Every error of the engine as its exception of `keywright.errors`, with the value and its bound as attributes.

mod client;
mod description;
mod pools;
mod refusal;
mod schemes;
mod search;
mod sums;
mod wire;

use std::path::{Path, PathBuf};

use keywright_aggregation::AggregationError;
use keywright_bench::BenchError;
use keywright_bfv::BfvError;
use keywright_circuits::CircuitError;
use keywright_ckks::CkksError;
use keywright_ckks::encoder::EncoderError;
use keywright_client::ClientError;
use keywright_pool::PoolError;
use keywright_ring::{OutOfMemory, RingError};
use keywright_rlwe::RlweError;
use keywright_search::SearchError;
use keywright_thin_server::ServerError;
use keywright_wire::WireError;
use pyo3::exceptions::{PyOSError, PyTypeError};
use pyo3::prelude::*;

use client::{client, server};
use description::{Described, described, exception};
use pools::pool;
pub(crate) use refusal::Refusal;
use refusal::refusal;
use schemes::bfv::bfv;
use schemes::ckks::{circuit, ckks};
use search::search;
use sums::aggregation;
use wire::{system_text, wire};

/// The errors of this crate's methods.
#[derive(Debug)]
pub(crate) enum Failure {
    Ckks(CkksError),
    Bfv(BfvError),
    Circuit(CircuitError),
    Client(ClientError),
    Server(ServerError),
    Pool(PoolError),
    Wire(WireError),
    Aggregation(AggregationError),
    Search(SearchError),
    /// An invalid file.
    InFile(PathBuf, WireError),
    /// The error of the operating system for a file.
    File(PathBuf, std::io::Error),
    /// There is no memory for a result or an intermediate one.
    Memory(OutOfMemory),
    /// An exception of Python code that was called, or an argument of the wrong type.
    Python(PyErr),
    /// A class that refuses pickling, and the methods that make bytes to send instead, and read them.
    Pickle {
        class: &'static str,
        stored: Option<(&'static str, &'static str)>,
    },
    /// An argument that this crate itself refuses.
    Argument(Refusal),
}

macro_rules! from {
    ($($source:ty => $make:expr),* $(,)?) => {
        $(impl From<$source> for Failure {
            fn from(error: $source) -> Self {
                let make: fn($source) -> Self = $make;
                make(error)
            }
        })*
    };
}

from! {
    CkksError => Self::Ckks,
    BfvError => Self::Bfv,
    RlweError => |error| Self::Ckks(error.into()),
    RingError => |error| Self::Ckks(RlweError::from(error).into()),
    CircuitError => Self::Circuit,
    ClientError => Self::Client,
    ServerError => Self::Server,
    PoolError => |error| match error {
        PoolError::Ckks(error) => error.into(),
        PoolError::Rlwe(error) => error.into(),
        PoolError::Wire(error) => error.into(),
        PoolError::Bfv(error) => error.into(),
        other => Self::Pool(other),
    },
    EncoderError => |error| Self::Ckks(error.into()),
    WireError => Self::Wire,
    AggregationError => Self::Aggregation,
    SearchError => Self::Search,
    BenchError => |error| match error {
        BenchError::Circuit(error) => error.into(),
        BenchError::Ckks(error) => error.into(),
        BenchError::Rlwe(error) => error.into(),
        BenchError::Ring(error) => error.into(),
        other => Refusal::Bench(other.to_string()).into(),
    },
    PyErr => Self::Python,
    Refusal => Self::Argument,
}

fn memory(py: Python<'_>, error: OutOfMemory) -> PyResult<Described<'_>> {
    described!(py, "OutOfMemoryError", code = "system", bytes = error.bytes)
}

/// The exception for an argument with an integer that its type does not hold. A function may take fewer than its type,
/// so only the bound that was passed is named.
pub(crate) fn out_of_bounds(name: &str, value: &Bound<'_, PyAny>, minimum: i128, maximum: u128) -> PyErr {
    let py = value.py();
    let below = value.lt(minimum).unwrap_or(false);
    let bound = if below { format!("not below {minimum}") } else { format!("not above {maximum}") };
    let message = format!("{name} is {value}; use an integer {bound}");
    let described =
        || described!(py, "ParameterError", what = name, value = value, minimum = minimum, maximum = maximum);
    exception(py, &message, described()).unwrap_or_else(|error| error)
}

/// Adds the file to an error of the operating system.
pub(crate) fn file(path: &Path) -> impl FnOnce(WireError) -> Failure + '_ {
    |error| match error {
        WireError::Io(error) => Failure::File(path.to_path_buf(), error),
        other => Failure::InFile(path.to_path_buf(), other),
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        Python::attach(|py| {
            let (message, described) = match failure {
                Failure::Python(error) => return error,
                Failure::Wire(WireError::Io(error)) => return error.into(),
                Failure::File(path, error) => {
                    return match error.raw_os_error() {
                        // Three arguments select the subclass for the number, such as FileNotFoundError.
                        Some(number) => {
                            PyOSError::new_err((number, system_text(&error), path.into_os_string()))
                        }
                        None => PyOSError::new_err(format!("{}: {error}", path.display())),
                    };
                }
                Failure::Pickle { class, stored } => {
                    let elsewhere = match stored {
                        Some((to, from)) => format!("send {to}() to another, where {from}() checks it"),
                        None => "make another one in each other process".into(),
                    };
                    return PyTypeError::new_err(format!(
                        "{class} objects are not pickled or copied: share one within a process, and {elsewhere}"
                    ));
                }
                Failure::Ckks(error) => (error.to_string(), ckks(py, &error)),
                Failure::Bfv(error) => (error.to_string(), bfv(py, &error)),
                Failure::Circuit(error) => (error.to_string(), circuit(py, &error)),
                Failure::Client(error) => (error.to_string(), client(py, &error)),
                Failure::Server(error) => (error.to_string(), server(py, &error)),
                Failure::Pool(PoolError::Io { path, source }) => {
                    return Failure::File(path, source).into();
                }
                Failure::Pool(error) => (error.to_string(), pool(py, &error)),
                Failure::InFile(path, error) => (format!("{}: {error}", path.display()), wire(py, &error)),
                Failure::Wire(error) => (error.to_string(), wire(py, &error)),
                Failure::Aggregation(error) => (error.to_string(), aggregation(py, &error)),
                Failure::Search(error) => (error.to_string(), search(py, &error)),
                Failure::Memory(error) => (error.to_string(), memory(py, error)),
                Failure::Argument(error) => (error.to_string(), refusal(py, &error)),
            };
            exception(py, &message, described).unwrap_or_else(|error| error)
        })
    }
}
