//! Descriptions of switching keys, and the widths of primes that their shapes depend on.

pub(crate) mod spec;
pub(crate) mod widths;
