//! Common needs of measurements: reproducible randomness, errors of results, memory.

use keywright_circuits::bootstrapping::{BootstrapperLiteral, Values};
use keywright_ckks::Complex64;
use keywright_ring::sampling::SecretRng;

/// A source of the same randomness in every run. For measurements only.
pub fn rng(byte: u8) -> SecretRng {
    SecretRng::from_entropy(&zeroize::Zeroizing::new([byte; 32]))
}

/// Values for every slot of a bootstrapping, their parts uniform in `[-1, 1)`.
pub fn random_values(source: &mut SecretRng, literal: &BootstrapperLiteral) -> Vec<Complex64> {
    let mut unit = || source.next_word() as f64 / 2f64.powi(63) - 1.0;
    let imaginary = if literal.values == Values::Complex { 1.0 } else { 0.0 };
    (0..1usize << literal.log_slots).map(|_| Complex64::new(unit(), imaginary * unit())).collect()
}

/// Distances of decrypted parts from expected ones.
#[derive(Debug, Clone, Default)]
pub struct PartErrors {
    /// The largest so far.
    pub largest: f64,
    sum: f64,
    count: f64,
}

impl PartErrors {
    /// Counts the real parts of a vector, and the imaginary ones if `kind` has them.
    pub fn add(&mut self, values: &[Complex64], expected: &[Complex64], kind: Values) {
        for (value, expected) in values.iter().zip(expected) {
            let error = value - expected;
            let parts = [error.re.abs(), error.im.abs()];
            for part in &parts[..if kind == Values::Complex { 2 } else { 1 }] {
                (self.largest, self.sum, self.count) =
                    (self.largest.max(*part), self.sum + part, self.count + 1.0);
            }
        }
    }

    /// `-log2` of the largest.
    pub fn worst_bits(&self) -> f64 {
        -self.largest.log2()
    }

    /// `-log2` of their mean.
    pub fn mean_bits(&self) -> f64 {
        -(self.sum / self.count).log2()
    }
}

/// Peak resident memory of this process, from the kernel's accounting.
pub fn peak_rss() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kilobytes: usize = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes * 1024)
}
