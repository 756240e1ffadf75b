//! ChaCha, eight blocks side by side. Word `w` of blocks `0..8` is four consecutive words of a chunk of the expander.
//! The key stream is transposed.

use core::arch::x86_64::*;

use super::residues::opaque;
use crate::randomness::chacha::{CHACHA8, CHACHA20};
use crate::randomness::expander::{self, CHUNK_WORDS};
use crate::{Modulus, Seed, StreamId};

#[inline]
#[target_feature(enable = "avx2,fma")]
fn rotate<const LEFT: i32, const RIGHT: i32>(x: __m256i) -> __m256i {
    _mm256_or_si256(_mm256_slli_epi32::<LEFT>(x), _mm256_srli_epi32::<RIGHT>(x))
}

/// The permutations of bytes that rotate to the left by 16 and by 8 bits. Without [`opaque`], each rotation by 16 would
/// be two shuffles.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn byte_rotations() -> [__m256i; 2] {
    let orders = [
        _mm_setr_epi8(2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13),
        _mm_setr_epi8(3, 0, 1, 2, 7, 4, 5, 6, 11, 8, 9, 10, 15, 12, 13, 14),
    ];
    orders.map(|order| _mm256_castpd_si256(opaque(_mm256_castsi256_pd(_mm256_broadcastsi128_si256(order)))))
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn quarter_round(s: &mut [__m256i; 16], rotations: [__m256i; 2], [a, b, c, d]: [usize; 4]) {
    s[a] = _mm256_add_epi32(s[a], s[b]);
    s[d] = _mm256_shuffle_epi8(_mm256_xor_si256(s[d], s[a]), rotations[0]);
    s[c] = _mm256_add_epi32(s[c], s[d]);
    s[b] = rotate::<12, 20>(_mm256_xor_si256(s[b], s[c]));
    s[a] = _mm256_add_epi32(s[a], s[b]);
    s[d] = _mm256_shuffle_epi8(_mm256_xor_si256(s[d], s[a]), rotations[1]);
    s[c] = _mm256_add_epi32(s[c], s[d]);
    s[b] = rotate::<7, 25>(_mm256_xor_si256(s[b], s[c]));
}

/// Blocks `number..number + 8`: word `w` of each is register `w`.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn blocks<const DOUBLE_ROUNDS: usize>(state: &[u32; 16], number: u32) -> [__m256i; 16] {
    let mut start = [_mm256_setzero_si256(); 16];
    for (register, &word) in start.iter_mut().zip(state) {
        *register = _mm256_set1_epi32(word.cast_signed());
    }
    let first = _mm256_set1_epi32(number.cast_signed());
    start[12] = _mm256_add_epi32(first, _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    let (mut s, rotations) = (start, byte_rotations());
    for _ in 0..DOUBLE_ROUNDS {
        quarter_round(&mut s, rotations, [0, 4, 8, 12]);
        quarter_round(&mut s, rotations, [1, 5, 9, 13]);
        quarter_round(&mut s, rotations, [2, 6, 10, 14]);
        quarter_round(&mut s, rotations, [3, 7, 11, 15]);
        quarter_round(&mut s, rotations, [0, 5, 10, 15]);
        quarter_round(&mut s, rotations, [1, 6, 11, 12]);
        quarter_round(&mut s, rotations, [2, 7, 8, 13]);
        quarter_round(&mut s, rotations, [3, 4, 9, 14]);
    }
    for (word, add) in s.iter_mut().zip(start) {
        *word = _mm256_add_epi32(*word, add);
    }
    s
}

/// Chunk `number` of a stream as residues: [`expander::chunk`] and [`expander::accept`].
#[target_feature(enable = "avx2,fma")]
fn accepted_chunk(
    state: &[u32; 16],
    (seed, id): (&Seed, StreamId),
    m: &Modulus,
    number: usize,
    out: &mut [u64; CHUNK_WORDS],
) {
    let mask = _mm256_set1_epi64x((u64::MAX >> (64 - m.bits())).cast_signed());
    let largest = _mm256_set1_epi64x((m.value() - 1).cast_signed());
    let mut rejected = _mm256_setzero_si256();
    for half in 0..2 {
        let words = blocks::<CHACHA8>(state, number as u32 * 16 + 8 * half);
        let places = out.as_chunks_mut::<4>().0.iter_mut().skip(half as usize).step_by(2);
        for (place, word) in places.zip(words) {
            let candidates = _mm256_and_si256(word, mask);
            // SAFETY: the place has 32 bytes; the store needs no alignment.
            unsafe { _mm256_storeu_si256(place.as_mut_ptr().cast(), candidates) };
            // Both are below 2^61: the signed comparison is right.
            rejected = _mm256_or_si256(rejected, _mm256_cmpgt_epi64(candidates, largest));
        }
    }
    if _mm256_testz_si256(rejected, rejected) == 0 {
        expander::accept(seed, id, m, number * CHUNK_WORDS, out);
    }
}

/// Chunks of ChaCha20's key stream: [`crate::randomness::chacha::key_stream`].
#[target_feature(enable = "avx2,fma")]
pub(super) fn key_stream(key: &[u32; 16], first: u64, out: &mut [u64]) {
    let mut state = *key;
    for (place, number) in out.as_chunks_mut::<{ CHUNK_WORDS / 2 }>().0.iter_mut().zip((first..).step_by(8)) {
        state[13] = (number >> 32) as u32;
        let s = blocks::<CHACHA20>(&state, number as u32);
        for half in 0..2 {
            // Words 8 half + 4 j to 8 half + 4 j + 3 of blocks `b` and 4 + b, in one register.
            let mut quads = [s[0]; 8];
            for j in 0..2 {
                let k = 8 * half + 4 * j;
                let (w, x, y, z) = (s[k], s[k + 1], s[k + 2], s[k + 3]);
                let (low, high) = (_mm256_unpacklo_epi32(w, x), _mm256_unpackhi_epi32(w, x));
                let next = (_mm256_unpacklo_epi32(y, z), _mm256_unpackhi_epi32(y, z));
                quads[4 * j] = _mm256_unpacklo_epi64(low, next.0);
                quads[4 * j + 1] = _mm256_unpackhi_epi64(low, next.0);
                quads[4 * j + 2] = _mm256_unpacklo_epi64(high, next.1);
                quads[4 * j + 3] = _mm256_unpackhi_epi64(high, next.1);
            }
            for b in 0..4 {
                let (p, q) = (quads[b], quads[4 + b]);
                let pair = [_mm256_permute2x128_si256::<0x20>(p, q), _mm256_permute2x128_si256::<0x31>(p, q)];
                for (k, words) in pair.into_iter().enumerate() {
                    // SAFETY: half a chunk is sixteen vectors; the store needs no alignment.
                    unsafe {
                        let to = place.as_mut_ptr().cast::<__m256i>().add(2 * (4 * k + b) + half);
                        _mm256_storeu_si256(to, words);
                    }
                }
            }
        }
    }
}

/// [`expander::fill_uniform`].
#[target_feature(enable = "avx2,fma")]
pub(super) fn fill_uniform(seed: &Seed, id: StreamId, modulus: &Modulus, start: usize, out: &mut [u64]) {
    debug_assert!(start.is_multiple_of(CHUNK_WORDS));
    let state = expander::initial_state(seed, id, 0);
    for (number, part) in (start / CHUNK_WORDS..).zip(out.as_chunks_mut::<CHUNK_WORDS>().0) {
        accepted_chunk(&state, (seed, id), modulus, number, part);
    }
}
