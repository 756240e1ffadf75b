//! Encryptions made ahead of time.

pub(crate) mod encryption_pool;
mod pooled;
