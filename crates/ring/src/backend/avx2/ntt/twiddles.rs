//! Factors of the layers, and the words of a run, in which all passes walk.

use alloc::vec::Vec;
use core::arch::x86_64::*;

use super::super::residues::Factor;
use crate::Modulus;
use crate::backend::portable::ntt::reversed_powers;

/// Words of a run (32 KiB).
pub(super) const LOCAL: usize = 4096;

/// Powers of a root in bit-reversed order, centred, and divided by the prime.
pub(super) struct Twiddles {
    pub(super) values: Vec<f64>,
    pub(super) quotients: Vec<f64>,
}

impl Twiddles {
    pub(super) fn new(log_n: u32, m: &Modulus, base: u64) -> Self {
        let centred = |w: u64| m.centered(w) as f64;
        let values: Vec<f64> = reversed_powers(m, log_n, base).into_iter().map(centred).collect();
        let quotients = values.iter().map(|w| w / m.value() as f64).collect();
        Self { values, quotients }
    }

    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub(super) fn broadcast(&self, i: usize) -> Factor {
        Factor { value: _mm256_set1_pd(self.values[i]), quotient: _mm256_set1_pd(self.quotients[i]) }
    }

    /// The factors of the two layers of a block whose first layer has factor `i`.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub(super) fn radix4(&self, i: usize) -> [Factor; 3] {
        [self.broadcast(i), self.broadcast(2 * i), self.broadcast(2 * i + 1)]
    }
}
