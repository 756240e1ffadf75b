use keywright_ring::Backend;

use crate::samples::SplitMix64;

/// Sums of planes are those of the definition, for every number of planes around the blocks of back ends, lengths around
/// theirs, and the largest bytes.
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
