//! Aligned, recycled memory for limbs.
//!
//! A ciphertext at `N = 2^16` takes tens of megabytes. Page faults on that much fresh memory cost more than the
//! arithmetic that fills it. So a dropped buffer leaves its memory to later ones of any length ([`pool`]), in huge
//! pages where the system has them, and a computation that descends the levels keeps using the same memory.
//!
//! Idle memory is bounded by use: when idle and used bytes together exceed the peak of used bytes by more than
//! [`recycled_bytes`] of that peak, memory that has been idle longest returns to the system. So does idle memory above
//! 1 GiB or a quarter of the peak, whichever is more. The contents of a recycled buffer are unspecified but
//! initialised. Holders of secrets wipe their buffers before dropping them ([`zeroize::Zeroize`]).

#[cfg_attr(not(all(feature = "std", unix)), path = "no_pool.rs")]
mod pool;

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

/// A fixed-length slice of words, aligned to a cache line.
///
/// # Invariant
/// `pointer` addresses `capacity` initialised words that this value owns; `length <= capacity`. They are the pool's if
/// there are at least `pool::MIN_WORDS` of them, and were allocated with `layout(capacity)` otherwise.
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
    match Layout::from_size_align(capacity.saturating_mul(8).max(8), CACHE_LINE) {
        Ok(layout) => layout,
        // A length that does not fit the address space cannot be allocated either.
        Err(_) => handle_alloc_error(Layout::new::<u64>()),
    }
}

#[cold]
fn out_of_memory(layout: Layout) -> ! {
    #[cfg(feature = "std")]
    std::panic::resume_unwind(std::boxed::Box::new(crate::OutOfMemory { bytes: layout.size() }));
    #[cfg(not(feature = "std"))]
    handle_alloc_error(layout)
}

impl Buffer {
    /// A buffer of zeros.
    pub fn zeroed(length: usize) -> Self {
        let (mut buffer, zeros) = Self::obtain(length);
        if !zeros {
            buffer.fill(0);
        }
        buffer
    }

    /// A buffer whose words are initialised but of unspecified value, for results that overwrite all of it.
    pub fn unspecified(length: usize) -> Self {
        Self::obtain(length).0
    }

    /// A buffer, and whether its words are zeros.
    fn obtain(length: usize) -> (Self, bool) {
        if length < pool::MIN_WORDS {
            return (Self::allocate(length), true);
        }
        match pool::take(length) {
            Some(pool::PooledBlock { pointer, capacity, zeros }) => {
                (Self { pointer, length, capacity }, zeros)
            }
            None => out_of_memory(layout(length)),
        }
    }

    /// Zeros outside of the pool.
    fn allocate(length: usize) -> Self {
        let layout = layout(length);
        #[cfg(feature = "std")]
        if super::reserve::is_low() {
            pool::trim();
            out_of_memory(layout);
        }
        // SAFETY: the layout has non-zero size (at least 8 bytes).
        let mut raw = unsafe { alloc(layout) };
        if raw.is_null() {
            pool::trim();
            // SAFETY: as above.
            raw = unsafe { alloc(layout) };
        }
        let Some(pointer) = NonNull::new(raw.cast::<u64>()) else { out_of_memory(layout) };
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
        if self.capacity < pool::MIN_WORDS {
            // SAFETY: by the invariant it was allocated with this very layout; nothing uses it any more.
            unsafe { dealloc(self.pointer.as_ptr().cast(), layout(self.capacity)) };
        } else {
            // SAFETY: by the invariant it is the pool's, of this capacity; nothing uses it any more.
            unsafe { pool::put(self.pointer, self.capacity) };
        }
    }
}

/// Returns all idle memory of buffers, and what its allocator can spare, to the operating system.
pub fn trim_cache() {
    pool::trim();
    #[cfg(all(feature = "std", target_os = "linux", target_env = "gnu"))]
    // SAFETY: it frees nothing that is in use, from any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Whether the process keeps freed blocks of up to 32 MiB that are no buffers, most objects of an application. If not,
/// it returns blocks of 128 KiB and more as soon as they are freed. By default the system's allocator starts to keep
/// them among others. Blocks of changing lengths then leave gaps, half as much again as is in use. But a block that is
/// returned and allocated again costs a page fault for every 4 KiB of it.
pub fn keep_large_blocks(kept: bool) {
    #[cfg(all(feature = "std", target_os = "linux", target_env = "gnu"))]
    // SAFETY: it sets numbers of the allocator, from any thread.
    unsafe {
        let (block, spare) = if kept { (32 << 20, 256 << 20) } else { (128 << 10, 128 << 10) };
        libc::mallopt(libc::M_MMAP_THRESHOLD, block);
        libc::mallopt(libc::M_TRIM_THRESHOLD, spare);
    }
    #[cfg(not(all(feature = "std", target_os = "linux", target_env = "gnu")))]
    let _ = kept;
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
    pool::buffer_use()
}

/// Resets the peak of bytes in use to the current value.
pub fn reset_peak() {
    pool::reset_peak();
}

/// Idle bytes by which buffers may exceed the peak of bytes in use: 64 MiB and a 32nd of the peak.
pub const fn recycled_bytes(peak: usize) -> usize {
    (64 << 20) + peak / 32
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
    fn idle_memory_is_bounded_and_serves_shorter_buffers() {
        // Other tests use the pool too, so this test relies only on its bound and on the buffers that it holds itself.
        let held: std::vec::Vec<Buffer> =
            (0..20).map(|k| Buffer::unspecified((8 << 20) + (k << 10))).collect();
        drop(held);
        assert!(buffer_use().idle <= 1 << 30);
        let shorter = Buffer::unspecified(7 << 20);
        assert!(shorter.len() == 7 << 20 && shorter.capacity >= 7 << 20);
        trim_cache();
    }
}
