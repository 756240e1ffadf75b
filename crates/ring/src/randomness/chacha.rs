//! ChaCha's block function (RFC 8439 with any number of rounds), a few blocks side by side: 8 rounds for public data in
//! [`super::expander`], 20 for secrets in [`crate::sampling`].

/// Blocks of a chunk, the unit in which back ends compute the key stream.
pub(crate) const CHUNK_BLOCKS: usize = 16;
/// Words of one chunk.
pub const CHUNK_WORDS: usize = 8 * CHUNK_BLOCKS;
/// Double rounds of ChaCha8.
pub(crate) const CHACHA8: usize = 4;
/// Double rounds of ChaCha20.
pub(crate) const CHACHA20: usize = 10;

const CONSTANTS: [u32; 4] = [0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574];

/// The sixteen input words of a key; words 12 to 15 are zero.
pub(crate) fn keyed(key: &[u8; 32]) -> [u32; 16] {
    let mut state = [0u32; 16];
    state[..4].copy_from_slice(&CONSTANTS);
    for (word, bytes) in state[4..12].iter_mut().zip(key.as_chunks::<4>().0) {
        *word = u32::from_le_bytes(*bytes);
    }
    state
}

/// Blocks computed side by side: as many as the narrowest vector registers have lanes, or one where there are none.
pub(crate) const LANES: usize = if cfg!(target_arch = "arm") { 1 } else { 4 };
/// One word of the state of [`LANES`] blocks.
pub(crate) type Word = [u32; LANES];

#[inline(always)]
fn add(a: Word, b: Word) -> Word {
    core::array::from_fn(|lane| a[lane].wrapping_add(b[lane]))
}

#[inline(always)]
fn xor_rotate(a: Word, b: Word, by: u32) -> Word {
    core::array::from_fn(|lane| (a[lane] ^ b[lane]).rotate_left(by))
}

#[inline(always)]
fn quarter_round(s: &mut [Word; 16], a: usize, b: usize, c: usize, d: usize) {
    s[a] = add(s[a], s[b]);
    s[d] = xor_rotate(s[d], s[a], 16);
    s[c] = add(s[c], s[d]);
    s[b] = xor_rotate(s[b], s[c], 12);
    s[a] = add(s[a], s[b]);
    s[d] = xor_rotate(s[d], s[a], 8);
    s[c] = add(s[c], s[d]);
    s[b] = xor_rotate(s[b], s[c], 7);
}

#[inline(always)]
fn double_round(s: &mut [Word; 16]) {
    quarter_round(s, 0, 4, 8, 12);
    quarter_round(s, 1, 5, 9, 13);
    quarter_round(s, 2, 6, 10, 14);
    quarter_round(s, 3, 7, 11, 15);
    quarter_round(s, 0, 5, 10, 15);
    quarter_round(s, 1, 6, 11, 12);
    quarter_round(s, 2, 7, 8, 13);
    quarter_round(s, 3, 4, 9, 14);
}

/// [`LANES`] blocks, word by word: `number`, `number + step` and so on. The block number replaces word 12 of the input.
#[inline(always)]
pub(crate) fn blocks<const DOUBLE_ROUNDS: usize>(input: &[u32; 16], number: u32, step: u32) -> [Word; 16] {
    let mut start = input.map(|word| [word; LANES]);
    start[12] = core::array::from_fn(|lane| number + step * lane as u32);
    let mut s = start;
    macro_rules! unrolled {
        ($($number:literal)*) => {$(
            if $number < DOUBLE_ROUNDS {
                double_round(&mut s);
            }
        )*};
    }
    if LANES == 1 {
        // Few registers: values that a loop keeps are moved at its end.
        unrolled!(0 1 2 3 4 5 6 7 8 9);
    } else {
        (0..DOUBLE_ROUNDS).for_each(|_| double_round(&mut s));
    }
    for (word, first) in s.iter_mut().zip(start) {
        *word = add(*word, first);
    }
    s
}

/// Chunks of ChaCha20's key stream, from block `first` on, as little-endian words: the definition of
/// [`crate::backend::Sampling::key_stream`].
pub(crate) fn key_stream(key: &[u32; 16], first: u64, out: &mut [u64]) {
    let mut state = *key;
    for (place, number) in out.chunks_exact_mut(8 * LANES).zip((first..).step_by(LANES)) {
        state[13] = (number >> 32) as u32;
        let words = blocks::<CHACHA20>(&state, number as u32, 1);
        for (lane, block) in place.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            for (word, pair) in block.iter_mut().zip(words.as_chunks::<2>().0) {
                *word = u64::from(pair[0][lane]) | u64::from(pair[1][lane]) << 32;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chacha20::{ChaCha8Rng, ChaCha20Rng};
    use rand_core::{Rng, SeedableRng};

    /// The block function against an independent implementation.
    #[test]
    fn blocks_are_chacha() {
        fn check<const DOUBLE_ROUNDS: usize>(key: [u8; 32], mut reference: impl Rng) {
            let state = keyed(&key);
            for number in (0..40).step_by(LANES) {
                let words = blocks::<DOUBLE_ROUNDS>(&state, number, 1);
                for lane in 0..LANES {
                    for word in words {
                        assert_eq!(word[lane], reference.next_u32());
                    }
                }
            }
        }
        let key = core::array::from_fn(|i| i as u8 * 7 + 3);
        check::<CHACHA8>(key, ChaCha8Rng::from_seed(key));
        check::<CHACHA20>(key, ChaCha20Rng::from_seed(key));
    }
}
