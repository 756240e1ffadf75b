//! Constants of ModDown, the division with rounding by some of the primes of a residue system.

use alloc::vec::Vec;

use keywright_ring::{Conversion, Modulus, ShoupFactor};

use crate::Parameters;

/// `x -> round(x / R)`, `R` the product of the removed primes, from the primes `0..kept` and the removed ones to
/// `0..kept`.
///
/// The remainder `r = x mod R`, centred, is converted to the kept primes, and the result is `(x - r) R^-1`. It differs
/// from `x / R` by at most 1/2 in every coefficient (times `1 + 2^-12`, see [`keywright_ring::conversion`]).
#[derive(Debug)]
pub struct ModDown {
    /// Primes of the result: `0..kept`.
    pub kept: usize,
    /// Indices of the primes divided by.
    pub removed: Vec<usize>,
    pub(crate) conversion: Conversion,
    /// Per kept prime, `R^-1`.
    factor: Vec<ShoupFactor>,
}

impl ModDown {
    /// Precomputes the division by the primes `removed`.
    pub fn new(parameters: &Parameters, kept: usize, removed: Vec<usize>) -> Self {
        let sources: Vec<Modulus> = removed.iter().map(|&i| *parameters.modulus(i)).collect();
        let targets: Vec<Modulus> = (0..kept).map(|i| *parameters.modulus(i)).collect();
        let factor = targets.iter().map(|m| m.shoup(m.inv(parameters.product(&removed, m)))).collect();
        Self { kept, conversion: Conversion::new(&sources, &targets), factor, removed }
    }

    /// Index of the prime at a position: the kept primes, then the removed ones.
    pub fn prime(&self, position: usize) -> usize {
        if position < self.kept { position } else { self.removed[position - self.kept] }
    }

    /// The inverse of the divisor modulo prime `i`.
    pub(crate) fn factor(&self, i: usize) -> ShoupFactor {
        self.factor[i]
    }
}
