//! Work shared among threads, limb by limb.
//!
//! The feature `parallel` uses the current rayon pool (`RAYON_NUM_THREADS`, or a pool that the caller installs).
//! Without the feature, or on a pool of one thread, loops run in place. Results never depend on the number of threads.
//!
//! The threads of rayon's global pool belong to one process. A forked child that installs no pool of its own computes
//! in place.

use alloc::vec::Vec;

use keywright_ring::{Domain, Poly};
#[cfg(feature = "parallel")]
use keywright_ring::{Process, RaceOnce};

/// Most threads that are started together: the limbs of one operation cannot use more.
pub const MAX_THREADS: usize = 256;

/// Number of threads that loops are shared among.
pub fn threads() -> usize {
    #[cfg(feature = "parallel")]
    return if rayon::current_thread_index().is_none() && !has_global_pool() {
        1
    } else {
        rayon::current_num_threads()
    };
    #[cfg(not(feature = "parallel"))]
    1
}

/// Whether the threads of the global pool run in this process, if this crate created the pool.
#[cfg(feature = "parallel")]
fn has_global_pool() -> bool {
    static PROCESS: RaceOnce<Process> = RaceOnce::new();
    PROCESS.get_or_init(Process::current).is_current()
}

/// Whether this thread belongs to a pool: it may take up other work while it waits for a loop.
#[cfg(feature = "std")]
pub(crate) fn in_pool() -> bool {
    #[cfg(feature = "parallel")]
    return rayon::current_thread_index().is_some();
    #[cfg(not(feature = "parallel"))]
    false
}

/// Calls `f(i, item)` for every item.
pub fn for_each_item<T: Send>(items: Vec<T>, f: impl Fn(usize, T) + Sync + Send) {
    #[cfg(feature = "parallel")]
    if threads() > 1 && items.len() > 1 {
        use rayon::prelude::*;
        items.into_par_iter().with_max_len(1).enumerate().for_each(|(i, item)| f(i, item));
        return;
    }
    for (i, item) in items.into_iter().enumerate() {
        f(i, item);
    }
}

/// A copy of the first `limbs` limbs of a polynomial.
pub fn prefix<D: Domain>(poly: &Poly<D>, limbs: usize) -> Poly<D> {
    assert!(limbs <= poly.limb_count(), "{limbs} of {} limbs", poly.limb_count());
    let mut copy = Poly::unspecified(poly.n(), limbs);
    for_each_item(copy.limbs_mut().zip(poly.limbs()).collect(), |_, (out, limb): (&mut [u64], &[u64])| {
        out.copy_from_slice(limb);
    });
    copy
}

/// Both results. If there are several threads, each has its own, and loops inside share the free threads.
pub fn join<A: Send, B: Send>(a: impl FnOnce() -> A + Send, b: impl FnOnce() -> B + Send) -> (A, B) {
    #[cfg(feature = "parallel")]
    if threads() > 1 {
        return rayon::join(a, b);
    }
    (a(), b())
}

/// Targets that are visited together: enough to read conversion rows, which come from a far cache, rarely, and few
/// enough that the limbs in progress are still in cache when they are finished. Three to six were equally fast.
const GROUP: usize = 4;

fn runs(count: usize, threads: usize) -> usize {
    threads * count.div_ceil(threads * GROUP)
}

/// Most targets of a run, given their number.
pub(crate) fn run_length(count: usize, threads: usize) -> usize {
    count.div_ceil(runs(count, threads).max(1))
}

/// Splits a list of targets into runs of about [`GROUP`], equally many per thread, each with the index of its first
/// target.
pub(crate) fn groups<T>(items: Vec<T>) -> Vec<(usize, Vec<T>)> {
    let count = items.len();
    let runs = runs(count, threads());
    let mut items = items.into_iter();
    (0..runs)
        .map(|run| {
            let (first, end) = (run * count / runs, (run + 1) * count / runs);
            (first, items.by_ref().take(end - first).collect::<Vec<_>>())
        })
        .filter(|(_, run)| !run.is_empty())
        .collect()
}
