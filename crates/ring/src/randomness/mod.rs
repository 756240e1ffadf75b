//! Public and secret randomness: the block function, the expander of public seeds, and samples of secrets and errors.

pub(crate) mod chacha;
pub mod expander;
pub mod sampling;
