//! Aligned, recycled memory for limbs.
//!
//! A ciphertext at `N = 2^16` takes tens of megabytes. Page faults on that much fresh memory cost more than the
//! arithmetic that fills it. A dropped buffer therefore goes to a bounded cache, and a large one asks for huge pages. A
//! cached buffer serves lengths down to four fifths of its own, or closer ones if it is long, so a computation that
//! descends the levels keeps using the same memory.
//!
//! The cache is bounded by use: when idle and used buffers together exceed the peak of used bytes by more than
//! [`recycled_bytes`] of that peak, the buffer that has been idle longest is freed. The contents of a recycled buffer
//! are unspecified but initialised. Holders of secrets wipe their buffers before dropping them ([`zeroize::Zeroize`]).

use alloc::alloc::{Layout, handle_alloc_error};
#[cfg(not(feature = "std"))]
use alloc::alloc::{alloc, dealloc};
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;
use zeroize::Zeroize;

/// Buffers come from the system: [`crate::Reserve`] is for allocations that cannot report a lack of memory.
#[cfg(feature = "std")]
unsafe fn alloc(layout: Layout) -> *mut u8 {
    use std::alloc::{GlobalAlloc, System};
    // SAFETY: the caller's promise, that the layout has a size.
    unsafe { System.alloc(layout) }
}

#[cfg(feature = "std")]
unsafe fn dealloc(pointer: *mut u8, layout: Layout) {
    use std::alloc::{GlobalAlloc, System};
    // SAFETY: the caller's promise, that `alloc` made it with the layout.
    unsafe { System.dealloc(pointer, layout) };
}

const CACHE_LINE: usize = 64;
const HUGE_PAGE: usize = 2 << 20;

/// A fixed-length slice of words, aligned to a cache line, or to a huge page if it is larger than one.
///
/// # Invariant
/// `pointer` addresses `capacity` initialised words, allocated with `layout(capacity)` and owned by this value;
/// `length <= capacity`.
pub struct Buffer {
    pointer: NonNull<u64>,
    length: usize,
    capacity: usize,
}

// SAFETY: the buffer owns its memory exclusively, like a Box<[u64]>.
unsafe impl Send for Buffer {}
// SAFETY: shared access only reads.
unsafe impl Sync for Buffer {}

fn layout(capacity: usize) -> Layout {
    let bytes = capacity.saturating_mul(8);
    let align = if bytes >= HUGE_PAGE { HUGE_PAGE } else { CACHE_LINE };
    match Layout::from_size_align(bytes.max(8), align) {
        Ok(layout) => layout,
        // A length that does not fit the address space cannot be allocated either.
        Err(_) => handle_alloc_error(Layout::new::<u64>()),
    }
}

/// There is no memory for a buffer: the payload of the panic that [`Buffer`] raises. A boundary that catches it
/// (`std::panic::catch_unwind`) abandons the work, and the process continues. Without the standard library the process
/// ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no memory for {bytes} bytes; allow the process more, or use fewer keys or threads, or keep diagonals as \
     coefficients"
)]
pub struct OutOfMemory {
    /// Bytes that were requested.
    pub bytes: usize,
}

#[cold]
fn out_of_memory(layout: Layout) -> ! {
    #[cfg(feature = "std")]
    std::panic::resume_unwind(std::boxed::Box::new(OutOfMemory { bytes: layout.size() }));
    #[cfg(not(feature = "std"))]
    handle_alloc_error(layout)
}

impl Buffer {
    /// A buffer of zeros.
    pub fn zeroed(length: usize) -> Self {
        match cache::take(length) {
            Some(mut buffer) => {
                buffer.fill(0);
                buffer
            }
            None => Self::allocate(length),
        }
    }

    /// A buffer whose words are initialised but of unspecified value, for results that overwrite all of it.
    pub fn unspecified(length: usize) -> Self {
        cache::take(length).unwrap_or_else(|| Self::allocate(length))
    }

    fn allocate(length: usize) -> Self {
        let layout = layout(length);
        #[cfg(feature = "std")]
        if crate::reserve::is_low() {
            cache::trim();
            out_of_memory(layout);
        }
        // SAFETY: the layout has non-zero size (at least 8 bytes).
        let mut raw = unsafe { alloc(layout) };
        if raw.is_null() {
            cache::trim();
            // SAFETY: as above.
            raw = unsafe { alloc(layout) };
        }
        let Some(pointer) = NonNull::new(raw.cast::<u64>()) else {
            cache::forget(length);
            out_of_memory(layout)
        };
        // The advice comes before the first touch, because pages that exist stay small.
        #[cfg(all(feature = "std", target_os = "linux"))]
        if layout.size() >= HUGE_PAGE {
            // SAFETY: the range is owned by us and aligned to a page; the advice does not change contents.
            unsafe { libc::madvise(raw.cast(), layout.size(), libc::MADV_HUGEPAGE) };
        }
        // SAFETY: the range has that size and is owned by us.
        unsafe { raw.write_bytes(0, layout.size()) };
        Self { pointer, length, capacity: length }
    }
}

impl Deref for Buffer {
    type Target = [u64];
    #[inline(always)]
    fn deref(&self) -> &[u64] {
        // SAFETY: by the invariant.
        unsafe { core::slice::from_raw_parts(self.pointer.as_ptr(), self.length) }
    }
}

impl DerefMut for Buffer {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [u64] {
        // SAFETY: by the invariant, and `&mut self` is exclusive.
        unsafe { core::slice::from_raw_parts_mut(self.pointer.as_ptr(), self.length) }
    }
}

impl Buffer {
    /// The words as signed integers.
    pub fn signed(&self) -> &[i64] {
        // SAFETY: by the invariant; both types have the same size, alignment and values.
        unsafe { core::slice::from_raw_parts(self.pointer.as_ptr().cast(), self.length) }
    }

    /// The words as signed integers, for writing.
    pub fn signed_mut(&mut self) -> &mut [i64] {
        // SAFETY: as above, and `&mut self` is exclusive.
        unsafe { core::slice::from_raw_parts_mut(self.pointer.as_ptr().cast(), self.length) }
    }
}

impl Clone for Buffer {
    fn clone(&self) -> Self {
        let mut copy = Self::unspecified(self.length);
        copy.copy_from_slice(self);
        copy
    }
}

impl Zeroize for Buffer {
    fn zeroize(&mut self) {
        // Uses vector stores, unlike a slice's own `zeroize`, which goes word by word. The barrier keeps the stores.
        self.fill(0);
        zeroize::optimization_barrier(&**self);
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let owned = Self { pointer: self.pointer, length: self.capacity, capacity: self.capacity };
        if let Some(refused) = cache::put(owned) {
            refused.free();
        }
    }
}

impl Buffer {
    /// Frees the memory, bypassing the cache.
    fn free(self) {
        // SAFETY: allocated with this very layout, and not used again: the value is forgotten.
        unsafe { dealloc(self.pointer.as_ptr().cast(), layout(self.capacity)) };
        core::mem::forget(self);
    }
}

/// Returns the memory of all cached buffers, and what its allocator can spare, to the operating system.
pub fn trim_cache() {
    cache::trim();
    #[cfg(all(feature = "std", target_os = "linux", target_env = "gnu"))]
    // SAFETY: it frees nothing that is in use, from any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Makes the process return blocks of 128 KiB and more as soon as they are freed: those of a limb, and of most objects
/// of an application. By default the system's allocator starts to keep freed blocks of up to 32 MiB among others.
/// Buffers of changing lengths then leave gaps, half as much again as is in use.
pub fn return_large_blocks() {
    #[cfg(all(feature = "std", target_os = "linux", target_env = "gnu"))]
    // SAFETY: it sets numbers of the allocator, from any thread.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 128 << 10);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 128 << 10);
    }
}

/// Bytes of buffers of at least 8 KiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BufferUse {
    /// Bytes in use.
    pub live: usize,
    /// Bytes kept for reuse.
    pub idle: usize,
    /// The most bytes in use at a time, since the process began or [`reset_peak`].
    pub peak: usize,
}

/// The memory that buffers take now. Without the standard library nothing is counted.
pub fn buffer_use() -> BufferUse {
    cache::buffer_use()
}

/// Resets the peak of bytes in use to the current value.
pub fn reset_peak() {
    cache::reset_peak();
}

/// Idle bytes by which buffers may exceed the peak of bytes in use: 64 MiB and a 32nd of the peak.
pub const fn recycled_bytes(peak: usize) -> usize {
    (64 << 20) + peak / 32
}

#[cfg(feature = "std")]
mod cache {
    use super::{Buffer, BufferUse, recycled_bytes};
    use crate::PerProcess;
    use std::collections::{BTreeMap, VecDeque};
    use std::sync::{Mutex, MutexGuard, PoisonError};
    use std::vec::Vec;

    /// Only larger buffers, which are worth a lock, are cached and counted.
    const MIN_WORDS: usize = 1 << 10;
    /// The bound on idle memory.
    const MAX_BYTES: usize = 1 << 30;

    #[derive(Default)]
    struct Cache {
        used: BufferUse,
        /// As `used.peak`, but since the process began.
        highest: usize,
        /// Memory has run out once. Freed buffers now return to the system, where all other allocations can use them.
        exhausted: bool,
        /// The number of buffers put here so far.
        clock: u64,
        /// By capacity, with the clock at which they came, ascending.
        by_capacity: BTreeMap<usize, VecDeque<(u64, Buffer)>>,
    }

    /// A thread of the parent may have held this lock when a child was forked.
    static CACHE: PerProcess<Mutex<Cache>> = PerProcess::new(|| Mutex::new(Cache::default()));

    fn lock() -> MutexGuard<'static, Cache> {
        CACHE.get().lock().unwrap_or_else(PoisonError::into_inner)
    }

    impl Cache {
        /// A buffer of that capacity: the last that came, or the first.
        fn remove(&mut self, capacity: usize, last: bool) -> Option<Buffer> {
            let list = self.by_capacity.get_mut(&capacity)?;
            let (_, buffer) = if last { list.pop_back() } else { list.pop_front() }?;
            if list.is_empty() {
                self.by_capacity.remove(&capacity);
            }
            self.used.idle -= capacity * 8;
            Some(buffer)
        }

        fn begin(&mut self, capacity: usize) {
            self.used.live += capacity * 8;
            self.used.peak = self.used.peak.max(self.used.live);
            self.highest = self.highest.max(self.used.live);
        }

        /// Evicts the buffers that have been idle longest, until the cache is within its bound.
        fn surplus(&mut self) -> Vec<Buffer> {
            let most = if self.exhausted { 0 } else { self.highest + recycled_bytes(self.highest) };
            let mut out = Vec::new();
            while self.used.idle > MAX_BYTES || self.used.live + self.used.idle > most {
                let age = |list: &VecDeque<(u64, Buffer)>| list.front().map(|(came, _)| *came);
                let oldest = self.by_capacity.iter().min_by_key(|(_, list)| age(list));
                let Some((&capacity, _)) = oldest else { break };
                out.extend(self.remove(capacity, false));
            }
            out
        }
    }

    /// Words by which a reused buffer may be too long: a quarter, or a sixteenth from 16 MiB on.
    fn slack(length: usize) -> usize {
        if length < 1 << 21 { length / 4 } else { length / 16 }
    }

    /// A cached buffer for that length. If there is none, the caller allocates one, and it is counted already.
    pub(super) fn take(length: usize) -> Option<Buffer> {
        if length < MIN_WORDS {
            return None;
        }
        let mut cache = lock();
        let found =
            cache.by_capacity.range(length..=length + slack(length)).next().map(|(&capacity, _)| capacity);
        let buffer = found.and_then(|capacity| cache.remove(capacity, true)).map(|mut buffer| {
            buffer.length = length;
            buffer
        });
        cache.begin(buffer.as_ref().map_or(length, |buffer| buffer.capacity));
        let surplus = cache.surplus();
        drop(cache);
        surplus.into_iter().for_each(Buffer::free);
        buffer
    }

    /// Stops counting one that could not be allocated, and caches nothing from now on.
    pub(super) fn forget(length: usize) {
        let mut cache = lock();
        cache.exhausted = true;
        if length >= MIN_WORDS {
            cache.used.live -= length * 8;
        }
    }

    /// Caches a buffer, or frees it if it is too small.
    pub(super) fn put(buffer: Buffer) -> Option<Buffer> {
        if buffer.capacity < MIN_WORDS {
            return Some(buffer);
        }
        let bytes = buffer.capacity * 8;
        let mut cache = lock();
        // A forked child has buffers of its parent, which it did not count.
        cache.used.live = cache.used.live.saturating_sub(bytes);
        cache.used.idle += bytes;
        cache.clock += 1;
        let came = cache.clock;
        cache.by_capacity.entry(buffer.capacity).or_default().push_back((came, buffer));
        let surplus = cache.surplus();
        drop(cache);
        surplus.into_iter().for_each(Buffer::free);
        None
    }

    pub(super) fn trim() {
        let taken = {
            let mut cache = lock();
            cache.used.idle = 0;
            core::mem::take(&mut cache.by_capacity)
        };
        taken.into_values().flatten().for_each(|(_, buffer)| buffer.free());
    }

    pub(super) fn buffer_use() -> BufferUse {
        lock().used
    }

    pub(super) fn reset_peak() {
        let mut cache = lock();
        cache.used.peak = cache.used.live;
    }
}

#[cfg(not(feature = "std"))]
mod cache {
    use super::{Buffer, BufferUse};

    pub(super) fn take(_length: usize) -> Option<Buffer> {
        None
    }

    pub(super) fn forget(_length: usize) {}

    pub(super) fn put(buffer: Buffer) -> Option<Buffer> {
        Some(buffer)
    }

    pub(super) fn trim() {}

    pub(super) fn buffer_use() -> BufferUse {
        BufferUse::default()
    }

    pub(super) fn reset_peak() {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_and_recycled() {
        for length in [0, 1, 1023, 1 << 12, 1 << 19] {
            let mut buffer = Buffer::zeroed(length);
            assert_eq!(buffer.as_ptr() as usize % CACHE_LINE, 0);
            assert!(buffer.iter().all(|&w| w == 0));
            buffer.fill(7);
            drop(buffer);
            assert!(Buffer::zeroed(length).iter().all(|&w| w == 0));
            assert_eq!(Buffer::unspecified(length).len(), length);
            let mut secret = Buffer::zeroed(length);
            secret.fill(7);
            secret.zeroize();
            assert!(secret.iter().all(|&w| w == 0));
        }
        trim_cache();
    }

    #[cfg(feature = "std")]
    #[test]
    fn a_full_cache_frees_what_has_been_idle_longest() {
        // Other tests use the cache too, so this test relies only on its bound and on the buffers that it holds itself.
        let held: std::vec::Vec<Buffer> =
            (0..20).map(|k| Buffer::unspecified((8 << 20) + (k << 10))).collect();
        drop(held);
        assert!(buffer_use().idle <= 1 << 30);
        let shorter = Buffer::unspecified(7 << 20);
        assert!(shorter.len() == 7 << 20 && shorter.capacity >= 7 << 20);
        trim_cache();
    }
}
