//! Primes below `2^61`: 64-bit products built from 32-bit ones.

use core::arch::x86_64::*;

use super::lanes::{Factor, Lanes, Sum, inverse_of_odd, splat_factor};
use crate::Modulus;
use crate::conversion::Column;

/// Primes below `2^61`, on 32-bit products.
#[derive(Clone, Copy)]
pub(crate) struct Wide {
    q: __m512i,
    two_q: __m512i,
    four_q: __m512i,
    /// `q^-1` modulo `2^64`.
    inverse: __m512i,
    /// `2^64`, which undoes a Montgomery reduction.
    radix: Factor,
    /// `floor(2^(b + 61) / q)` for `q` of `b` bits, below `2^62`.
    barrett: __m512i,
    /// `b - 3` and `67 - b`.
    shifts: [__m512i; 2],
}

/// High halves of the 128-bit products of all lanes.
///
/// # Safety
/// The CPU has AVX-512 F.
#[inline(always)]
unsafe fn mul_high(a: __m512i, b: __m512i) -> __m512i {
    // SAFETY: the caller has the CPU features.
    unsafe {
        // A shuffle moves the high words. rustc 1.95 recognises the form with shifts as a high product and computes it
        // by scalar multiplications, four times slower.
        let (a1, b1) = (_mm512_shuffle_epi32::<0xF5>(a), _mm512_shuffle_epi32::<0xF5>(b));
        let low = _mm512_srli_epi64::<32>(_mm512_mul_epu32(a, b));
        // Each sum is below 2^64: (2^32 - 1)^2 + 2 (2^32 - 1) = 2^64 - 1.
        let cross = _mm512_add_epi64(_mm512_mul_epu32(a1, b), low);
        let carry = _mm512_and_si512(cross, _mm512_set1_epi64(0xFFFF_FFFF));
        let other = _mm512_add_epi64(_mm512_mul_epu32(a, b1), carry);
        let high = _mm512_add_epi64(_mm512_mul_epu32(a1, b1), _mm512_srli_epi64::<32>(cross));
        _mm512_add_epi64(high, _mm512_srli_epi64::<32>(other))
    }
}

/// High halves of the 128-bit products of all lanes, or up to two less: the product of the low words and the carries of
/// its neighbours are left out.
///
/// # Safety
/// The CPU has AVX-512 F.
#[inline(always)]
unsafe fn mul_high_near(a: __m512i, b: __m512i) -> __m512i {
    // With `a = a1 2^32 + a0` and `b` likewise, `a b / 2^64` is a1 b1 + a1 b0 / 2^32 + a0 b1 / 2^32 + a0 b0 / 2^64. The
    // two floors and the last term cost less than one each. SAFETY: the caller has the CPU features.
    unsafe {
        let (a1, b1) = (_mm512_shuffle_epi32::<0xF5>(a), _mm512_shuffle_epi32::<0xF5>(b));
        let one = _mm512_srli_epi64::<32>(_mm512_mul_epu32(a1, b));
        let other = _mm512_srli_epi64::<32>(_mm512_mul_epu32(a, b1));
        _mm512_add_epi64(_mm512_mul_epu32(a1, b1), _mm512_add_epi64(one, other))
    }
}

impl Lanes for Wide {
    const WORD: u32 = 64;
    type Forward = Self;

    #[inline(always)]
    unsafe fn new(m: &Modulus) -> Self {
        let (q, bits) = (m.value() as i64, i64::from(m.bits()));
        // SAFETY: the caller has the CPU features.
        unsafe {
            Self {
                q: _mm512_set1_epi64(q),
                two_q: _mm512_set1_epi64(2 * q),
                four_q: _mm512_set1_epi64(4 * q),
                inverse: _mm512_set1_epi64(inverse_of_odd(m.value()) as i64),
                radix: splat_factor::<Self>(m.shoup(m.reduce_u128(1 << 64))),
                barrett: _mm512_set1_epi64(((1u128 << (bits + 61)) / u128::from(m.value())) as i64),
                shifts: [_mm512_set1_epi64(bits - 3), _mm512_set1_epi64(67 - bits)],
            }
        }
    }

    #[inline(always)]
    unsafe fn product(self, y: __m512i, w: Factor) -> __m512i {
        // y w / q - y quotient / 2^64 < 1, and the quotient's product loses less than 3 more: y w - h q is in [0, 4q).
        // SAFETY: the caller has the CPU features.
        unsafe {
            let h = mul_high_near(y, w.quotient);
            _mm512_sub_epi64(_mm512_mullo_epi64(y, w.value), _mm512_mullo_epi64(h, self.q))
        }
    }

    #[inline(always)]
    unsafe fn reduce(self, x: __m512i) -> __m512i {
        // SAFETY: the caller has the CPU features.
        unsafe {
            debug_assert!(self.is_below(x, 2));
            _mm512_min_epu64(x, _mm512_sub_epi64(x, self.four_q))
        }
    }

    #[inline(always)]
    unsafe fn reduce_difference(self, x: __m512i) -> __m512i {
        // SAFETY: the caller has the CPU features.
        unsafe { _mm512_min_epu64(x, _mm512_add_epi64(x, self.four_q)) }
    }

    #[inline(always)]
    unsafe fn canonical(self, x: __m512i) -> __m512i {
        // SAFETY: the caller has the CPU features.
        unsafe {
            debug_assert!(self.is_below(x, 1));
            self.canonical_once(_mm512_min_epu64(x, _mm512_sub_epi64(x, self.two_q)))
        }
    }

    #[inline(always)]
    unsafe fn canonical_once(self, x: __m512i) -> __m512i {
        // SAFETY: the caller has the CPU features.
        unsafe { _mm512_min_epu64(x, _mm512_sub_epi64(x, self.q)) }
    }

    /// All of them.
    #[inline(always)]
    unsafe fn masked(self, x: __m512i) -> __m512i {
        x
    }

    #[inline(always)]
    fn q(self) -> __m512i {
        self.q
    }

    #[inline(always)]
    fn unit(self) -> __m512i {
        self.four_q
    }

    #[inline(always)]
    unsafe fn accumulate(self, sum: Sum, a: __m512i, b: __m512i) -> Sum {
        // SAFETY: the caller has the CPU features.
        unsafe {
            let low = _mm512_add_epi64(sum.low, _mm512_mullo_epi64(a, b));
            let high = _mm512_add_epi64(sum.high, mul_high(a, b));
            let carry = _mm512_cmplt_epu64_mask(low, sum.low);
            Sum { high: _mm512_mask_add_epi64(high, carry, high, _mm512_set1_epi64(1)), low }
        }
    }

    #[inline(always)]
    unsafe fn value(self, sum: Sum) -> __m512i {
        // Montgomery, as for narrow primes; the high word is below 2^62 and any word is good as a multiplicand.
        // SAFETY: the caller has the CPU features.
        unsafe {
            let m = _mm512_mullo_epi64(sum.low, self.inverse);
            let r = _mm512_sub_epi64(_mm512_add_epi64(sum.high, self.q), mul_high(m, self.q));
            self.product(r, self.radix)
        }
    }

    #[inline(always)]
    unsafe fn multiply_add(self, a: __m512i, b: __m512i, c: __m512i) -> __m512i {
        // Barrett. The product p is below 2^(2b), s = floor(p / 2^(b - 3)) is below 2^(b + 3) <= 2^64, and h is near s
        // barrett / 2^64. Three errors make up p / q - h: the floor of s costs less than barrett / 2^64 < 1, the floor
        // of the constant less than s / 2^64 < 1, and the near product less than 3. With c below q the result is below
        // 6q < 2U. SAFETY: the caller has the CPU features.
        unsafe {
            let (high, low) = (mul_high(a, b), _mm512_mullo_epi64(a, b));
            let (above, below) =
                (_mm512_sllv_epi64(high, self.shifts[1]), _mm512_srlv_epi64(low, self.shifts[0]));
            let h = mul_high_near(_mm512_or_si512(above, below), self.barrett);
            let x = _mm512_sub_epi64(_mm512_add_epi64(low, c), _mm512_mullo_epi64(h, self.q));
            self.canonical(self.reduce(x))
        }
    }

    #[inline(always)]
    fn constants(column: &Column) -> &[u64] {
        &column.constants
    }

    #[inline(always)]
    unsafe fn converted(self, sum: Sum) -> __m512i {
        // SAFETY: the caller has the CPU features.
        unsafe { self.value(sum) }
    }

    #[inline(always)]
    unsafe fn is_below(self, x: __m512i, units: u64) -> bool {
        // SAFETY: the caller has the CPU features.
        unsafe {
            let bound = _mm512_mullo_epi64(self.four_q, _mm512_set1_epi64(units as i64));
            _mm512_cmplt_epu64_mask(x, bound) == 0xFF
        }
    }
}
