//! Memory for buffers of all lengths, in ranges that are split and joined.
//!
//! A buffer takes the shortest free range with enough room, and the rest of the range stays free. A range that comes
//! back is joined with its free neighbours. So memory that was touched once is used again, whatever lengths follow each
//! other. Ranges kept by length would return to the system, and be touched anew, at every other level. Fresh memory
//! comes in whole huge pages. Any part of a free range can return to the system, because mappings can be cut anywhere.

use core::ptr::NonNull;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::vec::Vec;

use super::{BufferUse, recycled_bytes};
use crate::PerProcess;

/// Only larger buffers, which are worth a lock and whole pages, are the pool's and counted.
pub(super) const MIN_WORDS: usize = 1 << 10;
/// Idle memory that the pool may keep whatever the peak is.
const MAX_BYTES: usize = 1 << 30;
/// The share of the peak that it may keep if that is more: operations of a large program need it again.
const IDLE_SHARE: usize = 4;
/// A huge page of x86-64, and of 64-bit ARM with pages of 4 KiB.
const HUGE_PAGE: usize = 2 << 20;

/// Initialised memory with one owner.
pub(super) struct PooledBlock {
    /// The first word, aligned to a page.
    pub pointer: NonNull<u64>,
    /// The number of words.
    pub capacity: usize,
    /// Whether they are all 0.
    pub zeros: bool,
}

/// A place in memory: mapped pages, owned by the holder of this value.
#[derive(Clone, Copy)]
struct Range {
    start: usize,
    bytes: usize,
}

/// Free ranges. No two of them are adjacent.
#[derive(Default)]
struct Free {
    /// Bytes by start, with the clock at which the last part of the range came.
    ranges: BTreeMap<usize, (usize, u64)>,
    /// The same ranges as bytes and start.
    by_bytes: BTreeSet<(usize, usize)>,
}

impl Free {
    fn insert(&mut self, range: Range, came: u64) {
        let Range { mut start, mut bytes } = range;
        let mut latest = came;
        let before = self.ranges.range(..start).next_back().map(|(&start, &(bytes, _))| (start, bytes));
        if let Some((earlier, length)) = before.filter(|(earlier, length)| earlier + length == start) {
            latest = latest.max(self.remove(earlier, length));
            (start, bytes) = (earlier, bytes + length);
        }
        if let Some(&(length, _)) = self.ranges.get(&(start + bytes)) {
            latest = latest.max(self.remove(start + bytes, length));
            bytes += length;
        }
        self.ranges.insert(start, (bytes, latest));
        self.by_bytes.insert((bytes, start));
    }

    /// Removes a whole range and returns the clock at which its last part came.
    fn remove(&mut self, start: usize, bytes: usize) -> u64 {
        self.by_bytes.remove(&(bytes, start));
        self.ranges.remove(&start).map_or(0, |(_, came)| came)
    }

    /// Takes the beginning of the shortest range with enough room, the first of equal ones.
    fn take(&mut self, bytes: usize) -> Option<Range> {
        let &(length, start) = self.by_bytes.range((bytes, 0)..).next()?;
        let came = self.remove(start, length);
        if length > bytes {
            self.insert(Range { start: start + bytes, bytes: length - bytes }, came);
        }
        Some(Range { start, bytes })
    }

    /// Takes the end of the range that has been free longest, with at most that many bytes.
    fn take_oldest(&mut self, most: usize) -> Option<Range> {
        let (&start, &(bytes, came)) = self.ranges.iter().min_by_key(|(_, (_, came))| *came)?;
        self.remove(start, bytes);
        let cut = most.min(bytes);
        if cut < bytes {
            self.insert(Range { start, bytes: bytes - cut }, came);
        }
        Some(Range { start: start + bytes - cut, bytes: cut })
    }
}

#[derive(Default)]
struct Pool {
    used: BufferUse,
    /// As `used.peak`, but since the process began.
    highest: usize,
    /// Memory has run out once. Freed buffers now return to the system, where all other allocations can use them.
    exhausted: bool,
    /// The number of ranges that came so far.
    clock: u64,
    free: Free,
}

/// A thread of the parent may have held this lock when a child was forked.
static POOL: PerProcess<Mutex<Pool>> = PerProcess::new(|| Mutex::new(Pool::default()));

fn lock() -> MutexGuard<'static, Pool> {
    POOL.get().lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pool {
    fn begin(&mut self, bytes: usize) {
        self.used.live += bytes;
        self.used.peak = self.used.peak.max(self.used.live);
        self.highest = self.highest.max(self.used.live);
    }

    fn keep(&mut self, range: Range) {
        self.used.idle += range.bytes;
        self.clock += 1;
        self.free.insert(range, self.clock);
    }

    /// Takes out ranges that have been free longest, until the pool is within its bound.
    fn surplus(&mut self) -> Vec<Range> {
        let most = if self.exhausted { 0 } else { self.highest + recycled_bytes(self.highest) };
        let BufferUse { live, idle, .. } = self.used;
        let most_idle = MAX_BYTES.max(self.highest / IDLE_SHARE);
        let mut over = idle.saturating_sub(most_idle).max((live + idle).saturating_sub(most));
        let mut out = Vec::new();
        while over > 0 {
            let Some(range) = self.free.take_oldest(over.next_multiple_of(HUGE_PAGE)) else { break };
            self.used.idle -= range.bytes;
            over = over.saturating_sub(range.bytes);
            out.push(range);
        }
        out
    }
}

/// Returns memory for that many words, or `None` if the system has none.
pub(super) fn take(length: usize) -> Option<PooledBlock> {
    let bytes = length.checked_mul(8)?.checked_next_multiple_of(page_bytes())?;
    // Idle memory must not hide that small allocations already use the reserve.
    if crate::memory::reserve::is_low() {
        lock().exhausted = true;
        trim();
        return None;
    }
    let mut pool = lock();
    let recycled = pool.free.take(bytes);
    pool.begin(bytes);
    pool.used.idle -= recycled.map_or(0, |range| range.bytes);
    let surplus = pool.surplus();
    drop(pool);
    unmap(surplus);
    let zeros = recycled.is_none();
    let Some(range) = recycled.or_else(|| fresh(bytes)) else {
        let mut pool = lock();
        pool.exhausted = true;
        pool.used.live -= bytes;
        return None;
    };
    let pointer = NonNull::new(core::ptr::with_exposed_provenance_mut(range.start))?;
    Some(PooledBlock { pointer, capacity: bytes / 8, zeros })
}

/// Takes memory back.
///
/// # Safety
/// The memory is that of a [`PooledBlock`], comes back once, and is not used any more.
pub(super) unsafe fn put(pointer: NonNull<u64>, capacity: usize) {
    let range = Range { start: pointer.as_ptr().expose_provenance(), bytes: capacity * 8 };
    let mut pool = lock();
    // A forked child has buffers of its parent, which it did not count.
    pool.used.live = pool.used.live.saturating_sub(range.bytes);
    pool.keep(range);
    let surplus = pool.surplus();
    drop(pool);
    unmap(surplus);
}

/// Returns all idle memory to the system.
pub(super) fn trim() {
    let free = {
        let mut pool = lock();
        pool.used.idle = 0;
        core::mem::take(&mut pool.free)
    };
    unmap(free.ranges.into_iter().map(|(start, (bytes, _))| Range { start, bytes }));
}

pub(super) fn buffer_use() -> BufferUse {
    lock().used
}

pub(super) fn reset_peak() {
    let mut pool = lock();
    pool.used.peak = pool.used.live;
}

/// Maps memory. The pool keeps the rest of the last huge page.
fn fresh(bytes: usize) -> Option<Range> {
    let mapped = map_huge(bytes).or_else(|| map(bytes)).or_else(|| {
        trim();
        map(bytes)
    })?;
    if mapped.bytes > bytes {
        let mut pool = lock();
        pool.keep(Range { start: mapped.start + bytes, bytes: mapped.bytes - bytes });
        let surplus = pool.surplus();
        drop(pool);
        unmap(surplus);
    }
    Some(Range { start: mapped.start, bytes })
}

/// Maps at least that many bytes as whole huge pages.
fn map_huge(bytes: usize) -> Option<Range> {
    let whole = bytes.checked_next_multiple_of(HUGE_PAGE)?;
    let Range { start, bytes } = map(whole.checked_add(HUGE_PAGE)?)?;
    let first = start.next_multiple_of(HUGE_PAGE);
    let (end, last) = (first + whole, start + bytes);
    let around = [Range { start, bytes: first - start }, Range { start: end, bytes: last - end }];
    unmap(around.into_iter().filter(|range| range.bytes > 0));
    // The advice comes before the first touch, because pages that exist stay small.
    #[cfg(target_os = "linux")]
    // SAFETY: the range is owned by us and whole pages; the advice does not change contents.
    unsafe {
        libc::madvise(core::ptr::with_exposed_provenance_mut(first), whole, libc::MADV_HUGEPAGE);
    }
    Some(Range { start: first, bytes: whole })
}

/// Maps pages of zeros.
fn map(bytes: usize) -> Option<Range> {
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANON);
    // SAFETY: a new mapping, wherever there is room, changes nothing that exists.
    let address = unsafe { libc::mmap(core::ptr::null_mut(), bytes, protection, flags, -1, 0) };
    (address != libc::MAP_FAILED).then(|| Range { start: address.expose_provenance(), bytes })
}

/// Returns ranges to the system.
fn unmap(ranges: impl IntoIterator<Item = Range>) {
    for Range { start, bytes } in ranges {
        // SAFETY: the holder of a range owns its pages, and nothing uses them any more.
        unsafe { libc::munmap(core::ptr::with_exposed_provenance_mut(start), bytes) };
    }
}

fn page_bytes() -> usize {
    static BYTES: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    // SAFETY: it reads a constant of the system.
    *BYTES.get_or_init(|| usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(1 << 16))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: usize = 1 << 12;

    fn range(first: usize, pages: usize) -> Range {
        Range { start: first * PAGE, bytes: pages * PAGE }
    }

    fn held(free: &Free) -> Vec<(usize, usize)> {
        let ranges: Vec<_> =
            free.ranges.iter().map(|(start, (bytes, _))| (start / PAGE, bytes / PAGE)).collect();
        let mut sizes: Vec<_> = ranges.iter().map(|&(start, pages)| (pages * PAGE, start * PAGE)).collect();
        sizes.sort_unstable();
        assert!(free.by_bytes.iter().copied().eq(sizes), "both orders hold the same ranges");
        ranges
    }

    #[test]
    fn neighbours_are_joined_and_parts_are_taken() {
        let mut free = Free::default();
        free.insert(range(1, 2), 1);
        free.insert(range(5, 1), 2);
        assert_eq!(held(&free), [(1, 2), (5, 1)]);
        free.insert(range(3, 2), 3);
        assert_eq!(held(&free), [(1, 5)]);
        let taken = free.take(2 * PAGE).map(|taken| (taken.start, taken.bytes));
        assert_eq!(taken, Some((PAGE, 2 * PAGE)));
        assert_eq!(held(&free), [(3, 3)]);
        assert!(free.take(4 * PAGE).is_none());
    }

    #[test]
    fn the_shortest_range_with_room_is_taken() {
        let mut free = Free::default();
        for (first, pages) in [(0, 8), (10, 3), (20, 4)] {
            free.insert(range(first, pages), 1);
        }
        assert_eq!(free.take(3 * PAGE).map(|taken| taken.start / PAGE), Some(10));
        assert_eq!(free.take(3 * PAGE).map(|taken| taken.start / PAGE), Some(20));
        assert_eq!(held(&free), [(0, 8), (23, 1)]);
    }

    #[test]
    fn what_has_been_free_longest_is_cut_first() {
        let mut free = Free::default();
        free.insert(range(0, 4), 2);
        free.insert(range(10, 4), 1);
        let cut = free.take_oldest(3 * PAGE).map(|cut| (cut.start / PAGE, cut.bytes / PAGE));
        assert_eq!(cut, Some((11, 3)));
        assert_eq!(held(&free), [(0, 4), (10, 1)]);
        assert_eq!(free.take_oldest(9 * PAGE).map(|cut| cut.bytes / PAGE), Some(1));
    }

    #[test]
    fn what_a_large_program_frees_stays() {
        let large = Range { start: PAGE, bytes: 2 * MAX_BYTES };
        for (peak, kept) in [(IDLE_SHARE * large.bytes, large.bytes), (large.bytes, MAX_BYTES)] {
            let mut pool = Pool::default();
            pool.begin(peak);
            pool.used.live -= large.bytes;
            pool.keep(large);
            let returned: usize = pool.surplus().iter().map(|range| range.bytes).sum();
            assert_eq!((returned, pool.used.idle), (large.bytes - kept, kept));
        }
    }

    #[test]
    fn memory_serves_other_lengths() {
        // Other tests use the pool too, so this test relies only on the memory that it holds itself.
        let mut buffers: Vec<_> = (1..40_usize).filter_map(|k| take((k << 12) + 1)).collect();
        for (k, taken) in buffers.iter_mut().enumerate() {
            assert!(taken.capacity > (k + 1) << 12);
            // SAFETY: the memory is this test's.
            let words = unsafe { core::slice::from_raw_parts_mut(taken.pointer.as_ptr(), taken.capacity) };
            assert!(!taken.zeros || words.iter().all(|&word| word == 0));
            words.fill(k as u64);
        }
        for (k, taken) in buffers.iter().enumerate() {
            // SAFETY: as above.
            let words = unsafe { core::slice::from_raw_parts(taken.pointer.as_ptr(), taken.capacity) };
            assert!(words.iter().all(|&word| word == k as u64), "ranges do not overlap");
        }
        for taken in buffers {
            // SAFETY: it comes back once.
            unsafe { put(taken.pointer, taken.capacity) };
        }
        assert!(buffer_use().idle <= MAX_BYTES);
    }

    #[test]
    fn what_cannot_be_mapped_is_none() {
        assert!(take(usize::MAX / 8).is_none());
        assert!(take(usize::MAX).is_none());
        lock().exhausted = false;
    }
}
