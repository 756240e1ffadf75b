//! Expansion of public seeds, and samples.

pub(crate) mod expander;
pub(crate) mod sampling;
