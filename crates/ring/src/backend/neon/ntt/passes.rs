//! Passes of two or three layers over blocks of a limb, in registers.

use core::arch::aarch64::*;

use super::super::residues::Multiplier;
use super::{Factor, Field, Quotient};

/// The input of the first pass of a forward transform.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Input {
    /// Canonical words.
    Words,
    /// Doubles of at most `q`.
    Centered,
    /// The output of a pass.
    Values,
}

/// `x + y w` and `x - y w`.
#[inline]
#[target_feature(enable = "neon")]
pub(super) fn butterfly<const LAZY: bool>(
    f: Field,
    x: float64x2_t,
    y: float64x2_t,
    w: impl Multiplier,
) -> (float64x2_t, float64x2_t) {
    let t = if LAZY { f.negative_product_near(y, w) } else { f.negative_product(y, w) };
    (vsubq_f64(x, t), vaddq_f64(x, t))
}

/// The sum, and the product of the difference.
#[inline]
#[target_feature(enable = "neon")]
pub(super) fn butterfly_inverse(
    f: Field,
    x: float64x2_t,
    y: float64x2_t,
    w: impl Multiplier,
) -> (float64x2_t, float64x2_t) {
    (vaddq_f64(x, y), f.negative_product(vsubq_f64(y, x), w))
}

/// The factors of `R / 2` blocks of a pass's last layer, and of its layers before. Entry `k` is factor `k` of a
/// transform of `R` words whose first block has factor `i`.
#[inline]
#[target_feature(enable = "neon")]
fn factors<const R: usize>(t: &[Quotient], i: usize) -> [Factor; R] {
    let mut list = [Factor::load(&t[i]); R];
    for k in 1..R {
        let depth = k.ilog2();
        list[k] = Factor::load(&t[(i << depth) + k - (1 << depth)]);
    }
    list
}

/// The layers of a forward transform of `R` vectors.
#[inline]
#[target_feature(enable = "neon")]
fn layers_forward<const LAZY: bool, const REDUCE: bool, const R: usize>(
    f: Field,
    v: &mut [float64x2_t; R],
    w: &[Factor; R],
) {
    let mut distance = R / 2;
    while distance > 0 {
        for block in 0..R / 2 / distance {
            for k in 2 * block * distance..(2 * block + 1) * distance {
                let x = if REDUCE && distance == R / 2 { f.reduce(v[k]) } else { v[k] };
                (v[k], v[k + distance]) =
                    butterfly::<LAZY>(f, x, v[k + distance], w[R / 2 / distance + block]);
            }
        }
        distance /= 2;
    }
}

#[target_feature(enable = "neon")]
fn run_forward<const LAZY: bool, const REDUCE: bool, const INPUT: u8, const R: usize>(
    f: Field,
    center: f64,
    t: &[Quotient],
    first: usize,
    size: usize,
    x: &mut [u64],
) {
    let center = vdupq_n_f64(center);
    let step = size / R;
    for (block, i) in x.chunks_exact_mut(size).zip(first..) {
        let w = factors::<R>(t, i);
        let base: *mut f64 = block.as_mut_ptr().cast();
        for place in (0..step).step_by(2 * PAIR) {
            let mut v = [[center; R]; PAIR];
            for k in 0..R {
                for half in 0..PAIR {
                    // SAFETY: `place + 2 PAIR <= step`, as both are multiples of `2 PAIR`, and `R step` is the length
                    // of the block.
                    let value = unsafe { base.add(k * step + place + 2 * half) };
                    v[half][k] = if INPUT == WORDS {
                        // SAFETY: as above.
                        vcvtq_f64_u64(unsafe { vld1q_u64(value.cast()) })
                    } else {
                        // SAFETY: as above.
                        unsafe { vld1q_f64(value) }
                    };
                    if LAZY && INPUT != VALUES {
                        v[half][k] = vaddq_f64(v[half][k], center);
                    }
                }
            }
            for v in &mut v {
                layers_forward::<LAZY, REDUCE, R>(f, v, &w);
            }
            for k in 0..R {
                for half in 0..PAIR {
                    // SAFETY: as above.
                    unsafe { vst1q_f64(base.add(k * step + place + 2 * half), v[half][k]) };
                }
            }
        }
    }
}

/// Vectors of a quarter or an eighth that a forward pass works on at once. Neighbours share an instruction that loads
/// or stores.
const PAIR: usize = 2;
const WORDS: u8 = 0;
const CENTERED: u8 = 1;
const VALUES: u8 = 2;

/// Two or three layers over blocks of `size` words, of which the first has factor `first`. `reduce` reduces in the
/// first layer.
#[target_feature(enable = "neon")]
pub(super) fn pass_forward<const LAZY: bool>(
    f: Field,
    center: f64,
    t: &[Quotient],
    (input, layers, reduce): (Input, u32, bool),
    first: usize,
    size: usize,
    x: &mut [u64],
) {
    match (layers, input, reduce) {
        (2, Input::Words, _) => run_forward::<LAZY, false, WORDS, 4>(f, center, t, first, size, x),
        (2, Input::Centered, _) => run_forward::<LAZY, false, CENTERED, 4>(f, center, t, first, size, x),
        (2, Input::Values, false) => run_forward::<LAZY, false, VALUES, 4>(f, center, t, first, size, x),
        (2, Input::Values, true) => run_forward::<false, true, VALUES, 4>(f, center, t, first, size, x),
        (_, Input::Words, _) => run_forward::<LAZY, false, WORDS, 8>(f, center, t, first, size, x),
        (_, Input::Centered, _) => run_forward::<LAZY, false, CENTERED, 8>(f, center, t, first, size, x),
        (_, Input::Values, false) => run_forward::<LAZY, false, VALUES, 8>(f, center, t, first, size, x),
        (_, Input::Values, true) => run_forward::<false, true, VALUES, 8>(f, center, t, first, size, x),
    }
}

/// The layers of an inverse transform of `R` vectors, from distance 1 to `R / 2` of them.
#[inline]
#[target_feature(enable = "neon")]
fn layers_inverse<const LAST: bool, const R: usize>(f: Field, v: &mut [float64x2_t; R], w: &[Factor; R]) {
    let mut distance = 1;
    while distance < if LAST { R / 2 } else { R } {
        for block in 0..R / 2 / distance {
            for k in 2 * block * distance..(2 * block + 1) * distance {
                (v[k], v[k + distance]) =
                    butterfly_inverse(f, v[k], v[k + distance], w[R / 2 / distance + block]);
            }
        }
        distance *= 2;
    }
}

#[target_feature(enable = "neon")]
fn run_inverse<const LAST: bool, const R: usize, const PAIR: usize>(
    f: Field,
    t: &[Quotient],
    first: usize,
    size: usize,
    x: &mut [u64],
) {
    let step = size / R;
    let (scale, half_unit) = (Factor::load(&t[0]), f.half_unit());
    for (block, i) in x.chunks_exact_mut(size).zip(first..) {
        let w = factors::<R>(t, i);
        let base: *mut f64 = block.as_mut_ptr().cast();
        for place in (0..step).step_by(2 * PAIR) {
            let mut v = [[f.q; R]; PAIR];
            for k in 0..R {
                for half in 0..PAIR {
                    // SAFETY: `place + 2 PAIR <= step`, as both are multiples of `2 PAIR`, and `R step` is the length
                    // of the block.
                    v[half][k] = unsafe { vld1q_f64(base.add(k * step + place + 2 * half)) };
                }
            }
            for v in &mut v {
                layers_inverse::<LAST, R>(f, v, &w);
                if LAST {
                    // The last layer, with `N^-1` in both factors.
                    for k in 0..R / 2 {
                        let (sum, difference) =
                            (vaddq_f64(v[k], v[k + R / 2]), vsubq_f64(v[k], v[k + R / 2]));
                        v[k] = vreinterpretq_f64_u64(f.canonical_product(sum, scale, half_unit));
                        v[k + R / 2] =
                            vreinterpretq_f64_u64(f.canonical_product(difference, w[1], half_unit));
                    }
                } else {
                    // The outputs that the last layer adds up.
                    for value in &mut v[..R / 2] {
                        *value = f.reduce(*value);
                    }
                }
            }
            for k in 0..R {
                for half in 0..PAIR {
                    // SAFETY: as above.
                    unsafe { vst1q_f64(base.add(k * step + place + 2 * half), v[half][k]) };
                }
            }
        }
    }
}

/// Two or three layers over blocks of `size` words, from the smallest distance on. The first block has factor `first`.
/// With `LAST`, they also multiply by entry 0 of `t` and give canonical words.
#[target_feature(enable = "neon")]
pub(super) fn pass_inverse<const LAST: bool>(
    f: Field,
    t: &[Quotient],
    layers: u32,
    first: usize,
    size: usize,
    x: &mut [u64],
) {
    // Two vectors of each of eight streams, and the constants of the reductions, need more registers than NEON has.
    if layers == 2 {
        run_inverse::<LAST, 4, 2>(f, t, first, size, x);
    } else {
        run_inverse::<LAST, 8, 1>(f, t, first, size, x);
    }
}
