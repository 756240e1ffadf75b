//! Modular arithmetic on eight lanes, for the two widths of primes.
//!
//! # Invariant: lazy words
//! A *lazy word below `b`* is a 64-bit lane whose low [`Lanes::WORD`] bits represent a residue and are below `b`. For
//! wide primes these are all bits of the lane. For narrow primes they are the low 52 bits, which the fused multiply-add
//! reads. The bits above are arbitrary: sums of low products carry into them and are never masked, because every reader
//! ignores them.
//!
//! Bounds are multiples of a *unit* `U`, the bound of a product: `2q` for narrow primes, `4q` for wide ones, whose
//! quotients are cheaper because they are less exact. Since `2U <= 2^WORD`, the low bits distinguish the words of
//! `[0, 2U)`. They also distinguish *differences* in `(-U, U)`, which are kept modulo `2^WORD`.

use core::arch::x86_64::*;

use crate::conversion::Column;
use crate::{Modulus, ShoupFactor};

/// A vector of factors `w` with `floor(w * 2^WORD / q)`.
#[derive(Clone, Copy)]
pub(crate) struct Factor {
    pub(crate) value: __m512i,
    pub(crate) quotient: __m512i,
}

/// A sum of products, `high * 2^WORD + low`.
///
/// # Invariant
/// At most [`LAZY_TERMS`] products of canonical residues (or of a row and a constant, see [`crate::conversion`]), and
/// at most one canonical residue in `low`.
#[derive(Clone, Copy)]
pub(crate) struct Sum {
    pub(crate) high: __m512i,
    pub(crate) low: __m512i,
}

/// The number of products that a [`Sum`] holds. Narrow: a product is below `2^50 q = 2^52 q / 4`, so twelve of them are
/// below `3q 2^52`, and below `4q` once reduced by 52 bits. Wide: twelve are below `12 * 2^122 < 2^126`.
pub(crate) const LAZY_TERMS: usize = 12;

/// `q^-1` modulo `2^64` for odd `q`, by Newton iteration from three correct bits.
pub(super) const fn inverse_of_odd(q: u64) -> u64 {
    let mut x = q;
    let mut i = 0;
    while i < 5 {
        x = x.wrapping_mul(2u64.wrapping_sub(q.wrapping_mul(x)));
        i += 1;
    }
    x
}

/// Arithmetic modulo one prime on eight lanes.
///
/// # Safety
/// All functions need AVX-512 F, DQ, VL and IFMA, which [`crate::backend::avx512::Avx512`] proves. They are inlined
/// into functions that enable these features.
pub(crate) trait Lanes: Copy {
    /// Bits of a lane that hold the residue; quotients of factors are scaled by this power of two.
    const WORD: u32;
    /// The arithmetic of forward transforms modulo a prime that is [`is_short`](super::short::is_short).
    type Forward: Lanes;

    /// Constants of a modulus of this width.
    unsafe fn new(m: &Modulus) -> Self;
    /// `y w`, a lazy word below `U`, for any lazy word `y`.
    unsafe fn product(self, y: __m512i, w: Factor) -> __m512i;
    /// A lazy word below `2U` to one below `U`.
    unsafe fn reduce(self, x: __m512i) -> __m512i;
    /// A difference in `(-U, U)` to a lazy word below `U`.
    unsafe fn reduce_difference(self, x: __m512i) -> __m512i;
    /// A lazy word below `U` to the canonical residue.
    unsafe fn canonical(self, x: __m512i) -> __m512i;
    /// A lazy word below `2q` to the canonical residue.
    unsafe fn canonical_once(self, x: __m512i) -> __m512i;
    /// `q` in every lane.
    fn q(self) -> __m512i;

    /// The bits of a lazy word that represent the residue.
    unsafe fn masked(self, x: __m512i) -> __m512i;
    /// `U` in every lane.
    fn unit(self) -> __m512i;
    /// `a - b + U`, a lazy word below `2U` for lazy words below `U`.
    #[inline(always)]
    unsafe fn difference(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: the caller has the CPU features.
        unsafe { _mm512_add_epi64(_mm512_sub_epi64(a, b), self.unit()) }
    }
    /// `sum + a b`.
    unsafe fn accumulate(self, sum: Sum, a: __m512i, b: __m512i) -> Sum;
    /// The value of a sum modulo q: a lazy word below `U`.
    unsafe fn value(self, sum: Sum) -> __m512i;
    /// `a b + c` for canonical residues: the canonical residue.
    #[inline(always)]
    unsafe fn multiply_add(self, a: __m512i, b: __m512i, c: __m512i) -> __m512i {
        // SAFETY: the caller has the CPU features.
        unsafe {
            let sum = Sum { high: _mm512_setzero_si512(), low: c };
            self.canonical(self.value(self.accumulate(sum, a, b)))
        }
    }
    /// The constants by which [`Lanes::converted`] expects rows to be multiplied.
    fn constants(column: &Column) -> &[u64];
    /// The value modulo q of an inner product of rows with [`Lanes::constants`]: a lazy word below `2U`.
    unsafe fn converted(self, sum: Sum) -> __m512i;
    /// Whether every lane is a lazy word below `units * U`.
    unsafe fn is_below(self, x: __m512i, units: u64) -> bool;
}

/// The quotient of a canonical factor for [`Lanes::product`].
pub(crate) fn quotient<L: Lanes>(m: &Modulus, w: u64) -> u64 {
    ((u128::from(w) << L::WORD) / u128::from(m.value())) as u64
}

/// Residues of integers smaller than `q` in absolute value: `q` is added to the negative ones.
///
/// # Safety
/// The CPU has AVX-512 F and DQ.
#[inline(always)]
pub(crate) unsafe fn lift_small(q: __m512i, values: __m512i) -> __m512i {
    // SAFETY: the caller has the CPU features.
    unsafe { _mm512_mask_add_epi64(values, _mm512_movepi64_mask(values), values, q) }
}

/// A factor in every lane.
///
/// # Safety
/// The CPU has AVX-512 F.
#[inline(always)]
pub(crate) unsafe fn splat_factor<L: Lanes>(w: ShoupFactor) -> Factor {
    // floor(floor(w 2^64 / q) / 2^(64 - WORD)) = floor(w 2^WORD / q).
    let quotient = w.quotient >> (64 - L::WORD);
    // SAFETY: the caller has the CPU features.
    unsafe {
        Factor { value: _mm512_set1_epi64(w.value as i64), quotient: _mm512_set1_epi64(quotient as i64) }
    }
}

/// Loads a factor and, 8 words on, its quotient.
///
/// # Safety
/// `p` addresses 16 words, aligned to a cache line; the CPU has AVX-512 F.
#[inline(always)]
pub(crate) unsafe fn load_factor(p: *const u64) -> Factor {
    // SAFETY: 16 aligned words by contract.
    unsafe { Factor { value: _mm512_load_si512(p.cast()), quotient: _mm512_load_si512(p.add(8).cast()) } }
}

/// Broadcasts a factor and the quotient that follows it.
///
/// # Safety
/// `p` addresses 2 words; the CPU has AVX-512 F.
#[inline(always)]
pub(crate) unsafe fn broadcast_factor(p: *const u64) -> Factor {
    // SAFETY: 2 words by contract.
    unsafe { Factor { value: _mm512_set1_epi64(*p as i64), quotient: _mm512_set1_epi64(*p.add(1) as i64) } }
}
