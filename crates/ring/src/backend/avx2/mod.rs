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

use super::methods::{methods, proven};
use super::narrow_kernels::narrow_kernels;
use super::portable::ntt::ScalarPlan;
use super::portable::{self, Portable};
use super::{
    Backend, BackendKind, Diagonals, Kernels, KeySwitching, NttPlan, Planes, Quotient, Sampling, UniformRow,
    require_planes, require_planes_mut,
};
use crate::conversion::ScaledLayout;
use crate::{Modulus, Seed, ShoupFactor};

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
    narrow_kernels!(arithmetic);

    methods! {
        add_assign(self, m, a, b) => proven!(pointwise::add_assign(m, a, b));
        sub_assign(self, m, a, b) => proven!(pointwise::sub_assign(m, a, b));
        neg_assign(self, m, a) => proven!(pointwise::neg_assign(m, a));
        lift_small(self, m, values, out) => proven!(pointwise::lift_small(m, values, out));
        permute(self, automorphism, input, out) => proven!(pointwise::permute(automorphism, input, out));
    }
}

impl KeySwitching for Avx2 {
    narrow_kernels!(switching);

    fn scaled_layout(&self, n: usize) -> ScaledLayout {
        ntt::scaled_layout(n)
    }

    methods! {
        derive_terms(self, decomposer, rows, out) => {
            if terms::applies(decomposer) {
                proven!(terms::derive(decomposer, rows, out));
            } else {
                Portable.derive_terms(decomposer, rows, out);
            }
        };
    }
}

impl Diagonals for Avx2 {}

impl Sampling for Avx2 {
    methods! {
        expand_part(self, seed, id, m, start, out) => proven!(chacha::fill_uniform(seed, id, m, start, out));
        key_stream(self, key, first, out) => proven!(chacha::key_stream(key, first, out));
        gaussian(self, words, out) => proven!(sampling::gaussian(words, out));
        ternary(self, words, out) => proven!(sampling::ternary(words, out));
    }
}

impl Planes for Avx2 {
    methods! {
        add_words(self, planes, sums) => {
            require_planes(planes, 4 * sums.len());
            proven!(planes::add_words(planes, sums));
        };
        add_bytes(self, planes, sums) => {
            require_planes(planes, sums.len());
            proven!(planes::add_bytes(planes, sums));
        };
        // High products of words: there is no vector instruction for them.
        fold_sums(self, m, high, sums) => Portable.fold_sums(m, high, sums);
        write_planes(self, words, low, high) => {
            require_planes_mut(words.len(), low, high);
            proven!(planes::write_planes(words, low, high));
        };
    }
}
