//! Residues of narrow primes in double precision, four to a register.
//!
//! # Representation
//! A residue is an integer-valued double `x` with `|x| < 2^53`; it stands for its class modulo `q < 2^50`. Bounds below
//! are in units of `q`. Sums of such integers are exact as long as they stay below `2^53`, which is above `8 q`.
//!
//! # Products
//! For `|y| <= Y q` with `Y <= 4`, a factor `|w| <= q/2` and `w' = w/q` rounded, [`Field::mul`] computes
//!
//! ```text
//! h = round(y w')    hi = fl(y w)    lo = y w - hi    t = (hi - h q) + lo = y w - h q
//! ```
//!
//! * `w'` has a relative error of `2^-53`, so `y w'` is within `|y w / q| 2^-53 <= Y q 2^-54 <= Y/16` of `y w / q`, and
//!   `|t| <= (1/2 + Y/16) q`. As `|y w'| < 2^51`, adding and subtracting `1.5 * 2^52` rounds to the nearest integer.
//! * `lo` is exact (fused multiply-subtract). `|hi| < 2^101`, so `|lo| <= 2^47`, and `hi - h q = t - lo` is an integer
//!   below `2^50`: the fused operation that computes it is exact, and so is the last addition.
//!
//! [`Field::reduce`] is the same with `w = 1`: it takes any `|x| < 2^53` with `|x / q| < 2^51` to
//! `|x| <= (1/2 + 2^-22) q` (`q >= 2^10`, so the quotient is below `2^43` and has an error below `2^-9`; for
//! `q >= 2^30` it is below `2^-28`).

use core::arch::x86_64::*;

use crate::Modulus;

/// `1.5 * 2^52`: adding it to `|x| < 2^51` rounds `x` to an integer, in the low bits.
const ROUND: f64 = 6_755_399_441_055_744.0;
/// `2^52`, whose bits or-ed to an integer below `2^52` are the double of their sum.
const EXPONENT: f64 = 4_503_599_627_370_496.0;

/// Four residues or four words.
pub(super) type Words = [u64; 4];

/// A narrow prime and its reciprocal, broadcast.
#[derive(Clone, Copy)]
pub(super) struct Field {
    pub(super) q: __m256d,
    pub(super) inverse: __m256d,
}

/// A constant factor `|w| <= q/2` and `w/q`.
#[derive(Clone, Copy)]
pub(super) struct Factor {
    pub(super) value: __m256d,
    pub(super) quotient: __m256d,
}

/// Integers below `2^52` as doubles.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn load_words(words: &Words) -> __m256d {
    let exponent = _mm256_set1_pd(EXPONENT);
    _mm256_sub_pd(_mm256_or_pd(load(words), exponent), exponent)
}

/// Doubles in `[0, 2^52)` to integers, in the same register.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn to_words(x: __m256d) -> __m256d {
    let exponent = _mm256_set1_pd(EXPONENT);
    _mm256_xor_pd(_mm256_add_pd(x, exponent), exponent)
}

/// Stores doubles in `[0, 2^52)` as integers.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn store_words(words: &mut Words, x: __m256d) {
    store(words, to_words(x));
}

/// Doubles kept in words.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn load(words: &Words) -> __m256d {
    // SAFETY: the array has 32 bytes; the load needs no alignment.
    unsafe { _mm256_loadu_pd(words.as_ptr().cast()) }
}

/// Doubles to be kept in words.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn store(words: &mut Words, x: __m256d) {
    // SAFETY: the array has 32 bytes; the store needs no alignment.
    unsafe { _mm256_storeu_pd(words.as_mut_ptr().cast(), x) }
}

/// Nearest integer of `|x| < 2^51`.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn round(x: __m256d) -> __m256d {
    let shift = _mm256_set1_pd(ROUND);
    _mm256_sub_pd(_mm256_add_pd(x, shift), shift)
}

impl Field {
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub(super) fn new(m: &Modulus) -> Self {
        debug_assert!(m.is_narrow());
        Self { q: _mm256_set1_pd(m.value() as f64), inverse: _mm256_set1_pd(1.0 / m.value() as f64) }
    }

    /// Broadcasts a canonical factor, centred.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub(super) fn factor(m: &Modulus, value: u64) -> Factor {
        let value = m.centered(value) as f64;
        Factor { value: _mm256_set1_pd(value), quotient: _mm256_set1_pd(value / m.value() as f64) }
    }

    /// `y w`: at most `(1/2 + Y/16) q` for `|y| <= Y q < 4 q`.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub(super) fn mul(self, y: __m256d, w: Factor) -> __m256d {
        let shift = _mm256_set1_pd(ROUND);
        let h = _mm256_sub_pd(_mm256_fmadd_pd(y, w.quotient, shift), shift);
        let hi = _mm256_mul_pd(y, w.value);
        let lo = _mm256_fmsub_pd(y, w.value, hi);
        _mm256_add_pd(_mm256_fnmadd_pd(h, self.q, hi), lo)
    }

    /// `a b` of canonical residues, in `(-q, q)`: the quotient `hi/q < 2^50` has an error below
    /// `2^50 * 3 * 2^-53 < 1/2`.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub(super) fn mul_variable(self, a: __m256d, b: __m256d) -> __m256d {
        let hi = _mm256_mul_pd(a, b);
        let lo = _mm256_fmsub_pd(a, b, hi);
        let h = round(_mm256_mul_pd(hi, self.inverse));
        _mm256_add_pd(_mm256_fnmadd_pd(h, self.q, hi), lo)
    }

    /// The centred representative, up to the rounding of the quotient.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub(super) fn reduce(self, x: __m256d) -> __m256d {
        let shift = _mm256_set1_pd(ROUND);
        let h = _mm256_sub_pd(_mm256_fmadd_pd(x, self.inverse, shift), shift);
        _mm256_fnmadd_pd(h, self.q, x)
    }

    /// `(-q, q)` to `[0, q)`.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub(super) fn make_positive(self, x: __m256d) -> __m256d {
        let negative = _mm256_cmp_pd::<_CMP_LT_OQ>(x, _mm256_setzero_pd());
        _mm256_add_pd(x, _mm256_and_pd(negative, self.q))
    }
}
