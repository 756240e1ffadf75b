//! Harvey's lazy butterflies on 64-bit words.
//!
//! # Invariant
//! With `q < 2^61`: forward butterflies take words below `4q` and give words below `4q`; inverse butterflies take words
//! below `2q` and give words below `2q`. Both fit a word, as `4q < 2^63`.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::kernels;
use crate::backend::NttPlan;
use crate::conversion::Column;
use crate::{Modulus, ShoupFactor};

/// Twiddle factors in bit-reversed order with their Shoup quotients.
pub(crate) struct ScalarPlan {
    modulus: Modulus,
    /// `psi^brv(i)`.
    forward: Vec<ShoupFactor>,
    /// `psi^-brv(i)`; entry 1, the last layer's only factor, times `N^-1`.
    inverse: Vec<ShoupFactor>,
    /// `N^-1`.
    scale: ShoupFactor,
}

/// `base^brv(i)` for `i < n`.
pub(crate) fn reversed_powers(m: &Modulus, log_n: u32, base: u64) -> Vec<u64> {
    let n = 1usize << log_n;
    let mut powers = alloc::vec![1; n];
    let mut power = 1;
    for i in 0..n {
        powers[i.reverse_bits() >> (usize::BITS - log_n)] = power;
        power = m.mul(power, base);
    }
    powers
}

impl ScalarPlan {
    pub(crate) fn new(log_n: u32, modulus: &Modulus, psi: u64) -> Box<Self> {
        let shoup = |values: Vec<u64>| values.into_iter().map(|v| modulus.shoup(v)).collect::<Vec<_>>();
        let n_inverse = modulus.inv(1 << log_n);
        let mut inverse = reversed_powers(modulus, log_n, modulus.inv(psi));
        inverse[1] = modulus.mul(inverse[1], n_inverse);
        Box::new(Self {
            modulus: *modulus,
            forward: shoup(reversed_powers(modulus, log_n, psi)),
            inverse: shoup(inverse),
            scale: modulus.shoup(n_inverse),
        })
    }
}

impl NttPlan for ScalarPlan {
    fn forward(&self, x: &mut [u64]) {
        let m = &self.modulus;
        let (q, two_q) = (m.value(), 2 * m.value());
        let mut half = x.len() / 2;
        let mut blocks = 1;
        while half >= 1 {
            for (block, &w) in x.chunks_exact_mut(2 * half).zip(&self.forward[blocks..2 * blocks]) {
                let (low, high) = block.split_at_mut(half);
                for (u, v) in low.iter_mut().zip(high) {
                    debug_assert!(*u < 4 * q && *v < 4 * q);
                    let a = (*u).min((*u).wrapping_sub(two_q));
                    let t = m.mul_shoup_lazy(*v, w);
                    *u = a + t;
                    *v = a + two_q - t;
                }
            }
            blocks *= 2;
            half /= 2;
        }
        for word in x {
            let r = (*word).min((*word).wrapping_sub(two_q));
            *word = r.min(r.wrapping_sub(q));
        }
    }

    fn inverse(&self, x: &mut [u64]) {
        let m = &self.modulus;
        let (q, two_q) = (m.value(), 2 * m.value());
        let n = x.len();
        let mut half = 1;
        let mut blocks = n / 2;
        while blocks > 1 {
            for (block, &w) in x.chunks_exact_mut(2 * half).zip(&self.inverse[blocks..2 * blocks]) {
                let (low, high) = block.split_at_mut(half);
                for (u, v) in low.iter_mut().zip(high) {
                    debug_assert!(*u < two_q && *v < two_q);
                    let (a, b) = (*u, *v);
                    let s = a + b;
                    *u = s.min(s.wrapping_sub(two_q));
                    *v = m.mul_shoup_lazy(a + two_q - b, w);
                }
            }
            blocks /= 2;
            half *= 2;
        }
        // Last layer, with N^-1 folded in and full reduction.
        let (low, high) = x.split_at_mut(half);
        let w = self.inverse[1];
        for (u, v) in low.iter_mut().zip(high) {
            let (a, b) = (*u, *v);
            let s = m.mul_shoup_lazy(a + b, self.scale);
            let d = m.mul_shoup_lazy(a + two_q - b, w);
            *u = s.min(s.wrapping_sub(q));
            *v = d.min(d.wrapping_sub(q));
        }
    }

    fn convert_forward(&self, column: &Column, rows: &[&[u64]], out: &mut [u64]) {
        kernels::convert(column, rows, out);
        self.forward(out);
    }
}
