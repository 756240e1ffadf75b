use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use keywright_rlwe::{
    EvaluationKeys, KeyLayout, KeySource, KeySpec, Parameters, RlweError, StoredKey, SwitchingKey,
};

use super::residency::{NoRoom, Residency};
use super::{KeyEntry, KeySetFile};
use crate::WireError;

/// The keys of a file, of which at most a given number of bytes is in memory.
///
/// The program's steps are given beforehand. A thread reads the keys of the next ones while those of the current one are in use; for
/// want of room the key leaves that is needed furthest in the future and not in use. Keys that are in use together have to fit.
pub struct KeyStore {
    shared: Arc<Shared>,
    reader: Option<JoinHandle<()>>,
}

/// What a store has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KeyStoreStatistics {
    /// Keys read.
    pub loads: usize,
    /// Of these, by the thread, ahead of their use.
    pub ahead: usize,
    /// Bytes of the keys read, in memory.
    pub bytes: usize,
    /// Most bytes of keys that were in memory at once.
    pub peak_bytes: usize,
    /// For how long operations waited for keys.
    pub waited: Duration,
}

struct Shared {
    file: Mutex<KeySetFile<BufReader<File>>>,
    entries: Vec<KeyEntry>,
    budget: usize,
    state: Mutex<State>,
    /// A key was read, or left.
    changed: Condvar,
}

struct State {
    residency: Residency,
    keys: BTreeMap<usize, Arc<SwitchingKey>>,
    /// Admitted, not yet read.
    loading: BTreeSet<usize>,
    /// The thread does not try these again; an operation that needs one says why it cannot be read.
    failed: BTreeSet<usize>,
    statistics: KeyStoreStatistics,
    stopping: bool,
}

impl KeyStore {
    /// Opens a file for a program, and begins to read.
    ///
    /// Args: `steps` are the keys that each step of the program uses; those that the file lacks are left out. The program may be run any
    /// number of times. `budget` is in bytes.
    ///
    /// # Errors
    /// As [`KeySetFile::open`]; [`WireError::Io`] if no thread can be started.
    pub fn open(
        path: impl AsRef<Path>,
        parameters: &Parameters,
        steps: &[Vec<KeySpec>],
        budget: usize,
    ) -> Result<Self, WireError> {
        let file = KeySetFile::open(path, parameters)?;
        let entries = file.entries().to_vec();
        let sizes = entries
            .iter()
            .map(|entry| Ok(KeyLayout::new(parameters, entry.spec.clone())?.bytes))
            .collect::<Result<_, RlweError>>()?;
        let place = |spec: &KeySpec| entries.iter().position(|entry| entry.spec == *spec);
        let program: Vec<Vec<usize>> =
            steps.iter().map(|step| step.iter().filter_map(place).collect()).collect();
        let state = State {
            residency: Residency::new(sizes, &program, budget),
            keys: BTreeMap::new(),
            loading: BTreeSet::new(),
            failed: BTreeSet::new(),
            statistics: KeyStoreStatistics::default(),
            stopping: false,
        };
        let shared = Arc::new(Shared {
            file: Mutex::new(file),
            entries,
            budget,
            state: Mutex::new(state),
            changed: Condvar::new(),
        });
        let reader = shared.clone();
        let reader = std::thread::Builder::new().name("keys".into()).spawn(move || reader.read_ahead())?;
        Ok(Self { shared, reader: Some(reader) })
    }

    /// The keys of the file, in the order in which they are stored.
    pub fn entries(&self) -> &[KeyEntry] {
        &self.shared.entries
    }

    /// A set of all keys of the file, each read when it is used.
    ///
    /// # Errors
    /// As [`EvaluationKeys::insert`].
    pub fn keys(self: &Arc<Self>, parameters: &Parameters) -> Result<EvaluationKeys, RlweError> {
        let mut keys = EvaluationKeys::new(parameters);
        for (place, entry) in self.entries().iter().enumerate() {
            keys.insert(StoredKey::in_source(parameters, entry.spec.clone(), self.clone(), place)?)?;
        }
        Ok(keys)
    }

    /// What it has done so far.
    pub fn statistics(&self) -> KeyStoreStatistics {
        self.shared.lock().statistics
    }
}

impl KeySource for KeyStore {
    fn load(&self, place: usize) -> Result<Arc<SwitchingKey>, RlweError> {
        self.shared.load(place)
    }
}

impl Drop for KeyStore {
    fn drop(&mut self) {
        self.shared.lock().stopping = true;
        self.shared.changed.notify_all();
        if let Some(reader) = self.reader.take() {
            // Its panic, if any, has nothing to tell any more.
            let _ = reader.join();
        }
    }
}

impl fmt::Debug for KeyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "KeyStore({} keys, at most {} bytes in memory)",
            self.shared.entries.len(),
            self.shared.budget
        )
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self, place: usize) -> Result<Arc<SwitchingKey>, RlweError> {
        let read = self.file.lock().unwrap_or_else(PoisonError::into_inner).read(place);
        read.map(Arc::new).map_err(|error| {
            let (element, level) = (self.entries[place].spec.element, self.entries[place].spec.level);
            RlweError::KeySource { element, level, reason: error.to_string() }
        })
    }

    fn load(&self, place: usize) -> Result<Arc<SwitchingKey>, RlweError> {
        let start = Instant::now();
        let mut state = self.lock();
        state.residency.advance(place);
        // The thread may go on from here.
        self.changed.notify_all();
        loop {
            if let Some(key) = state.keys.get(&place).cloned() {
                state.statistics.waited += start.elapsed();
                return Ok(key);
            }
            if !state.loading.contains(&place) {
                match state.admit(place, false) {
                    Ok(()) => break,
                    // What is being read may leave again as soon as it is there.
                    Err(_) if !state.loading.is_empty() => {}
                    Err(NoRoom::InUse(needed)) => {
                        return Err(RlweError::KeyMemory { needed, budget: self.budget });
                    }
                    Err(NoRoom::Sooner) => {}
                }
            }
            state = self.wait(state);
        }
        drop(state);
        let read = self.read(place);
        let mut state = self.lock();
        let result = state.loaded(place, read);
        state.statistics.waited += start.elapsed();
        drop(state);
        self.changed.notify_all();
        result
    }

    /// Reads the keys of coming steps until the store is dropped.
    fn read_ahead(&self) {
        let mut state = self.lock();
        while !state.stopping {
            let next = state.residency.missing().filter(|place| !state.failed.contains(place));
            match next {
                Some(place) if state.admit(place, true).is_ok() => {
                    drop(state);
                    let read = self.read(place);
                    state = self.lock();
                    if state.loaded(place, read).is_ok() {
                        state.statistics.ahead += 1;
                    } else {
                        state.failed.insert(place);
                    }
                    self.changed.notify_all();
                }
                _ => state = self.wait(state),
            }
        }
    }
}

impl State {
    fn admit(&mut self, place: usize, ahead: bool) -> Result<(), NoRoom> {
        let (keys, loading) = (&self.keys, &self.loading);
        let in_use = |key: usize| {
            loading.contains(&key) || keys.get(&key).is_some_and(|key| Arc::strong_count(key) > 1)
        };
        for leaving in self.residency.admit(place, in_use, ahead)? {
            self.keys.remove(&leaving);
        }
        self.loading.insert(place);
        self.statistics.peak_bytes = self.statistics.peak_bytes.max(self.residency.used());
        Ok(())
    }

    fn loaded(
        &mut self,
        place: usize,
        read: Result<Arc<SwitchingKey>, RlweError>,
    ) -> Result<Arc<SwitchingKey>, RlweError> {
        self.loading.remove(&place);
        match read {
            Ok(key) => {
                self.statistics.loads += 1;
                self.statistics.bytes += self.residency.size(place);
                self.keys.insert(place, key.clone());
                Ok(key)
            }
            Err(error) => {
                self.residency.withdraw(place);
                Err(error)
            }
        }
    }
}
