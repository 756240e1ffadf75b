//! The one expander of public seeds: ChaCha8 in counter mode, laid out for vector registers.
//!
//! # Definition
//! A *stream* is a 256-bit seed and a [`StreamId`]. Its ChaCha state has the seed as key, the block number in word 12,
//! the object in words 13 and 14, and `digit << 24 | attempt << 16 | limb` in word 15. Blocks are taken sixteen at a
//! time (a *chunk*, 128 words of 64 bits) and read across: word `8 w + k` of a chunk is output word `w` of block `2k`
//! in its low half and of block `2k + 1` in its high half. A register that holds word `w` of sixteen blocks is thus
//! eight consecutive outputs, without a transposition.
//!
//! Residue `i` of a uniform limb modulo `q` (of `b` bits) is the low `b` bits of word `i` of attempt 0, or of attempt 1
//! if that is not below `q`, and so on. This is exact rejection sampling with every residue independent of all others,
//! so any limb, and any part of one, can be computed alone.
//!
//! ChaCha8 serves public data only (the uniform half of keys and ciphertexts). Secrets come from ChaCha20, see
//! [`crate::sampling`].

use zeroize::Zeroize;

pub use super::chacha::CHUNK_WORDS;
use super::chacha::{self, CHACHA8, CHUNK_BLOCKS, LANES};
use crate::Modulus;

/// Attempts after which a residue is reduced instead of rejected; reached with probability below `2^-255`.
pub const MAX_ATTEMPTS: u8 = 255;

/// A 256-bit public seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Zeroize)]
pub struct Seed(pub [u8; 32]);

/// Names a stream of a seed: independent for every object, digit and limb.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StreamId {
    /// The object of the stream: a domain separator that the user of the seed chooses.
    pub object: u64,
    /// Gadget digit.
    pub digit: u8,
    /// Index of the prime in its parameter set.
    pub limb: u16,
}

/// The sixteen input words of the block function for block 0; word 12 is the block number.
pub(crate) fn initial_state(seed: &Seed, id: StreamId, attempt: u8) -> [u32; 16] {
    let mut state = chacha::keyed(&seed.0);
    state[13] = id.object as u32;
    state[14] = (id.object >> 32) as u32;
    state[15] = u32::from(id.digit) << 24 | u32::from(attempt) << 16 | u32::from(id.limb);
    state
}

/// Half of the words of chunk `number` of a stream, in the order of the module's definition: the low halves for
/// `parity` 0, the high ones for 1.
#[inline(always)]
fn half_chunk(state: &[u32; 16], number: u32, parity: u32, mut put: impl FnMut(usize, u32)) {
    for first in (0..CHUNK_BLOCKS / 2).step_by(LANES) {
        let block = number * 16 + 2 * first as u32 + parity;
        for (w, word) in chacha::blocks::<CHACHA8>(state, block, 2).into_iter().enumerate() {
            for (lane, half) in word.into_iter().enumerate() {
                put(8 * w + first + lane, half);
            }
        }
    }
}

/// Chunk `number` of a stream.
pub(crate) fn chunk(state: &[u32; 16], number: u32, out: &mut [u64; CHUNK_WORDS]) {
    half_chunk(state, number, 0, |i, half| out[i] = half.into());
    half_chunk(state, number, 1, |i, half| out[i] |= u64::from(half) << 32);
}

/// Residue `index` from attempt 1 on: the rare path of every back end.
#[cold]
pub(crate) fn retry(seed: &Seed, id: StreamId, modulus: &Modulus, index: usize) -> u64 {
    let mask = u64::MAX >> (64 - modulus.bits());
    let (number, position) = ((index / CHUNK_WORDS) as u32, index % CHUNK_WORDS);
    let (word, block) = (position / 8, number * 16 + 2 * (position % 8) as u32);
    let mut candidate = 0;
    for attempt in 1..=MAX_ATTEMPTS {
        let state = initial_state(seed, id, attempt);
        let half = |block| u64::from(chacha::blocks::<CHACHA8>(&state, block, 1)[word][0]);
        candidate = (half(block) | half(block + 1) << 32) & mask;
        if candidate < modulus.value() {
            return candidate;
        }
    }
    modulus.reduce(candidate)
}

/// Turns words `start..` of attempt 0 into residues. Not inlined: `make ct-test` knows it by its name.
#[inline(never)]
pub(crate) fn accept(seed: &Seed, id: StreamId, modulus: &Modulus, start: usize, words: &mut [u64]) {
    let mask = u64::MAX >> (64 - modulus.bits());
    for (offset, word) in words.iter_mut().enumerate() {
        *word &= mask;
        if *word >= modulus.value() {
            *word = retry(seed, id, modulus, start + offset);
        }
    }
}

/// [`fill_uniform`] modulo a prime of at most 32 bits, which needs only every other block.
#[inline(never)]
pub fn fill_uniform_narrow(seed: &Seed, id: StreamId, modulus: &Modulus, start: usize, out: &mut [u32]) {
    debug_assert!(start.is_multiple_of(CHUNK_WORDS) && modulus.bits() <= u32::BITS);
    let state = initial_state(seed, id, 0);
    let (q, mask) = (modulus.value() as u32, u32::MAX >> (u32::BITS - modulus.bits()));
    let mut words = [0; CHUNK_WORDS];
    for (number, part) in (start / CHUNK_WORDS..).zip(out.chunks_mut(CHUNK_WORDS)) {
        half_chunk(&state, number as u32, 0, |i, half| words[i] = half & mask);
        for (index, (residue, &word)) in (number * CHUNK_WORDS..).zip(part.iter_mut().zip(&words)) {
            *residue = if word < q { word } else { retry(seed, id, modulus, index) as u32 };
        }
    }
}

/// The residues of a uniform limb from residue `start` on, a multiple of [`CHUNK_WORDS`]. This is the definition, which
/// the portable back end and callers that make a limb part by part use.
pub fn fill_uniform(seed: &Seed, id: StreamId, modulus: &Modulus, start: usize, out: &mut [u64]) {
    debug_assert!(start.is_multiple_of(CHUNK_WORDS));
    let state = initial_state(seed, id, 0);
    let mut words = [0; CHUNK_WORDS];
    for (number, part) in (start / CHUNK_WORDS..).zip(out.chunks_mut(CHUNK_WORDS)) {
        chunk(&state, number as u32, &mut words);
        part.copy_from_slice(&words[..part.len()]);
        accept(seed, id, modulus, number * CHUNK_WORDS, part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejection_is_exact_and_streams_differ() {
        let seed = Seed([9; 32]);
        let id = StreamId { object: 5, digit: 1, limb: 2 };
        // Just above a power of two: nearly half of the candidates are rejected and retried.
        let m = Modulus::new((1 << 49) + 21).unwrap();
        let mut a = [0; 1000];
        fill_uniform(&seed, id, &m, 0, &mut a);
        assert!(a.iter().all(|&x| x < m.value()));
        let mean = a.iter().map(|&x| x as f64 / m.value() as f64).sum::<f64>() / 1000.0;
        assert!((mean - 0.5).abs() < 6.0 * (1.0f64 / 12000.0).sqrt(), "mean {mean}");
        for other in [
            StreamId { object: 6, ..id },
            StreamId { object: 5 | 1 << 40, ..id },
            StreamId { digit: 2, ..id },
            StreamId { limb: 3, ..id },
        ] {
            let mut b = [0; 1000];
            fill_uniform(&seed, other, &m, 0, &mut b);
            assert!(a.iter().zip(b).filter(|(x, y)| **x == *y).count() == 0);
        }
        for q in [257, (1 << 29) + 11, (1 << 30) - (1 << 18) + 1, (1 << 31) + 11, u32::MAX.into()] {
            let m = Modulus::new(q).unwrap();
            let (mut wide, mut narrow) = ([0u64; 1000], [0u32; 1000]);
            fill_uniform(&seed, id, &m, CHUNK_WORDS, &mut wide);
            fill_uniform_narrow(&seed, id, &m, CHUNK_WORDS, &mut narrow);
            assert!(wide.iter().zip(narrow).all(|(&wide, narrow)| wide == narrow.into()), "{q}");
        }
        let mut prefix = [0; 130];
        fill_uniform(&seed, id, &m, 0, &mut prefix);
        assert_eq!(prefix, a[..130]);
        let mut middle = [0; 200];
        fill_uniform(&seed, id, &m, 2 * CHUNK_WORDS, &mut middle);
        assert_eq!(middle, a[2 * CHUNK_WORDS..2 * CHUNK_WORDS + 200]);
    }
}
