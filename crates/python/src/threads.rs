//! The computing threads.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::Builder;
use std::time::Duration;

use keywright_ring::{OutOfMemory, PerProcess, Reserve, start_thread};
use keywright_rlwe::MAX_THREADS;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::arguments::integers::integers;
use crate::errors::{Failure, Refusal};

/// A forked child has the memory of its parent's threads but not the threads, so it starts its own. It also leaves the
/// parent's lock alone, which another thread may have held.
static THREADS: PerProcess<RwLock<Option<Arc<ThreadPool>>>> = PerProcess::new(|| RwLock::new(None));

fn refuse(count: usize, reason: String) -> Refusal {
    Refusal::Threads { count, reason, max: MAX_THREADS }
}

/// `count` threads; for 0, as many as `RAYON_NUM_THREADS` or the machine has.
fn start(count: usize) -> Result<Arc<ThreadPool>, Failure> {
    let builder = ThreadPoolBuilder::new().num_threads(count).spawn_handler(|thread| {
        let name = format!("keywright-{}", thread.index());
        start_thread(Builder::new().name(name), || thread.run()).map(drop)
    });
    let pool = Arc::new(builder.build().map_err(|error| refuse(count, error.to_string()))?);
    *THREADS.get().write().unwrap_or_else(PoisonError::into_inner) = Some(pool.clone());
    Ok(pool)
}

fn current() -> Result<Arc<ThreadPool>, Failure> {
    if let Some(pool) = &*THREADS.get().read().unwrap_or_else(PoisonError::into_inner) {
        return Ok(pool.clone());
    }
    start(0)
}

/// Computes on these threads, with the interpreter lock released.
pub(crate) fn compute<T: Send, E: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, E> + Send,
) -> Result<T, Failure>
where
    Failure: From<E>,
{
    py.detach(|| compute_detached(work))
}

/// Computes on these threads, from one that does not hold the interpreter lock.
pub(crate) fn compute_detached<T: Send, E: Send>(
    work: impl FnOnce() -> Result<T, E> + Send,
) -> Result<T, Failure>
where
    Failure: From<E>,
{
    let threads = current()?;
    guarded(|| threads.install(work))
}

/// Turns a lack of memory into an error: the payload that buffers raise ends only this work.
fn guarded<T, E>(work: impl FnOnce() -> Result<T, E>) -> Result<T, Failure>
where
    Failure: From<E>,
{
    Reserve::keep().map_err(Failure::Memory)?;
    // Unfinished results are dropped; locks that the work held count as released.
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => Ok(result?),
        Err(raised) => match raised.downcast::<OutOfMemory>() {
            Ok(error) => Err(Failure::Memory(*error)),
            Err(raised) => resume_unwind(raised),
        },
    }
}

/// The interval between checks for signals during interruptible work.
const PATIENCE: Duration = Duration::from_millis(50);

/// The exception of a signal; None outside of the main thread, which handles all of them.
pub(crate) fn signals() -> PyResult<()> {
    Python::attach(|py| py.check_signals())
}

/// As [`compute_detached`], for long work. If a signal raises meanwhile, `stop` is called, the work should end soon,
/// and the exception is the error whatever the work's result.
pub(crate) fn compute_interruptible<T: Send, E: Send>(
    stop: impl Fn(),
    work: impl FnOnce() -> Result<T, E> + Send,
) -> Result<T, Failure>
where
    Failure: From<E>,
{
    let mut raised = Ok(());
    let (sender, receiver) = channel();
    let result = current()?.in_place_scope(|scope| {
        scope.spawn(move |_| drop(sender.send(guarded(work))));
        loop {
            match receiver.recv_timeout(PATIENCE) {
                Err(RecvTimeoutError::Timeout) if raised.is_ok() => {
                    raised = signals();
                    if raised.is_err() {
                        stop();
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return None,
                Ok(result) => return Some(result),
            }
        }
    });
    raised?;
    match result {
        Some(result) => result,
        None => unreachable!("work that sends nothing has panicked, and so does the scope"),
    }
}

/// Sets the number of threads that share each operation, for the whole process.
///
/// Results do not depend on it. Running operations finish on their threads.
///
/// Args:
///     n: number of threads, 1 to 256; None for the default, which is RAYON_NUM_THREADS if set, else all cores.
///
/// Raises:
///     ParameterError: n is 0, above 256, or more than the system can start.
#[integers]
#[pyfunction]
#[pyo3(signature = (n=None))]
pub(crate) fn set_threads(py: Python<'_>, n: Option<usize>) -> Result<(), Failure> {
    if let Some(count) = n.filter(|n| !(1..=MAX_THREADS).contains(n)) {
        return Err(refuse(count, format!("use a number from 1 to {MAX_THREADS}")).into());
    }
    py.detach(|| start(n.unwrap_or(0)))?;
    Ok(())
}

/// A number of threads that was asked about; by default that of [`threads`].
pub(crate) fn thread_count(py: Python<'_>, count: Option<usize>) -> Result<usize, Failure> {
    match count {
        Some(count) if !(1..=MAX_THREADS).contains(&count) => {
            Err(refuse(count, format!("use a number from 1 to {MAX_THREADS}")).into())
        }
        Some(count) => Ok(count),
        None => threads(py),
    }
}

/// The number of threads that share each operation.
#[pyfunction]
pub(crate) fn threads(py: Python<'_>) -> Result<usize, Failure> {
    Ok(py.detach(current)?.current_num_threads())
}
