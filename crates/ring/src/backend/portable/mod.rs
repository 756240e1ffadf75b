//! Plain Rust, on any target: the reference for the other back ends.

mod dot;
pub(crate) mod kernels;
pub(crate) mod ntt;
pub(crate) mod planes;

use alloc::boxed::Box;

use super::{
    Backend, BackendKind, Kernels, NttPlan, Planes, Quotient, Sampling, UniformRow, plain_layout,
    require_length, require_planes, require_planes_mut,
};
use crate::conversion::{Decomposer, ScaledLayout};
use crate::{Automorphism, Modulus, Seed, ShoupFactor, StreamId, chacha, expander, sampling};

#[derive(Debug)]
pub(super) struct Portable;

impl Backend for Portable {
    fn kind(&self) -> BackendKind {
        BackendKind::Portable
    }
}

impl Kernels for Portable {
    fn plan_ntt(&self, log_n: u32, modulus: &Modulus, psi: u64) -> Box<dyn NttPlan> {
        ntt::ScalarPlan::new(log_n, modulus, psi)
    }

    fn add_assign(&self, m: &Modulus, a: &mut [u64], b: &[u64]) {
        a.iter_mut().zip(b).for_each(|(x, &y)| *x = m.add(*x, y));
    }

    fn sub_assign(&self, m: &Modulus, a: &mut [u64], b: &[u64]) {
        a.iter_mut().zip(b).for_each(|(x, &y)| *x = m.sub(*x, y));
    }

    fn neg_assign(&self, m: &Modulus, a: &mut [u64]) {
        a.iter_mut().for_each(|x| *x = m.neg(*x));
    }

    fn mul(&self, m: &Modulus, a: &[u64], b: &[u64], out: &mut [u64]) {
        kernels::mul(m, a, b, out);
    }

    fn mul_add_assign(&self, m: &Modulus, acc: &mut [u64], a: &[u64], b: &[u64]) {
        kernels::mul_add_assign(m, acc, a, b);
    }

    fn mul_scalar_assign(&self, m: &Modulus, a: &mut [u64], w: ShoupFactor) {
        a.iter_mut().for_each(|x| *x = m.mul_shoup(*x, w));
    }

    fn mul_scalar_add_assign(&self, m: &Modulus, acc: &mut [u64], a: &[u64], w: ShoupFactor) {
        acc.iter_mut().zip(a).for_each(|(x, &y)| *x = m.add(*x, m.mul_shoup(y, w)));
    }

    fn quotient(&self, m: &Modulus, quotient: &Quotient<'_>, out: &mut [u64]) {
        kernels::quotient(m, quotient, out);
    }

    fn lift_small(&self, m: &Modulus, values: &[i64], out: &mut [u64]) {
        kernels::lift_small(m, values, out);
    }

    fn permute(&self, automorphism: &Automorphism, input: &[u64], out: &mut [u64]) {
        kernels::permute(automorphism, input, out);
    }

    fn scaled_layout(&self, n: usize) -> ScaledLayout {
        plain_layout(n)
    }

    fn derive_terms(&self, decomposer: &Decomposer, rows: &[&[u64]], out: &mut [u64]) {
        kernels::derive_terms(decomposer, rows, out);
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
        dot::inner_product(m, digits, b, a, out_b, out_a);
    }
}

impl Sampling for Portable {
    fn expand_part(&self, seed: &Seed, id: StreamId, m: &Modulus, start: usize, out: &mut [u64]) {
        expander::fill_uniform(seed, id, m, start, out);
    }

    fn key_stream(&self, key: &[u32; 16], first: u64, out: &mut [u64]) {
        chacha::key_stream(key, first, out);
    }

    fn gaussian(&self, words: &[u64], out: &mut [i64]) {
        sampling::gaussian_samples(words, out);
    }

    fn ternary(&self, words: &[u64], out: &mut [i64]) {
        sampling::ternary_samples(words, out);
    }
}

impl Planes for Portable {
    fn add_words(&self, planes: &[&[u8]], sums: &mut [u64]) {
        require_planes(planes, 4 * sums.len());
        planes::add_words(planes, sums);
    }

    fn add_bytes(&self, planes: &[&[u8]], sums: &mut [u16]) {
        require_planes(planes, sums.len());
        planes::add_bytes(planes, sums);
    }

    fn fold_sums(&self, m: &Modulus, high: &[&[u16]], sums: &mut [u64]) {
        require_length(high, sums.len());
        planes::fold_sums(m, high, sums);
    }

    fn write_planes(&self, words: &[u64], low: &mut [u8], high: &mut [&mut [u8]]) {
        require_planes_mut(words.len(), low, high);
        planes::write_planes(words, low, high);
    }
}
