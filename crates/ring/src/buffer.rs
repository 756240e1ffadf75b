//! Aligned, recycled memory for limbs.
//!
//! A ciphertext at `N = 2^16` is tens of megabytes; touching that much fresh memory costs more in page faults than the
//! arithmetic that fills it. A dropped buffer therefore goes to a bounded cache, and a large one asks for huge pages. A cached
//! buffer serves lengths down to four fifths of its own, so that a computation that goes down the levels keeps using the
//! same memory. When the cache is full, the buffer that has been idle longest is freed. The contents of a recycled buffer are
//! unspecified but initialised; holders of secrets wipe theirs before they drop them ([`zeroize::Zeroize`]).

use alloc::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;
use zeroize::Zeroize;

const CACHE_LINE: usize = 64;
const HUGE_PAGE: usize = 2 << 20;

/// A fixed-length slice of words aligned to a cache line (to a huge page when it is larger than one).
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

    /// A buffer whose words are initialised but of unspecified value: for results that are written whole.
    pub fn unspecified(length: usize) -> Self {
        cache::take(length).unwrap_or_else(|| Self::allocate(length))
    }

    fn allocate(length: usize) -> Self {
        let layout = layout(length);
        // SAFETY: the layout has non-zero size (at least 8 bytes).
        let raw = unsafe { alloc(layout) };
        let Some(pointer) = NonNull::new(raw.cast::<u64>()) else { handle_alloc_error(layout) };
        // The advice comes before the first touch: pages that exist stay small.
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

    /// The same, to write.
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
        // With vector stores, which the word by word of a slice's own `zeroize` is not; the barrier keeps them.
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
    /// Gives the memory back, past the cache.
    fn free(self) {
        // SAFETY: allocated with this very layout, and not used again: the value is forgotten.
        unsafe { dealloc(self.pointer.as_ptr().cast(), layout(self.capacity)) };
        core::mem::forget(self);
    }
}

/// Gives the memory of all cached buffers back to the operating system.
pub fn trim_cache() {
    cache::trim();
}

#[cfg(feature = "std")]
mod cache {
    use super::Buffer;
    use crate::PerProcess;
    use std::collections::{BTreeMap, VecDeque};
    use std::sync::{Mutex, MutexGuard, PoisonError};

    /// Only buffers that are worth a lock are cached.
    const MIN_WORDS: usize = 1 << 10;
    /// At most this much idle memory is kept.
    const MAX_BYTES: usize = 1 << 30;

    struct Idle {
        bytes: usize,
        /// Counts the buffers put here so far.
        clock: u64,
        /// By capacity, with the clock when they came, ascending.
        by_capacity: BTreeMap<usize, VecDeque<(u64, Buffer)>>,
    }

    /// A thread of the parent may have held its lock when a child was forked.
    static IDLE: PerProcess<Mutex<Idle>> =
        PerProcess::new(|| Mutex::new(Idle { bytes: 0, clock: 0, by_capacity: BTreeMap::new() }));

    fn lock() -> MutexGuard<'static, Idle> {
        IDLE.get().lock().unwrap_or_else(PoisonError::into_inner)
    }

    impl Idle {
        /// A buffer of that capacity: the one that came last, or first.
        fn remove(&mut self, capacity: usize, last: bool) -> Option<Buffer> {
            let list = self.by_capacity.get_mut(&capacity)?;
            let (_, buffer) = if last { list.pop_back() } else { list.pop_front() }?;
            if list.is_empty() {
                self.by_capacity.remove(&capacity);
            }
            self.bytes -= capacity * 8;
            Some(buffer)
        }
    }

    pub(super) fn take(length: usize) -> Option<Buffer> {
        if length < MIN_WORDS {
            return None;
        }
        let mut idle = lock();
        let (&capacity, _) = idle.by_capacity.range(length..=length + length / 4).next()?;
        let mut buffer = idle.remove(capacity, true)?;
        buffer.length = length;
        Some(buffer)
    }

    /// Keeps a buffer, or gives it back if it is too small or too large to be kept.
    pub(super) fn put(buffer: Buffer) -> Option<Buffer> {
        let bytes = buffer.capacity * 8;
        if buffer.capacity < MIN_WORDS || bytes > MAX_BYTES {
            return Some(buffer);
        }
        let mut idle = lock();
        while idle.bytes + bytes > MAX_BYTES {
            let oldest = idle.by_capacity.iter().min_by_key(|(_, list)| list.front().map(|(came, _)| *came));
            let Some((&capacity, _)) = oldest else { break };
            if let Some(evicted) = idle.remove(capacity, false) {
                evicted.free();
            }
        }
        idle.bytes += bytes;
        idle.clock += 1;
        let came = idle.clock;
        idle.by_capacity.entry(buffer.capacity).or_default().push_back((came, buffer));
        None
    }

    pub(super) fn trim() {
        let taken = {
            let mut idle = lock();
            idle.bytes = 0;
            core::mem::take(&mut idle.by_capacity)
        };
        taken.into_values().flatten().for_each(|(_, buffer)| buffer.free());
    }

    /// Idle bytes.
    #[cfg(test)]
    pub(super) fn bytes() -> (usize, usize) {
        (lock().bytes, MAX_BYTES)
    }
}

#[cfg(not(feature = "std"))]
mod cache {
    use super::Buffer;

    pub(super) fn take(_length: usize) -> Option<Buffer> {
        None
    }

    pub(super) fn put(buffer: Buffer) -> Option<Buffer> {
        Some(buffer)
    }

    pub(super) fn trim() {}
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
        // Other tests use the cache as well: only its bound and what this one holds can be relied on.
        let held: std::vec::Vec<Buffer> =
            (0..20).map(|k| Buffer::unspecified((8 << 20) + (k << 10))).collect();
        drop(held);
        let (bytes, limit) = cache::bytes();
        assert!(bytes <= limit);
        let shorter = Buffer::unspecified(7 << 20);
        assert!(shorter.len() == 7 << 20 && shorter.capacity >= 7 << 20);
        trim_cache();
    }
}
