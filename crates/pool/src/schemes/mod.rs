//! Messages of each scheme added to encryptions of zero.

pub mod bfv;
pub mod ckks;
