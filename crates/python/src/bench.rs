use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use keywright_bench::{
    BenchError, BootstrapRequest, Event, NTT_LOG_Q, Request, SETS, WORKS, bootstrap_names, run, run_bootstrap,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arguments::integers::integers;
use crate::errors::{Failure, Refusal};
use crate::threads::compute_detached;

/// The interval at which the interpreter's thread checks for signals while it waits for a message.
const PATIENCE: Duration = Duration::from_millis(50);

/// Measures operations on real keys and ciphertexts. Decrypts and compares their results first.
///
/// Ctrl-C stops after the current operation.
///
/// Args:
///     emit: called with each record as it is made, one JSON object in a string; may raise to stop.
///     set: name of the parameter set, of `bench_sets()`.
///     alpha: primes per digit; None for all of the set.
///     works: the operations, of `bench_works()`; empty for all.
///     runs: timed runs of each.
///     seeded: whether keys are seeded.
///
/// Raises:
///     ParameterError: a name is unknown, or runs is 0.
#[integers]
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
    measure(
        py,
        |send| run(&request, &mut |record| send(record.json())),
        |json| emit.call1((json,)).map(|_| ()),
    )
}

/// Measures a bootstrapping: keys, matrices, whole bootstraps of random values that are decrypted and compared, and the
/// stages.
///
/// Ctrl-C stops after the current key or bootstrap.
///
/// Args:
///     emit: called with the record, one JSON object in a string.
///     preset: name of the bootstrapping, of `bench_presets()`.
///     runs: timed bootstraps.
///     progress: called with the name of a phase, its finished steps and their total; may raise to stop.
///
/// Raises:
///     ParameterError: the name is unknown, or runs is 0.
#[integers]
#[pyfunction]
#[pyo3(signature = (emit, *, preset, runs=5, progress=None))]
pub(crate) fn bench_bootstrap(
    py: Python<'_>,
    emit: &Bound<'_, PyAny>,
    preset: &str,
    runs: usize,
    progress: Option<&Bound<'_, PyAny>>,
) -> Result<(), Failure> {
    let request = BootstrapRequest { preset: preset.into(), runs };
    measure(
        py,
        |send| run_bootstrap(&request, &mut |event| send(event)),
        |event| match event {
            Event::Record(record) => emit.call1((record.json(),)).map(|_| ()),
            Event::Progress { phase, done, total } => {
                progress.map_or(Ok(()), |progress| progress.call1((phase, done, total)).map(|_| ()))
            }
        },
    )
}

/// Runs work in another thread, and handles its messages in this one, the only one that sees signals. The return value
/// of `send` tells the work whether to stop.
fn measure<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&(dyn Fn(T) -> bool + Sync)) -> Result<(), BenchError> + Send,
    handle: impl Fn(T) -> PyResult<()>,
) -> Result<(), Failure> {
    let go_on = AtomicBool::new(true);
    let (sender, receiver) = mpsc::channel();
    let receiver = Mutex::new(receiver);
    std::thread::scope(|scope| {
        let go_on = &go_on;
        let worker = scope.spawn(move || {
            let send = move |message| sender.send(message).is_ok() && go_on.load(Ordering::Relaxed);
            compute_detached(|| work(&send))
        });
        let forwarded = loop {
            let received = py.detach(|| {
                receiver
                    .lock()
                    .map_or(Err(RecvTimeoutError::Disconnected), |receiver| receiver.recv_timeout(PATIENCE))
            });
            let handled = match received {
                Ok(message) => handle(message).and_then(|()| py.check_signals()),
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
        measured.unwrap_or_else(|_| Err(Refusal::Values("a measurement ended abnormally".into()).into()))
    })
}

/// The parameter sets of `bench`: for each its name, log2 of the ring degree, bits of the ciphertext primes and of the
/// scale, and the measurements: primes per digit, levels, ring degrees of transforms and bits of their prime.
#[pyfunction]
pub(crate) fn bench_sets(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let sets = PyDict::new(py);
    for set in &SETS {
        let facts = PyDict::new(py);
        facts.set_item("log_n", set.log_n)?;
        facts.set_item("log_q", set.q_bits())?;
        facts.set_item("log_scale", set.widths.1)?;
        facts.set_item("alphas", set.alphas)?;
        facts.set_item("levels", set.levels)?;
        facts.set_item("ntt_log_n", set.ntt_log_n)?;
        facts.set_item("ntt_log_q", NTT_LOG_Q)?;
        sets.set_item(set.name, facts)?;
    }
    Ok(sets)
}

/// Names of the operations of `bench`.
#[pyfunction]
pub(crate) fn bench_works() -> Vec<&'static str> {
    WORKS.to_vec()
}

/// Whether the engine checks its own arithmetic (debug assertions), as the build for tests does: it takes longer than a
/// release.
#[pyfunction]
pub(crate) fn bench_checked() -> bool {
    cfg!(debug_assertions)
}

/// Names of the bootstrappings of `bench_bootstrap`: the shipped ones, and a quick insecure one.
#[pyfunction]
pub(crate) fn bench_presets() -> Vec<&'static str> {
    bootstrap_names()
}
