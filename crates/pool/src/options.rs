use crate::PoolFileOptions;

/// What happens when an entry is wanted and none is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenEmpty {
    /// An encryption of zero is made at once, by whoever wants it.
    Encrypt,
    /// Wait for a background thread.
    Block,
    /// [`crate::PoolError::Empty`].
    Error,
}

/// How a pool is run.
#[derive(Debug)]
pub struct PoolOptions {
    /// Level of every entry.
    pub level: usize,
    /// Most entries in memory, those being made included.
    pub capacity: usize,
    /// Background threads. With none, only [`crate::EncryptionPool::fill`] makes entries.
    pub threads: usize,
    /// What happens when it is empty.
    pub when_empty: WhenEmpty,
    /// Where entries beyond those in memory are kept.
    pub file: Option<PoolFileOptions>,
}
