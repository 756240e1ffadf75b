use alloc::collections::{BTreeMap, BTreeSet, VecDeque, btree_map};
use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use std::collections::{HashMap, hash_map};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle, ThreadId};
use std::time::{Duration, Instant};

use keywright_ring::{Process, start_thread};

use super::KeyLoader;
use super::schedule::{NoRoom, Residency, share};
use crate::parallel::in_pool;
use crate::{
    EvaluationKeys, KeyLayout, KeySource, KeySpec, LoadedKey, Parameters, RlweError, StoredKey, SwitchingKey,
};

/// The interval at which a waiting caller is asked whether it still waits.
const PATIENCE: Duration = Duration::from_millis(50);

/// Keys of a loader, of which at most a given number of bytes is in memory.
pub struct KeyStore {
    shared: Arc<Shared>,
    maker: Option<JoinHandle<()>>,
}

/// Statistics of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KeyStoreStatistics {
    /// Keys read or derived.
    pub loads: usize,
    /// Those of them made before an operation asked for them.
    pub ahead: usize,
    /// Bytes of these keys in memory.
    pub bytes: usize,
    /// Peak bytes of keys in memory, including those that the loader holds.
    pub peak_bytes: usize,
    /// The time that operations waited for keys.
    pub waited: Duration,
}

struct Shared {
    layouts: Vec<Arc<KeyLayout>>,
    budget: usize,
    /// Bytes that the loader holds.
    held: usize,
    /// The process that has the thread.
    process: Process,
    state: Mutex<State>,
    /// Signals that a key was made, returned or requested, or that a turn ended or was interrupted.
    changed: Condvar,
}

struct State {
    residency: Residency,
    keys: BTreeMap<usize, Arc<SwitchingKey>>,
    /// Admitted keys that are not made yet.
    loading: BTreeSet<usize>,
    /// Those of them that operations wait for and no thread makes yet.
    requests: VecDeque<usize>,
    /// How often each key is lent, and how many keys are lent to each thread.
    leases: BTreeMap<usize, usize>,
    borrowers: HashMap<ThreadId, usize>,
    /// Operations that wait for memory: no key is made ahead of its use meanwhile.
    waiting: usize,
    /// Keys that the thread does not retry; an operation that needs one does.
    failed: BTreeMap<usize, RlweError>,
    statistics: KeyStoreStatistics,
    /// Whether an operation has access, and whether it was interrupted.
    taken: bool,
    interrupted: bool,
    stopping: bool,
    ended: bool,
}

/// Exclusive access of one of several operations, from [`KeyStore::access`]. Drop it at the end.
pub struct StoreAccess<'s>(&'s Shared);

impl StoreAccess<'_> {
    /// Ends the operation: requests for keys, and waiting for them, fail with [`RlweError::Interrupted`] until
    /// this is dropped.
    pub fn interrupt(&self) {
        self.0.lock().interrupted = true;
        self.0.changed.notify_all();
    }
}

impl Drop for StoreAccess<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        (state.taken, state.interrupted) = (false, false);
        drop(state);
        self.0.changed.notify_all();
    }
}

/// A lent key, returned when this is dropped.
struct Lease {
    shared: Arc<Shared>,
    place: usize,
    thread: ThreadId,
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.shared.lock().give_back(self.place, self.thread);
        self.shared.changed.notify_all();
    }
}

impl KeyStore {
    /// Begins to make keys for a program.
    ///
    /// Args: `steps` are the keys that each step of the program uses; those that the loader lacks are ignored. The
    /// program may run any number of times. `budget` is in bytes, and includes what the loader holds.
    ///
    /// # Errors
    /// [`RlweError::KeyMemory`] for a budget below the size of some key; [`RlweError::Thread`] if no thread can be
    /// started.
    pub fn new(
        mut loader: impl KeyLoader + 'static,
        steps: &[Vec<KeySpec>],
        budget: usize,
    ) -> Result<Self, RlweError> {
        let layouts = loader.layouts().to_vec();
        let (held, joined) = (loader.held_bytes(), !loader.calls_back());
        if let Some(largest) = layouts.iter().max_by_key(|layout| layout.bytes)
            && held + largest.bytes > budget
        {
            return Err(refusal(largest, held + largest.bytes, budget));
        }
        let places: BTreeMap<_, usize> =
            layouts.iter().enumerate().map(|(place, layout)| (key_of(&layout.spec), place)).collect();
        let program: Vec<Vec<usize>> = steps
            .iter()
            .map(|step| step.iter().filter_map(|spec| places.get(&key_of(spec)).copied()).collect())
            .collect();
        let sizes = layouts.iter().map(|layout| layout.bytes).collect();
        let state = State {
            residency: Residency::new(sizes, &program, held, budget),
            keys: BTreeMap::new(),
            loading: BTreeSet::new(),
            requests: VecDeque::new(),
            leases: BTreeMap::new(),
            borrowers: HashMap::new(),
            waiting: 0,
            failed: BTreeMap::new(),
            statistics: KeyStoreStatistics { peak_bytes: held, ..KeyStoreStatistics::default() },
            taken: false,
            interrupted: false,
            stopping: false,
            ended: false,
        };
        let shared = Arc::new(Shared {
            layouts,
            budget,
            held,
            process: Process::current(),
            state: Mutex::new(state),
            changed: Condvar::new(),
        });
        let maker = shared.clone();
        let work = move || {
            let _ended = Ended(&maker);
            maker.make_keys(&mut loader);
        };
        let maker = start_thread(thread::Builder::new().name("keys".into()), work)
            .map_err(|error| RlweError::Thread(error.to_string()))?;
        Ok(Self { shared, maker: joined.then_some(maker) })
    }

    /// A set of all keys of the loader, each made at use.
    ///
    /// # Errors
    /// As [`EvaluationKeys::insert`].
    pub fn keys(self: &Arc<Self>, parameters: &Parameters) -> Result<EvaluationKeys, RlweError> {
        let mut keys = EvaluationKeys::new(parameters);
        for (place, layout) in self.shared.layouts.iter().enumerate() {
            keys.insert(StoredKey::in_source(layout.clone(), self.clone(), place))?;
        }
        Ok(keys)
    }

    /// Its statistics.
    ///
    /// # Errors
    /// [`RlweError::Ring`] in a forked child.
    pub fn statistics(&self) -> Result<KeyStoreStatistics, RlweError> {
        self.shared.require_process()?;
        Ok(self.shared.lock().statistics)
    }

    /// Waits until no other operation uses this store. Operations share the store and the threads of a pool. Call it
    /// outside of the pool: then no operation waits for another there. While it waits, it asks `stop` again and again.
    ///
    /// # Errors
    /// [`RlweError::Interrupted`] once `stop` says so; [`RlweError::Ring`] in a forked child.
    pub fn access(&self, mut stop: impl FnMut() -> bool) -> Result<StoreAccess<'_>, RlweError> {
        let shared = &*self.shared;
        shared.require_process()?;
        let mut state = shared.lock();
        while state.taken {
            let waited = shared.changed.wait_timeout(state, PATIENCE).unwrap_or_else(PoisonError::into_inner);
            drop(waited);
            if stop() {
                return Err(RlweError::Interrupted);
            }
            state = shared.lock();
        }
        state.taken = true;
        Ok(StoreAccess(shared))
    }
}

/// The number that distinguishes keys of one store.
fn key_of(spec: &KeySpec) -> (Option<u32>, crate::KeyElement, usize, usize, &[usize], bool) {
    (spec.subring, spec.element, spec.level, spec.alpha, &spec.special, spec.seeded)
}

fn refusal(layout: &KeyLayout, needed: usize, budget: usize) -> RlweError {
    RlweError::KeyMemory { element: layout.spec.element, level: layout.spec.level, needed, budget }
}

impl KeySource for KeyStore {
    fn load(&self, places: &[usize]) -> Result<Vec<LoadedKey>, RlweError> {
        Shared::load(&self.shared, places)
    }
}

impl Drop for KeyStore {
    fn drop(&mut self) {
        if !self.shared.process.is_current() {
            return;
        }
        self.shared.lock().stopping = true;
        self.shared.changed.notify_all();
        if let Some(maker) = self.maker.take() {
            // Its panic, if any, is of no further interest.
            let _ = maker.join();
        }
    }
}

impl fmt::Debug for KeyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "KeyStore({} keys, at most {} bytes in memory)",
            self.shared.layouts.len(),
            self.shared.budget
        )
    }
}

/// Tells operations that no more keys are made.
struct Ended<'s>(&'s Shared);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.lock().ended = true;
        self.0.changed.notify_all();
    }
}

impl Shared {
    /// A forked child lacks the thread, and may have a lock that no thread opens.
    fn require_process(&self) -> Result<(), RlweError> {
        Ok(self.process.require_current("a store of keys")?)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    fn gone(&self, place: usize, reason: &str) -> RlweError {
        let KeySpec { element, level, .. } = self.layouts[place].spec;
        RlweError::KeySource { element, level, reason: reason.into() }
    }

    fn load(shared: &Arc<Self>, places: &[usize]) -> Result<Vec<LoadedKey>, RlweError> {
        let Some(&first) = places.first() else { return Ok(Vec::new()) };
        shared.require_process()?;
        let (start, thread) = (Instant::now(), thread::current().id());
        let room = shared.budget - shared.held;
        let sizes = places.iter().map(|&place| shared.layouts[place].bytes);
        let places = &places[..share(sizes, room)];
        let mut state = shared.lock();
        state.residency.advance(first);
        // The thread may continue from here.
        shared.changed.notify_all();
        state = shared.reserve_first(state, first, thread)?;
        let mut reserved = 1;
        for &place in &places[1..] {
            state.residency.advance(place);
            if !state.reserve(place, thread, true) {
                break;
            }
            reserved += 1;
        }
        // The thread knows what is wanted.
        shared.changed.notify_all();
        let places = &places[..reserved];
        let failure = loop {
            let missing = places.iter().copied().find(|place| !state.keys.contains_key(place));
            let Some(place) = missing else { break None };
            if let Some((_, error)) = places.iter().find_map(|place| state.failed.get_key_value(place)) {
                break Some(error.clone());
            }
            if state.interrupted {
                break Some(RlweError::Interrupted);
            }
            if state.ended {
                break Some(shared.gone(place, "the thread that makes keys has ended"));
            }
            state = shared.wait(state);
        };
        state.statistics.waited += start.elapsed();
        if let Some(error) = failure {
            places.iter().for_each(|&place| state.give_back(place, thread));
            drop(state);
            shared.changed.notify_all();
            return Err(error);
        }
        let keys: Vec<_> = places.iter().filter_map(|place| state.keys.get(place).cloned()).collect();
        drop(state);
        let lease = |place| Lease { shared: shared.clone(), place, thread };
        Ok(keys.into_iter().zip(places).map(|(key, &place)| LoadedKey::leased(key, lease(place))).collect())
    }

    /// Reserves a key, and waits for memory where that is safe.
    fn reserve_first<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        place: usize,
        thread: ThreadId,
    ) -> Result<MutexGuard<'a, State>, RlweError> {
        let layout = &self.layouts[place];
        while state.interrupted || !state.reserve(place, thread, false) {
            if state.interrupted {
                return Err(RlweError::Interrupted);
            }
            let lent = state.residency.held_bytes(|key| state.leases.contains_key(&key));
            let needs_others = lent + layout.bytes > self.budget;
            let may_wait = !state.borrowers.contains_key(&thread) && !in_pool();
            if needs_others && !may_wait {
                return Err(refusal(layout, lent + layout.bytes, self.budget));
            }
            if state.ended {
                return Err(self.gone(place, "the thread that makes keys has ended"));
            }
            state.waiting += 1;
            state = self.wait(state);
            state.waiting -= 1;
        }
        Ok(state)
    }

    /// Makes the keys that operations wait for, then those of coming steps, until the store is dropped.
    fn make_keys(&self, loader: &mut dyn KeyLoader) {
        let batch = loader.batch().max(1);
        let mut state = self.lock();
        while !state.stopping {
            let mut places: Vec<usize> = Vec::new();
            while places.len() < batch
                && let Some(place) = state.requests.pop_front()
            {
                places.push(place);
            }
            let asked = places.len();
            while places.len() < batch
                && let Some(place) = state.admit_ahead()
            {
                places.push(place);
            }
            if places.is_empty() {
                state = self.wait(state);
                continue;
            }
            drop(state);
            // A finished key may be evicted and requested again before the others are finished.
            let mut left: BTreeSet<usize> = places.iter().copied().collect();
            let mut each = |place, key| {
                if left.remove(&place) {
                    self.lock().insert(place, key, !places[..asked].contains(&place));
                    self.changed.notify_all();
                }
            };
            let outcome = loader.make(&places, &mut each, &|| self.lock().stopping);
            state = self.lock();
            for place in left {
                let missing = || self.gone(place, "it was not made");
                state.loading.remove(&place);
                state.residency.withdraw(place);
                state.failed.insert(place, outcome.as_ref().err().cloned().unwrap_or_else(missing));
            }
            self.changed.notify_all();
        }
    }
}

impl State {
    /// Lends a key, or requests it if it is not in memory; `false` if there is no room. With `ahead`, no key that is
    /// needed as soon is evicted.
    fn reserve(&mut self, place: usize, thread: ThreadId, ahead: bool) -> bool {
        if !self.residency.is_resident(place) {
            if !self.admit(place, ahead) {
                return false;
            }
            self.failed.remove(&place);
            self.requests.push_back(place);
        }
        *self.leases.entry(place).or_default() += 1;
        *self.borrowers.entry(thread).or_default() += 1;
        true
    }

    fn give_back(&mut self, place: usize, thread: ThreadId) {
        if let btree_map::Entry::Occupied(mut lent) = self.leases.entry(place) {
            *lent.get_mut() -= 1;
            if *lent.get() == 0 {
                lent.remove();
            }
        }
        if let hash_map::Entry::Occupied(mut borrowed) = self.borrowers.entry(thread) {
            *borrowed.get_mut() -= 1;
            if *borrowed.get() == 0 {
                borrowed.remove();
            }
        }
    }

    /// Makes room for a key that is made ahead of its use, and returns its place.
    fn admit_ahead(&mut self) -> Option<usize> {
        if self.waiting > 0 {
            return None;
        }
        let place = self.residency.missing(|place| self.failed.contains_key(&place))?;
        self.admit(place, true).then_some(place)
    }

    fn admit(&mut self, place: usize, ahead: bool) -> bool {
        let is_held = |key: usize| self.loading.contains(&key) || self.leases.contains_key(&key);
        let leaving: Result<_, NoRoom> = self.residency.admit(place, is_held, ahead);
        let Ok(leaving) = leaving else { return false };
        for leaving in leaving {
            self.keys.remove(&leaving);
        }
        self.loading.insert(place);
        self.statistics.peak_bytes = self.statistics.peak_bytes.max(self.residency.used());
        true
    }

    fn insert(&mut self, place: usize, key: SwitchingKey, ahead: bool) {
        self.loading.remove(&place);
        self.statistics.loads += 1;
        self.statistics.ahead += usize::from(ahead);
        self.statistics.bytes += self.residency.size(place);
        self.keys.insert(place, Arc::new(key));
    }
}
