//! Sums of planes by widening loads. Accumulators stay in registers while every plane is read. The AVX-512 back end
//! uses these kernels too, since memory already limits them.

use core::arch::x86_64::*;

use crate::backend::portable::planes;

/// Words summed at a time: eight registers of four.
const WORDS: usize = 32;
/// Bytes summed at a time: eight registers of sixteen.
const BYTES: usize = 128;

/// [`planes::add_words`].
///
/// # Safety
/// Planes have four bytes for every sum; the CPU has the enabled features.
#[target_feature(enable = "avx2,fma")]
pub(in crate::backend) unsafe fn add_words(planes: &[&[u8]], sums: &mut [u64]) {
    let (blocks, rest) = sums.as_chunks_mut::<WORDS>();
    let done = 4 * WORDS * blocks.len();
    for (b, block) in blocks.iter_mut().enumerate() {
        let to = block.as_mut_ptr().cast::<__m256i>();
        let mut accumulators = [_mm256_setzero_si256(); WORDS / 4];
        for plane in planes {
            for (k, sum) in accumulators.iter_mut().enumerate() {
                // SAFETY: the plane has `4 WORDS` bytes for the block, 16 for a register.
                let words = unsafe { _mm_loadu_si128(plane.as_ptr().add(4 * WORDS * b + 16 * k).cast()) };
                *sum = _mm256_add_epi64(*sum, _mm256_cvtepu32_epi64(words));
            }
        }
        for (k, sum) in accumulators.into_iter().enumerate() {
            // SAFETY: the block has a place for every register; nothing needs alignment.
            unsafe {
                let before = _mm256_loadu_si256(to.add(k));
                _mm256_storeu_si256(to.add(k), _mm256_add_epi64(before, sum));
            }
        }
    }
    for plane in planes {
        planes::add_words(&[&plane[done..]], rest);
    }
}

/// [`planes::add_bytes`].
///
/// # Safety
/// Planes have a byte for every sum; the CPU has the enabled features.
#[target_feature(enable = "avx2,fma")]
pub(in crate::backend) unsafe fn add_bytes(planes: &[&[u8]], sums: &mut [u16]) {
    let (blocks, rest) = sums.as_chunks_mut::<BYTES>();
    let done = BYTES * blocks.len();
    for (b, block) in blocks.iter_mut().enumerate() {
        let to = block.as_mut_ptr().cast::<__m256i>();
        let mut accumulators = [_mm256_setzero_si256(); BYTES / 16];
        for plane in planes {
            for (k, sum) in accumulators.iter_mut().enumerate() {
                // SAFETY: the plane has `BYTES` bytes for the block, 16 for a register.
                let bytes = unsafe { _mm_loadu_si128(plane.as_ptr().add(BYTES * b + 16 * k).cast()) };
                *sum = _mm256_add_epi16(*sum, _mm256_cvtepu8_epi16(bytes));
            }
        }
        for (k, sum) in accumulators.into_iter().enumerate() {
            // SAFETY: the block has a place for every register; nothing needs alignment.
            unsafe {
                let before = _mm256_loadu_si256(to.add(k));
                _mm256_storeu_si256(to.add(k), _mm256_add_epi16(before, sum));
            }
        }
    }
    for plane in planes {
        planes::add_bytes(&[&plane[done..]], rest);
    }
}

/// [`planes::write_planes`].
///
/// # Safety
/// The CPU has the enabled features.
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn write_planes(words: &[u64], low: &mut [u8], high: &mut [&mut [u8]]) {
    planes::write_planes(words, low, high);
}
