//! AVX2 and FMA: primes below `2^50` in double precision, the expander in 32-bit lanes. AVX2 has no fast instruction
//! for products modulo wider primes; those use the portable kernels.

mod chacha;
mod dot;
mod ntt;
pub(super) mod planes;
mod pointwise;
mod residues;
mod sampling;
mod terms;

use alloc::boxed::Box;

use super::narrow_kernels::narrow_kernels;
use super::portable::Portable;
use super::{
    Backend, BackendKind, Kernels, NttPlan, Planes, Quotient, Sampling, UniformRow, plain_layout,
    require_planes, require_planes_mut,
};
use crate::conversion::{Decomposer, ScaledLayout};
use crate::{Automorphism, Modulus, Seed, ShoupFactor, StreamId};

/// Kernels for CPUs with AVX2 and FMA.
///
/// # Invariant
/// Only [`Avx2::detect`] creates references to a value of this type, so a reference proves that the CPU has both.
#[derive(Debug)]
pub(super) struct Avx2(());

static INSTANCE: Avx2 = Avx2(());

impl Avx2 {
    /// The back end, if this CPU and operating system have its instructions.
    pub(super) fn detect() -> Option<&'static dyn Backend> {
        #[cfg(feature = "std")]
        let present = std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma");
        #[cfg(not(feature = "std"))]
        let present = cfg!(all(target_feature = "avx2", target_feature = "fma"));
        present.then_some(&INSTANCE as &dyn Backend)
    }
}

impl Backend for Avx2 {
    fn kind(&self) -> BackendKind {
        BackendKind::Avx2
    }
}

impl Kernels for Avx2 {
    narrow_kernels!();

    fn add_assign(&self, m: &Modulus, a: &mut [u64], b: &[u64]) {
        // SAFETY: by the invariant of `Avx2` the CPU has the kernel's features; so below.
        unsafe { pointwise::add_assign(m, a, b) }
    }

    fn sub_assign(&self, m: &Modulus, a: &mut [u64], b: &[u64]) {
        // SAFETY: as above.
        unsafe { pointwise::sub_assign(m, a, b) }
    }

    fn neg_assign(&self, m: &Modulus, a: &mut [u64]) {
        // SAFETY: as above.
        unsafe { pointwise::neg_assign(m, a) }
    }

    fn lift_small(&self, m: &Modulus, values: &[i64], out: &mut [u64]) {
        // SAFETY: by the invariant of `Avx2` the CPU has the kernel's features.
        unsafe { pointwise::lift_small(m, values, out) }
    }

    fn permute(&self, automorphism: &Automorphism, input: &[u64], out: &mut [u64]) {
        // Loads and stores: already as fast as memory in the portable form.
        Portable.permute(automorphism, input, out);
    }

    fn derive_terms(&self, decomposer: &Decomposer, rows: &[&[u64]], out: &mut [u64]) {
        if terms::applies(decomposer) {
            // SAFETY: by the invariant of `Avx2` the CPU has the kernel's features.
            unsafe { terms::quotients(decomposer, rows, out) }
        } else {
            Portable.derive_terms(decomposer, rows, out);
        }
    }
}

impl Sampling for Avx2 {
    fn expand_part(&self, seed: &Seed, id: StreamId, m: &Modulus, start: usize, out: &mut [u64]) {
        // SAFETY: by the invariant of `Avx2` the CPU has the kernel's features.
        unsafe { chacha::fill_uniform(seed, id, m, start, out) }
    }

    fn key_stream(&self, key: &[u32; 16], first: u64, out: &mut [u64]) {
        // SAFETY: by the invariant of `Avx2` the CPU has the kernel's features; so below.
        unsafe { chacha::key_stream(key, first, out) }
    }

    fn gaussian(&self, words: &[u64], out: &mut [i64]) {
        // SAFETY: as above.
        unsafe { sampling::gaussian(words, out) }
    }

    fn ternary(&self, words: &[u64], out: &mut [i64]) {
        // SAFETY: as above.
        unsafe { sampling::ternary(words, out) }
    }
}

impl Planes for Avx2 {
    fn add_words(&self, planes: &[&[u8]], sums: &mut [u64]) {
        require_planes(planes, 4 * sums.len());
        // SAFETY: as above, and the lengths agree.
        unsafe { planes::add_words(planes, sums) }
    }

    fn add_bytes(&self, planes: &[&[u8]], sums: &mut [u16]) {
        require_planes(planes, sums.len());
        // SAFETY: as above, and the lengths agree.
        unsafe { planes::add_bytes(planes, sums) }
    }

    fn fold_sums(&self, m: &Modulus, high: &[&[u16]], sums: &mut [u64]) {
        // High products of words: there is no vector instruction for them.
        Portable.fold_sums(m, high, sums);
    }

    fn write_planes(&self, words: &[u64], low: &mut [u8], high: &mut [&mut [u8]]) {
        require_planes_mut(words.len(), low, high);
        // SAFETY: as above.
        unsafe { planes::write_planes(words, low, high) }
    }
}
