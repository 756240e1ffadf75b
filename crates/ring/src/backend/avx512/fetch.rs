//! Prefetching of words while the kernels compute with others.

use core::arch::x86_64::*;

/// Words to prefetch into the second-level cache, a share at a time. A burst would stall on memory.
#[derive(Clone, Copy)]
pub(super) struct Fetch {
    next: *const u64,
    share: usize,
}

impl Fetch {
    pub(super) const NOTHING: Self = Self { next: core::ptr::null(), share: 0 };

    /// `words` in `count` shares.
    pub(super) fn new(words: &[u64], count: usize) -> Self {
        Self { next: words.as_ptr(), share: words.len() / count }
    }

    /// Fetches one share.
    ///
    /// # Safety
    /// The CPU has SSE.
    #[inline(always)]
    pub(super) unsafe fn share(&mut self) {
        for at in (0..self.share).step_by(8) {
            // SAFETY: a prefetch does not access memory.
            unsafe { _mm_prefetch::<_MM_HINT_T1>(self.next.wrapping_add(at).cast()) };
        }
        self.next = self.next.wrapping_add(self.share);
    }
}
