//! The digits and primes of a key switch, from the widths of primes alone.

use alloc::vec::Vec;
use core::ops::Range;

use super::coalescing::{coarser_digits, merged_primes, used_rows};
use crate::PrimeWidths;
use crate::parameters::widths::exp2;

/// The digits and primes of a key switch at a level, for keys of any rows.
///
/// Ciphertexts of level `l` are modulo `Q = q_0 .. q_l`. The input is cut into digits. Each is raised to the targets,
/// the primes of `Q` and the removed ones, and multiplied with its key rows; the sum is divided by the removed primes.
/// Keys with different rows can share a layout, and with it a decomposition: two rows of one prime serve the digit that
/// one row of two primes serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwitchLayout {
    /// Level `l` of the ciphertext.
    pub level: usize,
    /// The digits: ranges of ciphertext primes.
    pub digits: Vec<Range<usize>>,
    /// The key's special primes.
    pub special: Vec<usize>,
    /// Dropped primes that are removed too, so that coarser digits fit.
    pub merged: Vec<usize>,
    /// Whether the input is modulo `q_0` alone, and the key raises it to `Q`.
    pub raises: bool,
}

impl SwitchLayout {
    /// The use at `level` of a key of `key_level` with these digits, `coalesce` adjacent rows summed for each.
    ///
    /// # Errors
    /// The reason why the key cannot be used in this way.
    pub fn new(
        widths: &PrimeWidths,
        key_level: usize,
        key_digits: &[Range<usize>],
        special: &[usize],
        level: usize,
        coalesce: usize,
    ) -> Result<Self, &'static str> {
        if level > key_level {
            return Err("the ciphertext's level is above the key's");
        }
        if coalesce == 0 {
            return Err("a digit needs at least one row");
        }
        let digits = coarser_digits(key_digits, level, coalesce);
        let merged = merged_primes(widths, key_level, key_digits, special, level, &digits)
            .ok_or("the key has too few dropped primes to enlarge the special modulus")?;
        Ok(Self { level, digits, special: special.to_vec(), merged, raises: false })
    }

    /// The use of a one-row key that raises an input modulo `q_0` to level `level`.
    pub(crate) fn raising(level: usize, special: &[usize]) -> Self {
        let digits = core::iter::once(0..1).collect();
        Self { level, digits, special: special.to_vec(), merged: Vec::new(), raises: true }
    }

    /// Every legal use of a key at `level`, see [`super::coalescing`]: from one row per digit to all of them. Empty
    /// above the key's level.
    pub fn all<'k>(
        widths: &'k PrimeWidths,
        key_level: usize,
        key_digits: &'k [Range<usize>],
        special: &'k [usize],
        level: usize,
    ) -> impl Iterator<Item = Self> + 'k {
        (1..=used_rows(key_digits, level))
            .filter_map(move |rows| Self::new(widths, key_level, key_digits, special, level, rows).ok())
    }

    /// Level of the polynomial that is switched.
    pub fn input_level(&self) -> usize {
        if self.raises { 0 } else { self.level }
    }

    /// Indices of the primes that the result is divided by, without `q_level` of a merged rescaling.
    pub fn removed(&self) -> impl Iterator<Item = usize> + Clone + '_ {
        self.special.iter().chain(&self.merged).copied()
    }

    /// Number of target primes.
    pub fn target_count(&self) -> usize {
        self.level + 1 + self.special.len() + self.merged.len()
    }

    /// For each used row of a key with these digits, the digit of the switch that it serves.
    pub fn digit_of_rows(&self, key_digits: &[Range<usize>]) -> Vec<usize> {
        key_digits[..used_rows(key_digits, self.level)]
            .iter()
            .filter_map(|row| self.digits.iter().position(|digit| digit.contains(&row.start)))
            .collect()
    }

    /// Variance that the row errors of a key with these digits add, divided by `N V / 12` for errors of variance `V`.
    /// Digit `j` is uniform in `[-Q_j/2, Q_j/2]` and multiplies the errors of its `r_j` rows:
    /// `sum_j r_j Q_j^2 / (P D)^2`.
    pub fn relative_noise(&self, widths: &PrimeWidths, key_digits: &[Range<usize>]) -> f64 {
        let divisor = widths.log2_product(self.removed());
        let rows = self.digit_of_rows(key_digits);
        rows.into_iter()
            .map(|row| exp2(2.0 * (widths.log2_product(self.digits[row].clone()) - divisor)))
            .sum()
    }
}
