//! Primes below `2^50`: 52-bit fused multiply-add.

use core::arch::x86_64::*;

use super::lanes::{Factor, Lanes, Sum, inverse_of_odd, splat_factor};
use super::short::Short;
use crate::Modulus;
use crate::conversion::Column;

/// Primes below `2^50`, on 52-bit multiply-add.
#[derive(Clone, Copy)]
pub(crate) struct Narrow {
    q: __m512i,
    two_q: __m512i,
    /// `2^52 - q`: adding its product subtracts `q`'s, modulo `2^52`.
    minus_q: __m512i,
    minus_two_q: __m512i,
    /// `2q - 2^52`.
    wrap: __m512i,
    one: __m512i,
    mask: __m512i,
    /// `q^-1` modulo `2^52`.
    inverse: __m512i,
    /// `2^52`, which undoes a Montgomery reduction.
    radix: Factor,
    /// `floor(2^(b + 50) / q)` for `q` of `b` bits, at most `2^51`.
    barrett: __m512i,
    /// `b - 2` and `54 - b`.
    shifts: [__m512i; 2],
}

impl Lanes for Narrow {
    const WORD: u32 = 52;
    type Forward = Short<Self>;

    #[inline(always)]
    unsafe fn new(m: &Modulus) -> Self {
        debug_assert!(m.is_narrow());
        let (q, bits) = (m.value() as i64, i64::from(m.bits()));
        // SAFETY: the caller has the CPU features.
        unsafe {
            Self {
                q: _mm512_set1_epi64(q),
                two_q: _mm512_set1_epi64(2 * q),
                minus_q: _mm512_set1_epi64((1 << 52) - q),
                minus_two_q: _mm512_set1_epi64(-2 * q),
                wrap: _mm512_set1_epi64(2 * q - (1 << 52)),
                one: _mm512_set1_epi64(1),
                mask: _mm512_set1_epi64((1 << 52) - 1),
                inverse: _mm512_set1_epi64(inverse_of_odd(m.value()) as i64),
                radix: splat_factor::<Self>(m.shoup(m.reduce(1 << 52))),
                barrett: _mm512_set1_epi64(((1u128 << (bits + 50)) / u128::from(m.value())) as i64),
                shifts: [_mm512_set1_epi64(bits - 2), _mm512_set1_epi64(54 - bits)],
            }
        }
    }

    #[inline(always)]
    unsafe fn product(self, y: __m512i, w: Factor) -> __m512i {
        // With y < 2^52 the true value y w - h q is in [0, 2q); it is computed modulo 2^52, its carry is not masked.
        // SAFETY: the caller has the CPU features.
        unsafe {
            let zero = _mm512_setzero_si512();
            let h = _mm512_madd52hi_epu64(zero, y, w.quotient);
            _mm512_madd52lo_epu64(_mm512_madd52lo_epu64(zero, y, w.value), h, self.minus_q)
        }
    }

    #[inline(always)]
    unsafe fn reduce(self, x: __m512i) -> __m512i {
        // The multiplication by one masks x: `low = x mod 2^52 - 2q`. A negative `low` is, as an unsigned word, above
        // every x whose low bits are below 2q, since 2q < 2^52. The minimum is then x itself, including its arbitrary
        // high bits.
        // SAFETY: the caller has the CPU features.
        unsafe {
            debug_assert!(self.is_below(x, 2));
            _mm512_min_epu64(x, _mm512_madd52lo_epu64(self.minus_two_q, x, self.one))
        }
    }

    #[inline(always)]
    unsafe fn reduce_difference(self, x: __m512i) -> __m512i {
        // Low bits at or above 2^52 - 2q mean a negative difference: then `x mod 2^52 + 2q - 2^52` is in [0, 2q).
        // SAFETY: the caller has the CPU features.
        unsafe { _mm512_min_epu64(x, _mm512_madd52lo_epu64(self.wrap, x, self.one)) }
    }

    #[inline(always)]
    unsafe fn canonical(self, x: __m512i) -> __m512i {
        // SAFETY: the caller has the CPU features.
        unsafe { self.canonical_once(x) }
    }

    #[inline(always)]
    unsafe fn canonical_once(self, x: __m512i) -> __m512i {
        // SAFETY: the caller has the CPU features.
        unsafe {
            debug_assert!(self.is_below(x, 1));
            let x = _mm512_and_si512(x, self.mask);
            _mm512_min_epu64(x, _mm512_sub_epi64(x, self.q))
        }
    }

    #[inline(always)]
    unsafe fn masked(self, x: __m512i) -> __m512i {
        // SAFETY: the caller has the CPU features.
        unsafe { _mm512_and_si512(x, self.mask) }
    }

    #[inline(always)]
    fn q(self) -> __m512i {
        self.q
    }

    #[inline(always)]
    fn unit(self) -> __m512i {
        self.two_q
    }

    #[inline(always)]
    unsafe fn accumulate(self, sum: Sum, a: __m512i, b: __m512i) -> Sum {
        // SAFETY: the caller has the CPU features.
        unsafe {
            Sum { high: _mm512_madd52hi_epu64(sum.high, a, b), low: _mm512_madd52lo_epu64(sum.low, a, b) }
        }
    }

    #[inline(always)]
    unsafe fn value(self, sum: Sum) -> __m512i {
        // SAFETY: the caller has the CPU features.
        unsafe { self.product(self.converted(sum), self.radix) }
    }

    #[inline(always)]
    unsafe fn multiply_add(self, a: __m512i, b: __m512i, c: __m512i) -> __m512i {
        // Barrett. The product p is below 2^(2b), and s = floor(p / 2^(b - 2)) is below 2^(b + 2) <= 2^52. h is the
        // floor of s barrett / 2^52. Three errors make up p / q - h: the floor of s costs at most barrett / 2^52 < 1,
        // the floor of the constant less than s / 2^52 < 1, and the last floor less than 1. With c below q the result
        // is below 4q = 2U.
        // SAFETY: the caller has the CPU features.
        unsafe {
            let zero = _mm512_setzero_si512();
            let (high, low) = (_mm512_madd52hi_epu64(zero, a, b), _mm512_madd52lo_epu64(zero, a, b));
            let (above, below) =
                (_mm512_sllv_epi64(high, self.shifts[1]), _mm512_srlv_epi64(low, self.shifts[0]));
            let h = _mm512_madd52hi_epu64(zero, _mm512_or_si512(above, below), self.barrett);
            let x = _mm512_madd52lo_epu64(_mm512_add_epi64(low, c), h, self.minus_q);
            self.canonical(self.reduce(x))
        }
    }

    #[inline(always)]
    fn constants(column: &Column) -> &[u64] {
        &column.montgomery
    }

    #[inline(always)]
    unsafe fn converted(self, sum: Sum) -> __m512i {
        // Montgomery: with m = low q^-1 the low words of the sum and of m q are equal, so (sum - m q) / 2^52 is the
        // difference of the high words, above -q; adding q makes it positive.
        // SAFETY: the caller has the CPU features.
        unsafe {
            let zero = _mm512_setzero_si512();
            let high = _mm512_add_epi64(sum.high, _mm512_srli_epi64::<52>(sum.low));
            let m = _mm512_madd52lo_epu64(zero, sum.low, self.inverse);
            let r = _mm512_sub_epi64(_mm512_add_epi64(high, self.q), _mm512_madd52hi_epu64(zero, m, self.q));
            debug_assert!(self.is_below(r, 2));
            r
        }
    }

    #[inline(always)]
    unsafe fn is_below(self, x: __m512i, units: u64) -> bool {
        // SAFETY: the caller has the CPU features.
        unsafe {
            let bound = _mm512_mullo_epi64(self.two_q, _mm512_set1_epi64(units as i64));
            _mm512_cmplt_epu64_mask(_mm512_and_si512(x, self.mask), bound) == 0xFF
        }
    }
}
