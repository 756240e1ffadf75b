//! Rounding to integers, and their residues.

use keywright_ring::Modulus;
use num_complex::Complex64;
use zeroize::Zeroize;

use super::dispatch::{Isa, dispatched};
use super::embedding::with_buffers;
use super::magnitude::{MAX_BITS, half_modulus, max_magnitude};
use super::{Embedding, EncoderError};

/// `1.5 * 2^52`: adding and subtracting it rounds a number below `2^51` to the nearest integer, ties to even.
pub(super) const ROUNDER: f64 = 6_755_399_441_055_744.0;
/// Below this bound all coefficients are words.
pub(crate) const WORD_LIMIT: f64 = (1u64 << 62) as f64;
/// From this width on a quotient estimate in `f64` is exact enough, see [`reduce_signed`].
const QUOTIENT_BITS: u32 = 20;

/// The integer coefficients of an encoded plaintext, before reduction modulo any prime.
///
/// # Invariant
/// Coefficient `i` belongs to `X^(i N / words.len())`; the others are zero. If `shifts` is empty, it is `words[i]`,
/// below `2^62` in magnitude. Otherwise it is `words[i] * 2^shifts[i]` with `|words[i]| <= 2^53`. `largest` is exactly
/// the largest magnitude.
#[derive(Clone)]
pub struct Integers {
    n: usize,
    words: Vec<i64>,
    shifts: Vec<u16>,
    largest: f64,
    isa: Isa,
}

impl Drop for Integers {
    /// The coefficients are plaintext.
    fn drop(&mut self) {
        self.words.zeroize();
        self.shifts.zeroize();
    }
}

impl std::fmt::Debug for Integers {
    /// Prints the shape only, since the coefficients are plaintext.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Integers(n = {}, coefficients = {})", self.n, self.words.len())
    }
}

impl Integers {
    /// The integer polynomial whose `2^log_slots` slots are `values * scale`, rounded. Slots after the last value are
    /// zero. Values are real or complex.
    ///
    /// # Errors
    /// [`EncoderError::SlotCount`], [`EncoderError::TooManyValues`], [`EncoderError::NotFinite`],
    /// [`EncoderError::Scale`], and [`EncoderError::TooLarge`] from about `2^980`.
    pub fn slots<V: Copy + Into<Complex64>>(
        embedding: &Embedding,
        values: &[V],
        log_slots: u32,
        scale: f64,
    ) -> Result<Self, EncoderError> {
        Self::slots_with(embedding, values, log_slots, scale, |_| {})
    }

    /// The same for real values, where `p(X) = p(1/X)` holds for the integers too: with `M = 2^(log_slots + 1)`
    /// coefficients, coefficient `M/2` is 0, and `M - i` is minus coefficient `i` for `0 < i < M/2`.
    ///
    /// # Errors
    /// As [`Self::slots`].
    pub fn real_slots(
        embedding: &Embedding,
        values: &[f64],
        log_slots: u32,
        scale: f64,
    ) -> Result<Self, EncoderError> {
        Self::slots_with(embedding, values, log_slots, scale, |coefficients| {
            let (low, high) = coefficients.split_at_mut(coefficients.len() / 2);
            high[0] = 0.0;
            high[1..].iter_mut().zip(low[1..].iter().rev()).for_each(|(high, low)| *high = -low);
        })
    }

    /// [`Self::slots`], with a change of the coefficients before they are rounded.
    fn slots_with<V: Copy + Into<Complex64>>(
        embedding: &Embedding,
        values: &[V],
        log_slots: u32,
        scale: f64,
        change: impl FnOnce(&mut [f64]),
    ) -> Result<Self, EncoderError> {
        if log_slots >= embedding.log_n() {
            return Err(EncoderError::SlotCount { log_slots, log_n: embedding.log_n() });
        }
        check_scale(scale)?;
        let slots = 1 << log_slots;
        if values.len() > slots {
            return Err(EncoderError::TooManyValues { count: values.len(), room: slots, what: "slots" });
        }
        with_buffers(2 * slots, |[first, second]| {
            let (re, im) = first.split_at_mut(slots);
            // The division is exact: the number of slots is a power of two.
            let factor = scale / slots as f64;
            for ((re, im), &value) in re.iter_mut().zip(im.iter_mut()).zip(values) {
                let value: Complex64 = value.into();
                (*re, *im) = (value.re * factor, value.im * factor);
            }
            re[values.len()..].fill(0.0);
            im[values.len()..].fill(0.0);
            if max_magnitude(embedding.isa(), first).is_above(MAX_BITS) {
                let parts = values.iter().map(|&v| v.into()).enumerate();
                return Err(refused(parts.flat_map(|(i, v)| [(i, v.re), (i, v.im)]), scale));
            }
            let coefficients = embedding.slots_to_coefficients(first, second);
            change(coefficients);
            Self::round(embedding, coefficients)
        })
    }

    /// The integer polynomial whose first coefficients are `values * scale`, rounded, and whose others are zero.
    ///
    /// # Errors
    /// [`EncoderError::TooManyValues`] for more than `N`, [`EncoderError::NotFinite`], [`EncoderError::Scale`], and
    /// [`EncoderError::TooLarge`] from `2^980`.
    pub fn coefficients(embedding: &Embedding, values: &[f64], scale: f64) -> Result<Self, EncoderError> {
        check_scale(scale)?;
        let n = 1 << embedding.log_n();
        if values.len() > n {
            return Err(EncoderError::TooManyValues { count: values.len(), room: n, what: "coefficients" });
        }
        // At its final length: growing would leave a copy behind.
        let mut scaled = Vec::with_capacity(n);
        scaled.extend(values.iter().map(|x| x * scale));
        if max_magnitude(embedding.isa(), &scaled).is_above(MAX_BITS) {
            return Err(refused(values.iter().copied().enumerate(), scale));
        }
        scaled.resize(n, 0.0);
        let rounded = Self::round(embedding, &scaled);
        scaled.zeroize();
        rounded
    }

    /// Rounds to the nearest integers, ties to even.
    fn round(embedding: &Embedding, values: &[f64]) -> Result<Self, EncoderError> {
        let isa = embedding.isa();
        let largest = max_magnitude(isa, values);
        if largest.is_above(MAX_BITS) {
            return Err(EncoderError::TooLarge {
                needed_bits: largest.0.log2() + 1.0,
                available_bits: f64::from(MAX_BITS) + 1.0,
            });
        }
        let mut words = vec![0; values.len()];
        let mut shifts = Vec::new();
        let mut largest = largest.0;
        if largest < WORD_LIMIT {
            round_words(isa, values, &mut words);
            // Rounding is monotonic: the largest value gives the largest integer.
            largest = round_word(largest) as f64;
        } else {
            shifts.resize(values.len(), 0);
            for ((word, shift), &value) in words.iter_mut().zip(&mut shifts).zip(values) {
                (*word, *shift) = mantissa_and_shift(value);
            }
        }
        Ok(Self { n: 1 << embedding.log_n(), words, shifts, largest, isa })
    }

    /// The largest magnitude of a coefficient, exact.
    pub fn largest(&self) -> f64 {
        self.largest
    }

    /// Whether every coefficient is determined by its residues modulo the product `Q` of `moduli`: below `Q/2`.
    ///
    /// # Errors
    /// [`EncoderError::TooLarge`].
    pub fn check_fits(&self, moduli: &[Modulus]) -> Result<(), EncoderError> {
        if self.largest > half_modulus(moduli) {
            return Err(EncoderError::TooLarge {
                needed_bits: self.largest.log2() + 1.0,
                available_bits: moduli.iter().map(|m| (m.value() as f64).log2()).sum(),
            });
        }
        Ok(())
    }

    /// The coefficients of `X^(i N / words.len())`, each a word, if all are below `2^62` in magnitude.
    pub fn words(&self) -> Option<&[i64]> {
        self.shifts.is_empty().then_some(&self.words[..])
    }

    /// Writes the residues modulo one prime, in coefficient form: a limb of `N` words, or of the `M` words of the
    /// subring of polynomials in `X^(N/M)` that contains the plaintext.
    ///
    /// # Panics
    /// If `limb` has another number of words.
    pub fn residues(&self, modulus: &Modulus, limb: &mut [u64]) {
        assert!(
            limb.len().is_power_of_two() && (self.words.len()..=self.n).contains(&limb.len()),
            "a limb has one word per coefficient of the ring"
        );
        if self.shifts.is_empty() {
            return spread_words(self.isa, &self.words, modulus, self.largest, limb);
        }
        let gap = limb.len() / self.words.len();
        limb.fill(0);
        let top = usize::from(self.shifts.iter().copied().max().unwrap_or(0));
        let mut power = modulus.reduce(1);
        let powers: Vec<_> = (0..=top)
            .map(|_| {
                let factor = modulus.shoup(power);
                power = modulus.add(power, power);
                factor
            })
            .collect();
        for ((&word, &shift), place) in self.words.iter().zip(&self.shifts).zip(limb.iter_mut().step_by(gap))
        {
            *place = modulus.mul_shoup(modulus.reduce_i64(word), powers[usize::from(shift)]);
        }
    }
}

fn check_scale(scale: f64) -> Result<(), EncoderError> {
    if scale.is_normal() && scale > 0.0 { Ok(()) } else { Err(EncoderError::Scale(scale)) }
}

/// The reason why values cannot be encoded: the first that is not finite, or the largest.
fn refused(parts: impl Iterator<Item = (usize, f64)> + Clone, scale: f64) -> EncoderError {
    if let Some((index, value)) = parts.clone().find(|(_, x)| !x.is_finite()) {
        return EncoderError::NotFinite { index, value };
    }
    let largest = parts.fold(0.0f64, |acc, (_, x)| acc.max(x.abs()));
    EncoderError::TooLarge {
        needed_bits: largest.log2() + scale.log2() + 1.0,
        available_bits: f64::from(MAX_BITS) + 1.0,
    }
}

/// A finite value rounded to an integer, as `word * 2^shift`, exactly, with `|word| <= 2^53`.
fn mantissa_and_shift(value: f64) -> (i64, u16) {
    let bits = value.to_bits();
    let exponent = ((bits >> 52) & 0x7FF) as u16;
    // From 2^52 on, an f64 is an integer.
    if exponent < 1023 + 52 {
        return (round_word(value), 0);
    }
    let magnitude = ((bits & ((1 << 52) - 1)) | 1 << 52) as i64;
    (if value < 0.0 { -magnitude } else { magnitude }, exponent - (1023 + 52))
}

/// The nearest integer, ties to even, of a value below `2^62`.
///
/// `value = h 2^32 + l` exactly, with `h` the nearest integer to `value / 2^32`: `|l| <= 2^31`, and as `h 2^32` is
/// even, rounding `l` to even rounds the sum to even.
#[inline(always)]
fn round_word(value: f64) -> i64 {
    const STEP: f64 = 4_294_967_296.0;
    let base = ROUNDER.to_bits() as i64;
    let high = value * (1.0 / STEP) + ROUNDER;
    let low = (value - (high - ROUNDER) * STEP) + ROUNDER;
    ((high.to_bits() as i64).wrapping_sub(base) << 32).wrapping_add((low.to_bits() as i64).wrapping_sub(base))
}

dispatched! {
    fn round_words(values: &[f64], words: &mut [i64]) {
        for (word, &value) in words.iter_mut().zip(values) {
            *word = round_word(value);
        }
    }
}

impl Embedding {
    /// The residues that [`Integers::residues`] writes for coefficients that are [`Integers::words`], of magnitude at
    /// most `largest`.
    ///
    /// # Panics
    /// If `limb` does not have the words of a subring that contains them.
    pub fn residues_of_words(&self, words: &[i64], largest: f64, modulus: &Modulus, limb: &mut [u64]) {
        assert!(
            limb.len().is_power_of_two() && (words.len()..=1 << self.log_n()).contains(&limb.len()),
            "a limb has one word per coefficient of the ring"
        );
        spread_words(self.isa(), words, modulus, largest, limb);
    }
}

/// Residues of words of magnitude at most `largest < 2^62`, at equal distances, with zeros in between.
fn spread_words(isa: Isa, words: &[i64], modulus: &Modulus, largest: f64, limb: &mut [u64]) {
    const BLOCK: usize = 256;
    if words.len() == limb.len() {
        return reduce_words(isa, words, modulus, largest, limb);
    }
    let gap = limb.len() / words.len();
    limb.fill(0);
    let mut block = [0; BLOCK];
    for (words, places) in words.chunks(BLOCK).zip(limb.chunks_mut(BLOCK * gap)) {
        let block = &mut block[..words.len()];
        reduce_words(isa, words, modulus, largest, block);
        for (&residue, place) in block.iter().zip(places.iter_mut().step_by(gap)) {
            *place = residue;
        }
    }
}

/// Residues of words of magnitude at most `largest < 2^62`.
fn reduce_words(isa: Isa, words: &[i64], modulus: &Modulus, largest: f64, out: &mut [u64]) {
    // The modulus rounds to f64 by less than half of itself.
    if largest * 2.0 < modulus.value() as f64 {
        wrap_signed(isa, words, modulus.value() as i64, out);
    } else {
        reduce_signed(isa, words, modulus, out);
    }
}

dispatched! {
    /// Residues of words of magnitude below the modulus.
    fn wrap_signed(words: &[i64], q: i64, out: &mut [u64]) {
        for (residue, &word) in out.iter_mut().zip(words) {
            *residue = (word + (q & (word >> 63))) as u64;
        }
    }
}

/// Residues of words of magnitude below `2^62`, canonical.
pub(super) fn reduce_signed(isa: Isa, words: &[i64], modulus: &Modulus, out: &mut [u64]) {
    if modulus.bits() < QUOTIENT_BITS {
        for (residue, &word) in out.iter_mut().zip(words) {
            *residue = modulus.reduce_i64(word);
        }
    } else {
        reduce_by_quotient(isa, words, modulus.value() as i64, 1.0 / modulus.value() as f64, out);
    }
}

dispatched! {
    /// For `|word| < 2^62` and `q >= 2^19`.
    ///
    /// The quotient is below `2^43`; conversion, inverse and product each err by `2^-53` of it, so the rounded estimate
    /// `k` is within `1/2 + 2^-8` of it and `word - k q` lies between `-0.51 q` and `0.51 q`.
    fn reduce_by_quotient(words: &[i64], q: i64, inverse: f64, out: &mut [u64]) {
        for (residue, &word) in out.iter_mut().zip(words) {
            let estimate = word as f64 * inverse + ROUNDER;
            let k = (estimate.to_bits() as i64).wrapping_sub(ROUNDER.to_bits() as i64);
            let rest = word.wrapping_sub(k.wrapping_mul(q));
            debug_assert!(rest.unsigned_abs() <= q as u64 / 2 + (q as u64 >> 6));
            *residue = (rest + (q & (rest >> 63))) as u64;
        }
    }
}
