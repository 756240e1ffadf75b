//! ChaCha8, sixteen blocks at a time: state word `w` of all blocks is one register, which is also the order of
//! [`crate::expander`]'s output.

use core::arch::x86_64::*;

use crate::expander::{self, CHUNK_WORDS};
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
    let lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    let counters = _mm512_add_epi32(_mm512_set1_epi32((number * 16) as i32), lanes);
    let start = |w: usize| if w == 12 { counters } else { _mm512_set1_epi32(state[w] as i32) };
    // A loop: `array::map` stays a call, to code without the CPU features.
    let mut s = [counters; 16];
    for w in 0..16 {
        s[w] = start(w);
    }
    for _ in 0..4 {
        quarter_rounds!(s; 0 4 8 12, 1 5 9 13, 2 6 10 14, 3 7 11 15);
        quarter_rounds!(s; 0 5 10 15, 1 6 11 12, 2 7 8 13, 3 4 9 14);
    }
    let mask = _mm512_set1_epi64((u64::MAX >> (64 - m.bits())) as i64);
    let q = _mm512_set1_epi64(m.value() as i64);
    let mut rejected = 0;
    for w in 0..16 {
        let words = _mm512_and_si512(_mm512_add_epi32(s[w], start(w)), mask);
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

/// A uniform limb.
///
/// # Safety
/// The CPU has the enabled features.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma")]
pub(super) unsafe fn expand_uniform(seed: &Seed, id: StreamId, m: &Modulus, out: &mut [u64]) {
    let state = expander::initial_state(seed, id, 0);
    let (chunks, rest) = out.as_chunks_mut::<CHUNK_WORDS>();
    for (number, chunk) in chunks.iter_mut().enumerate() {
        // SAFETY: a whole chunk.
        unsafe { residues(&state, seed, id, m, number as u32, chunk.as_mut_ptr()) };
    }
    if !rest.is_empty() {
        let mut last = Chunk([0; CHUNK_WORDS]);
        // SAFETY: a whole chunk.
        unsafe { residues(&state, seed, id, m, chunks.len() as u32, last.0.as_mut_ptr()) };
        rest.copy_from_slice(&last.0[..rest.len()]);
    }
}
