//! Residues in whole bytes, as they are sent, and their sums.

use keywright_ring::Modulus;
use keywright_rlwe::{for_each_item, threads};

/// Values that are added at a time: their accumulators stay in the first-level cache.
const BLOCK: usize = 1024;

/// `count` residues of `4 + extra` bytes: first the low four bytes of each, then byte 4 of each, byte 5, byte 6.
///
/// Planes instead of packed numbers make addition a matter of widening loads, which every instruction set has. A word above
/// the modulus stands for its residue: nothing is compared while adding.
///
/// # Invariant
/// `bytes.len() == count * (4 + extra)`, `extra <= 3`.
#[derive(Clone, PartialEq, Eq)]
pub struct Residues {
    count: usize,
    extra: usize,
    bytes: Vec<u8>,
}

impl Residues {
    /// Residues of `width` bytes from their planes; `None` if the bytes are not a whole number of them or the width is
    /// not 4 to 7.
    pub fn from_planes(width: usize, bytes: Vec<u8>) -> Option<Self> {
        let extra = width.checked_sub(4).filter(|&extra| extra <= 3)?;
        let count = bytes.len() / width;
        (count * width == bytes.len()).then_some(Self { count, extra, bytes })
    }

    /// Zeros.
    pub(crate) fn zeros(width: usize, count: usize) -> Self {
        Self { count, extra: width - 4, bytes: vec![0; count * width] }
    }

    /// Number of residues.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Bytes of one residue.
    pub fn width(&self) -> usize {
        4 + self.extra
    }

    /// The planes, one after another.
    pub fn planes(&self) -> &[u8] {
        &self.bytes
    }

    fn plane(&self, j: usize) -> &[u8] {
        &self.bytes[(4 + j) * self.count..(5 + j) * self.count]
    }

    /// Residues `first ..` into words.
    pub(crate) fn words(&self, first: usize, out: &mut [u64]) {
        let end = first + out.len();
        for (word, low) in out.iter_mut().zip(self.bytes[4 * first..4 * end].as_chunks::<4>().0) {
            *word = u32::from_le_bytes(*low).into();
        }
        for j in 0..self.extra {
            for (word, &byte) in out.iter_mut().zip(&self.plane(j)[first..end]) {
                *word |= u64::from(byte) << (32 + 8 * j);
            }
        }
    }

    /// Consecutive runs of `length` residues, to write.
    pub(crate) fn runs_mut(&mut self, length: usize) -> Vec<Run<'_>> {
        let (low, high) = self.bytes.split_at_mut(4 * self.count);
        let mut planes: Vec<_> =
            high.chunks_exact_mut(self.count.max(1)).map(|plane| plane.chunks_mut(length)).collect();
        low.chunks_mut(4 * length)
            .map(|low| Run { low, high: planes.iter_mut().filter_map(Iterator::next).collect() })
            .collect()
    }

    /// The sums modulo `modulus` of residues of equal shape, all read once. At most `2^20` summands.
    ///
    /// # Panics
    /// If a summand has another shape than the first, or there is none.
    pub(crate) fn sum(modulus: &Modulus, parts: &[&Self]) -> Self {
        let first = parts[0];
        assert!(
            parts.iter().all(|part| (part.count, part.extra) == (first.count, first.extra)),
            "equal shapes"
        );
        debug_assert!(parts.len() <= crate::MAX_INPUTS as usize);
        let mut out = Self::zeros(first.width(), first.count);
        // Runs of a thread are whole blocks; what a thread takes is worth waking it.
        let per_thread = first.count.div_ceil(threads()).next_multiple_of(BLOCK).max(16 * BLOCK);
        for_each_item(out.runs_mut(per_thread), |i, mut run| {
            let (start, count) = (i * per_thread, run.low.len() / 4);
            for offset in (0..count).step_by(BLOCK) {
                let length = BLOCK.min(count - offset);
                add_block(modulus, parts, start + offset, &mut run.part(offset, length));
            }
        });
        out
    }
}

/// Consecutive residues of [`Residues`], to write.
pub(crate) struct Run<'a> {
    low: &'a mut [u8],
    high: Vec<&'a mut [u8]>,
}

impl Run<'_> {
    /// Number of residues.
    pub(crate) fn len(&self) -> usize {
        self.low.len() / 4
    }

    fn part(&mut self, offset: usize, length: usize) -> Run<'_> {
        Run {
            low: &mut self.low[4 * offset..4 * (offset + length)],
            high: self.high.iter_mut().map(|plane| &mut plane[offset..offset + length]).collect(),
        }
    }

    /// Stores canonical words.
    pub(crate) fn store(&mut self, words: &[u64]) {
        for (low, &word) in self.low.as_chunks_mut::<4>().0.iter_mut().zip(words) {
            *low = (word as u32).to_le_bytes();
        }
        for (j, plane) in self.high.iter_mut().enumerate() {
            for (byte, &word) in plane.iter_mut().zip(words) {
                *byte = (word >> (32 + 8 * j)) as u8;
            }
        }
    }
}

/// # Invariant
/// With at most `2^20` parts the sums of words below `2^32` stay below `2^52`, those of bytes below `2^28`; what is combined
/// is below `2^76`, and below `2^64` where it is reduced as one word.
fn add_block(modulus: &Modulus, parts: &[&Residues], first: usize, out: &mut Run<'_>) {
    let length = out.len();
    let mut low = [0u64; BLOCK];
    let mut high = [[0u32; BLOCK]; 3];
    for part in parts {
        let bytes = &part.bytes[4 * first..4 * (first + length)];
        for (sum, word) in low.iter_mut().zip(bytes.as_chunks::<4>().0) {
            *sum += u64::from(u32::from_le_bytes(*word));
        }
        for (j, sums) in high.iter_mut().enumerate().take(part.extra) {
            for (sum, &byte) in sums.iter_mut().zip(&part.plane(j)[first..first + length]) {
                *sum += u32::from(byte);
            }
        }
    }
    let extra = out.high.len();
    let one_word = (parts.len() as u128) << (32 + 8 * extra) <= 1 << 64;
    for (i, sum) in low.iter_mut().enumerate().take(length) {
        *sum = if one_word {
            let top = (0..extra).fold(0, |top, j| top + (u64::from(high[j][i]) << (32 + 8 * j)));
            modulus.reduce(*sum + top)
        } else {
            let top = (0..extra).fold(0, |top, j| top + (u128::from(high[j][i]) << (32 + 8 * j)));
            modulus.reduce_u128(u128::from(*sum) + top)
        };
    }
    out.store(&low[..length]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Against addition one by one, for words of every width, the largest included.
        #[test]
        fn sums_are_the_naive_ones(
            width in 4usize..=7,
            count in 0usize..5000,
            inputs in 1usize..40,
            seed in any::<u64>(),
        ) {
            let modulus = Modulus::new((1u64 << (8 * width)) - 59).unwrap();
            let mask = (1u64 << (8 * width)) - 1;
            let mut state = seed | 1;
            let mut words = vec![vec![0u64; count]; inputs];
            for word in words.iter_mut().flatten() {
                state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
                *word = if state >> 60 == 0 { mask } else { (state >> 8) & mask };
            }
            let parts: Vec<_> = words.iter().map(|words| {
                let mut part = Residues::zeros(width, count);
                for run in part.runs_mut(count.max(1)).iter_mut() {
                    run.store(words);
                }
                let mut back = vec![0; count];
                part.words(0, &mut back);
                assert_eq!(&back, words);
                part
            }).collect();
            let sum = Residues::sum(&modulus, &parts.iter().collect::<Vec<_>>());
            let mut found = vec![0; count];
            sum.words(0, &mut found);
            for i in 0..count {
                let naive = words.iter().fold(0u128, |sum, words| sum + u128::from(words[i]));
                prop_assert_eq!(u128::from(found[i]), naive % u128::from(modulus.value()));
            }
        }
    }

    #[test]
    fn many_summands_of_the_widest_word_do_not_overflow() {
        let modulus = Modulus::new((1 << 56) - 5).unwrap();
        let part = Residues::from_planes(7, vec![255; 7 * 3]).unwrap();
        let inputs = 1 << 20;
        let sum = Residues::sum(&modulus, &vec![&part; inputs]);
        let mut found = [0; 3];
        sum.words(0, &mut found);
        assert_eq!(found, [modulus.reduce_u128(((1u128 << 56) - 1) * inputs as u128); 3]);
    }

    #[test]
    fn shapes_are_checked() {
        assert!(Residues::from_planes(3, vec![]).is_none());
        assert!(Residues::from_planes(8, vec![0; 8]).is_none());
        assert!(Residues::from_planes(5, vec![0; 11]).is_none());
        assert_eq!(Residues::from_planes(5, vec![0; 10]).unwrap().count(), 2);
    }
}
