use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use keywright_bench::{Request, SETS, WORKS, run};
use pyo3::prelude::*;

use crate::errors::Failure;
use crate::pool::compute_detached;

/// How long the thread of the interpreter waits for a record before it looks for signals.
const PATIENCE: Duration = Duration::from_millis(50);

/// Measures operations on real keys and ciphertexts, whose results are decrypted and compared first.
///
/// Ctrl-C stops after the operation that runs.
///
/// Args:
///     emit: called with each figure as it is made, one JSON object in a string; may raise to stop.
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
    emit: &Bound<'_, PyAny>,
    set: &str,
    alpha: Option<usize>,
    works: Vec<String>,
    runs: usize,
    seeded: bool,
) -> Result<(), Failure> {
    let request = Request { set: set.into(), alpha, works, runs, seeded };
    let go_on = AtomicBool::new(true);
    let (sender, receiver) = mpsc::channel();
    let receiver = Mutex::new(receiver);
    std::thread::scope(|scope| {
        let (request, go_on) = (&request, &go_on);
        // Only the interpreter's own thread sees signals, so that thread waits and another one measures.
        let worker = scope.spawn(move || {
            compute_detached(|| {
                run(request, &mut |record| {
                    sender.send(record.json()).is_ok() && go_on.load(Ordering::Relaxed)
                })
            })
        });
        let forwarded = loop {
            let received = py.detach(|| {
                receiver
                    .lock()
                    .map_or(Err(RecvTimeoutError::Disconnected), |receiver| receiver.recv_timeout(PATIENCE))
            });
            let handled = match received {
                Ok(json) => emit.call1((json,)).and_then(|_| py.check_signals()),
                Err(RecvTimeoutError::Timeout) => py.check_signals(),
                Err(RecvTimeoutError::Disconnected) => break Ok(()),
            };
            if let Err(error) = handled {
                go_on.store(false, Ordering::Relaxed);
                break Err(error);
            }
        };
        let measured = py.detach(|| worker.join());
        forwarded?;
        measured.unwrap_or_else(|_| Err(Failure::Values("a measurement ended abnormally".into())))
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
