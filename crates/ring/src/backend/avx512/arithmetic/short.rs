//! Primes below `2^46.7`, in forward transforms: words have room to grow and are reduced only at the end.

use core::arch::x86_64::*;

use super::lanes::{Factor, Lanes, Sum};
use crate::Modulus;
use crate::conversion::Column;

/// The arithmetic of narrow primes without the reductions between layers.
///
/// # Invariant
/// For a forward transform. A butterfly multiplies its second operand, so that `t` is below `2q`, and forms `x + t` and
/// `x - t + 2q` from the first. A layer therefore adds at most `2q`, and products start anew. Seventeen layers from at
/// most `4q` stay below `38q`, which is below `2^52`. A word that becomes canonical is at most three layers after a
/// product, so it is below `8q`.
#[derive(Clone, Copy)]
pub(crate) struct Short<L>(L);

/// The bound of words of [`Short`], in units of `q`.
const GROWTH: u64 = 38;

/// Larger primes are not short.
pub(crate) const LARGEST: u64 = (1 << 52) / GROWTH;

/// Whether a prime is short.
pub(crate) fn is_short(m: &Modulus) -> bool {
    m.value() <= LARGEST
}

impl<L: Lanes> Lanes for Short<L> {
    const WORD: u32 = L::WORD;
    type Forward = Self;

    #[inline(always)]
    unsafe fn new(m: &Modulus) -> Self {
        debug_assert!(is_short(m));
        // SAFETY: the caller has the CPU features; so below.
        Self(unsafe { L::new(m) })
    }

    #[inline(always)]
    unsafe fn product(self, y: __m512i, w: Factor) -> __m512i {
        // SAFETY: as above.
        unsafe { self.0.product(y, w) }
    }

    #[inline(always)]
    unsafe fn reduce(self, x: __m512i) -> __m512i {
        // SAFETY: as above.
        debug_assert!(unsafe { self.is_below(x, 1) });
        x
    }

    #[inline(always)]
    unsafe fn reduce_difference(self, x: __m512i) -> __m512i {
        // SAFETY: as above.
        unsafe { _mm512_add_epi64(x, self.unit()) }
    }

    #[inline(always)]
    unsafe fn canonical(self, x: __m512i) -> __m512i {
        // SAFETY: as above.
        unsafe {
            let (two_q, x) = (self.unit(), self.0.masked(x));
            let x = _mm512_min_epu64(x, _mm512_sub_epi64(x, _mm512_add_epi64(two_q, two_q)));
            let x = _mm512_min_epu64(x, _mm512_sub_epi64(x, two_q));
            _mm512_min_epu64(x, _mm512_sub_epi64(x, self.q()))
        }
    }

    #[inline(always)]
    unsafe fn canonical_once(self, x: __m512i) -> __m512i {
        // SAFETY: as above.
        unsafe { self.0.canonical_once(x) }
    }

    #[inline(always)]
    unsafe fn masked(self, x: __m512i) -> __m512i {
        // SAFETY: as above.
        unsafe { self.0.masked(x) }
    }

    #[inline(always)]
    fn q(self) -> __m512i {
        self.0.q()
    }

    #[inline(always)]
    fn unit(self) -> __m512i {
        self.0.unit()
    }

    #[inline(always)]
    unsafe fn accumulate(self, sum: Sum, a: __m512i, b: __m512i) -> Sum {
        // SAFETY: as above.
        unsafe { self.0.accumulate(sum, a, b) }
    }

    #[inline(always)]
    unsafe fn value(self, sum: Sum) -> __m512i {
        // SAFETY: as above.
        unsafe { self.0.value(sum) }
    }

    #[inline(always)]
    fn constants(column: &Column) -> &[u64] {
        L::constants(column)
    }

    #[inline(always)]
    unsafe fn converted(self, sum: Sum) -> __m512i {
        // SAFETY: as above.
        unsafe { self.0.converted(sum) }
    }

    /// Any number of units.
    #[inline(always)]
    unsafe fn is_below(self, x: __m512i, _units: u64) -> bool {
        // SAFETY: as above.
        unsafe {
            let bound = _mm512_mullo_epi64(self.q(), _mm512_set1_epi64(GROWTH.cast_signed()));
            _mm512_cmplt_epu64_mask(self.0.masked(x), bound) == 0xFF
        }
    }
}
