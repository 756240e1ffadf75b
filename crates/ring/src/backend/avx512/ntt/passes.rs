//! Butterflies, and layers of them on vectors in registers.
//!
//! # Invariant
//! Forward: lazy words below `2U` in and out. Within a pass, an output that the next butterfly multiplies is below
//! `2U`. An output that the next butterfly adds to is a sum below `2U` or a difference in `(-U, U)`, which saves the
//! addition of `U`. Inverse: lazy words below `U` in and out.

use core::arch::x86_64::*;

use super::super::lanes::{Factor, Lanes};

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
