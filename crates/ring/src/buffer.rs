//! Aligned, recycled memory for limbs.
//!
//! A ciphertext at `N = 2^16` is tens of megabytes; touching that much fresh memory costs more in page faults than the
//! arithmetic that fills it. Buffers are therefore returned to a bounded pool when dropped and large ones ask for huge
//! pages. Contents of a recycled buffer are unspecified but initialised; secret holders wipe theirs before dropping
//! ([`zeroize::Zeroize`]).

use alloc::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;
use zeroize::Zeroize;

const CACHE_LINE: usize = 64;
const HUGE_PAGE: usize = 2 << 20;

/// A fixed-length slice of words aligned to a cache line (to a huge page when it is larger than one).
///
/// # Invariant
/// `pointer` addresses `length` initialised words, allocated with `layout(length)` and owned by this value.
pub struct Buffer {
    pointer: NonNull<u64>,
    length: usize,
}

// SAFETY: the buffer owns its memory exclusively, like a Box<[u64]>.
unsafe impl Send for Buffer {}
// SAFETY: shared access only reads.
unsafe impl Sync for Buffer {}

fn layout(length: usize) -> Layout {
    let bytes = length.saturating_mul(8);
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
        match pool::take(length) {
            Some(mut buffer) => {
                buffer.fill(0);
                buffer
            }
            None => Self::allocate(length),
        }
    }

    /// A buffer whose words are initialised but of unspecified value: for results that are written whole.
    pub fn unspecified(length: usize) -> Self {
        pool::take(length).unwrap_or_else(|| Self::allocate(length))
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
        Self { pointer, length }
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

impl Clone for Buffer {
    fn clone(&self) -> Self {
        let mut copy = Self::unspecified(self.length);
        copy.copy_from_slice(self);
        copy
    }
}

impl Zeroize for Buffer {
    fn zeroize(&mut self) {
        (**self).zeroize();
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let owned = Self { pointer: self.pointer, length: self.length };
        if let Err(owned) = pool::put(owned) {
            // SAFETY: allocated with this very layout, and not used again: `owned` is forgotten.
            unsafe { dealloc(owned.pointer.as_ptr().cast(), layout(owned.length)) };
            core::mem::forget(owned);
        }
    }
}

/// Gives the memory of all pooled buffers back to the operating system.
pub fn trim_pool() {
    pool::trim();
}

#[cfg(feature = "std")]
mod pool {
    use super::{Buffer, layout};
    use std::alloc::dealloc;
    use std::collections::BTreeMap;
    use std::sync::{Mutex, MutexGuard, PoisonError};
    use std::vec::Vec;

    /// Only buffers that are worth a lock are pooled.
    const MIN_WORDS: usize = 1 << 10;
    /// At most this much idle memory is kept.
    const MAX_BYTES: usize = 1 << 30;

    struct Idle {
        bytes: usize,
        by_length: BTreeMap<usize, Vec<Buffer>>,
    }

    static IDLE: Mutex<Idle> = Mutex::new(Idle { bytes: 0, by_length: BTreeMap::new() });

    fn lock() -> MutexGuard<'static, Idle> {
        IDLE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn take(length: usize) -> Option<Buffer> {
        if length < MIN_WORDS {
            return None;
        }
        let mut idle = lock();
        let buffer = idle.by_length.get_mut(&length)?.pop()?;
        idle.bytes -= length * 8;
        Some(buffer)
    }

    pub(super) fn put(buffer: Buffer) -> Result<(), Buffer> {
        let bytes = buffer.length * 8;
        if buffer.length < MIN_WORDS {
            return Err(buffer);
        }
        let mut idle = lock();
        if idle.bytes + bytes > MAX_BYTES {
            return Err(buffer);
        }
        idle.bytes += bytes;
        idle.by_length.entry(buffer.length).or_default().push(buffer);
        Ok(())
    }

    pub(super) fn trim() {
        let taken = {
            let mut idle = lock();
            idle.bytes = 0;
            core::mem::take(&mut idle.by_length)
        };
        for buffer in taken.into_values().flatten() {
            // SAFETY: allocated with this layout; forgetting the value keeps `Drop` from pooling it again.
            unsafe { dealloc(buffer.pointer.as_ptr().cast(), layout(buffer.length)) };
            core::mem::forget(buffer);
        }
    }
}

#[cfg(not(feature = "std"))]
mod pool {
    use super::Buffer;

    pub(super) fn take(_length: usize) -> Option<Buffer> {
        None
    }

    pub(super) fn put(buffer: Buffer) -> Result<(), Buffer> {
        Err(buffer)
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
        trim_pool();
    }
}
