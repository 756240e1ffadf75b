//! The background threads: they fill memory, from the file first, and then the file.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use keywright_ring::sampling::SecretRng;
use keywright_ring::start_thread;
use rayon::ThreadPoolBuilder;

use crate::shared::Shared;
use crate::{PoolError, ZeroKey};

/// Entries that go to or come from the file together, sharing the cost of a sync.
const BATCH: usize = 16;
/// Other processes may empty the file too: an idle thread checks at this interval.
const PATIENCE: Duration = Duration::from_secs(1);

/// Starts one thread.
pub(crate) fn start<K: ZeroKey>(
    shared: Arc<Shared<K>>,
    rng: SecretRng,
    number: usize,
) -> io::Result<JoinHandle<()>> {
    start_thread(Builder::new().name(format!("keywright-pool-{number}")), move || {
        let mut leaving = Leaving { shared: &shared, failure: None };
        // Loops over limbs must not use threads of other computations, so this thread is a pool of its own.
        let alone = ThreadPoolBuilder::new().num_threads(1).use_current_thread().build();
        if let Err(error) = run(&shared, rng) {
            leaving.failure = Some(error);
        }
        drop(alone);
    })
}

/// Reports the end of a thread, for any reason.
struct Leaving<'s, K: ZeroKey> {
    shared: &'s Shared<K>,
    failure: Option<PoolError>,
}

impl<K: ZeroKey> Drop for Leaving<'_, K> {
    fn drop(&mut self) {
        self.shared.leave(self.failure.take());
    }
}

fn run<K: ZeroKey>(shared: &Shared<K>, mut rng: SecretRng) -> Result<(), PoolError> {
    while let Some(reserved) = wait(shared) {
        if reserved == 0 {
            store(shared, &mut rng)?;
            continue;
        }
        let entries = from_file(shared, reserved).and_then(|mut stored| {
            if stored.is_empty() {
                stored.push(shared.key.encrypt_zero(shared.level, &mut rng)?);
            }
            Ok(stored)
        });
        match entries {
            Ok(entries) => {
                let unused = reserved - entries.len();
                shared.put(entries);
                shared.give_up(unused);
            }
            Err(error) => {
                shared.give_up(reserved);
                return Err(error);
            }
        }
    }
    Ok(())
}

/// Waits for work: room in memory, which it reserves, or 0 for room in the file. `None` if the pool is closed.
fn wait<K: ZeroKey>(shared: &Shared<K>) -> Option<usize> {
    loop {
        let mut state = shared.lock();
        if state.closed {
            return None;
        }
        let count = if shared.file.is_some() { BATCH } else { 1 };
        let reserved = shared.reserve(&mut state, count);
        if reserved > 0 {
            return Some(reserved);
        }
        if shared.file.is_some() {
            drop(state);
            if file_has_room(shared) {
                return Some(0);
            }
            state = shared.lock();
            if state.closed || state.entries.len() + state.pending < shared.capacity {
                continue;
            }
        }
        drop(shared.room.wait_timeout(state, PATIENCE).unwrap_or_else(PoisonError::into_inner));
    }
}

/// An unreadable file counts as full; a caller that takes from it gets the error.
fn file_has_room<K: ZeroKey>(shared: &Shared<K>) -> bool {
    shared.file.as_ref().is_some_and(|file| {
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        file.len().is_ok_and(|len| len < file.capacity())
    })
}

/// Makes a batch for the file. Ends early if memory has room again.
fn store<K: ZeroKey>(shared: &Shared<K>, rng: &mut SecretRng) -> Result<(), PoolError> {
    let Some(file) = &shared.file else { return Ok(()) };
    let mut batch = Vec::with_capacity(BATCH);
    while batch.len() < BATCH {
        let state = shared.lock();
        if state.closed || state.entries.len() + state.pending < shared.capacity {
            break;
        }
        drop(state);
        batch.push(shared.key.encrypt_zero(shared.level, rng)?);
    }
    if !batch.is_empty() {
        file.lock().unwrap_or_else(PoisonError::into_inner).store(&shared.key, &batch)?;
    }
    Ok(())
}

/// Up to `count` entries of the file, if there is one: a batch at most.
pub(crate) fn from_file<K: ZeroKey>(shared: &Shared<K>, count: usize) -> Result<Vec<K::Zero>, PoolError> {
    match &shared.file {
        Some(file) if count > 0 => {
            file.lock().unwrap_or_else(PoisonError::into_inner).take(&shared.key, count.min(BATCH))
        }
        _ => Ok(Vec::new()),
    }
}

/// Takes one from the remaining count, if any is left.
pub(crate) fn count_down(left: &Mutex<usize>) -> bool {
    let mut left = left.lock().unwrap_or_else(PoisonError::into_inner);
    let some = *left > 0;
    *left -= usize::from(some);
    some
}
