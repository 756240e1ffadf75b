//! Arithmetic modulo the plaintext modulus, which may be even, without a division or a branch on values.

/// An integer `2 <= t < 2^60` with its Barrett constant.
///
/// # Invariant
/// `ratio = floor((2^128 - 1) / t)`, which is `2^128 / t - e` with `0 < e <= 1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PlainModulus {
    value: u64,
    ratio: [u64; 2],
}

impl PlainModulus {
    /// Wraps a modulus whose range the parameters have checked.
    pub(crate) const fn new(value: u64) -> Self {
        let ratio = u128::MAX / value as u128;
        Self { value, ratio: [ratio as u64, (ratio >> 64) as u64] }
    }

    pub(crate) const fn value(self) -> u64 {
        self.value
    }

    /// Any 128-bit value modulo `t`.
    #[inline]
    pub(crate) const fn reduce_u128(self, x: u128) -> u64 {
        // floor(x ratio / 2^128) is above x / t - x e / 2^128 - 1 > x / t - 2, so one subtraction suffices.
        let (x0, x1) = (x as u64 as u128, x >> 64);
        let (r0, r1) = (self.ratio[0] as u128, self.ratio[1] as u128);
        let (mid1, mid2) = (x0 * r1, x1 * r0);
        let carry = (((x0 * r0) >> 64) + (mid1 as u64 as u128) + (mid2 as u64 as u128)) >> 64;
        let quotient = (x1 * r1).wrapping_add(mid1 >> 64).wrapping_add(mid2 >> 64).wrapping_add(carry);
        let r = (x as u64).wrapping_sub((quotient as u64).wrapping_mul(self.value)).wrapping_sub(self.value);
        r.wrapping_add(self.value & ((r as i64 >> 63) as u64))
    }

    /// `a b mod t`.
    #[inline]
    pub(crate) const fn mul(self, a: u64, b: u64) -> u64 {
        self.reduce_u128(a as u128 * b as u128)
    }

    /// The residue of a value in `-t < value < t`.
    #[inline]
    pub(crate) const fn residue(self, value: i64) -> u64 {
        (value + ((value >> 63) & self.value as i64)) as u64
    }

    /// The representative of a residue in `(-t/2, t/2]`.
    #[inline]
    pub(crate) const fn centred(self, residue: u64) -> i64 {
        let above = (self.value / 2).wrapping_sub(residue) as i64 >> 63;
        residue as i64 - (self.value as i64 & above)
    }

    /// The inverse of a unit, by the extended Euclidean algorithm. For public constants: variable time.
    pub(crate) const fn inverse(self, a: u64) -> u64 {
        let (mut r0, mut r1) = (self.value as i128, (a % self.value) as i128);
        let (mut s0, mut s1) = (0i128, 1i128);
        while r1 != 0 {
            let quotient = r0 / r1;
            (r0, r1) = (r1, r0 - quotient * r1);
            (s0, s1) = (s1, s0 - quotient * s1);
        }
        s0.rem_euclid(self.value as i128) as u64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn moduli() -> impl Strategy<Value = u64> {
        prop_oneof![
            Just(2u64),
            Just(3),
            Just(4),
            Just(65536),
            Just(65537),
            Just((1 << 60) - 1),
            Just(1 << 59),
            2u64..1 << 60
        ]
    }

    proptest! {
        #[test]
        fn agrees_with_division(t in moduli(), x: u128, a: u64, b: u64) {
            let m = PlainModulus::new(t);
            for x in [x, 0, u128::MAX, u128::from(t), u128::from(t) - 1] {
                prop_assert_eq!(u128::from(m.reduce_u128(x)), x % u128::from(t));
            }
            let (a, b) = (a % t, b % t);
            prop_assert_eq!(u128::from(m.mul(a, b)), u128::from(a) * u128::from(b) % u128::from(t));
            let centred = m.centred(a);
            prop_assert!(2 * centred.unsigned_abs() <= t && 2 * i128::from(centred) > -i128::from(t));
            prop_assert_eq!(m.residue(centred), a);
            prop_assert_eq!(m.residue(a as i64), a);
            let odd = a | 1;
            if t.is_power_of_two() {
                prop_assert_eq!(m.mul(m.inverse(odd), odd % t), 1);
            }
        }
    }
}
