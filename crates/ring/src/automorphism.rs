//! Automorphisms `X -> X^g` in both domains.

use alloc::vec::Vec;

use crate::RingError;

/// Galois element of a rotation by `steps` slots to the left: `5^steps mod 2N`.
pub fn rotation_element(log_n: u32, steps: i64) -> u64 {
    let two_n = 1u64 << (log_n + 1);
    let order = 1i64 << (log_n - 1);
    let (mut exponent, mut base, mut element) = (steps.rem_euclid(order), 5u64, 1u64);
    while exponent > 0 {
        if exponent & 1 == 1 {
            element = element * base % two_n;
        }
        base = base * base % two_n;
        exponent >>= 1;
    }
    element
}

/// The inverse of an odd `element` modulo `2N`.
pub fn galois_inverse(log_n: u32, element: u64) -> u64 {
    // Newton iteration in the 2-adic integers: five steps give 64 bits.
    let mut x = element;
    for _ in 0..5 {
        x = x.wrapping_mul(2u64.wrapping_sub(element.wrapping_mul(x)));
    }
    x & ((2 << log_n) - 1)
}

/// One automorphism, with its permutation of evaluations.
///
/// # Invariant
/// In evaluation form, the eight entries of an aligned group come from one aligned group: entry `i` holds the value at
/// exponent `2 brv(i) + 1`. The low bits of this exponent depend on the high bits of `i` alone, and multiplication by
/// `g` preserves low bits. `groups[b]` is the source group of group `b`; bits `3k..3k+3` of `lanes[b]` are the source
/// lane of lane `k`.
#[derive(Debug, Clone)]
pub struct Automorphism {
    log_n: u32,
    element: u64,
    pub(crate) groups: Vec<u32>,
    pub(crate) lanes: Vec<u32>,
}

impl Automorphism {
    /// Precomputes `X -> X^element`; takes `N` bytes.
    ///
    /// # Errors
    /// [`RingError::GaloisElement`] unless `element` is odd and below `2N`.
    pub fn new(log_n: u32, element: u64) -> Result<Self, RingError> {
        let two_n = 2u64 << log_n;
        if element.is_multiple_of(2) || element >= two_n {
            return Err(RingError::GaloisElement { element, two_n });
        }
        let reverse = |i: u64| i.reverse_bits() >> (64 - log_n);
        let source = |i: u64| reverse((((2 * reverse(i) + 1) * element) & (two_n - 1)) >> 1);
        let count = 1u64 << (log_n - 3);
        let groups = (0..count).map(|b| (source(8 * b) >> 3) as u32).collect();
        let lanes = (0..count)
            .map(|b| (0..8).fold(0, |packed, k| packed | ((source(8 * b + k) & 7) as u32) << (3 * k)))
            .collect();
        Ok(Self { log_n, element, groups, lanes })
    }

    /// Index in evaluation form of the entry that moves to index `i`.
    #[inline]
    pub fn source(&self, i: usize) -> usize {
        (self.groups[i / 8] as usize) * 8 + (self.lanes[i / 8] >> (3 * (i % 8)) & 7) as usize
    }

    /// The same permutation with the upper half of its result in reverse order. Entry `N/2 + i` of that is the value at
    /// the inverse of the root of entry `i`: for a polynomial with `p(X) = p(1/X)`, both are equal.
    pub fn folded(&self) -> Self {
        let mut out = self.clone();
        let half = out.groups.len() / 2;
        out.groups[half..].reverse();
        out.lanes[half..].reverse();
        for lanes in &mut out.lanes[half..] {
            *lanes = (0..8).fold(0, |packed, k| packed | (*lanes >> (3 * (7 - k)) & 7) << (3 * k));
        }
        out
    }

    /// `out = in(X^g)` on small signed coefficients.
    pub fn apply_signed(&self, input: &[i64], out: &mut [i64]) {
        let n = 1u64 << self.log_n;
        for (i, &c) in input.iter().enumerate() {
            let power = i as u64 * self.element % (2 * n);
            if power < n {
                out[power as usize] = c;
            } else {
                out[(power - n) as usize] = -c;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inverse_and_order() {
        for log_n in [10, 16, 17] {
            let two_n = 2u64 << log_n;
            for element in [1, 5, 25, two_n - 1, rotation_element(log_n, 77)] {
                assert_eq!(element * galois_inverse(log_n, element) % two_n, 1);
            }
            assert_eq!(rotation_element(log_n, 0), 1);
            assert_eq!(rotation_element(log_n, 1 << (log_n - 1)), 1);
            assert_eq!(rotation_element(log_n, -1), galois_inverse(log_n, 5));
        }
    }

    #[test]
    fn the_upper_half_is_folded() {
        for element in [1, 5, 2047] {
            let plain = Automorphism::new(10, element).unwrap();
            let folded = plain.folded();
            for i in 0..512 {
                assert_eq!(folded.source(i), plain.source(i));
                assert_eq!(folded.source(512 + i), plain.source(1023 - i));
            }
        }
        // Complex conjugation exchanges the halves of the folded order.
        let conjugation = Automorphism::new(10, 2047).unwrap().folded();
        assert!((0..512).all(|i| conjugation.source(512 + i) == i));
    }

    #[test]
    fn every_lane_of_a_group_has_one_source_group() {
        for element in [5, 3, 2047, 1001] {
            let a = Automorphism::new(10, element).unwrap();
            let mut seen = alloc::vec![false; 1024];
            for i in 0..1024u64 {
                let reverse = |i: u64| i.reverse_bits() >> 54;
                let expected = reverse(((2 * reverse(i) + 1) * element % 2048) >> 1);
                assert_eq!(a.source(i as usize) as u64, expected);
                seen[expected as usize] = true;
            }
            assert!(seen.iter().all(|&s| s));
        }
        assert!(Automorphism::new(10, 4).is_err());
        assert!(Automorphism::new(10, 2049).is_err());
    }
}
