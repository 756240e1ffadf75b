//! Numbers to integer coefficients and back, without floating point.
//!
//! A number is an integer `x` in units of `2^-f`. Its coefficient is `round(x D / 2^f)` for an integer scale `D`, with
//! an error of at most `1/2`, so the value has an error of at most `2^-1 / D`. A decrypted coefficient `c` of scale
//! `S = m 2^e`, `2^52 <= m < 2^53` (an IEEE double is such a pair), represents `c 2^f / S = c 2^(f - e) / m`. With
//! `v = floor(2^115 / m)`, which is at most `2^63`, the error of `c v 2^(f - e - 115)` is less than
//! `|c| 2^(f - e - 115)`, below `2^-2` units for `|c| < 2^61` if `f <= e + 52`; then it is rounded.
//!
//! Modulo a prime of `w <= 30` bits a word suffices: `|c| < 2^(w - 1)`, `v = floor(2^(115 - w) / m) <= 2^(63 - w)`, so
//! `|c v| < 2^62`. The error of `c v 2^(f - e - 115 + w)` is less than `2^(w - 1) 2^(f - e - 115 + w)`, at most
//! `2^(2w - 64)` units: below `2^-3`.

use keywright_ring::sampling::GAUSSIAN_BOUND;
use zeroize::Zeroizing;

use crate::error::in_range;
use crate::{ClientError, Word};

/// Numbers to encrypt, in units of the last place: a sensor's own words, without a copy.
pub trait Numbers {
    /// The count of numbers.
    fn count(&self) -> usize;
    /// Number `index`.
    fn at(&self, index: usize) -> i64;
    /// Numbers `index..index + 8`.
    #[inline(always)]
    fn eight(&self, index: usize) -> [i64; 8] {
        core::array::from_fn(|i| self.at(index + i))
    }
}

macro_rules! numbers {
    ($($t:ty)*) => {$(
        impl Numbers for [$t] {
            fn count(&self) -> usize {
                self.len()
            }

            #[inline(always)]
            fn at(&self, index: usize) -> i64 {
                self[index].into()
            }

            #[inline(always)]
            fn eight(&self, index: usize) -> [i64; 8] {
                let eight = &self[index..index + 8];
                core::array::from_fn(|i| eight[i].into())
            }
        }
    )*};
}

numbers!(i8 u8 i16 u16 i32 u32 i64);

/// Maps numbers to coefficients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Number `j` in coefficient `j`, for programs that use coefficients.
    Coefficients,
    /// In the order that `coeffs_to_slots` turns into slots in order. Number `j < n = 2^log_slots`, the real part of
    /// slot `j`, is in coefficient `brv(j) N/2n`. If `complex`, number `n + j`, its imaginary part, is in coefficient
    /// `N/2 + brv(j) N/2n`.
    Slots {
        /// `log2` of the number of slots.
        log_slots: u32,
        /// Whether imaginary parts are numbers too.
        complex: bool,
    },
}

impl Layout {
    /// The most numbers in a ciphertext.
    pub fn capacity(self, log_n: u32) -> usize {
        match self {
            Self::Coefficients => 1 << log_n,
            Self::Slots { log_slots, complex } => 1 << (log_slots + u32::from(complex)),
        }
    }

    /// The coefficient of number `index`, which is below the capacity.
    pub fn position(self, log_n: u32, index: usize) -> usize {
        let Self::Slots { log_slots, .. } = self else { return index };
        let (part, slot) = (index >> log_slots, index & ((1 << log_slots) - 1));
        (part << (log_n - 1)) + (reversed(slot, log_slots) << (log_n - 1 - log_slots))
    }

    /// The number in a coefficient, if there is one.
    pub fn index(self, log_n: u32, position: usize) -> Option<usize> {
        let Self::Slots { log_slots, complex } = self else { return Some(position) };
        let (part, place) = (position >> (log_n - 1), position & ((1 << (log_n - 1)) - 1));
        let gap = log_n - 1 - log_slots;
        if place & ((1 << gap) - 1) != 0 || (part == 1 && !complex) {
            return None;
        }
        Some((part << log_slots) + reversed(place >> gap, log_slots))
    }
}

/// Three bits, reversed: its own inverse.
const REVERSED: [usize; 8] = [0, 4, 2, 6, 1, 5, 3, 7];

/// Consecutive numbers of a layout: those of all real parts, or of all imaginary ones.
struct Part {
    /// The first number, and the first coefficient.
    first: usize,
    place: usize,
    count: usize,
    /// Whether it is full, with neighbouring coefficients. It is then visited in squares of eight runs of eight numbers
    /// whose coefficients are eight runs too, each run a cache line.
    squares: bool,
}

impl Layout {
    fn parts(self, log_n: u32, count: usize) -> [Part; 2] {
        let Self::Slots { log_slots, .. } = self else {
            return [count, 0].map(|count| Part { first: 0, place: 0, count, squares: false });
        };
        [0, 1].map(|part| {
            let first = part << log_slots;
            let count = count.saturating_sub(first).min(1 << log_slots);
            let squares = count == 1 << log_slots && log_slots >= 6 && log_slots == log_n - 1;
            Part { first, place: part << (log_n - 1), count, squares }
        })
    }

    /// The squares of a part: the start of their runs of numbers, and their runs of coefficients. Number `j` of run `i`
    /// is coefficient `REVERSED[i]` of run `REVERSED[j]`: a slot is `i`, `middle`, `j` of 3, `log_slots - 6` and 3
    /// bits, and its place is the same reversed.
    fn squares(part: &Part) -> impl Iterator<Item = ([usize; 8], [usize; 8])> {
        let log_slots = part.count.trailing_zeros();
        let (first, place, top) = (part.first, part.place, log_slots - 3);
        (0..1usize << (log_slots - 6)).map(move |middle| {
            let runs = |start: usize| core::array::from_fn(|run| start + (run << top));
            (runs(first + (middle << 3)), runs(place + (reversed(middle, log_slots - 6) << 3)))
        })
    }

    /// Puts numbers into their coefficients: `put` computes the new word from the old one and the number.
    #[inline(always)]
    pub(crate) fn write<W: Word, T: Numbers + ?Sized>(
        self,
        log_n: u32,
        numbers: &T,
        limb: &mut [W],
        put: impl Fn(W, i64) -> W,
    ) {
        for part in self.parts(log_n, numbers.count()) {
            if !part.squares {
                for index in part.first..part.first + part.count {
                    let place = self.position(log_n, index);
                    limb[place] = put(limb[place], numbers.at(index));
                }
                continue;
            }
            let runs = limb.as_chunks_mut::<8>().0;
            let mut square = Zeroizing::new([[0; 8]; 8]);
            for (numbered, placed) in Self::squares(&part) {
                for (eight, run) in square.iter_mut().zip(numbered) {
                    *eight = numbers.eight(run);
                }
                for j in 0..8 {
                    let run = &mut runs[placed[j] / 8];
                    *run = core::array::from_fn(|i| put(run[i], square[REVERSED[i]][REVERSED[j]]));
                }
            }
        }
    }

    /// Takes numbers from their coefficients.
    #[inline(always)]
    pub(crate) fn read<W: Word>(
        self,
        log_n: u32,
        limb: &[W],
        numbers: &mut [i64],
        number: impl Fn(W) -> i64,
    ) {
        for part in self.parts(log_n, numbers.len()) {
            if !part.squares {
                for index in part.first..part.first + part.count {
                    numbers[index] = number(limb[self.position(log_n, index)]);
                }
                continue;
            }
            let (words, runs) = (limb.as_chunks::<8>().0, numbers.as_chunks_mut::<8>().0);
            for (numbered, placed) in Self::squares(&part) {
                let square = placed.map(|run| &words[run / 8]);
                for i in 0..8 {
                    let place = REVERSED[i];
                    runs[numbered[i] / 8] = core::array::from_fn(|j| number(square[REVERSED[j]][place]));
                }
            }
        }
    }
}

fn reversed(value: usize, bits: u32) -> usize {
    if bits == 0 { 0 } else { value.reverse_bits() >> (usize::BITS - bits) }
}

/// The fixed-point format of a client's numbers.
///
/// # Invariant
/// A coefficient of a legal number is at most `q_0 / 4` in absolute value, and below `q_0 / 2` with the error of
/// encryption.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FixedPoint {
    scale: u64,
    fraction_bits: u32,
    max: i64,
    /// `D / 2^t` and `f - t`, for the largest `t` that leaves both integers.
    reduced: (u64, u32),
    /// Whether the product of a legal number and the reduced scale, plus half a unit, is below `2^63`.
    narrow: bool,
}

impl FixedPoint {
    /// The format of numbers of at most `max` units of `2^-fraction_bits`, at an integer scale.
    ///
    /// # Errors
    /// [`ClientError::Range`] if `max` is not positive, or its coefficient exceeds a quarter of the modulus.
    pub fn new(scale: u64, fraction_bits: u32, max: i64, modulus: u64) -> Result<Self, ClientError> {
        in_range("scale of the client's numbers", scale, 1, modulus / 4)?;
        // More bits would exceed the precision of the scale.
        let log_scale = u64::from(63 - scale.leading_zeros());
        in_range("fraction bits of the client's numbers", fraction_bits.into(), 0, log_scale)?;
        in_range("smallest prime of a client", modulus, 8 * GAUSSIAN_BOUND as u64, u64::MAX)?;
        let largest = (u128::from(modulus / 4) << fraction_bits) / u128::from(scale);
        in_range("largest number of a client", max as u64, 1, largest.min(i64::MAX as u128) as u64)?;
        let common = scale.trailing_zeros().min(fraction_bits);
        let reduced = (scale >> common, fraction_bits - common);
        let half = (1u128 << reduced.1) >> 1;
        let narrow = (max as u128 * u128::from(reduced.0) + half) >> 63 == 0;
        Ok(Self { scale, fraction_bits, max, reduced, narrow })
    }

    /// `D`: the coefficient of the number 1.
    pub fn scale(&self) -> u64 {
        self.scale
    }

    /// `f`: bits after the point.
    pub fn fraction_bits(&self) -> u32 {
        self.fraction_bits
    }

    /// Largest absolute value of a number, in units of the last place.
    pub fn max(&self) -> i64 {
        self.max
    }

    /// The coefficient of a legal number.
    #[inline(always)]
    pub fn coefficient(&self, number: i64) -> i64 {
        let (scale, shift) = self.reduced;
        if shift == 0 {
            return number * scale as i64;
        }
        let half = (1i64 << shift) >> 1;
        if self.narrow {
            return (number * scale as i64 + half) >> shift;
        }
        ((i128::from(number) * i128::from(scale) + i128::from(half)) >> shift) as i64
    }

    /// Refuses numbers out of range. Its time depends only on their count, unless one is refused.
    ///
    /// # Errors
    /// [`ClientError::NumberRange`].
    pub fn require_legal<T: Numbers + ?Sized>(&self, numbers: &T) -> Result<(), ClientError> {
        // A legal number has no sign in `max - x` or `max + x`; as max < 2^59, any other number has one, wrapped or
        // not.
        let signs = |x: i64| self.max.wrapping_sub(x) | self.max.wrapping_add(x);
        if (0..numbers.count()).fold(0, |all, i| all | signs(numbers.at(i))) >= 0 {
            return Ok(());
        }
        let outside = |x: i64| x > self.max || x < -self.max;
        let index = (0..numbers.count()).position(|i| outside(numbers.at(i))).unwrap_or(0);
        Err(ClientError::NumberRange { index, max: self.max, fraction_bits: self.fraction_bits })
    }
}

/// The inverse of a scale that is given as an IEEE double, in integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Descale {
    /// `v`.
    inverse: u64,
    /// The divisor of a product with it.
    shift: u32,
    /// Whether products fit a word.
    narrow: bool,
}

impl Descale {
    /// From the bits of a double, for numbers with `fraction_bits` after the point, of coefficients modulo a prime of
    /// `width` bits.
    ///
    /// # Errors
    /// [`ClientError::Range`] unless it is normal, positive, below `2^61`, and no fraction bit is below the scale's
    /// last bit.
    /// last bit.
    pub fn new(scale_bits: u64, fraction_bits: u32, width: u32) -> Result<Self, ClientError> {
        let biased = scale_bits >> 52;
        // log2 of the scale is between biased - 1023 and one more.
        in_range(
            "exponent of the scale of a ciphertext",
            biased,
            1023 + u64::from(fraction_bits),
            1023 + 60,
        )?;
        let mantissa = scale_bits & ((1 << 52) - 1) | 1 << 52;
        // e - f = biased - 1075 - f; the divisor is at least 2^63, or 2^(63 - width).
        let of = |log: u32, narrow| Self {
            inverse: ((1u128 << log) / u128::from(mantissa)) as u64,
            shift: (u64::from(log) + biased - 1075) as u32 - fraction_bits,
            narrow,
        };
        let word = of(115 - width.clamp(12, 61), true);
        // Half of the divisor is added to a product below 2^62.
        Ok(if width <= 30 && word.shift <= 62 { word } else { of(115, false) })
    }

    /// The number of a coefficient.
    #[inline(always)]
    pub fn number(&self, coefficient: i64) -> i64 {
        if self.narrow {
            return (coefficient * self.inverse as i64 + (1i64 << (self.shift - 1))) >> self.shift;
        }
        let product = i128::from(coefficient) * i128::from(self.inverse) + (1i128 << (self.shift - 1));
        // A product is below 2^124.
        ((product >> 63) as i64) >> (self.shift - 63)
    }
}

/// The bits of the double that equals an integer of at most 53 significant bits.
pub(crate) const fn double_bits(value: u64) -> u64 {
    let exponent = 63 - value.leading_zeros();
    let mantissa = if exponent <= 52 { value << (52 - exponent) } else { value >> (exponent - 52) };
    (1023 + exponent as u64) << 52 | mantissa & ((1 << 52) - 1)
}

#[cfg(test)]
#[expect(clippy::disallowed_types, reason = "compared with what the platform's doubles are")]
mod tests {
    use super::*;

    #[test]
    fn positions_and_indices_are_inverse() {
        for log_n in [10, 12] {
            let layouts = (0..log_n)
                .flat_map(|log_slots| [false, true].map(|complex| Layout::Slots { log_slots, complex }))
                .chain([Layout::Coefficients]);
            for layout in layouts {
                let mut used = 0;
                for position in 0..1 << log_n {
                    if let Some(index) = layout.index(log_n, position) {
                        assert!(index < layout.capacity(log_n));
                        assert_eq!(layout.position(log_n, index), position, "{layout:?}");
                        used += 1;
                    }
                }
                assert_eq!(used, layout.capacity(log_n), "{layout:?}");
            }
        }
    }

    #[test]
    fn numbers_are_written_to_and_read_from_their_coefficients() {
        for log_slots in [0, 3, 6, 8, 11] {
            for layout in [
                Layout::Slots { log_slots, complex: false },
                Layout::Slots { log_slots, complex: true },
                Layout::Coefficients,
            ] {
                let capacity = layout.capacity(12);
                for count in [0, 1, capacity / 2, capacity - 1, capacity] {
                    let numbers: alloc::vec::Vec<i64> = (1..=count as i64).collect();
                    let mut limb = alloc::vec![1u64 << 40; 1 << 12];
                    layout.write(12, &numbers[..], &mut limb, |word, number| word + number as u64);
                    let mut expected = alloc::vec![1u64 << 40; 1 << 12];
                    (0..count).for_each(|i| expected[layout.position(12, i)] += numbers[i] as u64);
                    assert_eq!(limb, expected, "{layout:?}, {count} numbers");
                    let mut seen = alloc::vec![0; count];
                    layout.read(12, &limb, &mut seen, |word| word as i64 - (1 << 40));
                    assert_eq!(seen, numbers, "{layout:?}");
                }
            }
        }
    }

    /// Against exact division: within three quarters of a unit, and exact if the quotient is an integer.
    #[test]
    fn descaling_is_division() {
        for width in [13, 20, 30, 31, 50, 60] {
            for (scale, f) in
                [(1u64 << 12, 12), (4097, 3), (1 << (width - 1), 0), ((1 << (width - 2)) + 1, width - 4)]
            {
                let descale = Descale::new(double_bits(scale), f, width).unwrap();
                let most = (1i64 << (width - 1)) - 1;
                for c in (0..1000).map(|i| (i * 0x9E37_79B9_7F4A) % (most + 1)).chain([0, 1, most]) {
                    for c in [c, -c] {
                        let off = (i128::from(c) << f) - i128::from(descale.number(c)) * i128::from(scale);
                        assert!(4 * off.abs() <= 3 * i128::from(scale), "{c} at {scale}, {f} bits, {width}");
                    }
                }
            }
        }
    }

    #[test]
    fn integers_become_doubles() {
        for value in [1u64, 2, 3, 1 << 52, (1 << 53) - 1, 1 << 60, 0x1F_FFFF_FFFF_FFFF << 7, 12345] {
            assert_eq!(double_bits(value), (value as f64).to_bits(), "{value}");
        }
    }

    #[test]
    fn coefficients_round_and_come_back() {
        let q = (1 << 60) - (1 << 18) + 1;
        for (scale, f) in [(1 << 54, 20), ((1 << 44) - 12345, 30), (1 << 19, 8), (1000, 0)] {
            let max = (1i64 << f) * 3;
            let format = FixedPoint::new(scale, f, max, q).unwrap();
            let back = Descale::new(double_bits(scale), f, 60).unwrap();
            for x in (0..1000).map(|i| (i * 7919 - 3_000_000) % (max + 1)).chain([max, -max, 0, 1, -1]) {
                let c = format.coefficient(x);
                // |c 2^f - x D| <= 2^f / 2.
                let off = (i128::from(c) << f) - i128::from(x) * i128::from(scale);
                assert!(off.abs() <= (1 << f) / 2 + i128::from(f == 0), "{x} at {scale}");
                assert_eq!(back.number(c), x, "{x} at {scale}, {f}");
            }
        }
        // The largest coefficient of the widest prime: within a unit of exact division.
        let back = Descale::new(double_bits(1 << 54), 54, 60).unwrap();
        for c in [(1i64 << 60) - 1, -(1i64 << 60), 12_345_678_901_234_567] {
            assert!((back.number(c) - c).abs() <= 1);
        }
    }

    #[test]
    fn illegal_formats_and_numbers_are_refused() {
        let q = (1 << 30) - (1 << 18) + 1;
        assert!(FixedPoint::new(1 << 19, 8, 256, q).is_ok());
        for (scale, f, max) in
            [(0, 8, 1), (1 << 29, 8, 1), (1 << 19, 62, 1), (1 << 19, 8, 0), (1 << 19, 8, -1)]
        {
            assert!(FixedPoint::new(scale, f, max, q).is_err(), "{scale} {f} {max}");
        }
        assert!(FixedPoint::new(1 << 20, 0, 1 << 8, q).is_err());
        let format = FixedPoint::new(1 << 19, 8, 256, q).unwrap();
        assert_eq!(
            format.require_legal(&[1i64, 256, -257, 400][..]),
            Err(ClientError::NumberRange { index: 2, max: 256, fraction_bits: 8 })
        );
        assert!(format.require_legal(&[i64::MIN][..]).is_err());
        for bits in
            [0, 1 << 63, f64::NAN.to_bits(), f64::INFINITY.to_bits(), (-1f64).to_bits(), 1f64.to_bits()]
        {
            assert!(Descale::new(bits, 8, 60).is_err(), "{bits:x}");
        }
        assert!(Descale::new(2f64.powi(61).to_bits(), 0, 60).is_err());
    }
}
