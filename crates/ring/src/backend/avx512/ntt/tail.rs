//! The last seven layers of a forward transform and the first seven of an inverse, on 128 words in sixteen registers.
//!
//! Layers of distance 64 to 8 work between registers. Those of distance 4, 2 and 1 work within them: pairs of registers
//! exchange lanes, so that one holds the first operands and the other the second. The twist of [`super::tables`] makes
//! their factors equal for every group of eight words.

use core::arch::x86_64::*;

use super::super::lanes::{Factor, Lanes, broadcast_factor, load_factor};
use super::passes::{butterfly, butterfly_inverse, butterfly_signed, layer, layer_inverse};
use super::tables::LANE_FACTORS;

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
        let mut v = [
            at(0).read_unaligned(),
            at(1).read_unaligned(),
            at(2).read_unaligned(),
            at(3).read_unaligned(),
            at(4).read_unaligned(),
            at(5).read_unaligned(),
            at(6).read_unaligned(),
            at(7).read_unaligned(),
            at(8).read_unaligned(),
            at(9).read_unaligned(),
            at(10).read_unaligned(),
            at(11).read_unaligned(),
            at(12).read_unaligned(),
            at(13).read_unaligned(),
            at(14).read_unaligned(),
            at(15).read_unaligned(),
        ];
        // Distance 64, with this block's part of the twist: both operands are multiplied.
        let (twist, twist_factor) = (load_factor(w), load_factor(w.add(FACTOR)));
        v[0] = l.product(v[0], twist);
        v[1] = l.product(v[1], twist);
        v[2] = l.product(v[2], twist);
        v[3] = l.product(v[3], twist);
        v[4] = l.product(v[4], twist);
        v[5] = l.product(v[5], twist);
        v[6] = l.product(v[6], twist);
        v[7] = l.product(v[7], twist);
        layer!(l, v, twist_factor; 0 8 reduced butterfly_signed, 1 9 reduced butterfly_signed, 2 10 reduced butterfly_signed, 3 11 reduced butterfly_signed, 4 12 reduced butterfly, 5 13 reduced butterfly, 6 14 reduced butterfly, 7 15 reduced butterfly);
        layer!(l, v, broadcast_factor(w.add(32)); 0 4 sum butterfly_signed, 1 5 sum butterfly_signed, 2 6 sum butterfly, 3 7 sum butterfly);
        layer!(l, v, broadcast_factor(w.add(34)); 8 12 difference butterfly_signed, 9 13 difference butterfly_signed, 10 14 difference butterfly, 11 15 difference butterfly);
        layer!(l, v, broadcast_factor(w.add(36)); 0 2 sum butterfly_signed, 1 3 sum butterfly);
        layer!(l, v, broadcast_factor(w.add(38)); 4 6 difference butterfly_signed, 5 7 difference butterfly);
        layer!(l, v, broadcast_factor(w.add(40)); 8 10 sum butterfly_signed, 9 11 sum butterfly);
        layer!(l, v, broadcast_factor(w.add(42)); 12 14 difference butterfly_signed, 13 15 difference butterfly);
        layer!(l, v, broadcast_factor(w.add(44)); 0 1 sum butterfly);
        layer!(l, v, broadcast_factor(w.add(46)); 2 3 difference butterfly);
        layer!(l, v, broadcast_factor(w.add(48)); 4 5 sum butterfly);
        layer!(l, v, broadcast_factor(w.add(50)); 6 7 difference butterfly);
        layer!(l, v, broadcast_factor(w.add(52)); 8 9 sum butterfly);
        layer!(l, v, broadcast_factor(w.add(54)); 10 11 difference butterfly);
        layer!(l, v, broadcast_factor(w.add(56)); 12 13 sum butterfly);
        layer!(l, v, broadcast_factor(w.add(58)); 14 15 difference butterfly);
        // The other part of the twist, by group. Any word is valid as a multiplicand, and products are below U.
        let group = |g: usize| load_factor(head.add(FACTOR * (LANE_FACTORS + g)));
        v[0] = l.product(v[0], group(0));
        v[1] = l.product(v[1], group(1));
        v[2] = l.product(v[2], group(2));
        v[3] = l.product(v[3], group(3));
        v[4] = l.product(v[4], group(4));
        v[5] = l.product(v[5], group(5));
        v[6] = l.product(v[6], group(6));
        v[7] = l.product(v[7], group(7));
        v[8] = l.product(v[8], group(8));
        v[9] = l.product(v[9], group(9));
        v[10] = l.product(v[10], group(10));
        v[11] = l.product(v[11], group(11));
        v[12] = l.product(v[12], group(12));
        v[13] = l.product(v[13], group(13));
        v[14] = l.product(v[14], group(14));
        v[15] = l.product(v[15], group(15));
        (v[0], v[1]) = within(l, v[0], v[1], head);
        (v[2], v[3]) = within(l, v[2], v[3], head);
        (v[4], v[5]) = within(l, v[4], v[5], head);
        (v[6], v[7]) = within(l, v[6], v[7], head);
        (v[8], v[9]) = within(l, v[8], v[9], head);
        (v[10], v[11]) = within(l, v[10], v[11], head);
        (v[12], v[13]) = within(l, v[12], v[13], head);
        (v[14], v[15]) = within(l, v[14], v[15], head);
        at(0).write_unaligned(v[0]);
        at(1).write_unaligned(v[1]);
        at(2).write_unaligned(v[2]);
        at(3).write_unaligned(v[3]);
        at(4).write_unaligned(v[4]);
        at(5).write_unaligned(v[5]);
        at(6).write_unaligned(v[6]);
        at(7).write_unaligned(v[7]);
        at(8).write_unaligned(v[8]);
        at(9).write_unaligned(v[9]);
        at(10).write_unaligned(v[10]);
        at(11).write_unaligned(v[11]);
        at(12).write_unaligned(v[12]);
        at(13).write_unaligned(v[13]);
        at(14).write_unaligned(v[14]);
        at(15).write_unaligned(v[15]);
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
        let mut v = [
            at(0).read_unaligned(),
            at(1).read_unaligned(),
            at(2).read_unaligned(),
            at(3).read_unaligned(),
            at(4).read_unaligned(),
            at(5).read_unaligned(),
            at(6).read_unaligned(),
            at(7).read_unaligned(),
            at(8).read_unaligned(),
            at(9).read_unaligned(),
            at(10).read_unaligned(),
            at(11).read_unaligned(),
            at(12).read_unaligned(),
            at(13).read_unaligned(),
            at(14).read_unaligned(),
            at(15).read_unaligned(),
        ];
        (v[0], v[1]) = within_inverse(l, v[0], v[1], head);
        (v[2], v[3]) = within_inverse(l, v[2], v[3], head);
        (v[4], v[5]) = within_inverse(l, v[4], v[5], head);
        (v[6], v[7]) = within_inverse(l, v[6], v[7], head);
        (v[8], v[9]) = within_inverse(l, v[8], v[9], head);
        (v[10], v[11]) = within_inverse(l, v[10], v[11], head);
        (v[12], v[13]) = within_inverse(l, v[12], v[13], head);
        (v[14], v[15]) = within_inverse(l, v[14], v[15], head);
        let group = |g: usize| load_factor(head.add(FACTOR * (LANE_FACTORS + g)));
        v[0] = l.product(v[0], group(0));
        v[1] = l.product(v[1], group(1));
        v[2] = l.product(v[2], group(2));
        v[3] = l.product(v[3], group(3));
        v[4] = l.product(v[4], group(4));
        v[5] = l.product(v[5], group(5));
        v[6] = l.product(v[6], group(6));
        v[7] = l.product(v[7], group(7));
        v[8] = l.product(v[8], group(8));
        v[9] = l.product(v[9], group(9));
        v[10] = l.product(v[10], group(10));
        v[11] = l.product(v[11], group(11));
        v[12] = l.product(v[12], group(12));
        v[13] = l.product(v[13], group(13));
        v[14] = l.product(v[14], group(14));
        v[15] = l.product(v[15], group(15));
        layer_inverse!(l, v, broadcast_factor(w.add(44)); 0 1);
        layer_inverse!(l, v, broadcast_factor(w.add(46)); 2 3);
        layer_inverse!(l, v, broadcast_factor(w.add(48)); 4 5);
        layer_inverse!(l, v, broadcast_factor(w.add(50)); 6 7);
        layer_inverse!(l, v, broadcast_factor(w.add(52)); 8 9);
        layer_inverse!(l, v, broadcast_factor(w.add(54)); 10 11);
        layer_inverse!(l, v, broadcast_factor(w.add(56)); 12 13);
        layer_inverse!(l, v, broadcast_factor(w.add(58)); 14 15);
        layer_inverse!(l, v, broadcast_factor(w.add(36)); 0 2, 1 3);
        layer_inverse!(l, v, broadcast_factor(w.add(38)); 4 6, 5 7);
        layer_inverse!(l, v, broadcast_factor(w.add(40)); 8 10, 9 11);
        layer_inverse!(l, v, broadcast_factor(w.add(42)); 12 14, 13 15);
        layer_inverse!(l, v, broadcast_factor(w.add(32)); 0 4, 1 5, 2 6, 3 7);
        layer_inverse!(l, v, broadcast_factor(w.add(34)); 8 12, 9 13, 10 14, 11 15);
        let (twist, twist_factor) = (load_factor(w), load_factor(w.add(FACTOR)));
        (v[0], v[8]) = butterfly_twisted(l, v[0], v[8], twist, twist_factor);
        (v[1], v[9]) = butterfly_twisted(l, v[1], v[9], twist, twist_factor);
        (v[2], v[10]) = butterfly_twisted(l, v[2], v[10], twist, twist_factor);
        (v[3], v[11]) = butterfly_twisted(l, v[3], v[11], twist, twist_factor);
        (v[4], v[12]) = butterfly_twisted(l, v[4], v[12], twist, twist_factor);
        (v[5], v[13]) = butterfly_twisted(l, v[5], v[13], twist, twist_factor);
        (v[6], v[14]) = butterfly_twisted(l, v[6], v[14], twist, twist_factor);
        (v[7], v[15]) = butterfly_twisted(l, v[7], v[15], twist, twist_factor);
        at(0).write_unaligned(v[0]);
        at(1).write_unaligned(v[1]);
        at(2).write_unaligned(v[2]);
        at(3).write_unaligned(v[3]);
        at(4).write_unaligned(v[4]);
        at(5).write_unaligned(v[5]);
        at(6).write_unaligned(v[6]);
        at(7).write_unaligned(v[7]);
        at(8).write_unaligned(v[8]);
        at(9).write_unaligned(v[9]);
        at(10).write_unaligned(v[10]);
        at(11).write_unaligned(v[11]);
        at(12).write_unaligned(v[12]);
        at(13).write_unaligned(v[13]);
        at(14).write_unaligned(v[14]);
        at(15).write_unaligned(v[15]);
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
