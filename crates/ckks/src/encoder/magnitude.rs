//! Magnitudes of values, coefficients and moduli.

use keywright_ring::Modulus;

use super::dispatch::{Isa, dispatched};

/// Coefficients are below `2^MAX_BITS` in both directions, so intermediate sums and products stay in the range of
/// `f64`.
pub(super) const MAX_BITS: u32 = 980;

/// A largest magnitude; NaN if a value was NaN.
#[derive(Debug, Clone, Copy)]
pub(super) struct Largest(pub(super) f64);

impl Largest {
    /// Whether it is above `2^bits`, infinite or NaN.
    pub(super) fn is_above(self, bits: u32) -> bool {
        let bound = f64::from_bits(u64::from(1023 + bits) << 52);
        !matches!(self.0.partial_cmp(&bound), Some(std::cmp::Ordering::Less | std::cmp::Ordering::Equal))
    }
}

/// The largest magnitude of some values.
pub(super) fn max_magnitude(isa: Isa, values: &[f64]) -> Largest {
    Largest(f64::from_bits(max_magnitude_bits(isa, values)))
}

dispatched! {
    /// Without its sign bit, an `f64` is ordered like its bits, with infinity above all numbers and NaN above infinity.
    fn max_magnitude_bits(values: &[f64]) -> u64 {
        values.iter().fold(0, |largest, v| largest.max(v.to_bits() & (u64::MAX >> 1)))
    }
}

/// The largest `f64` that is at most `(Q - 1)/2`, where `Q` is the product of `moduli`: a coefficient of type `f64`
/// lies within `-Q/2..Q/2` exactly if its magnitude is at most this.
pub(super) fn half_modulus(moduli: &[Modulus]) -> f64 {
    let mut words: Vec<u64> = vec![1];
    for m in moduli {
        let mut carry = 0;
        for word in &mut words {
            let t = u128::from(*word) * u128::from(m.value()) + carry;
            (*word, carry) = (t as u64, t >> 64);
        }
        if carry != 0 {
            words.push(carry as u64);
        }
    }
    // (Q - 1)/2 is Q without its last bit, as Q is odd; cut it after 53 bits.
    let top = words[words.len() - 1];
    let length = words.len() * 64 - top.leading_zeros() as usize - 1;
    if length == 0 {
        return 0.0;
    }
    if length > 1024 {
        return f64::MAX;
    }
    let bit = |i: usize| words[i / 64] >> (i % 64) & 1;
    let kept = length.min(53);
    // Bits 1..=length of Q are the bits of (Q - 1)/2.
    let mantissa = (0..kept).fold(0, |acc, i| acc << 1 | bit(length - i));
    let exponent = (length - kept) as u64;
    mantissa as f64 * f64::from_bits((1023 + exponent) << 52)
}
