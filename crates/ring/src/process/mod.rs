//! The process to which a value belongs. A forked child has a copy of all that its parent holds: generators that would
//! draw the same, pools whose entries would be used twice, threads that do not run.
//!
//! Two signs distinguish a child from its parent.
//!
//! * Its *generation*: a word in a page that the kernel wipes in children (`MADV_WIPEONFORK`, Linux 4.14) and that a
//!   handler of `fork` sets to zero too. Reading it costs a load, so every draw of a generator reads it.
//! * Its *identity*, the number of the process, for systems without such a page and for children that no handler sees.
//!   Asking for it costs a system call, so bulk work asks now and then.
//!
//! Neither sign sees a copy that the system does not know about, above all the snapshot of a virtual machine.

#[cfg(feature = "std")]
pub(crate) mod fork;

use crate::RingError;

/// A process, as remembered by an object that must stay in one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    generation: u64,
    id: u32,
}

impl Process {
    /// The running process.
    pub fn current() -> Self {
        Self { generation: system::generation(), id: system::id() }
    }

    /// Whether this is the running process, by its generation: a load.
    #[inline]
    pub(crate) fn is_generation(self) -> bool {
        self.generation == system::generation()
    }

    /// Whether this is the running process, by both signs.
    pub fn is_current(self) -> bool {
        self == Self::current()
    }

    /// Refuses an object of another process than the running one.
    ///
    /// # Errors
    /// [`RingError::OtherProcess`] if this is not the running process.
    pub fn require_current(self, what: &'static str) -> Result<(), RingError> {
        let process = Self::current();
        if self == process {
            return Ok(());
        }
        Err(RingError::OtherProcess { what, owner: self.id, process: process.id })
    }

    /// The generation of the running process.
    #[cfg(feature = "std")]
    #[inline]
    pub(crate) fn current_generation() -> u64 {
        system::generation()
    }

    /// Its number.
    pub fn id(self) -> u32 {
        self.id
    }

    /// A number that distinguishes it from its relatives: never zero where there are processes.
    pub(crate) fn nonce(self) -> [u32; 2] {
        [self.id, self.generation as u32]
    }
}

#[cfg(all(feature = "std", unix))]
mod system {
    use core::ptr::{self, NonNull};
    use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

    /// The address of the generation, once a thread has asked for it.
    static MARKER: AtomicPtr<AtomicU64> = AtomicPtr::new(ptr::null_mut());
    /// The marker of systems that wipe no page: only the handler sets it to zero.
    static UNWIPED: AtomicU64 = AtomicU64::new(0);
    /// The number of generations that this process and its ancestors began.
    static BEGUN: AtomicU64 = AtomicU64::new(0);

    pub(super) fn id() -> u32 {
        std::process::id()
    }

    #[inline]
    pub(super) fn generation() -> u64 {
        let marker = MARKER.load(Ordering::Acquire);
        // SAFETY: the pointer is null or that of a marker, which is never freed once it is stored.
        match unsafe { marker.as_ref() }.map(|marker| marker.load(Ordering::Acquire)) {
            Some(generation) if generation != 0 => generation,
            _ => begin(),
        }
    }

    /// Makes the marker in the first process, and begins a generation in every process that finds none.
    #[cold]
    fn begin() -> u64 {
        if MARKER.load(Ordering::Acquire).is_null() {
            // No lock: one that another thread held would stay locked in a child.
            let marker = page::wiped().unwrap_or(NonNull::from(&UNWIPED));
            // SAFETY: the handler stores to an atomic, which is safe at any time after a fork.
            unsafe { libc::pthread_atfork(None, None, Some(after_fork)) };
            let stored = MARKER.compare_exchange(
                ptr::null_mut(),
                marker.as_ptr(),
                Ordering::AcqRel,
                Ordering::Acquire,
            );
            if stored.is_err() {
                page::free(marker);
            }
        }
        // SAFETY: it is stored by now, and never freed.
        let Some(marker) = (unsafe { MARKER.load(Ordering::Acquire).as_ref() }) else { return 0 };
        let next = BEGUN.fetch_add(1, Ordering::AcqRel) + 1;
        match marker.compare_exchange(0, next, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => next,
            Err(others) => others,
        }
    }

    extern "C" fn after_fork() {
        // SAFETY: as in `generation`.
        if let Some(marker) = unsafe { MARKER.load(Ordering::Acquire).as_ref() } {
            marker.store(0, Ordering::Release);
        }
    }

    #[cfg(target_os = "linux")]
    mod page {
        use super::{AtomicU64, NonNull, UNWIPED, ptr};

        /// Bytes to map: the kernel rounds them up to a page.
        const BYTES: usize = size_of::<AtomicU64>();

        /// A zero in a page that is zero again in every child; `None` on kernels before 4.14.
        pub(super) fn wiped() -> Option<NonNull<AtomicU64>> {
            let (access, kind) =
                (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            // SAFETY: a new mapping, anywhere.
            let page = unsafe { libc::mmap(ptr::null_mut(), BYTES, access, kind, -1, 0) };
            if page == libc::MAP_FAILED {
                return None;
            }
            // SAFETY: the mapping was made above and is this function's own.
            if unsafe { libc::madvise(page, BYTES, libc::MADV_WIPEONFORK) } != 0 {
                // SAFETY: likewise, and nothing points to it.
                unsafe { libc::munmap(page, BYTES) };
                return None;
            }
            NonNull::new(page.cast())
        }

        /// Frees a marker that was not stored.
        pub(super) fn free(marker: NonNull<AtomicU64>) {
            if marker != NonNull::from(&UNWIPED) {
                // SAFETY: `wiped` mapped it, and its only user gives it back.
                unsafe { libc::munmap(marker.as_ptr().cast(), BYTES) };
            }
        }
    }

    #[cfg(not(target_os = "linux"))]
    mod page {
        use super::{AtomicU64, NonNull};

        pub(super) fn wiped() -> Option<NonNull<AtomicU64>> {
            None
        }

        pub(super) fn free(_: NonNull<AtomicU64>) {}
    }
}

/// This target does not fork.
#[cfg(not(all(feature = "std", unix)))]
mod system {
    pub(super) fn id() -> u32 {
        1
    }

    #[inline]
    pub(super) fn generation() -> u64 {
        1
    }
}
