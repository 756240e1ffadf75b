//! Butterflies, and layers of them on vectors in registers.
//!
//! # Invariant
//! Forward: lazy words below `2U` in and out. Within a pass, an output that the next butterfly multiplies is below
//! `2U`. An output that the next butterfly adds to is a sum below `2U` or a difference in `(-U, U)`, which saves the
//! addition of `U`. Inverse: lazy words below `U` in and out.

use core::arch::x86_64::*;

use crate::backend::avx512::arithmetic::lanes::{Factor, Lanes};

/// Rows of words, `stride` words apart.
#[derive(Clone, Copy)]
pub(super) struct Rows<P> {
    pub(super) start: P,
    pub(super) stride: usize,
}

impl Rows<*mut u64> {
    /// The same rows, for reading.
    pub(super) fn read(self) -> Rows<*const u64> {
        Rows { start: self.start, stride: self.stride }
    }
}

/// `(x + t, x - t + U)` with `t = y w`, for `x` below `U`: both below `2U`.
///
/// # Safety
/// As for [`Lanes`].
#[inline(always)]
pub(super) unsafe fn butterfly<L: Lanes>(l: L, x: __m512i, y: __m512i, w: Factor) -> (__m512i, __m512i) {
    // SAFETY: the caller has the CPU features.
    unsafe {
        debug_assert!(l.is_below(x, 1));
        let t = l.product(y, w);
        (_mm512_add_epi64(x, t), l.difference(x, t))
    }
}

/// `(x + t, x - t)` with `t = y w`, for `x` below `U`: a sum below `2U` and a difference in `(-U, U)`.
///
/// # Safety
/// As for [`Lanes`].
#[inline(always)]
pub(super) unsafe fn butterfly_signed<L: Lanes>(
    l: L,
    x: __m512i,
    y: __m512i,
    w: Factor,
) -> (__m512i, __m512i) {
    // SAFETY: the caller has the CPU features.
    unsafe {
        debug_assert!(l.is_below(x, 1));
        let t = l.product(y, w);
        (_mm512_add_epi64(x, t), _mm512_sub_epi64(x, t))
    }
}

/// `(x + y, (x - y) w)` for `x` and `y` below `U`: both below `U`.
///
/// # Safety
/// As for [`Lanes`].
#[inline(always)]
pub(super) unsafe fn butterfly_inverse<L: Lanes>(
    l: L,
    x: __m512i,
    y: __m512i,
    w: Factor,
) -> (__m512i, __m512i) {
    // SAFETY: the caller has the CPU features.
    unsafe {
        debug_assert!(l.is_below(x, 1) && l.is_below(y, 1));
        (l.reduce(_mm512_add_epi64(x, y)), l.product(l.difference(x, y), w))
    }
}

/// An expression for each of some rows, whose number it names: an array of the results. Numbers are literals, so that
/// rows stay in registers.
macro_rules! rows {
    (2, $row:ident => $value:expr) => { rows!(@ $row, $value, 0 1) };
    (4, $row:ident => $value:expr) => { rows!(@ $row, $value, 0 1 2 3) };
    (8, $row:ident => $value:expr) => { rows!(@ $row, $value, 0 1 2 3 4 5 6 7) };
    (16, $row:ident => $value:expr) => { rows!(@ $row, $value, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15) };
    (@ $row:ident, $value:expr, $($number:literal)*) => { rows!(@@ $($row, $value, $number;)*) };
    (@@ $($row:ident, $value:expr, $number:literal;)*) => {
        [$({ const $row: usize = $number; $value }),*]
    };
}
pub(super) use rows;

/// One layer's butterflies with one factor. For each pair of indices, reduces the first word as named (`sum`,
/// `difference`, or `reduced` for no reduction) and applies the butterfly.
macro_rules! layer {
    ($l:ident, $v:ident, $w:expr; $($x:literal $y:literal $reduce:ident $butterfly:ident),*) => {{
        let w = $w;
        $(
            let x = layer!(@ $reduce $l $v[$x]);
            ($v[$x], $v[$y]) = $butterfly($l, x, $v[$y], w);
        )*
    }};
    (@ sum $l:ident $x:expr) => { $l.reduce($x) };
    (@ difference $l:ident $x:expr) => { $l.reduce_difference($x) };
    (@ reduced $l:ident $x:expr) => { $x };
}
pub(super) use layer;

/// One layer of an inverse pass with one factor.
macro_rules! layer_inverse {
    ($l:ident, $v:ident, $w:expr; $($x:literal $y:literal),*) => {{
        let w = $w;
        $( ($v[$x], $v[$y]) = butterfly_inverse($l, $v[$x], $v[$y], w); )*
    }};
}
pub(super) use layer_inverse;

/// All layers of four, eight or sixteen rows, the first with the factor `$first`. The others follow at `$w` in their
/// order, from the second factor on.
macro_rules! layers {
    (4, $l:ident, $v:ident, $first:expr, $w:expr) => {
        layer!($l, $v, $first; 0 2 reduced butterfly_signed, 1 3 reduced butterfly);
        layer!($l, $v, broadcast_factor($w.add(2)); 0 1 sum butterfly);
        layer!($l, $v, broadcast_factor($w.add(4)); 2 3 difference butterfly);
    };
    (8, $l:ident, $v:ident, $first:expr, $w:expr) => {
        layer!($l, $v, $first; 0 4 reduced butterfly_signed, 1 5 reduced butterfly_signed, 2 6 reduced butterfly, 3 7 reduced butterfly);
        layer!($l, $v, broadcast_factor($w.add(2)); 0 2 sum butterfly_signed, 1 3 sum butterfly);
        layer!($l, $v, broadcast_factor($w.add(4)); 4 6 difference butterfly_signed, 5 7 difference butterfly);
        layer!($l, $v, broadcast_factor($w.add(6)); 0 1 sum butterfly);
        layer!($l, $v, broadcast_factor($w.add(8)); 2 3 difference butterfly);
        layer!($l, $v, broadcast_factor($w.add(10)); 4 5 sum butterfly);
        layer!($l, $v, broadcast_factor($w.add(12)); 6 7 difference butterfly);
    };
    (16, $l:ident, $v:ident, $first:expr, $w:expr) => {
        layer!($l, $v, $first; 0 8 reduced butterfly_signed, 1 9 reduced butterfly_signed, 2 10 reduced butterfly_signed, 3 11 reduced butterfly_signed, 4 12 reduced butterfly, 5 13 reduced butterfly, 6 14 reduced butterfly, 7 15 reduced butterfly);
        layer!($l, $v, broadcast_factor($w.add(2)); 0 4 sum butterfly_signed, 1 5 sum butterfly_signed, 2 6 sum butterfly, 3 7 sum butterfly);
        layer!($l, $v, broadcast_factor($w.add(4)); 8 12 difference butterfly_signed, 9 13 difference butterfly_signed, 10 14 difference butterfly, 11 15 difference butterfly);
        layer!($l, $v, broadcast_factor($w.add(6)); 0 2 sum butterfly_signed, 1 3 sum butterfly);
        layer!($l, $v, broadcast_factor($w.add(8)); 4 6 difference butterfly_signed, 5 7 difference butterfly);
        layer!($l, $v, broadcast_factor($w.add(10)); 8 10 sum butterfly_signed, 9 11 sum butterfly);
        layer!($l, $v, broadcast_factor($w.add(12)); 12 14 difference butterfly_signed, 13 15 difference butterfly);
        layer!($l, $v, broadcast_factor($w.add(14)); 0 1 sum butterfly);
        layer!($l, $v, broadcast_factor($w.add(16)); 2 3 difference butterfly);
        layer!($l, $v, broadcast_factor($w.add(18)); 4 5 sum butterfly);
        layer!($l, $v, broadcast_factor($w.add(20)); 6 7 difference butterfly);
        layer!($l, $v, broadcast_factor($w.add(22)); 8 9 sum butterfly);
        layer!($l, $v, broadcast_factor($w.add(24)); 10 11 difference butterfly);
        layer!($l, $v, broadcast_factor($w.add(26)); 12 13 sum butterfly);
        layer!($l, $v, broadcast_factor($w.add(28)); 14 15 difference butterfly);
    };
}
pub(super) use layers;

/// The layers of an inverse pass: all but the last, whose factor comes first at `$w`.
macro_rules! layers_inverse {
    (4, $l:ident, $v:ident, $w:expr) => {
        layer_inverse!($l, $v, broadcast_factor($w.add(2)); 0 1);
        layer_inverse!($l, $v, broadcast_factor($w.add(4)); 2 3);
    };
    (8, $l:ident, $v:ident, $w:expr) => {
        layer_inverse!($l, $v, broadcast_factor($w.add(6)); 0 1);
        layer_inverse!($l, $v, broadcast_factor($w.add(8)); 2 3);
        layer_inverse!($l, $v, broadcast_factor($w.add(10)); 4 5);
        layer_inverse!($l, $v, broadcast_factor($w.add(12)); 6 7);
        layer_inverse!($l, $v, broadcast_factor($w.add(2)); 0 2, 1 3);
        layer_inverse!($l, $v, broadcast_factor($w.add(4)); 4 6, 5 7);
    };
    (16, $l:ident, $v:ident, $w:expr) => {
        layer_inverse!($l, $v, broadcast_factor($w.add(14)); 0 1);
        layer_inverse!($l, $v, broadcast_factor($w.add(16)); 2 3);
        layer_inverse!($l, $v, broadcast_factor($w.add(18)); 4 5);
        layer_inverse!($l, $v, broadcast_factor($w.add(20)); 6 7);
        layer_inverse!($l, $v, broadcast_factor($w.add(22)); 8 9);
        layer_inverse!($l, $v, broadcast_factor($w.add(24)); 10 11);
        layer_inverse!($l, $v, broadcast_factor($w.add(26)); 12 13);
        layer_inverse!($l, $v, broadcast_factor($w.add(28)); 14 15);
        layer_inverse!($l, $v, broadcast_factor($w.add(6)); 0 2, 1 3);
        layer_inverse!($l, $v, broadcast_factor($w.add(8)); 4 6, 5 7);
        layer_inverse!($l, $v, broadcast_factor($w.add(10)); 8 10, 9 11);
        layer_inverse!($l, $v, broadcast_factor($w.add(12)); 12 14, 13 15);
        layer_inverse!($l, $v, broadcast_factor($w.add(2)); 0 4, 1 5, 2 6, 3 7);
        layer_inverse!($l, $v, broadcast_factor($w.add(4)); 8 12, 9 13, 10 14, 11 15);
    };
}
pub(super) use layers_inverse;
