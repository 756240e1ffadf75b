//! Arithmetic of one modulus on eight lanes, for each width of primes.

pub(crate) mod lanes;
pub(crate) mod narrow;
pub(crate) mod short;
pub(crate) mod wide;
