//! Encryptions made ahead.

pub(crate) mod encryption_pool;
mod pooled;
