//! Memory that is kept back for work that has to be given up.
//!
//! Where there is no memory, a collection of Rust ends the process. What is large here are [`crate::Buffer`]s, which raise
//! [`OutOfMemory`] instead. The reserve is for everything small around them: it is address space that nothing touches until an
//! allocation fails. Then it is given back, the allocation succeeds, and the next buffer raises.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use crate::OutOfMemory;

const BYTES: usize = 32 << 20;
const LAYOUT: Layout = match Layout::from_size_align(BYTES, 64) {
    Ok(layout) => layout,
    Err(_) => panic!("a power of two"),
};

/// Memory of [`LAYOUT`] from [`System`], or null.
static KEPT: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
/// Whether the reserve was given back and is not kept again.
static SPENT: AtomicBool = AtomicBool::new(false);

/// The system's allocator with a reserve behind it, for `#[global_allocator]`.
#[derive(Debug, Clone, Copy)]
pub struct Reserve;

impl Reserve {
    /// Keeps the reserve, if it is not kept already. To be called before work that allocates.
    ///
    /// # Errors
    /// [`OutOfMemory`] if there is none to keep.
    pub fn keep() -> Result<(), OutOfMemory> {
        if KEPT.load(Ordering::Acquire).is_null() {
            // SAFETY: the layout has a size.
            let made = unsafe { System.alloc(LAYOUT) };
            if made.is_null() {
                return Err(OutOfMemory { bytes: BYTES });
            }
            let other = KEPT.swap(made, Ordering::AcqRel);
            if !other.is_null() {
                // SAFETY: what is taken out of the place is its taker's, and has the layout.
                unsafe { System.dealloc(other, LAYOUT) };
            }
        }
        SPENT.store(false, Ordering::Release);
        Ok(())
    }

    /// Gives the reserve back.
    #[cold]
    fn spend() {
        SPENT.store(true, Ordering::Release);
        let kept = KEPT.swap(ptr::null_mut(), Ordering::AcqRel);
        if !kept.is_null() {
            // SAFETY: what is taken out of the place is its taker's, and has the layout.
            unsafe { System.dealloc(kept, LAYOUT) };
        }
    }
}

/// Whether an allocation has failed since the reserve was kept.
pub(crate) fn is_spent() -> bool {
    SPENT.load(Ordering::Acquire)
}

// SAFETY: every pointer is the system allocator's for the same layout; nothing here allocates or unwinds.
unsafe impl GlobalAlloc for Reserve {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let made = unsafe { System.alloc(layout) };
        if !made.is_null() {
            return made;
        }
        Self::spend();
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let made = unsafe { System.alloc_zeroed(layout) };
        if !made.is_null() {
            return made;
        }
        Self::spend();
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        let made = unsafe { System.realloc(old, layout, size) };
        if !made.is_null() {
            return made;
        }
        Self::spend();
        // SAFETY: the caller's promise; the old block is as it was where nothing was made.
        unsafe { System.realloc(old, layout, size) }
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(old, layout) };
    }
}
