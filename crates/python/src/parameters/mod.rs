//! Parameters of either scheme, and of keys, which are independent of the scheme.

pub(crate) mod bfv;
pub(crate) mod ckks;
pub(crate) mod keys;
mod methods;
