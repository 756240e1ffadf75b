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

use super::methods::{methods, proven};
use super::narrow_kernels::narrow_kernels;
use super::portable::ntt::ScalarPlan;
use super::portable::{self, Portable};
use super::{
    Backend, BackendKind, Diagonals, Kernels, KeySwitching, NttPlan, Planes, Quotient, Sampling, UniformRow,
};
use crate::{Modulus, Seed, ShoupFactor};

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
    narrow_kernels!(arithmetic);

    // Sums, permutations and byte planes: the compiler's code of the portable form has the same vector instructions.

    methods! {
        add_assign(self, m, a, b) => Portable.add_assign(m, a, b);
        sub_assign(self, m, a, b) => Portable.sub_assign(m, a, b);
        neg_assign(self, m, a) => Portable.neg_assign(m, a);
        lift_small(self, m, values, out) => Portable.lift_small(m, values, out);
        permute(self, automorphism, input, out) => Portable.permute(automorphism, input, out);
    }
}

impl KeySwitching for Neon {
    narrow_kernels!(switching);

    methods! {
        derive_terms(self, decomposer, rows, out) => {
            if terms::applies(decomposer) {
                terms::quotients(decomposer, rows, out);
            } else {
                Portable.derive_terms(decomposer, rows, out);
            }
        };
    }
}

impl Diagonals for Neon {}

impl Sampling for Neon {
    methods! {
        expand_part(self, seed, id, m, start, out) => proven!(chacha::fill_uniform(seed, id, m, start, out));
        key_stream(self, key, first, out) => proven!(chacha::key_stream(key, first, out));
        gaussian(self, words, out) => proven!(sampling::gaussian(words, out));
        ternary(self, words, out) => proven!(sampling::ternary(words, out));
    }
}

impl Planes for Neon {
    methods! {
        add_words(self, planes, sums) => Portable.add_words(planes, sums);
        add_bytes(self, planes, sums) => Portable.add_bytes(planes, sums);
        fold_sums(self, m, high, sums) => Portable.fold_sums(m, high, sums);
        write_planes(self, words, low, high) => Portable.write_planes(words, low, high);
    }
}
