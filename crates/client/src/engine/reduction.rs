//! Multiplication modulo one prime in one word, without a table of quotients.
//!
//! [`Montgomery`] serves every odd modulus of its width. [`ShiftAdd30`] and [`ShiftAdd60`] serve `2^30 - 2^18 + 1` and
//! `2^60 - 2^18 + 1`, both 1 modulo `2^18`, by shifts and additions. Results are residues, so the same whichever computes.
//!
//! # Ranges
//! Let `q < 2^30` in a word of 32 bits (`R = 2^32`), or `q < 2^61` in one of 64 (`R = 2^64`), so `4q <= R` in both.
//! [`Reduction::mul_lazy`] takes `a < 4q` and a prepared factor `w < q` and gives less than `2q`.
//!
//! * Montgomery: `w = c R mod q`; with `k = -a w q^-1 mod R`, `(a w + k q) / R < (4 q^2 + R q) / R <= 2q`.
//! * Shift and add: `2^B = 2^K - 1 (mod q)` folds `x = h 2^B + l` to `l + h 2^K - h`, which is not negative and below
//!   `2^B + h 2^K`. For `B = 60, K = 18`: `a w < 2^122`, then below `2^80 + 2^60`, then below `2^60 + 2^39 < 2q`. For
//!   `B = 30, K = 18`: `a w < 2^62`, then below `2^50 + 2^30`, below `2^39`, below `2^30 + 2^27 < 2q`.

use crate::Word;

/// Arithmetic modulo one prime on words below `4q`, see the module.
pub trait Reduction: Copy + Send + Sync {
    /// Holds a residue.
    type Word: Word;

    /// The arithmetic of a modulus; `None` if it is not one that this reduction serves.
    fn new(modulus: u64) -> Option<Self>;
    /// A canonical residue as a second factor.
    fn prepare(&self, value: Self::Word) -> Self::Word;
    /// `a` times a prepared factor, below `2q`.
    fn mul_lazy(&self, a: Self::Word, factor: Self::Word) -> Self::Word;
    /// Below `4q` to below `2q`.
    fn halve(&self, a: Self::Word) -> Self::Word;
    /// Below `2q` to canonical.
    fn canonical(&self, a: Self::Word) -> Self::Word;
    /// `a + b`, below `4q` for operands below `2q`.
    fn sum(&self, a: Self::Word, b: Self::Word) -> Self::Word;
    /// `a - b + 2q`, below `4q` for operands below `2q`.
    fn difference(&self, a: Self::Word, b: Self::Word) -> Self::Word;

    /// The forward transform in a way that this machine does better than layer after layer, if there is one: whether it was done. `factor(i)` is factor
    /// `i` of the transform, prepared.
    #[inline(always)]
    fn forward(&self, _limb: &mut [Self::Word], _factor: impl Fn(usize) -> Self::Word) -> bool {
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

/// The operations that are the same for every reduction with words of type `$word` and modulus `$q`.
macro_rules! additive {
    ($word:ty, |$self:ident| $q:expr) => {
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

            fn new(modulus: u64) -> Option<Self> {
                if modulus < 3 || modulus % 2 == 0 || modulus >> $max_bits != 0 {
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
        [0, 1, 2, q / 2, q - 1, q, 2 * q - 1, 2 * q, 4 * q - 1].into_iter().chain(random.take(300))
    }

    fn agrees_with_division<R: Reduction>(q: u64) {
        let r = R::new(q).unwrap();
        for a in samples(q).map(|x| x % (4 * q)) {
            for b in samples(q).map(|x| x % q) {
                let wanted = (u128::from(a) * u128::from(b) % u128::from(q)) as u64;
                let factor = r.prepare(R::Word::from_u64(b));
                let lazy = r.mul_lazy(R::Word::from_u64(a), factor);
                assert!(lazy.to_u64() < 2 * q, "{a} * {b} mod {q} gives {lazy:?}");
                assert_eq!(r.canonical(lazy).to_u64(), wanted, "{a} * {b} mod {q}");
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
    }
}
