//! ChaCha, sixteen blocks at a time. One register holds state word `w` of all blocks, which is also the order of
//! [`crate::expander`]'s output. The key stream is transposed.

use core::arch::x86_64::*;

use crate::randomness::chacha::{CHACHA8, CHACHA20, CHUNK_BLOCKS};
use crate::randomness::expander::{self, CHUNK_WORDS};
use crate::{Modulus, Seed, StreamId};

/// One chunk of words.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(super) struct Chunk(pub(super) [u64; CHUNK_WORDS]);

/// Four quarter rounds side by side, so that the latency of one hides behind the others.
macro_rules! quarter_rounds {
    ($s:ident; $($a:literal $b:literal $c:literal $d:literal),*) => {
        $( $s[$a] = _mm512_add_epi32($s[$a], $s[$b]); )*
        $( $s[$d] = _mm512_rol_epi32::<16>(_mm512_xor_si512($s[$d], $s[$a])); )*
        $( $s[$c] = _mm512_add_epi32($s[$c], $s[$d]); )*
        $( $s[$b] = _mm512_rol_epi32::<12>(_mm512_xor_si512($s[$b], $s[$c])); )*
        $( $s[$a] = _mm512_add_epi32($s[$a], $s[$b]); )*
        $( $s[$d] = _mm512_rol_epi32::<8>(_mm512_xor_si512($s[$d], $s[$a])); )*
        $( $s[$c] = _mm512_add_epi32($s[$c], $s[$d]); )*
        $( $s[$b] = _mm512_rol_epi32::<7>(_mm512_xor_si512($s[$b], $s[$c])); )*
    };
}

/// Blocks `number..number + 16`: word `w` of each is register `w`.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma")]
fn blocks<const DOUBLE_ROUNDS: usize>(state: &[u32; 16], number: u32) -> [__m512i; 16] {
    let lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    let counters = _mm512_add_epi32(_mm512_set1_epi32(number as i32), lanes);
    let start = |w: usize| if w == 12 { counters } else { _mm512_set1_epi32(state[w] as i32) };
    // Loops instead of `array::map`, which stays a call to code without the CPU features.
    let mut s = [counters; 16];
    for w in 0..16 {
        s[w] = start(w);
    }
    for _ in 0..DOUBLE_ROUNDS {
        quarter_rounds!(s; 0 4 8 12, 1 5 9 13, 2 6 10 14, 3 7 11 15);
        quarter_rounds!(s; 0 5 10 15, 1 6 11 12, 2 7 8 13, 3 4 9 14);
    }
    for w in 0..16 {
        s[w] = _mm512_add_epi32(s[w], start(w));
    }
    s
}

/// Chunks of ChaCha20's key stream: [`crate::randomness::chacha::key_stream`].
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma")]
pub(super) fn key_stream(key: &[u32; 16], first: u64, out: &mut [u64]) {
    let mut state = *key;
    let numbers = (first..).step_by(CHUNK_BLOCKS);
    for (chunk, number) in out.as_chunks_mut::<CHUNK_WORDS>().0.iter_mut().zip(numbers) {
        state[13] = (number >> 32) as u32;
        let s = blocks::<CHACHA20>(&state, number as u32);
        // Words 4 j to 4 j + 3 of blocks `b`, 4 + b, 8 + b, 12 + b, in one register.
        let mut quads = [s[0]; 16];
        for j in 0..4 {
            let (low, high) = (
                _mm512_unpacklo_epi32(s[4 * j], s[4 * j + 1]),
                _mm512_unpackhi_epi32(s[4 * j], s[4 * j + 1]),
            );
            let next = (
                _mm512_unpacklo_epi32(s[4 * j + 2], s[4 * j + 3]),
                _mm512_unpackhi_epi32(s[4 * j + 2], s[4 * j + 3]),
            );
            quads[4 * j] = _mm512_unpacklo_epi64(low, next.0);
            quads[4 * j + 1] = _mm512_unpackhi_epi64(low, next.0);
            quads[4 * j + 2] = _mm512_unpacklo_epi64(high, next.1);
            quads[4 * j + 3] = _mm512_unpackhi_epi64(high, next.1);
        }
        for b in 0..4 {
            let (p, q, r, t) = (quads[b], quads[4 + b], quads[8 + b], quads[12 + b]);
            let (even, odd) = (_mm512_shuffle_i32x4::<0x88>(p, q), _mm512_shuffle_i32x4::<0xDD>(p, q));
            let next = (_mm512_shuffle_i32x4::<0x88>(r, t), _mm512_shuffle_i32x4::<0xDD>(r, t));
            let whole = [
                _mm512_shuffle_i32x4::<0x88>(even, next.0),
                _mm512_shuffle_i32x4::<0x88>(odd, next.1),
                _mm512_shuffle_i32x4::<0xDD>(even, next.0),
                _mm512_shuffle_i32x4::<0xDD>(odd, next.1),
            ];
            for (k, block) in whole.into_iter().enumerate() {
                // SAFETY: a chunk is sixteen vectors.
                unsafe { chunk.as_mut_ptr().cast::<__m512i>().add(4 * k + b).write_unaligned(block) };
            }
        }
    }
}

/// Residues of chunk `number` of a stream.
///
/// # Safety
/// `out` addresses a chunk; the CPU has the enabled features.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma")]
pub(super) unsafe fn residues(
    state: &[u32; 16],
    seed: &Seed,
    id: StreamId,
    m: &Modulus,
    number: u32,
    out: *mut u64,
) {
    let s = blocks::<CHACHA8>(state, number * 16);
    let mask = _mm512_set1_epi64((u64::MAX >> (64 - m.bits())) as i64);
    let q = _mm512_set1_epi64(m.value() as i64);
    let mut rejected = 0;
    for w in 0..16 {
        let words = _mm512_and_si512(s[w], mask);
        // SAFETY: a chunk is sixteen vectors.
        unsafe { out.cast::<__m512i>().add(w).write_unaligned(words) };
        rejected |= _mm512_cmpge_epu64_mask(words, q);
    }
    if rejected != 0 {
        // SAFETY: a chunk, just written.
        let words = unsafe { core::slice::from_raw_parts_mut(out, CHUNK_WORDS) };
        expander::accept(seed, id, m, number as usize * CHUNK_WORDS, words);
    }
}

/// A part of a uniform limb.
///
/// # Safety
/// The CPU has the enabled features.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma")]
pub(super) unsafe fn expand_part(seed: &Seed, id: StreamId, m: &Modulus, start: usize, out: &mut [u64]) {
    debug_assert!(start.is_multiple_of(CHUNK_WORDS));
    let (state, first) = (expander::initial_state(seed, id, 0), (start / CHUNK_WORDS) as u32);
    let (chunks, rest) = out.as_chunks_mut::<CHUNK_WORDS>();
    for (number, chunk) in (first..).zip(chunks.iter_mut()) {
        // SAFETY: a whole chunk.
        unsafe { residues(&state, seed, id, m, number, chunk.as_mut_ptr()) };
    }
    if !rest.is_empty() {
        let mut last = Chunk([0; CHUNK_WORDS]);
        // SAFETY: a whole chunk.
        unsafe { residues(&state, seed, id, m, first + chunks.len() as u32, last.0.as_mut_ptr()) };
        rest.copy_from_slice(&last.0[..rest.len()]);
    }
}
