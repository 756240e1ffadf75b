use core::ops::RangeInclusive;

/// Bytes of the keys that are made at once and share a decomposition.
const BATCH_BYTES: usize = 1 << 30;
/// Keys that are made at once: at least two for any size, and at most as many as the scratch space of a switch should
/// grow by.
pub(super) const BATCH: RangeInclusive<usize> = 2..=16;
/// Those of them from which further keys are derived: they stay in memory until then.
const INNER_PER_BATCH: usize = 2;

/// Splits the keys that are derived from one key into batches; each batch costs a decomposition.
#[derive(Debug, Clone, Copy)]
pub(super) struct Batches {
    most: usize,
}

impl Batches {
    /// For keys with this many rows over this many primes of the chain, in the ring of degree `2^log_n`.
    pub(super) fn new(log_n: u32, rows: usize, primes: usize) -> Self {
        let bytes = (16 << log_n) * rows * primes;
        Self { most: (BATCH_BYTES / bytes.max(1)).clamp(*BATCH.start(), *BATCH.end()) }
    }

    /// The number of the next keys that are made at once: at least one, if there are any. `inner` tells for each
    /// whether others are derived from it.
    pub(super) fn next(self, inner: impl Iterator<Item = bool>) -> usize {
        let fits = |count: &mut usize, inner: bool| {
            *count += usize::from(inner);
            (*count <= INNER_PER_BATCH).then_some(())
        };
        inner.take(self.most).scan(0, fits).count()
    }

    /// Number of batches of all keys that are derived from one.
    pub(super) fn count(self, inner: impl Iterator<Item = bool> + Clone) -> usize {
        let mut left = inner.peekable();
        let mut count = 0;
        while left.peek().is_some() {
            let derived = self.next(left.clone());
            left.by_ref().take(derived).for_each(drop);
            count += 1;
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use core::iter::repeat_n;

    use super::*;

    #[test]
    fn batches_end_at_bytes_at_a_number_and_at_inner_keys() {
        let small = Batches::new(10, 1, 1);
        assert_eq!(small.count([].into_iter()), 0);
        assert_eq!([1, 16, 17, 33].map(|leaves| small.count(repeat_n(false, leaves))), [1, 1, 2, 3]);
        assert_eq!([1, 2, 3, 8].map(|inner| small.count(repeat_n(true, inner))), [1, 1, 2, 4]);
        // A leaf goes with the inner keys before it; the third inner key begins a batch.
        assert_eq!(small.next([true, true, false, true].into_iter()), 3);
        // 2^26 bytes for each row and prime of a key.
        let [five, large] = [Batches::new(22, 1, 3), Batches::new(22, 4, 10)];
        assert_eq!((five.next([false; 9].into_iter()), large.next([false; 9].into_iter())), (5, 2));
    }
}
