//! The pool of systems without mappings or without the standard library: it has no memory, and every buffer is
//! allocated by itself.

use core::ptr::NonNull;

use super::BufferUse;

/// No buffer is that long.
pub(super) const MIN_WORDS: usize = usize::MAX;

pub(super) struct PooledBlock {
    pub pointer: NonNull<u64>,
    pub capacity: usize,
    pub zeros: bool,
}

pub(super) fn take(_length: usize) -> Option<PooledBlock> {
    None
}

/// # Safety
/// As of the pool.
pub(super) unsafe fn put(_pointer: NonNull<u64>, _capacity: usize) {}

pub(super) fn trim() {}

pub(super) fn buffer_use() -> BufferUse {
    BufferUse::default()
}

pub(super) fn reset_peak() {}
