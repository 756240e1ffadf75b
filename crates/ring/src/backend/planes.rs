//! Sums of many words whose bytes are stored apart: the entries of pools and encrypted updates.

use crate::Modulus;

/// Kernels on planes: the low four bytes of every word, then one byte of every word at a time. Slices have any length.
pub trait Planes: Send + Sync {
    /// `sums[i] += ` the little-endian word of four bytes `i` of every plane, modulo `2^64`.
    ///
    /// # Panics
    /// If the length of a plane is not four bytes per sum.
    fn add_words(&self, planes: &[&[u8]], sums: &mut [u64]);
    /// `sums[i] += ` byte `i` of every plane; sums stay below `2^16`.
    ///
    /// # Panics
    /// If the length of a plane is not one byte per sum.
    fn add_bytes(&self, planes: &[&[u8]], sums: &mut [u16]);
    /// `sums[i] = (sums[i] + sum_j high[j][i] 2^(32 + 8 j)) mod m`, canonical; the sum in brackets is below `2^64`.
    ///
    /// # Panics
    /// If the length of a slice of `high` differs from that of `sums`.
    fn fold_sums(&self, m: &Modulus, high: &[&[u16]], sums: &mut [u64]);
    /// Writes the low four bytes of every word into `low`, and byte `4 + j` into `high[j]`.
    ///
    /// # Panics
    /// If the length of `low` is not four bytes per word, or that of a slice of `high` not one.
    fn write_planes(&self, words: &[u64], low: &mut [u8], high: &mut [&mut [u8]]);
}

/// # Panics
/// If a plane has another length.
pub(super) fn require_planes(planes: &[&[u8]], bytes: usize) {
    assert!(planes.iter().all(|plane| plane.len() == bytes), "planes of {bytes} bytes");
}

/// # Panics
/// If a slice has another length.
pub(super) fn require_length<T>(slices: &[&[T]], length: usize) {
    assert!(slices.iter().all(|slice| slice.len() == length), "slices of {length} sums");
}

/// # Panics
/// If a plane has another length.
pub(super) fn require_planes_mut(count: usize, low: &[u8], high: &[&mut [u8]]) {
    assert!(
        low.len() == 4 * count && high.iter().all(|plane| plane.len() == count),
        "planes of {count} words"
    );
}
