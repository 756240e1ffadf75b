//! State that threads share, in processes that fork. A child has one thread: a lock that another thread of its parent
//! held stays locked in it for ever, and a value that another thread was making is never finished.

use alloc::boxed::Box;
use core::marker::PhantomData;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;

use crate::{Process, RingError};

/// A mutex that does not wait for threads of another process. A child may lock it unless a thread of its parent held it
/// at the fork.
///
/// A thread must not fork while it holds this mutex. A panic while it is locked leaves the value as it is.
#[derive(Debug)]
pub struct ForkMutex<T> {
    /// The generation of the process that last inspected it, and what was seen: see the constants.
    state: AtomicU64,
    owner: Process,
    value: Mutex<T>,
}

/// Its holder, if any, runs in this process.
const OPEN: u64 = 0;
/// A thread of this process is inspecting it.
const ASKED: u64 = 1;
/// Its holder does not run in this process.
const LOST: u64 = 2;
/// Bits of the generations above these states.
const SHIFT: u32 = 2;

impl<T> ForkMutex<T> {
    /// The generation of this process.
    pub fn new(value: T) -> Self {
        let owner = Process::current();
        let state = AtomicU64::new(Process::current_generation() << SHIFT | OPEN);
        Self { state, owner, value: Mutex::new(value) }
    }

    /// Locks it, and passes the value to one thread at a time.
    ///
    /// # Errors
    /// [`RingError::OtherProcess`] in a child whose parent's thread holds the lock.
    pub fn lock(&self) -> Result<MutexGuard<'_, T>, RingError> {
        let here = Process::current_generation() << SHIFT;
        loop {
            match self.state.load(Ordering::Acquire) {
                state if state == here | OPEN => {
                    return Ok(self.value.lock().unwrap_or_else(PoisonError::into_inner));
                }
                state if state == here | ASKED => thread::yield_now(),
                state if state == here | LOST => {
                    let what = "an object that another thread was using when it forked";
                    let (owner, process) = (self.owner.id(), Process::current().id());
                    return Err(RingError::OtherProcess { what, owner, process });
                }
                before => {
                    if self.replace(before, here | ASKED) {
                        let locked = match self.value.try_lock() {
                            Ok(guard) => Some(guard),
                            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
                            Err(TryLockError::WouldBlock) => None,
                        };
                        let lock_state = if locked.is_some() { OPEN } else { LOST };
                        self.state.store(here | lock_state, Ordering::Release);
                        if let Some(guard) = locked {
                            return Ok(guard);
                        }
                    }
                }
            }
        }
    }

    fn replace(&self, before: u64, after: u64) -> bool {
        self.state.compare_exchange(before, after, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

impl<T: Default> Default for ForkMutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

/// A value that every process makes for itself at first use. The parent's value stays unchanged, in memory that both
/// share.
pub struct PerProcess<T: 'static> {
    place: AtomicPtr<(u64, T)>,
    make: fn() -> T,
}

impl<T: Send + Sync> PerProcess<T> {
    /// Makes the value by a function that takes no lock. Two threads that ask at once may both call it.
    pub const fn new(make: fn() -> T) -> Self {
        Self { place: AtomicPtr::new(ptr::null_mut()), make }
    }

    /// The value of this process.
    pub fn get(&'static self) -> &'static T {
        let generation = Process::current_generation();
        let mut seen = self.place.load(Ordering::Acquire);
        loop {
            // SAFETY: null, or from `Box::into_raw` below and never freed.
            match unsafe { seen.as_ref() } {
                Some((of, value)) if *of == generation => return value,
                _ => {}
            }
            let fresh = Box::into_raw(Box::new((generation, (self.make)())));
            match self.place.compare_exchange(seen, fresh, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => seen = fresh,
                Err(other) => {
                    // SAFETY: made above, and no other thread has seen it.
                    drop(unsafe { Box::from_raw(fresh) });
                    seen = other;
                }
            }
        }
    }
}

/// A value that is made at first use. No thread waits for another: two that ask at once may both make one, and one of
/// the two is kept.
pub struct RaceOnce<T> {
    place: AtomicPtr<T>,
    value: PhantomData<T>,
}

impl<T: Send + Sync> RaceOnce<T> {
    /// An empty cell.
    pub const fn new() -> Self {
        Self { place: AtomicPtr::new(ptr::null_mut()), value: PhantomData }
    }

    /// The value; `make` makes it if there is none.
    #[inline]
    pub fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        // SAFETY: null, or stored by `init` and not freed before `self` is.
        match unsafe { self.place.load(Ordering::Acquire).as_ref() } {
            Some(value) => value,
            None => self.init(make()),
        }
    }

    #[cold]
    fn init(&self, value: T) -> &T {
        let fresh = Box::into_raw(Box::new(value));
        let kept =
            match self.place.compare_exchange(ptr::null_mut(), fresh, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => fresh,
                Err(other) => {
                    // SAFETY: made above, and no other thread has seen it.
                    drop(unsafe { Box::from_raw(fresh) });
                    other
                }
            };
        // SAFETY: stored, and not freed before `self` is.
        unsafe { &*kept }
    }
}

impl<T: Send + Sync> Default for RaceOnce<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Drop for RaceOnce<T> {
    fn drop(&mut self) {
        let place = *self.place.get_mut();
        if !place.is_null() {
            // SAFETY: from `Box::into_raw`, and nothing refers to it any more.
            drop(unsafe { Box::from_raw(place) });
        }
    }
}
