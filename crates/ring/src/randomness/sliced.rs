//! Gaussian samples 32 at a time, one bit of each in a word. For 32-bit machines without vectors, where a 64-bit
//! comparison is a chain of instructions per sample.
//!
//! Words `x` of 63 bits and a threshold `c` are compared from the lowest bit on. Let `g` tell whether the bits of `x`
//! below `i` are at least those of `c`. Then the bits up to `i` are if `x_i & g` where `c_i = 1`, and if `x_i | g`
//! where `c_i = 0`: one operation per bit of 32 samples. The thresholds are constants, so they only choose between the
//! two operations. Thresholds near `2^63` begin with a run of ones, whose conjunction they share.
//!
//! Let `t_k` tell whether `x` reaches threshold `k`. Bit `j` of the number of thresholds reached is the sum modulo 2 of
//! those `t_k` for which `2^j` divides `k + 1`: thresholds ascend, so if `m` are reached, `floor(m / 2^j)` of these
//! are.
//!
//! Only the operations and, or, exclusive or and shifts by constants see a secret.

use zeroize::Zeroize;

use super::gaussian::CUMULATIVE;

/// Samples of a slice: the bits of a word.
const LANES: usize = u32::BITS as usize;
/// Bits of a word that are compared, above the sign.
const BITS: u32 = 63;
/// Bits of a magnitude.
const MAGNITUDE_BITS: usize = (usize::BITS - CUMULATIVE.len().leading_zeros()) as usize;
/// Thresholds compared at once: as many as there are registers for.
const GROUP: usize = 8;

/// Swaps the bits of `a` under `mask << shift` with those of `b` under `mask`.
#[inline(always)]
fn swap(a: u32, b: u32, shift: u32, mask: u32) -> [u32; 2] {
    let difference = (a >> shift ^ b) & mask;
    [a ^ difference << shift, b ^ difference]
}

/// The same for the halves of words.
#[inline(always)]
fn swap_halves(a: u32, b: u32) -> [u32; 2] {
    [a & 0xFFFF | b << 16, a >> 16 | b & 0xFFFF_0000]
}

/// The steps of a transposition: each swaps words with those 4, 2 or 1 further on.
#[inline(always)]
fn transpose_eight(rows: &mut [u32; 8]) {
    for (distance, mask) in [(4, 0x0F0F_0F0F), (2, 0x3333_3333), (1, 0x5555_5555)] {
        for i in 0..8 {
            if i & distance == 0 {
                [rows[i], rows[i + distance]] = swap(rows[i], rows[i + distance], distance as u32, mask);
            }
        }
    }
}

/// Bit `i` of word `j` of `planes` is bit `j` of `row(i)`.
#[inline(always)]
fn transpose(planes: &mut [u32; LANES], row: impl Fn(usize) -> u32) {
    for i in 0..8 {
        let [a, c] = swap_halves(row(i), row(i + 16));
        let [b, d] = swap_halves(row(i + 8), row(i + 24));
        [planes[i], planes[i + 8]] = swap(a, b, 8, 0x00FF_00FF);
        [planes[i + 16], planes[i + 24]] = swap(c, d, 8, 0x00FF_00FF);
    }
    planes.as_chunks_mut::<8>().0.iter_mut().for_each(transpose_eight);
}

/// Ones that a threshold begins with.
const fn leading_ones(threshold: u64) -> u32 {
    (threshold << (u64::BITS - BITS)).leading_ones()
}

/// Adds, without a carry, the reached thresholds from `FIRST` on to the magnitudes. `ones` is the conjunction of the
/// highest planes, as many as the leading ones of threshold `FIRST - GROUP`; it becomes that for `FIRST`.
#[inline(never)]
fn reach<const FIRST: usize>(planes: &[u32; 64], ones: &mut u32, magnitudes: &mut [u32; MAGNITUDE_BITS]) {
    let shared = const { leading_ones(CUMULATIVE[FIRST]) };
    let before = const { if FIRST == 0 { 0 } else { leading_ones(CUMULATIVE[FIRST - GROUP]) } };
    let mut reached = [!0; GROUP];
    macro_rules! bits {
        ($($i:literal)*) => {$(
            let (i, plane) = ($i, planes[$i + 1]);
            if i >= BITS - before {
                // Already in the conjunction.
            } else if i >= BITS - shared {
                *ones &= plane;
            } else {
                for (reached, &threshold) in reached.iter_mut().zip(&CUMULATIVE[FIRST..]) {
                    if threshold >> i & 1 == 1 {
                        *reached &= plane;
                    } else if threshold.trailing_zeros() < i {
                        *reached |= plane;
                    }
                }
            }
        )*};
    }
    bits!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40 41 42 43 44 45
        46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62);
    for (k, reached) in (FIRST..CUMULATIVE.len()).zip(reached) {
        for (j, bit) in magnitudes.iter_mut().enumerate() {
            if (k + 1).is_multiple_of(1 << j) {
                *bit ^= reached & *ones;
            }
        }
    }
}

/// The samples of 32 words.
#[inline(never)]
fn slice(words: &[u64; LANES], planes: &mut [u32; 64], out: &mut [i64; LANES]) {
    if let ([low, high], []) = planes.as_chunks_mut::<LANES>() {
        transpose(low, |i| words[i] as u32);
        transpose(high, |i| (words[i] >> 32) as u32);
    }
    let (mut ones, mut magnitudes) = (!0, [0; MAGNITUDE_BITS]);
    reach::<0>(planes, &mut ones, &mut magnitudes);
    reach::<GROUP>(planes, &mut ones, &mut magnitudes);
    reach::<{ 2 * GROUP }>(planes, &mut ones, &mut magnitudes);
    reach::<{ 3 * GROUP }>(planes, &mut ones, &mut magnitudes);
    // Two's complement for set signs: inverted, plus one.
    let sign = planes[0];
    let (mut carry, mut bytes) = (sign, [0; 8]);
    for (byte, magnitude) in bytes.iter_mut().zip(magnitudes) {
        let inverted = magnitude ^ sign;
        *byte = inverted ^ carry;
        carry &= inverted;
    }
    bytes[MAGNITUDE_BITS..].fill(sign ^ carry);
    transpose_eight(&mut bytes);
    for (i, samples) in bytes.iter().enumerate() {
        for (j, &byte) in samples.to_le_bytes().iter().enumerate() {
            out[8 * j + i] = byte.cast_signed().into();
        }
    }
}

/// The same result as [`super::gaussian::samples`].
pub(crate) fn samples(words: &[u64], out: &mut [i64]) {
    let mut planes = [0; 64];
    let (whole, rest) = words.as_chunks();
    let (samples, samples_rest) = out.split_at_mut(words.len() - rest.len());
    for (words, samples) in whole.iter().zip(samples.as_chunks_mut().0) {
        slice(words, &mut planes, samples);
    }
    if !rest.is_empty() {
        let (mut words, mut samples) = ([0; LANES], [0; LANES]);
        words[..rest.len()].copy_from_slice(rest);
        slice(&words, &mut planes, &mut samples);
        samples_rest.copy_from_slice(&samples[..rest.len()]);
        words.zeroize();
        samples.zeroize();
    }
    planes.zeroize();
}

const _: () = assert!(CUMULATIVE.len() <= 4 * GROUP);

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use zeroize::Zeroizing;

    use super::*;
    use crate::randomness::gaussian;
    use crate::sampling::SecretRng;

    /// Random words and those around every threshold, for every length of the last slice.
    #[test]
    fn samples_are_those_of_the_definition() {
        let mut rng = SecretRng::from_entropy(&Zeroizing::new([7; 32]));
        let mut words = vec![0; 1 << 14];
        rng.fill_words(&mut words);
        let edges: Vec<u64> = CUMULATIVE
            .iter()
            .flat_map(|&c| [c - 1, c, c + 1])
            .chain([0, 1, (1 << 63) - 1])
            .flat_map(|x| [2 * x, 2 * x + 1])
            .collect();
        for (i, &edge) in edges.iter().enumerate() {
            // Neighbours are random: no lane affects another.
            words[3 * i] = edge;
        }
        let mut expected = vec![0; words.len()];
        gaussian::samples(&words, &mut expected);
        assert!(expected.contains(&gaussian::GAUSSIAN_BOUND));
        for length in (0..100).chain([words.len()]) {
            let mut seen = vec![i64::MAX; length];
            samples(&words[..length], &mut seen);
            assert_eq!(seen, expected[..length], "{length} words");
        }
    }
}
