//! Memory that is kept back for work that has to be given up.
//!
//! Where there is no memory, a collection of Rust ends the process. What is large here are [`crate::Buffer`]s, which raise
//! [`OutOfMemory`] instead. The reserve is for everything small around them: a region that nothing touches until the system
//! has no memory for an allocation, which is then made there. Buffers raise from the time on at which half of it is in use.
//!
//! # Invariant
//! The state is the number of allocations in the region, and the bytes up to the end of the last one. Both change in
//! one step. While there are allocations, those bytes only grow, so none of them overlap.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use crate::OutOfMemory;

const BYTES: usize = 64 << 20;
const LAYOUT: Layout = match Layout::from_size_align(BYTES, 4096) {
    Ok(layout) => layout,
    Err(_) => panic!("a power of two"),
};

/// The region, of [`LAYOUT`], or null. It is never given back.
static REGION: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
/// Allocations in the region above 32 bits of the bytes in use.
static STATE: AtomicU64 = AtomicU64::new(0);

/// The system's allocator with a reserve behind it, for `#[global_allocator]`.
#[derive(Debug, Clone, Copy)]
pub struct Reserve;

impl Reserve {
    /// Keeps the reserve, if it is not kept already. To be called before work that allocates.
    ///
    /// # Errors
    /// [`OutOfMemory`] if there is none to keep, or half of it is in use.
    pub fn keep() -> Result<(), OutOfMemory> {
        if is_low() {
            return Err(OutOfMemory { bytes: BYTES });
        }
        if !REGION.load(Ordering::Acquire).is_null() {
            return Ok(());
        }
        // SAFETY: the layout has a size.
        let made = unsafe { System.alloc(LAYOUT) };
        if made.is_null() {
            return Err(OutOfMemory { bytes: BYTES });
        }
        let first = REGION.compare_exchange(ptr::null_mut(), made, Ordering::AcqRel, Ordering::Acquire);
        if first.is_err() {
            // SAFETY: nobody else has seen it.
            unsafe { System.dealloc(made, LAYOUT) };
        }
        Ok(())
    }

    /// Memory in the region, or null.
    #[cold]
    fn take(layout: Layout) -> *mut u8 {
        let region = REGION.load(Ordering::Acquire);
        if region.is_null() || layout.align() > LAYOUT.align() {
            return ptr::null_mut();
        }
        let mut start = 0;
        let taken = STATE.fetch_update(Ordering::AcqRel, Ordering::Acquire, |state| {
            let (count, used) = (state >> 32, (state & u64::from(u32::MAX)) as usize);
            start = used.next_multiple_of(layout.align());
            let end = start.checked_add(layout.size()).filter(|&end| end <= BYTES)?;
            Some((count + 1) << 32 | end as u64)
        });
        match taken {
            // SAFETY: the offset is inside of the region.
            Ok(_) => unsafe { region.add(start) },
            Err(_) => ptr::null_mut(),
        }
    }

    /// Whether memory is the region's; if so, it is free from now on.
    fn give_back(old: *mut u8) -> bool {
        if !in_region(old) {
            return false;
        }
        let _ = STATE.fetch_update(Ordering::AcqRel, Ordering::Acquire, |state| {
            Some(if state >> 32 == 1 { 0 } else { state - (1 << 32) })
        });
        true
    }
}

fn in_region(place: *mut u8) -> bool {
    let region = REGION.load(Ordering::Acquire);
    !region.is_null() && place.addr().wrapping_sub(region.addr()) < BYTES
}

/// Whether half of the reserve is in use.
pub(crate) fn is_low() -> bool {
    (STATE.load(Ordering::Acquire) & u64::from(u32::MAX)) as usize > BYTES / 2
}

// SAFETY: memory is the system allocator's, or a part of the region that no other allocation has; nothing here unwinds.
unsafe impl GlobalAlloc for Reserve {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let made = unsafe { System.alloc(layout) };
        if made.is_null() { Self::take(layout) } else { made }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let mut made = unsafe { System.alloc_zeroed(layout) };
        if made.is_null() {
            made = Self::take(layout);
            if !made.is_null() {
                // SAFETY: it has that size and is nobody else's. What was there before may not be zero.
                unsafe { made.write_bytes(0, layout.size()) };
            }
        }
        made
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !in_region(old) {
            // SAFETY: the caller's promise.
            let made = unsafe { System.realloc(old, layout, size) };
            if !made.is_null() {
                return made;
            }
        }
        let Ok(wanted) = Layout::from_size_align(size, layout.align()) else { return ptr::null_mut() };
        // SAFETY: the size is not 0, by the caller's promise.
        let made = unsafe { self.alloc(wanted) };
        if !made.is_null() {
            // SAFETY: both have that size, and the new one is nobody else's; the old one is given back once.
            unsafe {
                ptr::copy_nonoverlapping(old, made, size.min(layout.size()));
                self.dealloc(old, layout);
            }
        }
        made
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        if !Self::give_back(old) {
            // SAFETY: the caller's promise: it is the system's, as it is not the region's.
            unsafe { System.dealloc(old, layout) };
        }
    }
}
