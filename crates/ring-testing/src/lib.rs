//! Naive oracles and the conformance suite of Keywright's ring back ends.
//!
//! [`oracle`] computes by definition, with `u128` remainders and big integers, and shares no arithmetic with the code
//! under test. [`conformance`] runs a [`Backend`](keywright_ring::Backend) through every kernel of the trait. It
//! compares with the oracles at `N = 2^10`, and with the portable back end, bit for bit, at `N = 2^13`, `2^16` and
//! `2^17`. [`conformance_suite!`] makes one test per kernel family.
//!
//! `children` runs parts of a test in forked processes.
//!
//! Everything here panics on a mismatch, as tests do. No product links it.

#[cfg(target_os = "linux")]
pub mod children;
pub mod conformance;
pub mod oracle;
pub mod samples;

use keywright_ring::sampling::SecretRng;

/// A generator of known secrets, one for each byte.
pub fn rng(byte: u8) -> SecretRng {
    SecretRng::from_entropy(&[byte; 32].into())
}
