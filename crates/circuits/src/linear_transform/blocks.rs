//! Sizes of the blocks that an evaluation works on: they bound its memory.

/// Primes that digits are raised to together: their conversion rows come from a far cache and are read once for all.
pub(crate) const GROUP: usize = 2;

/// Words of baby steps that a thread keeps, 64 MiB: at `N = 2^16`, 32 baby steps modulo two primes. More are made in
/// batches, and each batch adds to the sums once.
pub(crate) const BABY_WORDS: usize = 1 << 23;

/// The most words of a limb that all giant steps visit together.
pub(crate) const BLOCK: usize = 1024;

/// Words of diagonals that are transformed at a time, 8 MiB: they are used before they leave the cache.
pub(crate) const TRANSFORMED_WORDS: usize = 1 << 20;

/// Words from one half of a baby step to the next. A power of two would let all of them compete for the same sets of a
/// cache. With this distance, their blocks are in different sets, and so are their lines.
pub(crate) fn row_words(n: usize) -> usize {
    n + BLOCK.min(n / 8) + 8
}

/// Giant steps that are divided and decomposed together.
pub(crate) const GIANTS: usize = 8;

/// The most sums that are in memory together, of those that are left. A chain uses one after the other. Without a key
/// switch among the baby steps, it makes some at a time.
pub(crate) fn sums_together(chained: bool, switched: bool, left: usize) -> usize {
    if chained && !switched { GIANTS.min(left) } else { left }
}
