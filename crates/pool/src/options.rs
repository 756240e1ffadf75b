use crate::PoolFileOptions;

/// The behaviour of an empty pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenEmpty {
    /// The caller makes an encryption of zero at once.
    Encrypt,
    /// The caller waits for a background thread.
    Block,
    /// The caller gets [`crate::PoolError::Empty`].
    Error,
}

/// The configuration of a pool.
#[derive(Debug)]
pub struct PoolOptions {
    /// Level of every entry.
    pub level: usize,
    /// Most entries in memory, including those being made.
    pub capacity: usize,
    /// Background threads. With none, only [`crate::EncryptionPool::fill`] makes entries.
    pub threads: usize,
    /// The behaviour when the pool is empty.
    pub when_empty: WhenEmpty,
    /// The storage of entries beyond those in memory.
    pub file: Option<PoolFileOptions>,
}
