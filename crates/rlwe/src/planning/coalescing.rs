//! Coarser digits from the same key (coalescing, Hwang, Seo, Song, ePrint 2023/1328).
//!
//! At a level `l` below the key's, let `D` be the product of dropped primes that start at a digit boundary. `D c`
//! modulo `Q D` is 0 modulo every dropped prime, so digits above `l` vanish. The sum of `r` adjacent rows has `g = 1`
//! on all of their `r` digits, and serves one digit that is `r` times as long. The steps of [`super::plan`] run with
//! the input `D c`, the coarse digits, and the special modulus `P D`, which must not be below a coarse digit. The same
//! key thus needs fewer transforms.
//!
//! [`crate::SwitchLayout::all`] lists the legal numbers of rows; [`crate::EvaluationKeys`] chooses one by
//! [`crate::SwitchLayout::rank`].

use alloc::vec::Vec;
use core::ops::Range;

use crate::PrimeWidths;
use crate::parameters::widths::fits;

/// The rows of a key that a ciphertext at `level` uses.
pub(crate) fn used_rows(key_digits: &[Range<usize>], level: usize) -> usize {
    key_digits.iter().filter(|digit| digit.start <= level).count()
}

/// The digits at `level`, each served by `rows` adjacent rows of a key with these digits.
pub(super) fn coarser_digits(key_digits: &[Range<usize>], level: usize, rows: usize) -> Vec<Range<usize>> {
    key_digits[..used_rows(key_digits, level)]
        .chunks(rows)
        .filter_map(|rows| Some(rows.first()?.start..rows.last()?.end.min(level + 1)))
        .collect()
}

/// The primes of `D`: dropped ones, from the first digit boundary above the level, until `P D` holds the longest digit.
/// `None` if all primes up to the key's level are too few.
pub(super) fn merged_primes(
    widths: &PrimeWidths,
    key_level: usize,
    key_digits: &[Range<usize>],
    special: &[usize],
    level: usize,
    digits: &[Range<usize>],
) -> Option<Vec<usize>> {
    let first = key_digits[used_rows(key_digits, level) - 1].end;
    let widest = digits.iter().map(|digit| widths.log2_product(digit.clone())).fold(0.0, f64::max);
    let mut bits = widths.log2_product(special.iter().copied());
    let mut merged = Vec::new();
    while !fits(widest, bits) {
        let next = first + merged.len();
        if next > key_level {
            return None;
        }
        bits += widths.log2(next);
        merged.push(next);
    }
    Some(merged)
}
