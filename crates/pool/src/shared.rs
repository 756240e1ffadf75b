//! The state that callers and background threads share: entries in memory, their count and the file.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use keywright_ring::Process;

use crate::{PoolError, PoolFile, WhenEmpty, ZeroKey};

/// The state of a pool.
pub(crate) struct Shared<K: ZeroKey> {
    pub(crate) key: K,
    pub(crate) level: usize,
    pub(crate) capacity: usize,
    pub(crate) file: Option<Mutex<PoolFile>>,
    pub(crate) when_empty: WhenEmpty,
    pub(crate) process: Process,
    state: Mutex<State<K>>,
    /// Signals that an entry was taken, or the pool closed.
    pub(crate) room: Condvar,
    /// Signals that an entry was put in, or a thread ended.
    pub(crate) filled: Condvar,
}

/// # Invariant
/// `entries.len() + pending <= capacity`.
pub(crate) struct State<K: ZeroKey> {
    pub(crate) entries: VecDeque<K::Zero>,
    /// Entries being made for memory.
    pub(crate) pending: usize,
    pub(crate) closed: bool,
    /// Running background threads.
    pub(crate) alive: usize,
    pub(crate) failure: Option<Arc<PoolError>>,
    pub(crate) made: u64,
    pub(crate) taken: u64,
    pub(crate) hits: u64,
}

impl<K: ZeroKey> Shared<K> {
    /// An empty pool of this process, without threads.
    pub(crate) fn new(
        key: K,
        level: usize,
        capacity: usize,
        file: Option<Mutex<PoolFile>>,
        when_empty: WhenEmpty,
    ) -> Self {
        let state = State {
            entries: VecDeque::new(),
            pending: 0,
            closed: false,
            alive: 0,
            failure: None,
            made: 0,
            taken: 0,
            hits: 0,
        };
        Self {
            key,
            level,
            capacity,
            file,
            when_empty,
            process: Process::current(),
            state: Mutex::new(state),
            room: Condvar::new(),
            filled: Condvar::new(),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts entries that were pending into memory.
    pub(crate) fn put(&self, entries: Vec<K::Zero>) {
        let mut state = self.lock();
        state.pending -= entries.len();
        state.made += entries.len() as u64;
        state.entries.extend(entries);
        self.filled.notify_all();
    }

    /// Cancels pending entries.
    pub(crate) fn give_up(&self, count: usize) {
        self.lock().pending -= count;
        self.room.notify_all();
    }

    /// Records the end of a background thread.
    pub(crate) fn leave(&self, failure: Option<PoolError>) {
        let mut state = self.lock();
        state.alive -= 1;
        if let Some(failure) = failure {
            state.failure.get_or_insert(Arc::new(failure));
        }
        self.filled.notify_all();
    }

    /// Reserves room for up to `count` entries.
    pub(crate) fn reserve(&self, state: &mut State<K>, count: usize) -> usize {
        let reserved = count.min(self.capacity - state.entries.len() - state.pending);
        state.pending += reserved;
        reserved
    }
}
