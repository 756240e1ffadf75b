//! Multiplication modulo one prime in one word.
//!
//! [`Montgomery`] supports every odd modulus of its width. [`ShiftAdd30`] and [`ShiftAdd60`] support `2^30 - 2^18 + 1`
//! and `2^60 - 2^18 + 1`, both 1 modulo `2^18`, by shifts and additions. [`Shoup`] supports moduli below `2^58` with
//! five 64-bit products. It avoids 128-bit products, which are function calls in WebAssembly and on 32-bit machines.
//! Results are residues, so they do not depend on the reduction.
//!
//! # Ranges
//! Let `b` be [`Reduction::LAZY`] times `q`. [`Reduction::mul_lazy`] takes `a < 2b` and a prepared factor `w < q`, and
//! its result is below `b`. For all but [`Shoup`] `b = 2q`, `q < 2^30` in a 32-bit word (`R = 2^32`) or `q < 2^61` in a
//! 64-bit word (`R = 2^64`), so `4q <= R`.
//!
//! * Montgomery: `w = c R mod q`; with `k = -a w q^-1 mod R`, `(a w + k q) / R < (4 q^2 + R q) / R <= 2q`.
//! * Shift and add: `2^B = 2^K - 1 (mod q)` folds `x = h 2^B + l` to `l + h 2^K - h`, which is nonnegative and below
//!   `2^B + h 2^K`. For `B = 60, K = 18`: `a w < 2^122`, then below `2^80 + 2^60`, then below `2^60 + 2^39 < 2q`. For
//!   `B = 30, K = 18`: `a w < 2^62`, then below `2^50 + 2^30`, below `2^39`, below `2^30 + 2^27 < 2q`.
//! * Shoup: `b = 4q`, `a < 8q < 2^61`. The high word of a product of two words is computed from three products of
//!   halves, whose low words are dropped one by one. It is at most the product over `2^64`, and less than 3 below it.
//!   So `w'`, computed from `w` and `floor(2^128 / q)`, is less than `3 + w / 2^64 < 4` below `w 2^64 / q`. The
//!   quotient of `a w`, computed from `a` and `w'`, is less than `3 + 4 a / 2^64 < 4` below `a w / q`, so the remainder
//!   is below `4q`.

use crate::Word;

/// Arithmetic modulo one prime on words below `2b`, see the module.
pub trait Reduction: Copy + Send + Sync {
    /// A word for a residue.
    type Word: Word;
    /// A residue in the form of a second factor.
    type Factor: Copy + Send + Sync;
    /// `b / q`.
    const LAZY: u64;
    /// Bits of the largest modulus.
    const BITS: u32;

    /// The arithmetic of a modulus; `None` if this reduction does not support it.
    fn new(modulus: u64) -> Option<Self>;
    /// Prepares a canonical residue as a second factor.
    fn prepare(&self, value: Self::Word) -> Self::Factor;
    /// The product of two prepared factors.
    fn compose(&self, one: Self::Factor, other: Self::Factor) -> Self::Factor;
    /// `a` times a prepared factor, below `b`.
    fn mul_lazy(&self, a: Self::Word, factor: Self::Factor) -> Self::Word;
    /// Reduces a word below `2b` to below `b`.
    fn halve(&self, a: Self::Word) -> Self::Word;
    /// Reduces a word below `b` to canonical.
    fn canonical(&self, a: Self::Word) -> Self::Word;
    /// The sum, below `2b` for operands below `b`.
    fn sum(&self, one: Self::Word, other: Self::Word) -> Self::Word;
    /// The difference and `b`, below `2b` for operands below `b`.
    fn difference(&self, one: Self::Word, other: Self::Word) -> Self::Word;

    /// Does the forward transform in a way that is faster on this machine than layer by layer, if there is one; returns
    /// whether it did. `factor(i)` is the prepared factor `i` of the transform.
    #[inline(always)]
    fn forward(&self, _limb: &mut [Self::Word], _factor: impl Fn(usize) -> Self::Factor) -> bool {
        false
    }

    /// `a b` for canonical residues, canonical.
    #[inline(always)]
    fn mul(&self, a: Self::Word, b: Self::Word) -> Self::Word {
        self.canonical(self.mul_lazy(a, self.prepare(b)))
    }
}

/// Any odd modulus of the width, in Montgomery's form.
#[derive(Debug, Clone, Copy)]
pub struct Montgomery<W> {
    modulus: W,
    /// `-q^-1 mod R`.
    negated_inverse: W,
    /// `R^2 mod q`.
    square: W,
}

/// `2^30 - 2^18 + 1`.
#[derive(Debug, Clone, Copy)]
pub struct ShiftAdd30;

/// `2^60 - 2^18 + 1`, the prime of the Boosted-Deflation paper.
#[derive(Debug, Clone, Copy)]
pub struct ShiftAdd60;

/// Five 64-bit products: the quotient by the modulus, less than 4 too small, and the remainder.
#[derive(Debug, Clone, Copy)]
pub struct Shoup {
    modulus: u64,
    /// `floor(2^128 / q)`, its high and its low word.
    reciprocal: [u64; 2],
}

/// A factor with about `2^64` times its quotient by the modulus.
#[derive(Debug, Clone, Copy)]
pub struct ShoupQuotient {
    value: u64,
    quotient: u64,
}

/// The operations that are equal for every reduction whose words of type `$word` are their own factors, with modulus
/// `$q`.
macro_rules! additive {
    ($word:ty, |$self:ident| $q:expr) => {
        const LAZY: u64 = 2;

        #[inline(always)]
        fn compose(&$self, one: $word, other: $word) -> $word {
            $self.canonical($self.mul_lazy(one, other))
        }

        #[inline(always)]
        fn halve(&$self, a: $word) -> $word {
            debug_assert!(a < 4 * $q);
            a.min(a.wrapping_sub(2 * $q))
        }

        #[inline(always)]
        fn canonical(&$self, a: $word) -> $word {
            debug_assert!(a < 2 * $q);
            a.min(a.wrapping_sub($q))
        }

        #[inline(always)]
        fn sum(&$self, a: $word, b: $word) -> $word {
            debug_assert!(a.max(b) < 2 * $q);
            a + b
        }

        #[inline(always)]
        fn difference(&$self, a: $word, b: $word) -> $word {
            debug_assert!(a.max(b) < 2 * $q);
            a + 2 * $q - b
        }
    };
}

macro_rules! montgomery {
    ($word:ty, $wide:ty, $max_bits:expr $(, $own:item)?) => {
        impl Reduction for Montgomery<$word> {
            type Word = $word;
            type Factor = $word;
            const BITS: u32 = $max_bits;

            fn new(modulus: u64) -> Option<Self> {
                if modulus < 3 || modulus % 2 == 0 || modulus >> Self::BITS != 0 {
                    return None;
                }
                let q = modulus as $word;
                // Newton: an odd number is its own inverse modulo 8, each step doubles the bits.
                let inverse =
                    (0..5).fold(q, |x, _| x.wrapping_mul((2 as $word).wrapping_sub(q.wrapping_mul(x))));
                let r = ((1 as $wide) << <$word>::BITS) % q as $wide;
                Some(Self {
                    modulus: q,
                    negated_inverse: inverse.wrapping_neg(),
                    square: (r * r % q as $wide) as $word,
                })
            }

            #[inline(always)]
            fn prepare(&self, value: $word) -> $word {
                self.canonical(self.mul_lazy(value, self.square))
            }

            #[inline(always)]
            fn mul_lazy(&self, a: $word, factor: $word) -> $word {
                debug_assert!(a < 4 * self.modulus && factor < self.modulus);
                let product = a as $wide * factor as $wide;
                let k = (product as $word).wrapping_mul(self.negated_inverse);
                ((product + k as $wide * self.modulus as $wide) >> <$word>::BITS) as $word
            }

            additive!($word, |self| self.modulus);

            $($own)?
        }
    };
}

// `4 q^2 + R q < 2 R q` must fit the product's type: `q < 2^30` and `R = 2^32` give `2^63`, `q < 2^61` gives `2^126`.
montgomery!(
    u32,
    u64,
    30,
    #[cfg(target_arch = "arm")]
    #[inline(always)]
    fn forward(&self, limb: &mut [u32], factor: impl Fn(usize) -> u32) -> bool {
        crate::engine::signed::Signed::new(self.modulus, self.negated_inverse).forward(limb, factor);
        true
    }
);
montgomery!(u64, u128, 61);

#[cfg(test)]
impl Montgomery<u32> {
    /// `-q^-1 mod R`.
    pub(crate) fn negated_inverse(&self) -> u32 {
        self.negated_inverse
    }
}

impl ShiftAdd30 {
    /// The modulus.
    pub const MODULUS: u64 = (1 << 30) - (1 << 18) + 1;
    const Q: u32 = Self::MODULUS as u32;
}

impl Reduction for ShiftAdd30 {
    type Word = u32;
    type Factor = u32;
    const BITS: u32 = 30;

    fn new(modulus: u64) -> Option<Self> {
        (modulus == Self::MODULUS).then_some(Self)
    }

    #[inline(always)]
    fn prepare(&self, value: u32) -> u32 {
        value
    }

    #[inline(always)]
    fn mul_lazy(&self, a: u32, factor: u32) -> u32 {
        debug_assert!(a < 4 * Self::Q && factor < Self::Q);
        const MASK: u64 = (1 << 30) - 1;
        let fold = |x: u64| {
            let high = x >> 30;
            (x & MASK) + (high << 18) - high
        };
        fold(fold(fold(u64::from(a) * u64::from(factor)))) as u32
    }

    additive!(u32, |self| Self::Q);
}

impl ShiftAdd60 {
    /// The modulus.
    pub const MODULUS: u64 = (1 << 60) - (1 << 18) + 1;
}

impl Reduction for ShiftAdd60 {
    type Word = u64;
    type Factor = u64;
    const BITS: u32 = 60;

    fn new(modulus: u64) -> Option<Self> {
        (modulus == Self::MODULUS).then_some(Self)
    }

    #[inline(always)]
    fn prepare(&self, value: u64) -> u64 {
        value
    }

    #[inline(always)]
    fn mul_lazy(&self, a: u64, factor: u64) -> u64 {
        debug_assert!(a < 4 * Self::MODULUS && factor < Self::MODULUS);
        const MASK: u64 = (1 << 60) - 1;
        let product = u128::from(a) * u128::from(factor);
        // Quotients by 2^60 fit a word: below 2^62, then below 2^21.
        let high = (product >> 60) as u64;
        let once = (u128::from(high) << 18) + u128::from(product as u64 & MASK) - u128::from(high);
        let high = (once >> 60) as u64;
        (once as u64 & MASK) + (high << 18) - high
    }

    additive!(u64, |self| Self::MODULUS);
}

impl Shoup {
    /// The high word of `a b`, or up to two less.
    #[inline(always)]
    fn high(a: u64, b: u64) -> u64 {
        const LOW: u64 = u32::MAX as u64;
        let (a1, a0, b1, b0) = (a >> 32, a & LOW, b >> 32, b & LOW);
        a1 * b1 + ((a1 * b0) >> 32) + ((a0 * b1) >> 32)
    }
}

impl Reduction for Shoup {
    type Word = u64;
    type Factor = ShoupQuotient;
    const LAZY: u64 = 4;
    const BITS: u32 = 58;

    fn new(modulus: u64) -> Option<Self> {
        if modulus < 3 || modulus.is_multiple_of(2) || modulus >> Self::BITS != 0 {
            return None;
        }
        // It does not divide 2^128, so floor((2^128 - 1) / q) is the same.
        let reciprocal = u128::MAX / u128::from(modulus);
        Some(Self { modulus, reciprocal: [(reciprocal >> 64) as u64, reciprocal as u64] })
    }

    #[inline(always)]
    fn prepare(&self, value: u64) -> ShoupQuotient {
        debug_assert!(value < self.modulus);
        let quotient = value * self.reciprocal[0] + Self::high(value, self.reciprocal[1]);
        ShoupQuotient { value, quotient }
    }

    #[inline(always)]
    fn compose(&self, one: ShoupQuotient, other: ShoupQuotient) -> ShoupQuotient {
        self.prepare(self.canonical(self.mul_lazy(one.value, other)))
    }

    #[inline(always)]
    fn mul_lazy(&self, a: u64, factor: ShoupQuotient) -> u64 {
        debug_assert!(a < 8 * self.modulus);
        let quotient = Self::high(a, factor.quotient);
        a.wrapping_mul(factor.value).wrapping_sub(quotient.wrapping_mul(self.modulus))
    }

    #[inline(always)]
    fn halve(&self, a: u64) -> u64 {
        debug_assert!(a < 8 * self.modulus);
        a.min(a.wrapping_sub(4 * self.modulus))
    }

    #[inline(always)]
    fn canonical(&self, a: u64) -> u64 {
        debug_assert!(a < 4 * self.modulus);
        let a = a.min(a.wrapping_sub(2 * self.modulus));
        a.min(a.wrapping_sub(self.modulus))
    }

    #[inline(always)]
    fn sum(&self, one: u64, other: u64) -> u64 {
        debug_assert!(one.max(other) < 4 * self.modulus);
        one + other
    }

    #[inline(always)]
    fn difference(&self, one: u64, other: u64) -> u64 {
        debug_assert!(one.max(other) < 4 * self.modulus);
        one + 4 * self.modulus - other
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use keywright_frame::packing::Residue;

    fn samples(q: u64) -> impl Iterator<Item = u64> {
        let mut state = q;
        let random = core::iter::from_fn(move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            Some((state >> 3).wrapping_mul(0x9E37_79B9_7F4A_7C15))
        });
        let edges = [0, 1, 2, q / 2, q - 1, q, 2 * q - 1, 2 * q, 4 * q - 1, 4 * q, 8 * q - 1];
        edges.into_iter().chain(random.take(300))
    }

    fn agrees_with_division<R: Reduction>(q: u64) {
        let r = R::new(q).unwrap();
        for a in samples(q).map(|x| x % (2 * R::LAZY * q)) {
            for b in samples(q).map(|x| x % q) {
                let expected = (u128::from(a) * u128::from(b) % u128::from(q)) as u64;
                let factor = r.prepare(R::Word::from_u64(b));
                let lazy = r.mul_lazy(R::Word::from_u64(a), factor);
                assert!(lazy.to_u64() < R::LAZY * q, "{a} * {b} mod {q} gives {}", lazy.to_u64());
                assert_eq!(r.canonical(lazy).to_u64(), expected, "{a} * {b} mod {q}");
            }
        }
    }

    #[test]
    fn products_agree_with_division() {
        for q in [3, 257, 12289, (1 << 30) - 35, ShiftAdd30::MODULUS] {
            agrees_with_division::<Montgomery<u32>>(q);
        }
        for q in [3, 257, ShiftAdd30::MODULUS, (1 << 50) - 27, ShiftAdd60::MODULUS, (1 << 61) - 1] {
            agrees_with_division::<Montgomery<u64>>(q);
        }
        for q in
            [3, 5, 257, (1 << 30) - 35, ShiftAdd30::MODULUS, (1 << 50) - 27, (1 << 57) + 1, (1 << 58) - 1]
        {
            agrees_with_division::<Shoup>(q);
        }
        agrees_with_division::<ShiftAdd30>(ShiftAdd30::MODULUS);
        agrees_with_division::<ShiftAdd60>(ShiftAdd60::MODULUS);
    }

    #[test]
    fn other_moduli_are_refused() {
        assert!(Montgomery::<u32>::new(1 << 30 | 1).is_none());
        assert!(Montgomery::<u64>::new(1 << 61 | 1).is_none());
        assert!(Montgomery::<u64>::new(1 << 40).is_none());
        assert!(ShiftAdd30::new(ShiftAdd60::MODULUS).is_none());
        assert!(ShiftAdd60::new(ShiftAdd60::MODULUS + 2).is_none());
        assert!([1, 4, 1 << 58 | 1].iter().all(|&q| Shoup::new(q).is_none()));
    }
}
