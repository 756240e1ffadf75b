//! Errors of rings, keys and schemes.

pub(crate) mod bfv;
pub(crate) mod ckks;
pub(crate) mod rlwe;
