//! The last seven layers of a forward transform and the first seven of an inverse, on 128 words in sixteen registers.
//!
//! Layers of distance 64 to 8 work between registers. Those of distance 4, 2 and 1 work within them: pairs of registers
//! exchange lanes, so that one holds the first operands and the other the second. The twist of [`super::tables`] makes
//! their factors equal for every group of eight words.

use core::arch::x86_64::*;

use super::passes::{
    butterfly, butterfly_inverse, butterfly_signed, layer, layer_inverse, layers, layers_inverse, rows,
};
use super::tables::LANE_FACTORS;
use crate::backend::avx512::arithmetic::lanes::{Factor, Lanes, broadcast_factor, load_factor};

/// Words of a factor by lane, with its quotient.
const FACTOR: usize = 16;

/// The last seven layers.
///
/// # Safety
/// `x` addresses 128 words below `2U`, which become canonical; `head` and `w` are parts of a forward table; the CPU has
/// the enabled features.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma")]
pub(super) unsafe fn forward<L: Lanes>(l: L, x: *mut u64, head: *const u64, w: *const u64) {
    // SAFETY: by contract.
    unsafe {
        let at = |row: usize| x.add(8 * row).cast::<__m512i>();
        let mut v = rows!(16, ROW => at(ROW).read_unaligned());
        // Distance 64, with this block's part of the twist: both operands are multiplied.
        let (twist, twist_factor) = (load_factor(w), load_factor(w.add(FACTOR)));
        rows!(8, ROW => v[ROW] = l.product(v[ROW], twist));
        layers!(16, l, v, twist_factor, w.add(30));
        // The other part of the twist, by group. Any word is valid as a multiplicand, and products are below U.
        let group = |g: usize| load_factor(head.add(FACTOR * (LANE_FACTORS + g)));
        rows!(16, ROW => v[ROW] = l.product(v[ROW], group(ROW)));
        rows!(8, ROW => (v[2 * ROW], v[2 * ROW + 1]) = within(l, v[2 * ROW], v[2 * ROW + 1], head));
        rows!(16, ROW => at(ROW).write_unaligned(v[ROW]));
    }
}

/// Distances 4, 2 and 1 of two groups: words below `U` in, canonical out.
///
/// # Safety
/// As for [`forward`].
#[inline(always)]
unsafe fn within<L: Lanes>(l: L, a: __m512i, b: __m512i, head: *const u64) -> (__m512i, __m512i) {
    // SAFETY: by contract.
    unsafe {
        // Distance 4, factor 1: words 0-3 of both groups, then words 4-7.
        let (x, y) = (_mm512_shuffle_i64x2::<0x44>(a, b), _mm512_shuffle_i64x2::<0xEE>(a, b));
        let (x, y) = (_mm512_add_epi64(x, y), l.difference(x, y));
        // Distance 2: words 0, 1 of both groups and 4, 5 of both, then 2, 3 and 6, 7.
        let (x, y) = (_mm512_shuffle_i64x2::<0x88>(x, y), _mm512_shuffle_i64x2::<0xDD>(x, y));
        let (x, y) = butterfly(l, l.reduce(x), y, load_factor(head));
        // Distance 1: even words, then odd ones, in the order a0 a2 b0 b2 a4 a6 b4 b6.
        let (x, y) = (_mm512_unpacklo_epi64(x, y), _mm512_unpackhi_epi64(x, y));
        let (x, y) = butterfly(l, l.reduce(x), y, load_factor(head.add(FACTOR)));
        let (x, y) = (l.canonical(l.reduce(x)), l.canonical(l.reduce(y)));
        let a = _mm512_permutex2var_epi64(x, _mm512_setr_epi64(0, 8, 1, 9, 4, 12, 5, 13), y);
        let b = _mm512_permutex2var_epi64(x, _mm512_setr_epi64(2, 10, 3, 11, 6, 14, 7, 15), y);
        (a, b)
    }
}

/// The first seven layers of an inverse.
///
/// # Safety
/// `x` addresses 128 words below `U`, and stays so; `head` and `w` are parts of an inverse table; the CPU has the
/// enabled features.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma")]
pub(super) unsafe fn inverse<L: Lanes>(l: L, x: *mut u64, head: *const u64, w: *const u64) {
    // SAFETY: by contract.
    unsafe {
        let at = |row: usize| x.add(8 * row).cast::<__m512i>();
        let mut v = rows!(16, ROW => at(ROW).read_unaligned());
        rows!(8, ROW => (v[2 * ROW], v[2 * ROW + 1]) = within_inverse(l, v[2 * ROW], v[2 * ROW + 1], head));
        let group = |g: usize| load_factor(head.add(FACTOR * (LANE_FACTORS + g)));
        rows!(16, ROW => v[ROW] = l.product(v[ROW], group(ROW)));
        layers_inverse!(16, l, v, w.add(30));
        let (twist, twist_factor) = (load_factor(w), load_factor(w.add(FACTOR)));
        rows!(8, ROW => (v[ROW], v[ROW + 8]) = butterfly_twisted(l, v[ROW], v[ROW + 8], twist, twist_factor));
        rows!(16, ROW => at(ROW).write_unaligned(v[ROW]));
    }
}

/// `((x + y) z, (x - y) w)` for `x` and `y` below `U`: both below `U`.
///
/// # Safety
/// As for [`Lanes`].
#[inline(always)]
unsafe fn butterfly_twisted<L: Lanes>(
    l: L,
    x: __m512i,
    y: __m512i,
    z: Factor,
    w: Factor,
) -> (__m512i, __m512i) {
    // SAFETY: the caller has the CPU features.
    unsafe { (l.product(_mm512_add_epi64(x, y), z), l.product(l.difference(x, y), w)) }
}

/// Distances 1, 2 and 4 of two groups: words below `U` in, below `2U` out.
///
/// # Safety
/// As for [`inverse`].
#[inline(always)]
unsafe fn within_inverse<L: Lanes>(l: L, a: __m512i, b: __m512i, head: *const u64) -> (__m512i, __m512i) {
    // SAFETY: by contract.
    unsafe {
        let x = _mm512_permutex2var_epi64(a, _mm512_setr_epi64(0, 2, 8, 10, 4, 6, 12, 14), b);
        let y = _mm512_permutex2var_epi64(a, _mm512_setr_epi64(1, 3, 9, 11, 5, 7, 13, 15), b);
        let (x, y) = butterfly_inverse(l, x, y, load_factor(head.add(FACTOR)));
        let (x, y) = (_mm512_unpacklo_epi64(x, y), _mm512_unpackhi_epi64(x, y));
        let (x, y) = butterfly_inverse(l, x, y, load_factor(head));
        let (x, y) = (_mm512_shuffle_i64x2::<0x44>(x, y), _mm512_shuffle_i64x2::<0xEE>(x, y));
        let (x, y) = (_mm512_add_epi64(x, y), l.difference(x, y));
        (_mm512_shuffle_i64x2::<0x88>(x, y), _mm512_shuffle_i64x2::<0xDD>(x, y))
    }
}
