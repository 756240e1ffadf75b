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

use super::portable::Portable;
use super::{Backend, BackendKind, NttPlan, Quotient, UniformRow, plain_layout};
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

/// Calls a kernel where the modulus is narrow, the portable one elsewhere.
macro_rules! narrow_or_portable {
    ($m:expr, $narrow:expr, $portable:expr) => {
        if $m.is_narrow() {
            // SAFETY: by the invariant of `Neon` the CPU has the kernel's features.
            unsafe { $narrow }
        } else {
            $portable
        }
    };
}

impl Backend for Neon {
    fn kind(&self) -> BackendKind {
        BackendKind::Neon
    }

    fn plan_ntt(&self, log_n: u32, modulus: &Modulus, psi: u64) -> Box<dyn NttPlan> {
        if modulus.is_narrow() {
            ntt::NarrowPlan::new(log_n, modulus, psi)
        } else {
            Portable.plan_ntt(log_n, modulus, psi)
        }
    }

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

    fn mul(&self, m: &Modulus, a: &[u64], b: &[u64], out: &mut [u64]) {
        narrow_or_portable!(m, pointwise::mul(m, a, b, out), Portable.mul(m, a, b, out));
    }

    fn mul_add_assign(&self, m: &Modulus, acc: &mut [u64], a: &[u64], b: &[u64]) {
        narrow_or_portable!(
            m,
            pointwise::mul_add_assign(m, acc, a, b),
            Portable.mul_add_assign(m, acc, a, b)
        );
    }

    fn mul_scalar_assign(&self, m: &Modulus, a: &mut [u64], w: ShoupFactor) {
        narrow_or_portable!(m, pointwise::mul_scalar_assign(m, a, w), Portable.mul_scalar_assign(m, a, w));
    }

    fn mul_scalar_add_assign(&self, m: &Modulus, acc: &mut [u64], a: &[u64], w: ShoupFactor) {
        narrow_or_portable!(
            m,
            pointwise::mul_scalar_add_assign(m, acc, a, w),
            Portable.mul_scalar_add_assign(m, acc, a, w)
        );
    }

    fn quotient(&self, m: &Modulus, quotient: &Quotient<'_>, out: &mut [u64]) {
        narrow_or_portable!(m, pointwise::quotient(m, quotient, out), Portable.quotient(m, quotient, out));
    }

    fn lift_small(&self, m: &Modulus, values: &[i64], out: &mut [u64]) {
        Portable.lift_small(m, values, out);
    }

    fn permute(&self, automorphism: &Automorphism, input: &[u64], out: &mut [u64]) {
        Portable.permute(automorphism, input, out);
    }

    fn scaled_layout(&self, n: usize) -> ScaledLayout {
        plain_layout(n)
    }

    fn derive_terms(&self, decomposer: &Decomposer, rows: &[&[u64]], out: &mut [u64]) {
        if terms::applies(decomposer) {
            terms::quotients(decomposer, rows, out);
        } else {
            Portable.derive_terms(decomposer, rows, out);
        }
    }

    fn inner_product(
        &self,
        m: &Modulus,
        digits: &[&[u64]],
        b: &[&[u64]],
        a: &[UniformRow<'_>],
        out_b: &mut [u64],
        out_a: &mut [u64],
    ) {
        narrow_or_portable!(
            m,
            dot::inner_product(m, digits, b, a, out_b, out_a),
            Portable.inner_product(m, digits, b, a, out_b, out_a)
        );
    }

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
