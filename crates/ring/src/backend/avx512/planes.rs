//! The last step of summing planes: one reduction per sum, and splitting words into planes again.

use alloc::vec::Vec;
use core::arch::x86_64::*;

use super::arithmetic::lanes::{Lanes, splat_factor};
use super::arithmetic::wide::Wide;
use crate::Modulus;
use crate::backend::portable::planes;

/// [`planes::fold_sums`]. The product with one is the residue of any word, for any modulus below `2^61`.
///
/// # Safety
/// All slices have the same length; the CPU has the enabled features.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma")]
pub(super) unsafe fn fold_sums(m: &Modulus, high: &[&[u16]], sums: &mut [u64]) {
    let (blocks, rest) = sums.as_chunks_mut::<8>();
    let done = 8 * blocks.len();
    // SAFETY: eight sums of every slice for a block.
    unsafe {
        let l = Wide::new(m);
        let one = splat_factor::<Wide>(m.shoup(1));
        for (b, block) in blocks.iter_mut().enumerate() {
            let to = block.as_mut_ptr().cast::<__m512i>();
            let mut sum = to.read_unaligned();
            for (j, high) in high.iter().enumerate() {
                let high = _mm512_cvtepu16_epi64(high.as_ptr().add(8 * b).cast::<__m128i>().read_unaligned());
                let place = _mm_cvtsi64_si128(32 + 8 * j as i64);
                sum = _mm512_add_epi64(sum, _mm512_sll_epi64(high, place));
            }
            to.write_unaligned(l.canonical(l.product(sum, one)));
        }
    }
    let high: Vec<_> = high.iter().map(|high| &high[done..]).collect();
    planes::fold_sums(m, &high, rest);
}

/// [`planes::write_planes`].
///
/// # Safety
/// `low` has four bytes and every slice of `high` one for every word; the CPU has the enabled features.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma")]
pub(super) unsafe fn write_planes(words: &[u64], low: &mut [u8], high: &mut [&mut [u8]]) {
    let (blocks, rest) = words.as_chunks::<8>();
    let done = 8 * blocks.len();
    // SAFETY: the planes have room for eight words of a block.
    unsafe {
        for (b, block) in blocks.iter().enumerate() {
            let words = block.as_ptr().cast::<__m512i>().read_unaligned();
            low.as_mut_ptr().add(32 * b).cast::<__m256i>().write_unaligned(_mm512_cvtepi64_epi32(words));
            for (j, plane) in high.iter_mut().enumerate() {
                let place = _mm_cvtsi64_si128(32 + 8 * j as i64);
                let bytes = _mm512_cvtepi64_epi8(_mm512_srl_epi64(words, place));
                _mm_storel_epi64(plane.as_mut_ptr().add(8 * b).cast(), bytes);
            }
        }
    }
    let mut high: Vec<_> = high.iter_mut().map(|plane| &mut plane[done..]).collect();
    planes::write_planes(rest, &mut low[4 * done..], &mut high);
}
