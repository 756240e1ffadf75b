//! Unevaluated sums of two `f64` (Dekker 1971; Hida, Li and Bailey, 2001): about 104 bits, without fused multiply-add.

/// `hi + lo` with `|lo| <= ulp(hi) / 2`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct DoubleDouble {
    pub(crate) hi: f64,
    pub(crate) lo: f64,
}

/// `a + b` exactly, for `|a| >= |b|` or `a = 0`.
#[inline(always)]
fn fast_two_sum(a: f64, b: f64) -> DoubleDouble {
    let hi = a + b;
    DoubleDouble { hi, lo: b - (hi - a) }
}

/// `a + b` exactly.
#[inline(always)]
fn two_sum(a: f64, b: f64) -> DoubleDouble {
    let hi = a + b;
    let b_part = hi - a;
    DoubleDouble { hi, lo: (a - (hi - b_part)) + (b - b_part) }
}

/// `a` as a sum of two numbers of 26 bits; `|a| < 2^996`.
#[inline(always)]
fn split(a: f64) -> (f64, f64) {
    let scaled = a * 134_217_729.0; // 2^27 + 1
    let high = scaled - (scaled - a);
    (high, a - high)
}

/// `a b` exactly, for factors and product away from the ends of the range.
#[inline(always)]
fn two_product(a: f64, b: f64) -> DoubleDouble {
    let hi = a * b;
    let ((a1, a0), (b1, b0)) = (split(a), split(b));
    DoubleDouble { hi, lo: ((a1 * b1 - hi) + a1 * b0 + a0 * b1) + a0 * b0 }
}

impl DoubleDouble {
    /// An `f64` exactly.
    #[inline(always)]
    pub(crate) const fn from_f64(hi: f64) -> Self {
        Self { hi, lo: 0.0 }
    }

    /// An integer below `2^62` in magnitude, exactly.
    #[inline(always)]
    pub(crate) fn from_i64(x: i64) -> Self {
        // Both halves have at most 32 bits.
        fast_two_sum((x >> 31) as f64 * 2_147_483_648.0, (x & 0x7FFF_FFFF) as f64)
    }

    /// Sum, with an error of at most `2^-104` of the larger operand.
    #[inline(always)]
    pub(crate) fn add(self, other: Self) -> Self {
        let s = two_sum(self.hi, other.hi);
        fast_two_sum(s.hi, s.lo + (self.lo + other.lo))
    }

    /// Product, with a relative error of at most `2^-102`.
    #[inline(always)]
    pub(crate) fn mul(self, other: Self) -> Self {
        let p = two_product(self.hi, other.hi);
        fast_two_sum(p.hi, p.lo + (self.hi * other.lo + self.lo * other.hi))
    }

    /// Negation, exact.
    #[inline(always)]
    pub(crate) fn neg(self) -> Self {
        Self { hi: -self.hi, lo: -self.lo }
    }

    /// `1 / d`, with a relative error of at most `2^-104`.
    pub(super) fn reciprocal(d: f64) -> Self {
        let hi = 1.0 / d;
        let p = two_product(hi, d);
        fast_two_sum(hi, ((1.0 - p.hi) - p.lo) / d)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_bigint::BigInt;

    /// `x * 2^200` of a double-double between `2^-90` and `2^150`.
    fn exact(x: DoubleDouble) -> BigInt {
        [x.hi, x.lo]
            .iter()
            .map(|&f| {
                let bits = f.to_bits();
                let exponent = ((bits >> 52) & 0x7FF) as i64;
                let mantissa = BigInt::from((bits & ((1 << 52) - 1)) | u64::from(exponent > 0) << 52);
                let shift = exponent.max(1) - 1075 + 200;
                let m = if shift >= 0 { mantissa << shift as usize } else { mantissa >> (-shift) as usize };
                if f < 0.0 { -m } else { m }
            })
            .sum()
    }

    #[test]
    fn arithmetic_is_within_the_stated_error() {
        let mut state = 0x1234_5678_9ABC_DEF1u64;
        let mut next = || {
            state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
            (state >> 3) as i64 - (1 << 60)
        };
        for _ in 0..2000 {
            let (x, y) = (next(), next());
            let (a, b) = (DoubleDouble::from_i64(x), DoubleDouble::from_i64(y));
            assert_eq!(exact(a), BigInt::from(x) << 200);
            let product = BigInt::from(x) * y;
            let error: BigInt = exact(a.mul(b)) - (product.clone() << 200);
            assert!(
                BigInt::from(error.magnitude().clone()) << 102
                    <= BigInt::from(product.magnitude().clone()) << 200
            );
            let larger = BigInt::from(x.unsigned_abs().max(y.unsigned_abs()));
            let error: BigInt = exact(a.add(b.neg())) - ((BigInt::from(x) - y) << 200);
            assert!(BigInt::from(error.magnitude().clone()) << 104 <= larger << 200);
        }
        for d in [3.0, 7.0, 29.0 * 30.0] {
            let one: BigInt = exact(DoubleDouble::reciprocal(d)) * (d as i64) - (BigInt::from(1) << 200);
            assert!(one.magnitude() << 103 <= num_bigint::BigUint::from(1u32) << 200, "{d}: {one}");
        }
    }
}
