//! The scheme end to end: its operations, rings and identities, and decryptions that are shared.
#![expect(clippy::unwrap_used, reason = "tests")]

mod flooding;
mod identities;
mod rings;
mod scheme;

use keywright_ckks::Magnitude;
use keywright_ring_testing::rng;

/// The declaration of a message that is known: its largest absolute value.
fn largest(values: impl IntoIterator<Item = f64>) -> Magnitude {
    Magnitude::new(values.into_iter().map(f64::abs).fold(f64::MIN_POSITIVE, f64::max)).unwrap()
}

fn values(count: usize, byte: u8) -> Vec<f64> {
    let mut rng = rng(byte);
    (0..count).map(|_| rng.next_word() as f64 / 2f64.powi(63) - 1.0).collect()
}
