use std::fmt;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use keywright_ring::sampling::SecretRng;
use keywright_rlwe::{MAX_THREADS, threads};

use crate::error::require_owner;
use crate::shared::Shared;
use crate::{Metrics, PoolError, PoolFile, PoolOptions, WhenEmpty, ZeroKey, producer};

/// Most entries in memory.
const MAX_CAPACITY: usize = 1 << 24;

/// Encryptions of zero under one key at one level, made ahead of time, each returned once.
///
/// Every entry is in one place: being made, in the file, in memory, or with one caller. It moves between places under a
/// lock and is never copied.
pub struct EncryptionPool<K: ZeroKey> {
    shared: Arc<Shared<K>>,
    producers: Mutex<Vec<JoinHandle<()>>>,
    rng: Mutex<SecretRng>,
}

impl<K: ZeroKey> EncryptionPool<K> {
    /// An empty pool, whose threads begin to fill it at once.
    ///
    /// # Errors
    /// [`PoolError::Rlwe`] for a level that does not exist, [`PoolError::Range`] for a capacity or a number of threads
    /// outside its range, [`PoolError::Stopped`] for a pool that blocks and has no threads, [`PoolError::Threads`], and
    /// the errors of [`PoolFile::open`].
    pub fn new(key: K, options: PoolOptions, mut rng: SecretRng) -> Result<Self, PoolError> {
        key.parameters().require_level(options.level)?;
        let range = |what, value, min, max| {
            if (min..=max).contains(&value) {
                return Ok(());
            }
            Err(PoolError::Range { what, value: value as u64, min: min as u64, max: max as u64 })
        };
        range("the capacity of a pool", options.capacity, 1, MAX_CAPACITY)?;
        range("the number of threads of a pool", options.threads, 0, MAX_THREADS)?;
        if options.threads == 0 && options.when_empty == WhenEmpty::Block {
            return Err(PoolError::Stopped("a pool that blocks needs at least one"));
        }
        let file = match &options.file {
            Some(file) => Some(Mutex::new(PoolFile::open(file, &key, options.level, rng.split()?)?)),
            None => None,
        };
        let (level, capacity) = (options.level, options.capacity);
        let shared = Arc::new(Shared::new(key, level, capacity, file, options.when_empty));
        let pool = Self { shared, producers: Mutex::default(), rng: Mutex::new(rng) };
        for number in 0..options.threads {
            let rng = pool.split_rng()?;
            pool.shared.lock().alive += 1;
            match producer::start(pool.shared.clone(), rng, number) {
                Ok(handle) => pool.producers().push(handle),
                Err(error) => {
                    pool.shared.lock().alive -= 1;
                    let reason = error.to_string();
                    return Err(PoolError::Threads { number, requested: options.threads, reason });
                }
            }
        }
        Ok(pool)
    }

    fn producers(&self) -> MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.producers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn split_rng(&self) -> Result<SecretRng, PoolError> {
        Ok(self.rng.lock().unwrap_or_else(PoisonError::into_inner).split()?)
    }

    /// The key that encrypts.
    pub fn key(&self) -> &K {
        &self.shared.key
    }

    /// Level of its entries.
    pub fn level(&self) -> usize {
        self.shared.level
    }

    /// Its statistics and content.
    ///
    /// # Errors
    /// [`PoolError::Forked`].
    pub fn metrics(&self) -> Result<Metrics, PoolError> {
        require_owner(self.shared.process)?;
        let state = self.shared.lock();
        Ok(Metrics {
            capacity: self.shared.capacity,
            fill: state.entries.len(),
            made: state.made,
            taken: state.taken,
            hits: state.hits,
            failure: state.failure.as_ref().map(ToString::to_string),
        })
    }

    /// Most entries in memory.
    pub fn capacity(&self) -> usize {
        self.shared.capacity
    }

    /// Whether taking an entry now would make it, as work on the caller's own threads.
    ///
    /// # Errors
    /// [`PoolError::Forked`].
    pub fn makes_next(&self) -> Result<bool, PoolError> {
        require_owner(self.shared.process)?;
        Ok(self.shared.when_empty == WhenEmpty::Encrypt && self.shared.lock().entries.is_empty())
    }

    /// Unused entries in the file; `None` without one.
    ///
    /// # Errors
    /// [`PoolError::Forked`], and the errors of [`PoolFile::len`].
    pub fn in_file(&self) -> Result<Option<u64>, PoolError> {
        require_owner(self.shared.process)?;
        let Some(file) = &self.shared.file else { return Ok(None) };
        file.lock().unwrap_or_else(PoisonError::into_inner).len().map(Some)
    }

    /// Takes an encryption of zero; no other caller ever gets it. Add a message to it before sending it anywhere.
    ///
    /// # Errors
    /// [`PoolError::Forked`]; if there is none, [`PoolError::Empty`], [`PoolError::Producer`] or [`PoolError::Stopped`]
    /// as [`WhenEmpty`] requires.
    pub fn take(&self) -> Result<K::Zero, PoolError> {
        loop {
            if let Some(zero) = self.take_within(Duration::from_secs(3600))? {
                return Ok(zero);
            }
        }
    }

    /// The same, waiting at most this long; `None` after that.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub fn take_within(&self, patience: Duration) -> Result<Option<K::Zero>, PoolError> {
        require_owner(self.shared.process)?;
        let deadline = Instant::now() + patience;
        let mut waited = false;
        let mut state = self.shared.lock();
        loop {
            if let Some(zero) = state.entries.pop_front() {
                state.taken += 1;
                state.hits += u64::from(!waited);
                self.shared.room.notify_one();
                return Ok(Some(zero));
            }
            match self.shared.when_empty {
                WhenEmpty::Encrypt => {
                    state.taken += 1;
                    drop(state);
                    let mut rng = self.split_rng()?;
                    return Ok(Some(self.shared.key.encrypt_zero(self.shared.level, &mut rng)?));
                }
                WhenEmpty::Error => {
                    return Err(PoolError::Empty { made: state.made, taken: state.taken });
                }
                WhenEmpty::Block => {
                    if let Some(failure) = &state.failure {
                        return Err(PoolError::Producer(failure.clone()));
                    }
                    if state.alive == 0 {
                        return Err(PoolError::Stopped("it was closed"));
                    }
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Ok(None);
                    }
                    waited = true;
                    (state, _) =
                        self.shared.filled.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    /// Makes up to `count` entries now, on the threads of the current rayon pool, as far as there is room in memory;
    /// takes entries of the file first. Returns their number.
    ///
    /// # Errors
    /// [`PoolError::Forked`], and the errors of [`PoolFile::take`].
    pub fn fill(&self, count: usize) -> Result<usize, PoolError> {
        require_owner(self.shared.process)?;
        let shared = &*self.shared;
        let reserved = shared.reserve(&mut shared.lock(), count);
        let mut missing = reserved;
        loop {
            match producer::from_file(shared, missing) {
                Ok(entries) if entries.is_empty() => break,
                Ok(entries) => {
                    missing -= entries.len();
                    shared.put(entries);
                }
                Err(error) => {
                    shared.give_up(missing);
                    return Err(error);
                }
            }
        }
        let workers: Result<Vec<_>, _> = (0..threads().min(missing)).map(|_| self.split_rng()).collect();
        let workers = workers.inspect_err(|_| shared.give_up(missing))?;
        let next = Mutex::new(missing);
        let failure = Mutex::new(None);
        let produce = |mut rng| {
            while producer::count_down(&next) {
                match shared.key.encrypt_zero(shared.level, &mut rng) {
                    Ok(zero) => shared.put(vec![zero]),
                    Err(error) => {
                        shared.give_up(1);
                        *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                    }
                }
            }
        };
        if workers.len() > 1 {
            let produce = &produce;
            rayon::scope(|scope| workers.into_iter().for_each(|rng| scope.spawn(move |_| produce(rng))));
        } else {
            workers.into_iter().for_each(produce);
        }
        match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(error.into()),
            None => Ok(reserved),
        }
    }

    /// Ends the threads. Entries in memory, which no caller has seen, go to the file as far as it has room.
    ///
    /// # Errors
    /// [`PoolError::Forked`], and the errors of [`PoolFile::store`]; the threads have ended then too.
    pub fn close(&self) -> Result<(), PoolError> {
        require_owner(self.shared.process)?;
        self.end_threads();
        let entries: Vec<_> = mem::take(&mut self.shared.lock().entries).into();
        if let Some(file) = &self.shared.file
            && !entries.is_empty()
        {
            file.lock().unwrap_or_else(PoisonError::into_inner).store(&self.shared.key, &entries)?;
        }
        Ok(())
    }

    fn end_threads(&self) {
        self.shared.lock().closed = true;
        self.shared.room.notify_all();
        for producer in mem::take(&mut *self.producers()) {
            // A thread that panicked has ended too.
            let _ = producer.join();
        }
    }
}

impl<K: ZeroKey> Drop for EncryptionPool<K> {
    fn drop(&mut self) {
        if self.shared.process.is_current() {
            self.end_threads();
        } else {
            // The threads do not exist in a forked child, and a lock that one of them held is never released.
            mem::forget(mem::take(&mut self.producers));
        }
    }
}

impl<K: ZeroKey> fmt::Debug for EncryptionPool<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EncryptionPool(level {}, capacity {})", self.shared.level, self.shared.capacity)
    }
}
