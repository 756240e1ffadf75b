//! ChaCha, four blocks side by side. Word `w` of four consecutive blocks is two consecutive 64-bit words of a chunk of
//! the expander. The key stream is transposed.

use core::arch::aarch64::*;

use super::residues::{load_integers, store_integers};
use crate::randomness::chacha::{CHACHA8, CHACHA20};
use crate::randomness::expander::{self, CHUNK_WORDS};
use crate::{Modulus, Seed, StreamId};

/// Rotation to the left by 16 bits, an exchange of halves.
#[inline]
#[target_feature(enable = "neon")]
fn rotate_16(x: uint32x4_t) -> uint32x4_t {
    vreinterpretq_u32_u16(vrev32q_u16(vreinterpretq_u16_u32(x)))
}

/// Rotation to the left by 8 bits, a permutation of bytes.
#[inline]
#[target_feature(enable = "neon")]
fn rotate_8(x: uint32x4_t) -> uint32x4_t {
    const ORDER: [u8; 16] = [3, 0, 1, 2, 7, 4, 5, 6, 11, 8, 9, 10, 15, 12, 13, 14];
    // SAFETY: the array has 16 bytes; the load needs no alignment.
    let order = unsafe { vld1q_u8(ORDER.as_ptr()) };
    vreinterpretq_u32_u8(vqtbl1q_u8(vreinterpretq_u8_u32(x), order))
}

#[inline]
#[target_feature(enable = "neon")]
fn quarter_round(s: &mut [uint32x4_t; 16], a: usize, b: usize, c: usize, d: usize) {
    s[a] = vaddq_u32(s[a], s[b]);
    s[d] = rotate_16(veorq_u32(s[d], s[a]));
    s[c] = vaddq_u32(s[c], s[d]);
    let x = veorq_u32(s[b], s[c]);
    s[b] = vsriq_n_u32::<20>(vshlq_n_u32::<12>(x), x);
    s[a] = vaddq_u32(s[a], s[b]);
    s[d] = rotate_8(veorq_u32(s[d], s[a]));
    s[c] = vaddq_u32(s[c], s[d]);
    let x = veorq_u32(s[b], s[c]);
    s[b] = vsriq_n_u32::<25>(vshlq_n_u32::<7>(x), x);
}

/// Four blocks, `number`, `number + step` and so on: word `w` of each is register `w`.
#[inline]
#[target_feature(enable = "neon")]
fn blocks<const DOUBLE_ROUNDS: usize>(state: &[u32; 16], number: u32, step: u32) -> [uint32x4_t; 16] {
    let mut start = [vdupq_n_u32(0); 16];
    for (register, &word) in start.iter_mut().zip(state) {
        *register = vdupq_n_u32(word);
    }
    let numbers = [number, number + step, number + 2 * step, number + 3 * step];
    // SAFETY: the array has 16 bytes; the load needs no alignment.
    start[12] = unsafe { vld1q_u32(numbers.as_ptr()) };
    let mut s = start;
    for _ in 0..DOUBLE_ROUNDS {
        quarter_round(&mut s, 0, 4, 8, 12);
        quarter_round(&mut s, 1, 5, 9, 13);
        quarter_round(&mut s, 2, 6, 10, 14);
        quarter_round(&mut s, 3, 7, 11, 15);
        quarter_round(&mut s, 0, 5, 10, 15);
        quarter_round(&mut s, 1, 6, 11, 12);
        quarter_round(&mut s, 2, 7, 8, 13);
        quarter_round(&mut s, 3, 4, 9, 14);
    }
    for (word, add) in s.iter_mut().zip(start) {
        *word = vaddq_u32(*word, add);
    }
    s
}

/// Chunk `number` of a stream: [`expander::chunk`].
#[target_feature(enable = "neon")]
pub(super) fn chunk(state: &[u32; 16], number: u32, out: &mut [u64; CHUNK_WORDS]) {
    for quarter in 0..4 {
        // Word `w` of these blocks is words `8 w + 2 quarter` and `8 w + 2 quarter + 1` of the chunk.
        let words = blocks::<CHACHA8>(state, number * 16 + 4 * quarter, 1);
        let places = out.as_chunks_mut::<2>().0.iter_mut().skip(quarter as usize).step_by(4);
        for (place, word) in places.zip(words) {
            store_integers(place, vreinterpretq_u64_u32(word));
        }
    }
}

/// Chunks of ChaCha20's key stream: [`crate::randomness::chacha::key_stream`].
#[target_feature(enable = "neon")]
pub(super) fn key_stream(key: &[u32; 16], first: u64, out: &mut [u64]) {
    let mut state = *key;
    for (place, number) in out.as_chunks_mut::<32>().0.iter_mut().zip((first..).step_by(4)) {
        state[13] = (number >> 32) as u32;
        let s = blocks::<CHACHA20>(&state, number as u32, 1);
        let places = place.as_chunks_mut::<2>().0;
        for k in 0..4 {
            // Words 4 k to 4 k + 3 of the four blocks, transposed.
            let (w, x, y, z) = (s[4 * k], s[4 * k + 1], s[4 * k + 2], s[4 * k + 3]);
            let even = [vtrn1q_u32(w, x), vtrn1q_u32(y, z)].map(|pair| vreinterpretq_u64_u32(pair));
            let odd = [vtrn2q_u32(w, x), vtrn2q_u32(y, z)].map(|pair| vreinterpretq_u64_u32(pair));
            store_integers(&mut places[k], vtrn1q_u64(even[0], even[1]));
            store_integers(&mut places[4 + k], vtrn1q_u64(odd[0], odd[1]));
            store_integers(&mut places[8 + k], vtrn2q_u64(even[0], even[1]));
            store_integers(&mut places[12 + k], vtrn2q_u64(odd[0], odd[1]));
        }
    }
}

/// Turns chunk `number` of attempt 0 into residues: [`expander::accept`], except that eight candidates are tested at a
/// time.
#[target_feature(enable = "neon")]
pub(super) fn accept(seed: &Seed, id: StreamId, m: &Modulus, number: usize, words: &mut [u64; CHUNK_WORDS]) {
    let mask = vdupq_n_u64(u64::MAX >> (64 - m.bits()));
    let q = vdupq_n_u64(m.value());
    for (i, eight) in words.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let mut rejected = vdupq_n_u64(0);
        for pair in eight.as_chunks_mut::<2>().0 {
            let candidates = vandq_u64(load_integers(pair), mask);
            store_integers(pair, candidates);
            rejected = vorrq_u64(rejected, vcgeq_u64(candidates, q));
        }
        if vmaxvq_u32(vreinterpretq_u32_u64(rejected)) != 0 {
            expander::accept(seed, id, m, number * CHUNK_WORDS + 8 * i, eight);
        }
    }
}

/// [`expander::fill_uniform`].
#[target_feature(enable = "neon")]
pub(super) fn fill_uniform(seed: &Seed, id: StreamId, modulus: &Modulus, start: usize, out: &mut [u64]) {
    debug_assert!(start.is_multiple_of(CHUNK_WORDS));
    let state = expander::initial_state(seed, id, 0);
    for (number, part) in (start / CHUNK_WORDS..).zip(out.as_chunks_mut::<CHUNK_WORDS>().0) {
        chunk(&state, number as u32, part);
        accept(seed, id, modulus, number, part);
    }
}
