//! NEON of 64-bit ARM: primes below `2^50` in double precision, the expander in 32-bit lanes. Products modulo wider
//! primes use the portable kernels, because NEON has no instruction for the high product of words and the scalar units
//! have one.

mod chacha;
mod conversion;
mod dot;
mod ntt;
mod pointwise;
mod residues;
mod sampling;
mod terms;

use alloc::boxed::Box;

use super::narrow_kernels::narrow_kernels;
use super::portable::Portable;
use super::{Backend, BackendKind, Kernels, NttPlan, Planes, Quotient, Sampling, UniformRow, plain_layout};
use crate::conversion::{Decomposer, ScaledLayout};
use crate::{Automorphism, Modulus, Seed, ShoupFactor, StreamId};

/// Kernels for 64-bit ARM CPUs with NEON.
///
/// # Invariant
/// Only [`Neon::detect`] creates references to a value of this type, so a reference proves that the CPU has NEON.
#[derive(Debug)]
pub(super) struct Neon(());

static INSTANCE: Neon = Neon(());

impl Neon {
    /// The back end, if this CPU and operating system have its instructions.
    pub(super) fn detect() -> Option<&'static dyn Backend> {
        #[cfg(feature = "std")]
        let present = std::arch::is_aarch64_feature_detected!("neon");
        #[cfg(not(feature = "std"))]
        let present = cfg!(target_feature = "neon");
        present.then_some(&INSTANCE as &dyn Backend)
    }
}

impl Backend for Neon {
    fn kind(&self) -> BackendKind {
        BackendKind::Neon
    }
}

impl Kernels for Neon {
    narrow_kernels!();

    // Sums, permutations and byte planes: the compiler's code of the portable form has the same vector instructions.

    fn add_assign(&self, m: &Modulus, a: &mut [u64], b: &[u64]) {
        Portable.add_assign(m, a, b);
    }

    fn sub_assign(&self, m: &Modulus, a: &mut [u64], b: &[u64]) {
        Portable.sub_assign(m, a, b);
    }

    fn neg_assign(&self, m: &Modulus, a: &mut [u64]) {
        Portable.neg_assign(m, a);
    }

    fn lift_small(&self, m: &Modulus, values: &[i64], out: &mut [u64]) {
        Portable.lift_small(m, values, out);
    }

    fn permute(&self, automorphism: &Automorphism, input: &[u64], out: &mut [u64]) {
        Portable.permute(automorphism, input, out);
    }

    fn derive_terms(&self, decomposer: &Decomposer, rows: &[&[u64]], out: &mut [u64]) {
        if terms::applies(decomposer) {
            terms::quotients(decomposer, rows, out);
        } else {
            Portable.derive_terms(decomposer, rows, out);
        }
    }
}

impl Sampling for Neon {
    fn expand_part(&self, seed: &Seed, id: StreamId, m: &Modulus, start: usize, out: &mut [u64]) {
        // SAFETY: by the invariant of `Neon` the CPU has the kernel's features; so below.
        unsafe { chacha::fill_uniform(seed, id, m, start, out) }
    }

    fn key_stream(&self, key: &[u32; 16], first: u64, out: &mut [u64]) {
        // SAFETY: as above.
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

impl Planes for Neon {
    fn add_words(&self, planes: &[&[u8]], sums: &mut [u64]) {
        Portable.add_words(planes, sums);
    }

    fn add_bytes(&self, planes: &[&[u8]], sums: &mut [u16]) {
        Portable.add_bytes(planes, sums);
    }

    fn fold_sums(&self, m: &Modulus, high: &[&[u16]], sums: &mut [u64]) {
        Portable.fold_sums(m, high, sums);
    }

    fn write_planes(&self, words: &[u64], low: &mut [u8], high: &mut [&mut [u8]]) {
        Portable.write_planes(words, low, high);
    }
}
