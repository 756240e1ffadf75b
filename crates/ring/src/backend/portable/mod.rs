//! Plain Rust, on any target: the reference for the other back ends.

pub(crate) mod dot;
pub(crate) mod kernels;
pub(crate) mod ntt;
pub(crate) mod planes;

use alloc::boxed::Box;

use super::methods::methods;
use super::{
    Backend, BackendKind, Diagonals, Kernels, KeySwitching, NttPlan, Planes, Sampling, require_length,
    require_planes, require_planes_mut,
};
use crate::randomness::{chacha, expander, gaussian_samples, ternary};
use crate::{Modulus, ShoupFactor};

#[derive(Debug)]
pub(super) struct Portable;

impl Backend for Portable {
    fn kind(&self) -> BackendKind {
        BackendKind::Portable
    }
}

impl Kernels for Portable {
    fn plan_ntt(&self, log_n: u32, modulus: &Modulus, psi: u64) -> Box<dyn NttPlan> {
        ntt::ScalarPlan::new(log_n, modulus, psi, self.scaled_layout(1 << log_n))
    }

    methods! {
        add_assign(self, m, a, b) => a.iter_mut().zip(b).for_each(|(x, &y)| *x = m.add(*x, y));
        sub_assign(self, m, a, b) => a.iter_mut().zip(b).for_each(|(x, &y)| *x = m.sub(*x, y));
        neg_assign(self, m, a) => a.iter_mut().for_each(|x| *x = m.neg(*x));
        mul(self, m, a, b, out) => kernels::mul(m, a, b, out);
        mul_add_assign(self, m, acc, a, b) => kernels::mul_add_assign(m, acc, a, b);
        mul_scalar_assign(self, m, a, w) => a.iter_mut().for_each(|x| *x = m.mul_shoup(*x, w));
        mul_scalar_add_assign(self, m, acc, a, w) =>
            acc.iter_mut().zip(a).for_each(|(x, &y)| *x = m.add(*x, m.mul_shoup(y, w)));
        quotient(self, m, quotient, out) => kernels::quotient(m, quotient, out);
        lift_small(self, m, values, out) => kernels::lift_small(m, values, out);
        permute(self, automorphism, input, out) => kernels::permute(automorphism, input, out);
    }
}

impl KeySwitching for Portable {
    methods! {
        derive_terms(self, decomposer, rows, out) => kernels::derive_terms(decomposer, rows, out);
        inner_product(self, m, digits, b, a, out_b, out_a) =>
            dot::inner_product(m, digits, b, a, (out_b, out_a), expander::fill_uniform);
    }
}

impl Diagonals for Portable {}

impl Sampling for Portable {
    methods! {
        expand_part(self, seed, id, m, start, out) => expander::fill_uniform(seed, id, m, start, out);
        key_stream(self, key, first, out) => chacha::key_stream(key, first, out);
        gaussian(self, words, out) => gaussian_samples(words, out);
        ternary(self, words, out) => ternary::samples(words, out);
    }
}

impl Planes for Portable {
    methods! {
        add_words(self, planes, sums) => {
            require_planes(planes, 4 * sums.len());
            planes::add_words(planes, sums);
        };
        add_bytes(self, planes, sums) => {
            require_planes(planes, sums.len());
            planes::add_bytes(planes, sums);
        };
        fold_sums(self, m, high, sums) => {
            require_length(high, sums.len());
            planes::fold_sums(m, high, sums);
        };
        write_planes(self, words, low, high) => {
            require_planes_mut(words.len(), low, high);
            planes::write_planes(words, low, high);
        };
    }
}
