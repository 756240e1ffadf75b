//! Residues in whole bytes, as sent, and their sums.

use keywright_ring::{Backend, Modulus, backend};
use keywright_rlwe::{for_each_item, threads};

/// Values that are added at a time. Their accumulators, 10 to 14 bytes each, stay in the second-level cache, and the
/// read of every summand is long enough for the processor to prefetch.
const BLOCK: usize = 1 << 14;

/// `count` residues of `4 + extra` bytes: first the low four bytes of each, then byte 4 of each, byte 5, byte 6.
///
/// Planes instead of packed numbers make addition a matter of widening loads, which every instruction set has. A word
/// above the modulus represents its residue: addition compares nothing.
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

    /// Unpacks residues `first ..` into words.
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

    /// Consecutive runs of `length` residues, for writing.
    pub(crate) fn runs_mut(&mut self, length: usize) -> Vec<Run<'_>> {
        let (low, high) = self.bytes.split_at_mut(4 * self.count);
        let mut planes: Vec<_> =
            high.chunks_exact_mut(self.count.max(1)).map(|plane| plane.chunks_mut(length)).collect();
        low.chunks_mut(4 * length)
            .map(|low| Run { low, high: planes.iter_mut().filter_map(Iterator::next).collect() })
            .collect()
    }

    /// The sums modulo `modulus` of residues of equal shape, each read once.
    ///
    /// # Panics
    /// If the shapes differ, or there is no summand.
    pub(crate) fn sum(modulus: &Modulus, parts: &[&Self]) -> Self {
        let first = parts[0];
        assert!(
            parts.iter().all(|part| (part.count, part.extra) == (first.count, first.extra)),
            "equal shapes"
        );
        let mut out = Self::zeros(first.width(), first.count);
        // A thread's runs are whole blocks, large enough to be worth waking the thread.
        let per_thread = first.count.div_ceil(threads()).next_multiple_of(BLOCK).max(BLOCK);
        for_each_item(out.runs_mut(per_thread), |i, mut run| {
            let (start, count) = (i * per_thread, run.len());
            let mut scratch = Scratch::new(first.extra, count);
            for offset in (0..count).step_by(BLOCK) {
                let length = BLOCK.min(count - offset);
                scratch.add_block(modulus, parts, start + offset, &mut run.part(offset, length));
            }
        });
        out
    }
}

/// Consecutive residues of [`Residues`], for writing.
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
    pub(crate) fn store(&mut self, backend: &dyn Backend, words: &[u64]) {
        backend.write_planes(words, self.low, &mut self.high);
    }
}

/// Summands that are added before a reduction.
///
/// # Invariant
/// `GROUP` words of 56 bits and a residue of 56 bits are below `2^64`; `GROUP` bytes are below `2^16`.
const GROUP: usize = 255;

/// Accumulators of a block: of the low words, and of every further byte.
struct Scratch {
    low: Vec<u64>,
    high: Vec<Vec<u16>>,
    backend: &'static dyn Backend,
}

impl Scratch {
    fn new(extra: usize, count: usize) -> Self {
        let length = count.min(BLOCK);
        // If the environment names a back end that is missing, rings cannot be made, and their error says so.
        let backend = backend::default().unwrap_or_else(|_| backend::portable());
        Self { low: vec![0; length], high: vec![vec![0; length]; extra], backend }
    }

    fn add_block(&mut self, modulus: &Modulus, parts: &[&Residues], first: usize, out: &mut Run<'_>) {
        let length = out.len();
        let low = &mut self.low[..length];
        low.fill(0);
        for group in parts.chunks(GROUP) {
            self.high.iter_mut().for_each(|high| high.fill(0));
            let low_planes: Vec<_> =
                group.iter().map(|part| &part.bytes[4 * first..4 * (first + length)]).collect();
            self.backend.add_words(&low_planes, low);
            for (j, high) in self.high.iter_mut().enumerate() {
                let planes: Vec<_> = group.iter().map(|part| &part.plane(j)[first..first + length]).collect();
                self.backend.add_bytes(&planes, &mut high[..length]);
            }
            let high: Vec<_> = self.high.iter().map(|high| &high[..length]).collect();
            self.backend.fold_sums(modulus, &high, low);
        }
        out.store(self.backend, low);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Against addition one by one, for words of every width, including the largest.
        #[test]
        fn sums_are_the_naive_ones(
            width in 4usize..=7,
            count in prop_oneof![0usize..3000, 16_380usize..16_390, Just(40_000)],
            inputs in 1usize..12,
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
                    run.store(backend::portable(), words);
                }
                let mut back = vec![0; count];
                part.words(0, &mut back);
                assert_eq!(&back, words);
                part
            }).collect();
            let sum = Residues::sum(&modulus, &parts.iter().collect::<Vec<_>>());
            let mut residues = vec![0; count];
            sum.words(0, &mut residues);
            for i in 0..count {
                let naive = words.iter().fold(0u128, |sum, words| sum + u128::from(words[i]));
                prop_assert_eq!(u128::from(residues[i]), naive % u128::from(modulus.value()));
            }
        }
    }

    #[test]
    fn many_summands_of_the_widest_word_do_not_overflow() {
        let modulus = Modulus::new((1 << 56) - 5).unwrap();
        let part = Residues::from_planes(7, vec![255; 7 * 3]).unwrap();
        for inputs in [254, 255, 256, 510, 511, 1 << 20] {
            let sum = Residues::sum(&modulus, &vec![&part; inputs]);
            let mut residues = [0; 3];
            sum.words(0, &mut residues);
            assert_eq!(residues, [modulus.reduce_u128(((1u128 << 56) - 1) * inputs as u128); 3]);
        }
    }

    #[test]
    fn shapes_are_checked() {
        assert!(Residues::from_planes(3, vec![]).is_none());
        assert!(Residues::from_planes(8, vec![0; 8]).is_none());
        assert!(Residues::from_planes(5, vec![0; 11]).is_none());
        assert_eq!(Residues::from_planes(5, vec![0; 10]).unwrap().count(), 2);
    }
}
