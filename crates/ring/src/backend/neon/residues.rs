//! Residues of narrow primes in double precision, two to a register.
//!
//! # Representation
//! A residue is an integer-valued double `x` with `|x| < 2^53`; it stands for its class modulo `q < 2^50`. Bounds below
//! are in units of `q`. Sums of such integers are exact as long as they stay below `2^53`, which is above `8 q`.
//!
//! # Products
//! A constant factor `|w| <= q/2` is stored as the quotient `w/q` in two doubles, `c = fl(w/q)` and `e = fl(w/q - c)`.
//! [`Field::fraction`] computes
//!
//! ```text
//! h = round(fl(y c))    g = (h - y c) - y e = h - y w / q
//! ```
//!
//! with two fused operations. [`Field::negative_product`] computes the residue `q g = h q - y w`, rounded to an
//! integer. For `|y| < 2^53`:
//!
//! * `|c| <= 1/2`, so `|y c| < 2^52`, whose rounding moves the quotient by at most `|y| 2^-55`. As `|e| <= 2^-55`,
//!   `y e` moves it by as much. So `|g| <= 1/2 + |y| 2^-54`, which is at most `1/2 + Y/16` for `|y| <= Y q`, and below
//!   1 for any `y`.
//! * The errors of `g` are half a unit in the last place of each fused operation, `2^-54`, and the error of `e` times
//!   `y`, at most `2^-108 2^53 = 2^-55`. Times `q`, they are at most `2.5/16`, and the product with `q` adds `1/16`.
//!   Together they are below `1/4`, so the nearest integer is the residue. For `q < 2^46` they are below `1/64`.
//!
//! [`Field::reduce`] takes any `|x| < 2^53` to `|x| <= (1/2 + 2^-9) q`: its quotient has an error below
//! `2^53 / q 2^-52`, which is below `2^-9` for `q >= 2^10`.
//!
//! # Canonical words
//! For an integer `|x| <= B q` and `z = x + 1/2 + d` with `|d| < 1/64`, [`Field::canonical`] takes
//! `j = floor(fl(z fl(1/q)))`. No multiple of `q` is nearer to `z` than `1/2 - 1/64`, and the product has an error
//! below `B 2^-52`. So `j = floor(x / q)` if `B 2^-52 < (1/2 - 1/64) / q`. That holds for `B <= 19` and `q < 2^46`, and
//! with `d = 0` for `B < 2` and `q < 2^50`. Then `z - j q` is in `(0, q)`, and its integer part is the canonical
//! residue.

use core::arch::aarch64::*;

use crate::Modulus;

/// Two residues or two words.
pub(super) type Words = [u64; 2];

/// A narrow prime and its reciprocal, broadcast.
#[derive(Clone, Copy)]
pub(super) struct Field {
    pub(super) q: float64x2_t,
    pub(super) inverse: float64x2_t,
}

/// The quotient `w/q` of a constant factor `|w| <= q/2` in two doubles, in the form in which it is stored.
pub(super) type Quotient = [f64; 2];

/// Both parts of a [`Quotient`] in one register.
#[derive(Clone, Copy)]
pub(super) struct Factor(float64x2_t);

/// The quotients of two factors, one to a lane.
#[derive(Clone, Copy)]
pub(super) struct FactorPair(float64x2x2_t);

/// Doubles kept in words.
#[inline]
#[target_feature(enable = "neon")]
pub(super) fn load(words: &Words) -> float64x2_t {
    // SAFETY: the array has 16 bytes; the load needs no alignment.
    unsafe { vld1q_f64(words.as_ptr().cast()) }
}

/// Doubles to be kept in words.
#[inline]
#[target_feature(enable = "neon")]
pub(super) fn store(words: &mut Words, x: float64x2_t) {
    // SAFETY: the array has 16 bytes; the store needs no alignment.
    unsafe { vst1q_f64(words.as_mut_ptr().cast(), x) }
}

/// Words.
#[inline]
#[target_feature(enable = "neon")]
pub(super) fn load_integers(words: &Words) -> uint64x2_t {
    // SAFETY: as above.
    unsafe { vld1q_u64(words.as_ptr()) }
}

/// Words.
#[inline]
#[target_feature(enable = "neon")]
pub(super) fn store_integers(words: &mut Words, x: uint64x2_t) {
    // SAFETY: as above.
    unsafe { vst1q_u64(words.as_mut_ptr(), x) }
}

/// Words as doubles.
#[inline]
#[target_feature(enable = "neon")]
pub(super) fn load_words(words: &Words) -> float64x2_t {
    vcvtq_f64_u64(load_integers(words))
}

/// The quotient of a canonical factor.
pub(super) fn quotient(m: &Modulus, value: u64) -> Quotient {
    // SAFETY: a back end that asks for it is a value of `Neon`, which proves the features.
    unsafe { quotient_of(m.centered(value) as f64, m.value() as f64) }
}

#[target_feature(enable = "neon")]
fn quotient_of(w: f64, q: f64) -> Quotient {
    let high = w / q;
    // Exact: the remainder of a division that is rounded to nearest.
    let remainder = vget_lane_f64::<0>(vfms_f64(vdup_n_f64(w), vdup_n_f64(high), vdup_n_f64(q)));
    [high, remainder / q]
}

impl Factor {
    #[inline]
    #[target_feature(enable = "neon")]
    pub(super) fn load(quotient: &Quotient) -> Self {
        // SAFETY: the array has 16 bytes; the load needs no alignment.
        Self(unsafe { vld1q_f64(quotient.as_ptr()) })
    }

    /// Of a canonical factor.
    #[inline]
    #[target_feature(enable = "neon")]
    pub(super) fn new(m: &Modulus, value: u64) -> Self {
        Self::load(&quotient(m, value))
    }
}

impl FactorPair {
    #[inline]
    #[target_feature(enable = "neon")]
    pub(super) fn load(quotients: &[Quotient; 2]) -> Self {
        // SAFETY: the array has 32 bytes; the load needs no alignment.
        Self(unsafe { vld2q_f64(quotients.as_ptr().cast()) })
    }
}

/// A factor of a product: one for both lanes, or one for each.
pub(super) trait Multiplier: Copy {
    /// `h - y w / q` for the integer `h` nearest to the computed quotient.
    ///
    /// # Safety
    /// The CPU has NEON.
    unsafe fn fraction(self, y: float64x2_t) -> float64x2_t;
}

impl Multiplier for Factor {
    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn fraction(self, y: float64x2_t) -> float64x2_t {
        let h = vrndnq_f64(vmulq_laneq_f64::<0>(y, self.0));
        vfmsq_laneq_f64::<1>(vfmsq_laneq_f64::<0>(h, y, self.0), y, self.0)
    }
}

impl Multiplier for FactorPair {
    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn fraction(self, y: float64x2_t) -> float64x2_t {
        let h = vrndnq_f64(vmulq_f64(y, self.0.0));
        vfmsq_f64(vfmsq_f64(h, y, self.0.0), y, self.0.1)
    }
}

impl Field {
    #[inline]
    #[target_feature(enable = "neon")]
    pub(super) fn new(m: &Modulus) -> Self {
        debug_assert!(m.is_narrow());
        Self { q: vdupq_n_f64(m.value() as f64), inverse: vdupq_n_f64(1.0 / m.value() as f64) }
    }

    /// `h - y w / q`, below 1 in absolute value.
    #[inline]
    #[target_feature(enable = "neon")]
    pub(super) fn fraction(self, y: float64x2_t, w: impl Multiplier) -> float64x2_t {
        // SAFETY: this function has the feature.
        unsafe { w.fraction(y) }
    }

    /// `-y w`, within `1/4` of an integer of at most `(1/2 + Y/16) q` for `|y| <= Y q`.
    #[inline]
    #[target_feature(enable = "neon")]
    pub(super) fn negative_product_near(self, y: float64x2_t, w: impl Multiplier) -> float64x2_t {
        vmulq_f64(self.fraction(y, w), self.q)
    }

    /// `-y w`: at most `(1/2 + Y/16) q` for `|y| <= Y q`.
    #[inline]
    #[target_feature(enable = "neon")]
    pub(super) fn negative_product(self, y: float64x2_t, w: impl Multiplier) -> float64x2_t {
        vrndnq_f64(self.negative_product_near(y, w))
    }

    /// `y w`, canonical. The fraction of the quotient is moved by `1/(2q) > 2^-51`, more than the error `2.5 2^-54` of
    /// `g` and that of the sum, `2^-53`. So the floor is that of the exact fraction. `q` times the remaining fraction
    /// is a residue and a half, within `2^50 (2.5 2^-54 + 2^-53) + 2^-4 < 1/2`.
    #[inline]
    #[target_feature(enable = "neon")]
    pub(super) fn canonical_product(
        self,
        y: float64x2_t,
        w: impl Multiplier,
        half: float64x2_t,
    ) -> uint64x2_t {
        // In (0, 1) after the floor, as (residue + 1/2) / q.
        let fraction = vsubq_f64(half, self.fraction(y, w));
        vcvtq_u64_f64(vmulq_f64(vsubq_f64(fraction, vrndmq_f64(fraction)), self.q))
    }

    /// `1/(2q)`, for [`Self::canonical_product`].
    #[inline]
    #[target_feature(enable = "neon")]
    pub(super) fn half_unit(self) -> float64x2_t {
        vmulq_f64(self.inverse, vdupq_n_f64(0.5))
    }

    /// `a b` of canonical residues, in `(-q, q)`: the quotient `hi/q < 2^50` has an error below
    /// `2^50 * 3 * 2^-53 < 1/2`.
    #[inline]
    #[target_feature(enable = "neon")]
    pub(super) fn mul_variable(self, a: float64x2_t, b: float64x2_t) -> float64x2_t {
        let high = vmulq_f64(a, b);
        let h = vrndnq_f64(vmulq_f64(high, self.inverse));
        // Both differences are exact: hi - a b is below 2^47, and hi - h q is the result less that difference.
        vsubq_f64(vfmsq_f64(high, h, self.q), vfmsq_f64(high, a, b))
    }

    /// The centred representative, up to the rounding of the quotient.
    #[inline]
    #[target_feature(enable = "neon")]
    pub(super) fn reduce(self, x: float64x2_t) -> float64x2_t {
        vfmsq_f64(x, vrndnq_f64(vmulq_f64(x, self.inverse)), self.q)
    }

    /// Turns values in `[-q, q)` into canonical words.
    #[inline]
    #[target_feature(enable = "neon")]
    pub(super) fn make_positive(self, x: float64x2_t) -> uint64x2_t {
        let lift = vandq_u64(vcltzq_f64(x), vreinterpretq_u64_f64(self.q));
        vcvtq_u64_f64(vaddq_f64(x, vreinterpretq_f64_u64(lift)))
    }

    /// Turns `x + 1/2` into the canonical word of `x`.
    #[inline]
    #[target_feature(enable = "neon")]
    pub(super) fn canonical(self, z: float64x2_t) -> uint64x2_t {
        vcvtq_u64_f64(vfmsq_f64(z, vrndmq_f64(vmulq_f64(z, self.inverse)), self.q))
    }
}
