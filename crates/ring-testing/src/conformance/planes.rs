use keywright_ring::Backend;

use super::ring;
use crate::samples::{SplitMix64, edge_primes};

/// Sums of planes equal the definition for numbers of planes and lengths around the block sizes of back ends, and for
/// the largest bytes.
pub fn planes_are_added(backend: &'static dyn Backend) {
    let mut random = SplitMix64(12);
    for count in [0, 1, 31, 32, 33, 127, 128, 129, 1000] {
        for planes in [0, 1, 3, 4, 5, 15, 255] {
            let full = planes == 255;
            let mut bytes = |length: usize| -> Vec<Vec<u8>> {
                let byte = |random: &mut SplitMix64| if full { 255 } else { random.next_word() as u8 };
                (0..planes).map(|_| (0..length).map(|_| byte(&mut random)).collect()).collect()
            };
            let (wide, narrow) = (bytes(4 * count), bytes(count));
            let mut words = vec![7u64 << 40; count];
            backend.add_words(&wide.iter().map(Vec::as_slice).collect::<Vec<_>>(), &mut words);
            let mut halves = vec![3u16; count];
            backend.add_bytes(&narrow.iter().map(Vec::as_slice).collect::<Vec<_>>(), &mut halves);
            for i in 0..count {
                let word =
                    |plane: &Vec<u8>| (0..4).map(|k| u64::from(plane[4 * i + k]) << (8 * k)).sum::<u64>();
                assert_eq!(words[i], (7 << 40) + wide.iter().map(word).sum::<u64>(), "word {i} of {count}");
                let expected = 3 + narrow.iter().map(|plane| u32::from(plane[i])).sum::<u32>();
                assert_eq!(u32::from(halves[i]), expected, "byte {i} of {count}");
            }
        }
    }
}

/// Folded sums equal residues of big integers, and written planes equal the bytes of the words, for every width of a
/// modulus and the largest words.
pub fn sums_are_folded(backend: &'static dyn Backend) {
    let mut random = SplitMix64(13);
    let primes = edge_primes(10);
    let ring = ring(10, &primes, backend);
    for (i, &q) in primes.iter().enumerate() {
        let modulus = ring.modulus(i);
        for (count, extra) in [(0, 1), (1, 0), (7, 1), (8, 2), (9, 3), (1000, 3)] {
            let mut word = |i: usize, bits: u32| {
                let ones = u64::MAX >> (64 - bits);
                [ones, 0, random.next_word() & ones][if i < 2 { i } else { 2 }]
            };
            // The sum in brackets is below 2^63 + 2^48 + 2^56 + 2^60.
            let sums: Vec<u64> = (0..count).map(|i| word(i, 63)).collect();
            let high: Vec<Vec<u16>> =
                (0..extra).map(|j| (0..count).map(|i| word(i, 28 - 8 * j as u32) as u16).collect()).collect();
            let mut folded = sums.clone();
            backend.fold_sums(modulus, &high.iter().map(Vec::as_slice).collect::<Vec<_>>(), &mut folded);
            for i in 0..count {
                let parts = high.iter().enumerate().map(|(j, high)| u128::from(high[i]) << (32 + 8 * j));
                let sum = u128::from(sums[i]) + parts.sum::<u128>();
                assert!(sum >> 64 == 0, "a sum that is allowed");
                assert_eq!(u128::from(folded[i]), sum % u128::from(q), "sum {i} of {count} mod {q}");
            }
            let mut low = vec![0; 4 * count];
            let mut planes = vec![vec![0; count]; extra];
            let mut slices: Vec<_> = planes.iter_mut().map(Vec::as_mut_slice).collect();
            backend.write_planes(&sums, &mut low, &mut slices);
            for (i, word) in sums.iter().map(|word| word.to_le_bytes()).enumerate() {
                assert_eq!(low[4 * i..4 * i + 4], word[..4], "word {i} of {count}");
                assert!((0..extra).all(|j| planes[j][i] == word[4 + j]), "word {i} of {count}");
            }
        }
    }
}
