//! Residues of narrow primes in double precision, four to a register.
//!
//! # Representation
//! A residue is an integer-valued double `x` with `|x| < 2^53`; it stands for its class modulo `q < 2^50`. Bounds below
//! are in units of `q`. Sums of such integers are exact as long as they stay below `2^53`, which is above `8 q`.
//!
//! # Products
//! For `|y| <= Y q < 2^52`, a factor `|w| <= q/2` and `w' = w/q` rounded, [`Field::mul`] computes
//!
//! ```text
//! h = round(y w')    hi = fl(y w)    lo = y w - hi    t = (hi - h q) + lo = y w - h q
//! ```
//!
//! * As `|w'| <= 1/2`, its error is at most `2^-55`, so `y w'` is within `|y| 2^-55 = Y q 2^-55` of `y w / q`, and
//!   `|t| <= (1/2 + Y g) q` for the growth `g = q 2^-55`, below `1/32`. As `|y w'| < 2^51`, adding and subtracting
//!   `1.5 * 2^52` rounds to the nearest integer.
//! * `lo` is exact (fused multiply-subtract). `|hi| < 2^101`, so `|lo| <= 2^47`, and `hi - h q = t - lo` is an integer
//!   below `2^52`: the fused operation that computes it is exact, and so is the last addition.
//!
//! [`Field::mul_far`] takes any `|y| < 2^53`. Its quotient is rounded twice, first to a multiple of 1/2 if it is above
//! `2^51`, so `|t| <= (3/4 + Y g) q`; `|lo| <= 2^48`.
//!
//! [`Field::reduce`] is the same with `w = 1`: it takes any `|x| < 2^53` with `|x / q| < 2^51` to
//! `|x| <= (1/2 + 2^-22) q` (`q >= 2^10`, so the quotient is below `2^43` and has an error below `2^-9`; for
//! `q >= 2^30` it is below `2^-28`).
//!
//! # Signs
//! A sum is -0 only if both operands are, and a product `t` never is: `lo` is +0 where it is 0. Words become +0. So no
//! value is -0, and the sign bit tells whether it is negative.

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
    /// `2^52 + q`.
    lifted: __m256d,
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
    load_words_less(words, 0)
}

/// Integers below `2^52`, less `shift`.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn load_words_less(words: &Words, shift: u64) -> __m256d {
    let zero = _mm256_set1_pd(EXPONENT + shift as f64);
    _mm256_sub_pd(_mm256_or_pd(load(words), _mm256_set1_pd(EXPONENT)), zero)
}

/// The same register, of which the compiler knows nothing more. It would replace shuffles by others that take longer.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn opaque(mut x: __m256d) -> __m256d {
    // SAFETY: no instruction.
    unsafe {
        core::arch::asm!("/* {0} */", inout(ymm_reg) x, options(pure, nomem, nostack, preserves_flags))
    };
    x
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
        let q = m.value() as f64;
        let [q, inverse, lifted] = [q, 1.0 / q, EXPONENT + q].map(|x| _mm256_set1_pd(x));
        Self { q, inverse, lifted }
    }

    /// Broadcasts a canonical factor, centred.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub(super) fn factor(m: &Modulus, value: u64) -> Factor {
        let value = m.centered(value) as f64;
        Factor { value: _mm256_set1_pd(value), quotient: _mm256_set1_pd(value / m.value() as f64) }
    }

    /// `y w`: at most `(1/2 + Y g) q` for `|y| <= Y q < 2^52`.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub(super) fn mul(self, y: __m256d, w: Factor) -> __m256d {
        let shift = _mm256_set1_pd(ROUND);
        self.remainder(y, w, _mm256_sub_pd(_mm256_fmadd_pd(y, w.quotient, shift), shift))
    }

    /// `y w`: at most `(3/4 + Y g) q` for `|y| <= Y q < 2^53`.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub(super) fn mul_far(self, y: __m256d, w: Factor) -> __m256d {
        const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
        self.remainder(y, w, _mm256_round_pd::<NEAREST>(_mm256_mul_pd(y, w.quotient)))
    }

    /// `y w - h q`.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn remainder(self, y: __m256d, w: Factor, h: __m256d) -> __m256d {
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

    /// Stores values in `(-q, q)` as canonical words.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub(super) fn store_canonical(self, words: &mut Words, x: __m256d) {
        let exponent = _mm256_set1_pd(EXPONENT);
        let (kept, lifted) = (_mm256_add_pd(x, exponent), _mm256_add_pd(x, self.lifted));
        store(words, _mm256_xor_pd(_mm256_blendv_pd(kept, lifted, x), exponent));
        debug_assert!(words.iter().all(|&word| word < _mm256_cvtsd_f64(self.q) as u64));
    }
}
