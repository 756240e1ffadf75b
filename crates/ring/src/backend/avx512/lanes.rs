//! Modular arithmetic on eight lanes, for the two widths of primes.
//!
//! # Invariant: lazy words
//! A *lazy word below `b`* is a 64-bit lane that stands for a residue through its low [`Lanes::WORD`] bits alone, which
//! are below `b`. For wide primes that is the whole lane. For narrow ones it is the low 52 bits, the part that the fused
//! multiply-add reads, and the bits above are arbitrary: sums of low products run over into them and are never
//! masked, because every reader ignores them.
//!
//! With `4q <= 2^WORD` the low bits tell the residues of `[0, 4q)` apart, and also those of a *difference* in
//! `(-2q, 2q)`, kept modulo `2^WORD`.

use core::arch::x86_64::*;

use crate::Modulus;

/// A vector of factors `w` with `floor(w * 2^WORD / q)`.
#[derive(Clone, Copy)]
pub(super) struct Factor {
    pub(super) value: __m512i,
    pub(super) quotient: __m512i,
}

/// Arithmetic modulo one prime on eight lanes.
///
/// # Safety
/// All functions need AVX-512 F, DQ, VL and IFMA, which [`super::Avx512`] proves; they are inlined into functions that enable it.
pub(super) trait Lanes: Copy {
    /// Bits of a lane that hold the residue; quotients of factors are scaled by this power of two.
    const WORD: u32;

    /// Constants of a modulus of this width.
    unsafe fn new(m: &Modulus) -> Self;
    /// `y w`, a lazy word below `2q`, for any lazy word `y`.
    unsafe fn product(self, y: __m512i, w: Factor) -> __m512i;
    /// A lazy word below `4q` to one below `2q`.
    unsafe fn reduce(self, x: __m512i) -> __m512i;
    /// A difference in `(-2q, 2q)` to a lazy word below `2q`.
    unsafe fn reduce_difference(self, x: __m512i) -> __m512i;
    /// A lazy word below `2q` to the canonical residue.
    unsafe fn canonical(self, x: __m512i) -> __m512i;
    /// `2q` in every lane.
    unsafe fn two_q(self) -> __m512i;
    /// `a - b + 2q`, a lazy word below `4q` for lazy words below `2q`.
    #[inline(always)]
    unsafe fn difference(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: the caller has the CPU features.
        unsafe { _mm512_add_epi64(_mm512_sub_epi64(a, b), self.two_q()) }
    }
    /// Whether every lane is a lazy word below `multiple * q`.
    unsafe fn is_below(self, x: __m512i, multiple: u64) -> bool;
}

/// The quotient of a canonical factor for [`Lanes::product`].
pub(super) fn quotient<L: Lanes>(m: &Modulus, w: u64) -> u64 {
    ((u128::from(w) << L::WORD) / u128::from(m.value())) as u64
}

/// Loads a factor and, 8 words on, its quotient.
///
/// # Safety
/// `p` addresses 16 words, aligned to a cache line; the CPU has AVX-512 F.
#[inline(always)]
pub(super) unsafe fn load_factor(p: *const u64) -> Factor {
    // SAFETY: 16 aligned words by contract.
    unsafe { Factor { value: _mm512_load_si512(p.cast()), quotient: _mm512_load_si512(p.add(8).cast()) } }
}

/// Broadcasts a factor and the quotient that follows it.
///
/// # Safety
/// `p` addresses 2 words; the CPU has AVX-512 F.
#[inline(always)]
pub(super) unsafe fn broadcast_factor(p: *const u64) -> Factor {
    // SAFETY: 2 words by contract.
    unsafe { Factor { value: _mm512_set1_epi64(*p as i64), quotient: _mm512_set1_epi64(*p.add(1) as i64) } }
}

/// Primes below `2^50`, on 52-bit multiply-add.
#[derive(Clone, Copy)]
pub(super) struct Narrow {
    pub(super) q: __m512i,
    two_q: __m512i,
    /// `2^52 - q`: adding its product subtracts `q`'s, modulo `2^52`.
    minus_q: __m512i,
    minus_two_q: __m512i,
    /// `2q - 2^52`.
    wrap: __m512i,
    one: __m512i,
    pub(super) mask: __m512i,
}

impl Lanes for Narrow {
    const WORD: u32 = 52;

    #[inline(always)]
    unsafe fn new(m: &Modulus) -> Self {
        debug_assert!(m.is_narrow());
        let q = m.value() as i64;
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
        // The multiplication by one masks x: `low = x mod 2^52 - 2q`. If that is negative it is, unsigned, above
        // every x whose low bits are below 2q, since 2q < 2^52; so the minimum is x itself, arbitrary bits and all.
        // SAFETY: the caller has the CPU features.
        unsafe {
            debug_assert!(self.is_below(x, 4));
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
        unsafe {
            debug_assert!(self.is_below(x, 2));
            let x = _mm512_and_si512(x, self.mask);
            _mm512_min_epu64(x, _mm512_sub_epi64(x, self.q))
        }
    }

    #[inline(always)]
    unsafe fn two_q(self) -> __m512i {
        self.two_q
    }

    #[inline(always)]
    unsafe fn is_below(self, x: __m512i, multiple: u64) -> bool {
        // SAFETY: the caller has the CPU features.
        unsafe {
            let bound = _mm512_mullo_epi64(self.q, _mm512_set1_epi64(multiple as i64));
            _mm512_cmplt_epu64_mask(_mm512_and_si512(x, self.mask), bound) == 0xFF
        }
    }
}

/// Primes below `2^61`, on 32-bit products.
#[derive(Clone, Copy)]
pub(super) struct Wide {
    pub(super) q: __m512i,
    two_q: __m512i,
}

/// High halves of the 128-bit products of all lanes.
///
/// # Safety
/// The CPU has AVX-512 F.
#[inline(always)]
pub(super) unsafe fn mul_high(a: __m512i, b: __m512i) -> __m512i {
    // SAFETY: the caller has the CPU features.
    unsafe {
        let (a1, b1) = (_mm512_srli_epi64::<32>(a), _mm512_srli_epi64::<32>(b));
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
        unsafe { Self { q: _mm512_set1_epi64(q), two_q: _mm512_set1_epi64(2 * q) } }
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
    unsafe fn two_q(self) -> __m512i {
        self.two_q
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
