//! Slots: the values of a plaintext polynomial at the roots of `X^N + 1` modulo `t` (Smart and Vercauteren, 2014).
//!
//! With `psi` a primitive `2N`-th root of unity modulo `t`, the slots are a matrix of 2 rows and `N/2` columns: entry
//! `j` of the first row is the value at `psi^(5^j)`, of the second row the value at `psi^(-5^j)`. So `X -> X^(5^k)`
//! rotates both rows by `k` to the left and `X -> X^(2N-1)` swaps them. Values are given row by row.

use std::fmt;

use keywright_ring::{Backend, Ring};

/// The places of a message's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Packing {
    /// In a matrix of 2 rows and `N/2` columns, row by row; ciphertexts multiply value by value.
    Slots,
    /// In the `N` coefficients; ciphertexts multiply as polynomials modulo `X^N + 1`.
    Coefficients,
}

impl fmt::Display for Packing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Slots => "slots",
            Self::Coefficients => "coefficients",
        })
    }
}

/// The transform modulo `t` and the positions of the slots in it.
pub(crate) struct Batching {
    ring: Ring,
    /// Slot `i` is entry `positions[i]` of the evaluation form.
    positions: Vec<u32>,
}

impl Batching {
    /// `None` if `t` has no slots.
    pub(crate) fn new(log_n: u32, t: u64, backend: &'static dyn Backend) -> Option<Self> {
        let ring = Ring::new(log_n, &[t], backend).ok()?;
        let (two_n, half) = (2u64 << log_n, 1usize << (log_n - 1));
        let mut positions = vec![0; 2 * half];
        let mut power = 1u64;
        for j in 0..half {
            // Entry i of the evaluation form is the value at psi^(2 brv(i) + 1).
            let position = |exponent: u64| ((exponent >> 1).reverse_bits() >> (64 - log_n)) as u32;
            positions[j] = position(power);
            positions[half + j] = position(two_n - power);
            power = power * 5 % two_n;
        }
        Some(Self { ring, positions })
    }

    /// Transforms slots to coefficients, in place.
    pub(crate) fn to_coefficients(&self, slots: &[u64]) -> Vec<u64> {
        let mut limb = vec![0; self.positions.len()];
        for (&value, &position) in slots.iter().zip(&self.positions) {
            limb[position as usize] = value;
        }
        self.ring.inverse_limb(0, &mut limb);
        limb
    }

    /// The slots of a polynomial; overwrites its coefficients.
    pub(crate) fn to_slots(&self, coefficients: &mut [u64]) -> Vec<u64> {
        self.ring.forward_limb(0, coefficients);
        self.positions.iter().map(|&position| coefficients[position as usize]).collect()
    }
}
