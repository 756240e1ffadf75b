//! Scalar arithmetic modulo one word-sized prime.

use crate::RingError;

/// Primes below `2^NARROW_BITS` run on 52-bit arithmetic.
pub const NARROW_BITS: u32 = 50;
/// Smallest supported width.
pub const MIN_BITS: u32 = 2;
/// Largest supported width: sums of four residues still fit a word.
pub const MAX_BITS: u32 = 61;

/// An odd modulus below `2^61` with its Barrett constant.
///
/// # Invariant
/// `3 <= value < 2^61`, `value` odd, `ratio = floor(2^128 / value)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Modulus {
    value: u64,
    ratio: [u64; 2],
}

/// A constant factor `w` with `floor(w * 2^64 / q)`, for multiplication with one high product (Shoup).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShoupFactor {
    /// The factor, below the modulus.
    pub value: u64,
    /// `floor(value * 2^64 / q)`.
    pub quotient: u64,
}

impl Modulus {
    /// Wraps an odd modulus.
    ///
    /// # Errors
    /// [`RingError::ModulusRange`] if it is even or outside `3..2^61`. Primality is checked by [`crate::Ring::new`].
    pub const fn new(value: u64) -> Result<Self, RingError> {
        if value < 3 || value.is_multiple_of(2) || value >> MAX_BITS != 0 {
            return Err(RingError::ModulusRange(value));
        }
        // 2^128 / value: an odd value above 1 does not divide 2^128, so floor((2^128 - 1) / value) is the same.
        let ratio = u128::MAX / value as u128;
        Ok(Self { value, ratio: [ratio as u64, (ratio >> 64) as u64] })
    }

    /// The modulus itself.
    #[inline(always)]
    pub const fn value(&self) -> u64 {
        self.value
    }

    /// Number of significant bits.
    #[inline]
    pub const fn bits(&self) -> u32 {
        64 - self.value.leading_zeros()
    }

    /// Whether the 52-bit kernels apply (below `2^50`).
    #[inline]
    pub const fn is_narrow(&self) -> bool {
        self.value >> NARROW_BITS == 0
    }

    /// `x mod q` for `x < 2q`, without a branch.
    #[inline(always)]
    const fn reduce_once(&self, x: u64) -> u64 {
        self.raise_once(x.wrapping_sub(self.value))
    }

    /// `x mod q` for `-q <= x < q` in two's complement, without a branch.
    #[inline(always)]
    const fn raise_once(&self, x: u64) -> u64 {
        x.wrapping_add(self.value & ((x as i64 >> 63) as u64))
    }

    /// `a + b mod q` for canonical operands.
    #[inline(always)]
    pub const fn add(&self, a: u64, b: u64) -> u64 {
        self.reduce_once(a + b)
    }

    /// `a - b mod q` for canonical operands.
    #[inline(always)]
    pub const fn sub(&self, a: u64, b: u64) -> u64 {
        self.raise_once(a.wrapping_sub(b))
    }

    /// `-a mod q` for a canonical operand.
    #[inline(always)]
    pub const fn neg(&self, a: u64) -> u64 {
        self.raise_once(a.wrapping_neg())
    }

    /// Any 128-bit value modulo q (Barrett).
    #[inline(always)]
    pub const fn reduce_u128(&self, x: u128) -> u64 {
        // floor(x * ratio / 2^128) underestimates floor(x / q) by at most 1: with ratio = 2^128/q - e, e < 1, and
        // the low partial products kept exactly, the estimate is above x/q - x*e/2^128 - 1 > x/q - 2.
        let (x0, x1) = (x as u64 as u128, x >> 64);
        let (r0, r1) = (self.ratio[0] as u128, self.ratio[1] as u128);
        let low = (x0 * r0) >> 64;
        let mid1 = x0 * r1;
        let mid2 = x1 * r0;
        let carry = (low + (mid1 as u64 as u128) + (mid2 as u64 as u128)) >> 64;
        let quotient = (x1 * r1).wrapping_add(mid1 >> 64).wrapping_add(mid2 >> 64).wrapping_add(carry);
        let r = (x as u64).wrapping_sub((quotient as u64).wrapping_mul(self.value));
        self.reduce_once(r)
    }

    /// Any word modulo q.
    #[inline(always)]
    pub const fn reduce(&self, x: u64) -> u64 {
        let quotient = ((x as u128 * self.ratio[1] as u128) >> 64) as u64;
        let r = x.wrapping_sub(quotient.wrapping_mul(self.value));
        self.reduce_once(r)
    }

    /// A signed integer modulo q. Constant time in the value, but not in the modulus.
    #[inline(always)]
    pub const fn reduce_i64(&self, x: i64) -> u64 {
        let r = self.reduce(x.unsigned_abs());
        let negative = (x >> 63) as u64;
        // -r mod q, with q - 0 folded back to 0.
        let flipped = (self.value - r) & (((r | r.wrapping_neg()) as i64 >> 63) as u64);
        (r & !negative) | (flipped & negative)
    }

    /// `a * b mod q` for operands whose product is below `2^128`.
    #[inline(always)]
    pub const fn mul(&self, a: u64, b: u64) -> u64 {
        self.reduce_u128(a as u128 * b as u128)
    }

    /// `base^exponent mod q`. Variable time in the exponent.
    pub const fn pow(&self, base: u64, mut exponent: u64) -> u64 {
        let mut base = self.reduce(base);
        let mut acc = 1;
        while exponent > 0 {
            if exponent & 1 == 1 {
                acc = self.mul(acc, base);
            }
            base = self.mul(base, base);
            exponent >>= 1;
        }
        acc
    }

    /// `a^-1 mod q` for prime q and `a` not divisible by it; 0 otherwise.
    pub const fn inv(&self, a: u64) -> u64 {
        self.pow(a, self.value - 2)
    }

    /// Precomputes the Shoup quotient of a canonical factor.
    #[inline]
    pub const fn shoup(&self, value: u64) -> ShoupFactor {
        ShoupFactor { value, quotient: (((value as u128) << 64) / self.value as u128) as u64 }
    }

    /// `a * w mod q` in `[0, 2q)` for any word `a`.
    #[inline(always)]
    pub const fn mul_shoup_lazy(&self, a: u64, w: ShoupFactor) -> u64 {
        let h = ((a as u128 * w.quotient as u128) >> 64) as u64;
        a.wrapping_mul(w.value).wrapping_sub(h.wrapping_mul(self.value))
    }

    /// `a * w mod q`, canonical, for any word `a`.
    #[inline(always)]
    pub const fn mul_shoup(&self, a: u64, w: ShoupFactor) -> u64 {
        let r = self.mul_shoup_lazy(a, w);
        self.reduce_once(r)
    }

    /// The representative of a canonical residue in `(-q/2, q/2]`.
    #[inline(always)]
    pub const fn centered(&self, a: u64) -> i64 {
        let above = (self.value / 2).wrapping_sub(a) as i64 >> 63;
        a as i64 - (self.value as i64 & above)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EDGES: [u64; 7] =
        [3, 5, 257, (1 << 50) - 27, (1 << 50) + 55, (1 << 60) - (1 << 18) + 1, (1 << 61) - 1];

    #[test]
    fn reductions_agree_with_division() {
        for q in EDGES {
            let m = Modulus::new(q).unwrap();
            let mut x: u128 = 0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835;
            for v in [0, 1, u128::from(q) - 1, u128::from(q), u128::MAX, u128::MAX - u128::from(q)] {
                assert_eq!(u128::from(m.reduce_u128(v)), v % u128::from(q), "{v} mod {q}");
            }
            for _ in 0..2000 {
                x = x.wrapping_mul(0xDA94_2042_E4DD_58B5_DA94_2042_E4DD_58B5).wrapping_add(12345);
                assert_eq!(u128::from(m.reduce_u128(x)), x % u128::from(q));
                assert_eq!(m.reduce(x as u64), x as u64 % q);
                let s = x as i64;
                assert_eq!(i128::from(m.reduce_i64(s)), i128::from(s).rem_euclid(i128::from(q)));
                let w = m.shoup((x >> 64) as u64 % q);
                let expected = (u128::from(x as u64) * u128::from(w.value) % u128::from(q)) as u64;
                assert_eq!(m.mul_shoup(x as u64, w), expected);
            }
            assert_eq!(m.reduce_i64(i64::MIN), (i128::from(i64::MIN).rem_euclid(i128::from(q))) as u64);
            assert_eq!(m.reduce_i64(0), 0);
        }
    }

    #[test]
    fn out_of_range_moduli_are_refused() {
        for q in [0, 1, 2, 4, 1 << 61, (1 << 61) + 1, u64::MAX] {
            assert_eq!(Modulus::new(q), Err(RingError::ModulusRange(q)));
        }
    }
}
