use keywright_bench::{Request, SETS, WORKS};
use pyo3::prelude::*;

use crate::errors::Failure;
use crate::pool::compute;

/// Measures this machine: each work on real keys and ciphertexts, its result decrypted and compared.
///
/// Args:
///     emit: called with every record, a JSON object, as soon as it is measured; what it raises ends the measurement.
///     set: name of the parameter set, of `bench_sets()`.
///     alpha: primes per digit; None for all that the set measures.
///     works: what to measure, of `bench_works()`; empty for everything.
///     runs: timed runs of each.
///     seeded: whether keys are seeded.
///
/// Raises:
///     ParameterError: a name is unknown, or runs is 0.
#[pyfunction]
#[pyo3(signature = (emit, *, set="main", alpha=None, works=Vec::new(), runs=5, seeded=true))]
pub(crate) fn bench(
    py: Python<'_>,
    emit: Py<PyAny>,
    set: &str,
    alpha: Option<usize>,
    works: Vec<String>,
    runs: usize,
    seeded: bool,
) -> Result<(), Failure> {
    let request = Request { set: set.into(), alpha, works, runs, seeded };
    compute(py, || {
        let mut raised = None;
        keywright_bench::run(&request, &mut |record| {
            let answer = Python::attach(|py| {
                emit.call1(py, (record.json(),))?;
                py.check_signals()
            });
            raised = answer.err();
            raised.is_none()
        })?;
        raised.map_or(Ok(()), |error| Err(Failure::Python(error)))
    })
}

/// Names of the parameter sets that `bench` knows.
#[pyfunction]
pub(crate) fn bench_sets() -> Vec<&'static str> {
    SETS.iter().map(|set| set.name).collect()
}

/// Names of the works that `bench` knows.
#[pyfunction]
pub(crate) fn bench_works() -> Vec<&'static str> {
    WORKS.to_vec()
}
