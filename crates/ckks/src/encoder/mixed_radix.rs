//! Centred values of residues, without big integers.
//!
//! With `P_t = q_0 ... q_(t-1)`, every integer `x` in `-Q/2..Q/2` is
//!
//! ```text
//! x = sum_t d_t P_t,      d_t in -q_t/2..q_t/2,
//! d_t = (r_t - sum_(i<t) d_i P_i) P_t^-1 mod q_t      (Garner, 1959; balanced digits).
//! ```
//!
//! As all moduli are odd, digits in that range represent exactly the centred integers: no comparison with `Q/2` is
//! needed, and the representation is exact. A plaintext is small compared with `Q`, so all but its first digits are
//! zero. A digit is zero if `r_t` agrees with the previous digits, which takes one reduction per nonzero digit.
//!
//! The value is summed from the top, `d_0 + q_0 (d_1 + q_1 (d_2 + ...))`, in double-double. The sum of the terms below
//! `P_t` is below `P_t / 2`, so they at most halve a leading digit. Each of at most 64 steps has an error below
//! `2^-100` of the result, and the relative error of the returned `f64` is within `2^-53 + 2^-94`.

use keywright_ring::{Modulus, ShoupFactor};
use zeroize::Zeroize;

use super::dispatch::{Isa, dispatched};
use super::embedding::default_isa;
use super::fft::double_double::DoubleDouble;
use super::integers::reduce_signed;

/// Coefficients that pass through all primes at a time: their digits stay in the first-level cache.
const BLOCK: usize = 512;
/// Added to a digit to make it nonnegative.
const OFFSET: u64 = 1 << 60;

/// The constants of one prime.
struct Step {
    modulus: Modulus,
    /// `P_i mod q_t` for `i < t`.
    products: Vec<ShoupFactor>,
    /// `P_t^-1 mod q_t`.
    inverse: ShoupFactor,
}

/// The centred values of polynomial coefficients, each rounded to `f64` with a relative error below `2^-52.9`.
///
/// `limbs[t]` are residues modulo the prime `moduli[t]`, canonical and in coefficient form. A value of magnitude above
/// `2^980` may become infinite or NaN; no plaintext has such a value. Not constant-time.
///
/// # Panics
/// If there are no primes, not one limb per prime, or limbs of different lengths. The primes must be distinct.
pub fn centred(moduli: &[Modulus], limbs: &[&[u64]]) -> Vec<f64> {
    centred_with(default_isa(), moduli, limbs)
}

pub(super) fn centred_with(isa: Isa, moduli: &[Modulus], limbs: &[&[u64]]) -> Vec<f64> {
    assert!(
        !moduli.is_empty() && moduli.len() == limbs.len(),
        "{} primes, {} limbs",
        moduli.len(),
        limbs.len()
    );
    assert!(limbs.iter().all(|l| l.len() == limbs[0].len()), "limbs of different lengths");
    let radix = MixedRadix::new(moduli);
    let mut out = vec![0.0; limbs[0].len()];
    // At their largest length: growing would leave a copy behind.
    let mut digits = Digits { rows: Vec::with_capacity(moduli.len() * BLOCK), places: Vec::new() };
    for (b, out) in out.chunks_mut(BLOCK).enumerate() {
        radix.digits(isa, limbs, b * BLOCK, out.len(), &mut digits);
        radix.sum(isa, &digits, out);
    }
    out
}

/// The constants of a list of primes.
struct MixedRadix {
    steps: Vec<Step>,
}

impl MixedRadix {
    fn new(moduli: &[Modulus]) -> Self {
        let steps = moduli
            .iter()
            .enumerate()
            .map(|(t, m)| {
                let mut product = m.reduce(1);
                let mut products = Vec::with_capacity(t);
                for q in &moduli[..t] {
                    products.push(m.shoup(product));
                    product = m.mul(product, m.reduce(q.value()));
                }
                Step { modulus: *m, products, inverse: m.shoup(m.inv(product)) }
            })
            .collect();
        Self { steps }
    }

    fn digits(&self, isa: Isa, limbs: &[&[u64]], start: usize, count: usize, digits: &mut Digits) {
        let mut known = [0; BLOCK];
        let known = &mut known[..count];
        digits.rows.clear();
        digits.places.clear();
        for (t, (step, limb)) in self.steps.iter().zip(limbs).enumerate() {
            let residues = &limb[start..start + count];
            let m = &step.modulus;
            if t == 0 {
                digits.places.push(0);
                digits.rows.resize(count, 0);
                centre(isa, residues, m.value(), &mut digits.rows);
                continue;
            }
            reduce_signed(isa, digits.row(0, count), m, known);
            for k in 1..digits.places.len() {
                add_digit(m, digits.row(k, count), step.products[digits.places[k]], known);
            }
            if differ(isa, residues, known) {
                digits.places.push(t);
                let digit = |(&r, &k): (&u64, &u64)| m.centered(m.mul_shoup(m.sub(r, k), step.inverse));
                digits.rows.extend(residues.iter().zip(known.iter()).map(digit));
            }
        }
    }

    fn sum(&self, isa: Isa, digits: &Digits, out: &mut [f64]) {
        let count = out.len();
        let Some(&top) = digits.places.last() else { return };
        if top == 0 {
            return round_digits(isa, digits.row(0, count), out);
        }
        let mut tails = [0.0; BLOCK];
        let tails = &mut tails[..count];
        out.fill(0.0);
        let mut row = digits.places.len();
        for t in (0..=top).rev() {
            let q = DoubleDouble::from_i64(self.steps[t].modulus.value() as i64);
            if digits.places[row - 1] == t {
                row -= 1;
                horner(isa, q, digits.row(row, count), out, tails);
            } else {
                horner(isa, q, &[0; BLOCK][..count], out, tails);
            }
        }
    }
}

/// The nonzero digits of one block: row `k` belongs to prime `places[k]`. The first row is always present.
struct Digits {
    rows: Vec<i64>,
    places: Vec<usize>,
}

impl Drop for Digits {
    /// They are a plaintext with its error.
    fn drop(&mut self) {
        self.rows.zeroize();
    }
}

impl Digits {
    fn row(&self, k: usize, count: usize) -> &[i64] {
        &self.rows[k * count..(k + 1) * count]
    }
}

/// `known += digits * w mod q`.
fn add_digit(m: &Modulus, digits: &[i64], w: ShoupFactor, known: &mut [u64]) {
    // Digits are below 2^60 in magnitude: (d + 2^60) w - 2^60 w.
    let correction = m.neg(m.mul_shoup(OFFSET, w));
    for (k, &d) in known.iter_mut().zip(digits) {
        let product = m.mul_shoup((d as u64).wrapping_add(OFFSET), w);
        *k = m.add(m.add(*k, correction), product);
    }
}

dispatched! {
    /// The representatives in `-q/2..q/2`, for `q < 2^61`.
    fn centre(residues: &[u64], q: u64, digits: &mut [i64]) {
        for (d, &r) in digits.iter_mut().zip(residues) {
            *d = r as i64 - if r > q / 2 { q as i64 } else { 0 };
        }
    }
}

dispatched! {
    fn differ(a: &[u64], b: &[u64]) -> bool {
        a.iter().zip(b).fold(0, |acc, (x, y)| acc | (x ^ y)) != 0
    }
}

dispatched! {
    fn round_digits(digits: &[i64], out: &mut [f64]) {
        for (x, &d) in out.iter_mut().zip(digits) {
            *x = d as f64;
        }
    }
}

dispatched! {
    /// `(heads + tails) = (heads + tails) * q + digits`.
    fn horner(q: DoubleDouble, digits: &[i64], heads: &mut [f64], tails: &mut [f64]) {
        for ((hi, lo), &d) in heads.iter_mut().zip(tails).zip(digits) {
            let s = DoubleDouble { hi: *hi, lo: *lo }.mul(q).add(DoubleDouble::from_i64(d));
            (*hi, *lo) = (s.hi, s.lo);
        }
    }
}
