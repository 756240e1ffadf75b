//! Primes below `2^61`: products put together from 32-bit ones.

use core::arch::x86_64::*;

use super::lanes::{Factor, Lanes, Sum, inverse_of_odd, splat_factor};
use crate::Modulus;
use crate::conversion::Column;

/// Primes below `2^61`, on 32-bit products.
#[derive(Clone, Copy)]
pub(super) struct Wide {
    q: __m512i,
    two_q: __m512i,
    /// `q^-1` modulo `2^64`.
    inverse: __m512i,
    /// `2^64`, which undoes a Montgomery reduction.
    radix: Factor,
}

/// High halves of the 128-bit products of all lanes.
///
/// # Safety
/// The CPU has AVX-512 F.
#[inline(always)]
unsafe fn mul_high(a: __m512i, b: __m512i) -> __m512i {
    // SAFETY: the caller has the CPU features.
    unsafe {
        // High words move by a shuffle: written as shifts, the whole is recognised as a high product (rustc 1.95)
        // and computed by scalar multiplications, four times slower.
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

impl Lanes for Wide {
    const WORD: u32 = 64;

    #[inline(always)]
    unsafe fn new(m: &Modulus) -> Self {
        let q = m.value() as i64;
        // SAFETY: the caller has the CPU features.
        unsafe {
            Self {
                q: _mm512_set1_epi64(q),
                two_q: _mm512_set1_epi64(2 * q),
                inverse: _mm512_set1_epi64(inverse_of_odd(m.value()) as i64),
                radix: splat_factor::<Self>(m.shoup(m.reduce_u128(1 << 64))),
            }
        }
    }

    #[inline(always)]
    unsafe fn product(self, y: __m512i, w: Factor) -> __m512i {
        // SAFETY: the caller has the CPU features.
        unsafe {
            let h = mul_high(y, w.quotient);
            _mm512_sub_epi64(_mm512_mullo_epi64(y, w.value), _mm512_mullo_epi64(h, self.q))
        }
    }

    #[inline(always)]
    unsafe fn reduce(self, x: __m512i) -> __m512i {
        // SAFETY: the caller has the CPU features.
        unsafe {
            debug_assert!(self.is_below(x, 4));
            _mm512_min_epu64(x, _mm512_sub_epi64(x, self.two_q))
        }
    }

    #[inline(always)]
    unsafe fn reduce_difference(self, x: __m512i) -> __m512i {
        // SAFETY: the caller has the CPU features.
        unsafe { _mm512_min_epu64(x, _mm512_add_epi64(x, self.two_q)) }
    }

    #[inline(always)]
    unsafe fn canonical(self, x: __m512i) -> __m512i {
        // SAFETY: the caller has the CPU features.
        unsafe {
            debug_assert!(self.is_below(x, 2));
            _mm512_min_epu64(x, _mm512_sub_epi64(x, self.q))
        }
    }

    #[inline(always)]
    fn q(self) -> __m512i {
        self.q
    }

    #[inline(always)]
    fn two_q(self) -> __m512i {
        self.two_q
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
    fn constants(column: &Column) -> &[u64] {
        &column.constants
    }

    #[inline(always)]
    unsafe fn converted(self, sum: Sum) -> __m512i {
        // SAFETY: the caller has the CPU features.
        unsafe { self.value(sum) }
    }

    #[inline(always)]
    unsafe fn is_below(self, x: __m512i, multiple: u64) -> bool {
        // SAFETY: the caller has the CPU features.
        unsafe {
            let bound = _mm512_mullo_epi64(self.q, _mm512_set1_epi64(multiple as i64));
            _mm512_cmplt_epu64_mask(x, bound) == 0xFF
        }
    }
}
