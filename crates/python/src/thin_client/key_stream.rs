use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use keywright_client::{Client, ClientError, KeyStream, Progress, SinkError};
use keywright_ring::{ForkMutex, Process};
use keywright_rlwe::KeySpec;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use zeroize::Zeroizing;

use crate::arguments::integers::integers;
use crate::classes::getters::getters;
use crate::errors::Failure;
use crate::parameters::keys::KeyParameters;
use crate::stored::not_pickled;
use crate::threads::compute_detached;

/// Bytes passed to `write` at once: little memory, and few calls.
const PIECE: usize = 1 << 20;

/// The keys of `Client.key_stream`, one after another, in the memory of a few polynomials. Each is an object of its
/// own, which `SwitchingKey.from_bytes` reads.
///
/// Thread safety: one thread at a time; another one gets RuntimeError while a key is being written.
#[pyclass(name = "ClientKeyStream", module = "keywright", frozen)]
pub(crate) struct PyClientKeyStream {
    client: Arc<ForkMutex<Client>>,
    /// None without keys.
    parameters: Option<KeyParameters>,
    specs: Vec<KeySpec>,
    session: Zeroizing<[u8; 32]>,
    sizes: Vec<u64>,
    next: AtomicUsize,
    /// Held while the place changes. No thread waits for it: its holder may wait for the interpreter, or call the
    /// waiting thread.
    moving: Mutex<()>,
    process: Process,
}

not_pickled!(PyClientKeyStream);

impl PyClientKeyStream {
    pub(crate) fn new(
        py: Python<'_>,
        client: Arc<ForkMutex<Client>>,
        parameters: Option<KeyParameters>,
        specs: Vec<KeySpec>,
        session: Zeroizing<[u8; 32]>,
    ) -> Result<Self, Failure> {
        let mut out = Self {
            client,
            parameters,
            specs,
            session,
            sizes: Vec::new(),
            next: AtomicUsize::new(0),
            moving: Mutex::new(()),
            process: Process::current(),
        };
        let stream = py.detach(|| out.stream(0))?;
        out.sizes =
            stream.iter().flat_map(|stream| (0..stream.count()).map(|i| stream.key_bytes(i))).collect();
        Ok(out)
    }

    /// The stream from key `next` on; `None` without keys. The client is free for other calls while keys are made.
    fn stream(&self, next: usize) -> Result<Option<KeyStream>, ClientError> {
        let Some(parameters) = &self.parameters else { return Ok(None) };
        let mut stream = self.client.lock()?.keys(parameters.rlwe(), &self.specs, &self.session)?;
        stream.skip_to(next)?;
        Ok(Some(stream))
    }

    /// Keeps other threads from changing the place.
    fn alone(&self) -> Result<MutexGuard<'_, ()>, Failure> {
        match self.moving.try_lock() {
            Ok(guard) => Ok(guard),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => {
                // In a child, perhaps by a thread of its parent, which does not return here.
                self.process.require_current("a stream with a key in progress")?;
                let busy = "a key of this stream is being written; continue after `write_next` has returned";
                Err(PyRuntimeError::new_err(busy).into())
            }
        }
    }
}

/// Passes pieces to a Python function.
struct Pieces<'a> {
    write: &'a Py<PyAny>,
    piece: Vec<u8>,
    /// The exception of the function.
    raised: Option<PyErr>,
}

impl Pieces<'_> {
    fn take(&mut self, bytes: &[u8]) -> Result<(), SinkError> {
        if self.piece.len() + bytes.len() > PIECE {
            self.flush()?;
        }
        self.piece.extend_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        let called = Python::attach(|py| {
            py.check_signals()?;
            self.write.call1(py, (PyBytes::new(py, &self.piece),))
        });
        self.piece.clear();
        called.map(|_| ()).map_err(|error| {
            self.raised = Some(error);
            SinkError("the write function raised an exception")
        })
    }
}

#[integers]
#[pymethods]
impl PyClientKeyStream {
    /// Number of keys.
    fn __len__(&self) -> usize {
        self.specs.len()
    }

    /// Resumes at key `index`: after those that arrived, or again at one that did not.
    ///
    /// Raises:
    ///     ParameterError: there are not that many keys.
    ///     RuntimeError: a key is being written.
    fn skip_to(&self, index: usize) -> Result<(), Failure> {
        if index > self.specs.len() {
            return Err(ClientError::Range {
                what: "key at which to resume",
                value: index as u64,
                min: 0,
                max: self.specs.len() as u64,
            }
            .into());
        }
        let _alone = self.alone()?;
        self.next.store(index, Ordering::Relaxed);
        Ok(())
    }

    /// Makes the next key and passes its bytes on as they are made, in pieces of at most a mebibyte.
    ///
    /// If it raises, the stream stays at this key, and the next call makes it again with the same bytes.
    ///
    /// Args:
    ///     write: takes the pieces, for example `file.write`. An exception from it ends the key.
    ///     progress: called now and then with the bytes of keys made so far and those of all keys.
    ///
    /// Returns:
    ///     False if no key was left.
    ///
    /// Raises:
    ///     RuntimeError: `write` or another thread calls it while a key is being written.
    #[pyo3(signature = (write, progress=None))]
    fn write_next(
        &self,
        py: Python<'_>,
        write: Py<PyAny>,
        progress: Option<Py<PyAny>>,
    ) -> Result<bool, Failure> {
        let mut pieces = Pieces { write: &write, piece: Vec::with_capacity(PIECE), raised: None };
        let mut told = None;
        let written = py.detach(|| -> Result<bool, Failure> {
            let _alone = self.alone()?;
            let next = self.next();
            if next == self.specs.len() {
                return Ok(false);
            }
            // Waits for the client here, not on the threads that its holder computes on.
            let Some(mut stream) = self.stream(next)? else { return Ok(false) };
            compute_detached(|| {
                let mut tell = |at: Progress| {
                    let Some(progress) = &progress else { return };
                    if let (None, Err(error)) =
                        (&told, Python::attach(|py| progress.call1(py, (at.bytes, at.total))))
                    {
                        told = Some(error);
                    }
                };
                stream.write_next(&mut |bytes: &[u8]| pieces.take(bytes), &mut tell)?;
                pieces.flush().map_err(ClientError::from)
            })?;
            self.next.store(next + 1, Ordering::Relaxed);
            Ok(true)
        });
        match pieces.raised.or(told) {
            Some(error) => Err(error.into()),
            None => written,
        }
    }

    fn __repr__(&self) -> String {
        format!("ClientKeyStream({} of {} keys, {} bytes)", self.next(), self.specs.len(), self.total_bytes())
    }
}

getters! { PyClientKeyStream, self;
    /// Index of the next key: the number of keys written or skipped.
    next: usize = self.next.load(Ordering::Relaxed);
    /// Bytes of every key as an object.
    sizes: Vec<u64> = self.sizes.clone();
    /// Bytes of all keys.
    total_bytes: u64 = self.sizes.iter().sum();
}
