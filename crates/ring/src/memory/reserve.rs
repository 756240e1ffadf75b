//! Memory held in reserve for work that must be abandoned.
//!
//! A Rust collection ends the process when there is no memory. Large data are [`crate::Buffer`]s, which raise
//! [`OutOfMemory`] instead. The reserve is for the small allocations around them. It is a region that nothing touches
//! until the system has no memory for an allocation, which is then placed there. Buffers raise as soon as half of it is
//! in use.
//!
//! # Invariant
//! Each block of the region has a power of two of bytes. A block is allocated, or in the list of free blocks of its
//! size, or beyond the end of the blocks made so far. Only the holder of the lock changes this.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::hint;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

use crate::OutOfMemory;

const BYTES: usize = 64 << 20;
const LAYOUT: Layout = match Layout::from_size_align(BYTES, 4096) {
    Ok(layout) => layout,
    Err(_) => panic!("a power of two"),
};
/// A stack of the default size, and what an allocator takes at a time, with room to spare.
const ROOM: Layout = match Layout::from_size_align(8 << 20, 4096) {
    Ok(layout) => layout,
    Err(_) => panic!("a power of two"),
};

/// The region, of [`LAYOUT`], or null. It is never freed.
static REGION: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
/// Bytes of the region that are in use.
static USED: AtomicUsize = AtomicUsize::new(0);
/// The state that the lock protects.
static BLOCKS: Lock = Lock { held: AtomicBool::new(false), blocks: UnsafeCell::new(Blocks::new()) };

/// Logarithm of the bytes of the smallest block, which has room for a pointer.
const LEAST: u32 = 4;
/// One more than the logarithm of the bytes of the region.
const CLASSES: usize = BYTES.trailing_zeros() as usize + 1;
/// Attempts to lock. If all fail, the lock was held when this process was forked, or its holder waits for a processor.
const PATIENCE: usize = 1 << 24;

struct Blocks {
    /// The first free block of each size; each free block holds the position of the next one.
    free: [*mut u8; CLASSES],
    /// Offset of the end of the blocks made so far.
    end: usize,
}

impl Blocks {
    const fn new() -> Self {
        Self { free: [ptr::null_mut(); CLASSES], end: 0 }
    }

    fn take(&mut self, region: NonNull<u8>, class: usize) -> *mut u8 {
        let first = self.free[class];
        if !first.is_null() {
            // SAFETY: a free block is in the region, aligned to at least 16 bytes, and holds the position of the next
            // one.
            self.free[class] = unsafe { first.cast::<*mut u8>().read() };
            return first;
        }
        let bytes = 1 << class;
        let start = self.end.next_multiple_of(bytes.min(LAYOUT.align()));
        if start + bytes > BYTES {
            return ptr::null_mut();
        }
        self.end = start + bytes;
        // SAFETY: the offset is inside of the region.
        unsafe { region.as_ptr().add(start) }
    }

    fn give_back(&mut self, old: *mut u8, class: usize) {
        // SAFETY: the block is free from now on; it has room for a pointer and is aligned to one.
        unsafe { old.cast::<*mut u8>().write(self.free[class]) };
        self.free[class] = old;
    }
}

/// Spins, because a lock of the operating system may allocate.
struct Lock {
    held: AtomicBool,
    blocks: UnsafeCell<Blocks>,
}

// SAFETY: only the holder of the lock reaches the blocks.
unsafe impl Sync for Lock {}

impl Lock {
    /// `None` if the lock cannot be taken.
    fn with<T>(&self, work: impl FnOnce(&mut Blocks) -> T) -> Option<T> {
        for turn in 0..PATIENCE {
            if self.held.compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                // SAFETY: the lock is held by this thread, and `work` does not ask for it.
                let done = work(unsafe { &mut *self.blocks.get() });
                self.held.store(false, Ordering::Release);
                return Some(done);
            }
            if turn % 64 == 63 {
                std::thread::yield_now();
            }
            hint::spin_loop();
        }
        None
    }
}

/// Logarithm of the bytes of a block for this layout.
fn class(layout: Layout) -> usize {
    layout.size().max(layout.align()).max(1 << LEAST).next_power_of_two().trailing_zeros() as usize
}

/// The system's allocator with a reserve behind it, for `#[global_allocator]`.
#[derive(Debug, Clone, Copy)]
pub struct Reserve;

impl Reserve {
    /// Allocates the reserve if there is none. Call it before work that allocates.
    ///
    /// # Errors
    /// [`OutOfMemory`] if there is no memory for a reserve and some megabytes more, or half of it is in use.
    pub fn keep() -> Result<(), OutOfMemory> {
        if is_low() {
            return Err(OutOfMemory { bytes: BYTES });
        }
        if !REGION.load(Ordering::Acquire).is_null() {
            return Ok(());
        }
        // SAFETY: the layout has a size.
        let block = unsafe { System.alloc(LAYOUT) };
        if block.is_null() {
            return Err(OutOfMemory { bytes: BYTES });
        }
        if let Err(error) = require_room() {
            // SAFETY: no other thread has seen it.
            unsafe { System.dealloc(block, LAYOUT) };
            return Err(error);
        }
        let first = REGION.compare_exchange(ptr::null_mut(), block, Ordering::AcqRel, Ordering::Acquire);
        if first.is_err() {
            // SAFETY: no other thread has seen it.
            unsafe { System.dealloc(block, LAYOUT) };
        }
        Ok(())
    }

    /// Memory in the region, or null.
    #[cold]
    fn take(layout: Layout) -> *mut u8 {
        let Some(region) = NonNull::new(REGION.load(Ordering::Acquire)) else { return ptr::null_mut() };
        let class = class(layout);
        if class >= CLASSES || layout.align() > LAYOUT.align() {
            return ptr::null_mut();
        }
        let taken = BLOCKS.with(|blocks| blocks.take(region, class)).unwrap_or(ptr::null_mut());
        if !taken.is_null() {
            USED.fetch_add(1 << class, Ordering::AcqRel);
        }
        taken
    }

    /// Frees memory of the region. Returns whether it was the region's.
    fn give_back(old: *mut u8, layout: Layout) -> bool {
        if !in_region(old) {
            return false;
        }
        let class = class(layout);
        // Without the lock the block is lost.
        if BLOCKS.with(|blocks| blocks.give_back(old, class)).is_some() {
            USED.fetch_sub(1 << class, Ordering::AcqRel);
        }
        true
    }
}

/// Refuses to go on where the system is about to have no memory. A thread, and the destructors of its variables, take
/// some bytes from the C library, which ends the process without them: it has no error to report.
pub(crate) fn require_room() -> Result<(), OutOfMemory> {
    // SAFETY: the layout has a size.
    let room = unsafe { System.alloc(ROOM) };
    if room.is_null() {
        return Err(OutOfMemory { bytes: ROOM.size() });
    }
    // SAFETY: it was allocated with this layout.
    unsafe { System.dealloc(room, ROOM) };
    Ok(())
}

fn in_region(place: *mut u8) -> bool {
    let region = REGION.load(Ordering::Acquire);
    !region.is_null() && place.addr().wrapping_sub(region.addr()) < BYTES
}

/// Whether half of the reserve is in use.
pub(crate) fn is_low() -> bool {
    USED.load(Ordering::Acquire) > BYTES / 2
}

// SAFETY: memory is the system allocator's, or a part of the region that no other allocation has; nothing here unwinds.
unsafe impl GlobalAlloc for Reserve {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let block = unsafe { System.alloc(layout) };
        if block.is_null() { Self::take(layout) } else { block }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let mut block = unsafe { System.alloc_zeroed(layout) };
        if block.is_null() {
            block = Self::take(layout);
            if !block.is_null() {
                // SAFETY: it has that size, and no other allocation has it. Its old contents may not be zero.
                unsafe { block.write_bytes(0, layout.size()) };
            }
        }
        block
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !in_region(old) {
            // SAFETY: the caller's promise.
            let block = unsafe { System.realloc(old, layout, size) };
            if !block.is_null() {
                return block;
            }
        }
        let Ok(larger) = Layout::from_size_align(size, layout.align()) else { return ptr::null_mut() };
        // SAFETY: the size is not 0, by the caller's promise.
        let block = unsafe { self.alloc(larger) };
        if !block.is_null() {
            // SAFETY: both have that size, and no other allocation has the new one; the old one is freed once.
            unsafe {
                ptr::copy_nonoverlapping(old, block, size.min(layout.size()));
                self.dealloc(old, layout);
            }
        }
        block
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        if !Self::give_back(old, layout) {
            // SAFETY: the caller's promise: it is the system's, as it is not the region's.
            unsafe { System.dealloc(old, layout) };
        }
    }
}
