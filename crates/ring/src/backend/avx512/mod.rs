//! AVX-512 with 52-bit fused multiply-add (IFMA): eight residues per register.
//!
//! Narrow primes use the 52-bit instructions, wide ones 32-bit products. Lazy ranges are those of [`lanes`].

mod lanes;
mod ntt;

use alloc::boxed::Box;

use super::portable::Portable;
use super::{Backend, BackendKind, NttPlan, UniformRow};
use crate::conversion::{Column, Decomposer};
use crate::{Automorphism, Modulus, Seed, ShoupFactor, StreamId};

/// The back end for CPUs with AVX-512 F, DQ, VL and IFMA.
///
/// # Invariant
/// Values exist only where [`Avx512::detect`] found the features.
#[derive(Debug)]
pub(super) struct Avx512(());

static AVX512: Avx512 = Avx512(());

impl Avx512 {
    /// The back end, if this CPU (and its operating system) can run it.
    pub(super) fn detect() -> Option<&'static dyn Backend> {
        #[cfg(feature = "std")]
        {
            use std::is_x86_feature_detected as has;
            let all = has!("avx512f") && has!("avx512dq") && has!("avx512vl") && has!("avx512ifma");
            all.then_some(&AVX512 as &dyn Backend)
        }
        #[cfg(not(feature = "std"))]
        None
    }
}

impl Backend for Avx512 {
    fn kind(&self) -> BackendKind {
        BackendKind::Avx512
    }

    fn plan_ntt(&self, log_n: u32, modulus: &Modulus, psi: u64) -> Box<dyn NttPlan> {
        // SAFETY: `self` proves the CPU features.
        unsafe {
            if modulus.is_narrow() {
                ntt::Plan::<lanes::Narrow>::new(log_n, modulus, psi)
            } else {
                ntt::Plan::<lanes::Wide>::new(log_n, modulus, psi)
            }
        }
    }

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
        Portable.mul(m, a, b, out);
    }

    fn mul_add_assign(&self, m: &Modulus, acc: &mut [u64], a: &[u64], b: &[u64]) {
        Portable.mul_add_assign(m, acc, a, b);
    }

    fn mul_scalar_assign(&self, m: &Modulus, a: &mut [u64], w: ShoupFactor) {
        Portable.mul_scalar_assign(m, a, w);
    }

    fn mul_scalar_add_assign(&self, m: &Modulus, acc: &mut [u64], a: &[u64], w: ShoupFactor) {
        Portable.mul_scalar_add_assign(m, acc, a, w);
    }

    fn sub_mul_scalar(&self, m: &Modulus, a: &[u64], b: &[u64], w: ShoupFactor, out: &mut [u64]) {
        Portable.sub_mul_scalar(m, a, b, w, out);
    }

    fn permute(&self, automorphism: &Automorphism, input: &[u64], out: &mut [u64]) {
        Portable.permute(automorphism, input, out);
    }

    fn digit_rows(&self, decomposer: &Decomposer, limbs: &[&[u64]], rows: &mut [u64]) {
        Portable.digit_rows(decomposer, limbs, rows);
    }

    fn convert(&self, column: &Column, rows: &[&[u64]], out: &mut [u64]) {
        Portable.convert(column, rows, out);
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
        Portable.inner_product(m, digits, b, a, out_b, out_a);
    }

    fn expand_uniform(&self, seed: &Seed, id: StreamId, m: &Modulus, out: &mut [u64]) {
        Portable.expand_uniform(seed, id, m, out);
    }
}

#[cfg(test)]
mod tests;
