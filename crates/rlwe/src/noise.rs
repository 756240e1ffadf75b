//! Derived bounds on decryption errors.
//!
//! Errors are described by the variance of one coefficient. A bound holds for all coefficients at once except with
//! probability below `2^-40`: for a sum of many independent terms, `N` coefficients and [`TAIL`] standard deviations,
//! `N erfc(9 / sqrt 2) < 2^17 * 2^-61`.

use core::ops::{Add, AddAssign, Mul, Range};

use keywright_ring::sampling::SIGMA;

use crate::{
    KeyElement, KeyLayout, KeyUse, Parameters, PrimeWidths, SecretDistribution, SwitchLayout, SwitchPlan,
};

/// Standard deviations in a bound on a sum of many independent terms.
pub const TAIL: f64 = 9.0;

/// Standard deviations in a bound on a product of two complex normal variables of unit variance:
/// `P(|x y| > t) = 2 t K_1(2 t)`, at `t = 21` below `2^-57`. That is below `2^-40` for `2^17` values.
///
/// Such a product is the error that the rounding of a division leaves at one root of unity, where the secret multiplies
/// it: in a slot, or where a plaintext factor has its weight at few roots.
pub const PRODUCT_TAIL: f64 = 21.0;

/// A variance in two parts: one that is equal at every root of unity, and one that the secret multiplies there.
///
/// With `X = |s(zeta)|^2 / |s|^2`, of mean 1, it is `plain + secret X` at the root of unity `zeta`. `X` differs between
/// slots, and is the same for all errors of one slot.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Variance {
    /// The part that is equal at every root.
    pub plain: f64,
    /// The factor of `X`.
    pub secret: f64,
}

impl Variance {
    /// Over all roots of unity.
    pub fn mean(self) -> f64 {
        self.plain + self.secret
    }
}

impl Add for Variance {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { plain: self.plain + other.plain, secret: self.secret + other.secret }
    }
}

impl AddAssign for Variance {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Mul<f64> for Variance {
    type Output = Self;

    fn mul(self, factor: f64) -> Self {
        Self { plain: self.plain * factor, secret: self.secret * factor }
    }
}

/// Variance of the error of a fresh symmetric encryption.
pub fn fresh_symmetric() -> f64 {
    SIGMA * SIGMA
}

/// Variance of the error of a fresh public-key encryption: `e u + e_0 + e_1 s`, with ternary `u`.
pub fn fresh_public(parameters: &Parameters) -> f64 {
    let n = parameters.n() as f64;
    SIGMA * SIGMA * (1.0 + 2.0 * n / 3.0 + parameters.secret().expected_norm2(parameters.n()))
}

/// [`fresh_public`] in parts: the secret multiplies `e_1`.
pub fn fresh_public_parts(parameters: &Parameters) -> Variance {
    let secret = SIGMA * SIGMA * parameters.secret().expected_norm2(parameters.n());
    Variance { plain: fresh_public(parameters) - secret, secret }
}

/// Variance of the rounding of a division: each half has a uniform error in `[-1/2, 1/2]`, and the secret multiplies
/// that of the second one.
pub fn division(parameters: &Parameters) -> f64 {
    division_of_degree(parameters, 1)
}

/// [`division`] in parts: the secret multiplies the rounding of the second half.
pub fn division_parts(parameters: &Parameters) -> Variance {
    rounding_parts(parameters.secret().expected_norm2(parameters.n()))
}

/// The parts for a secret of expected squared norm `h`.
fn rounding_parts(h: f64) -> Variance {
    Variance { plain: 1.0 / 12.0, secret: h / 12.0 }
}

/// The same for a ciphertext of any degree: `s^k` multiplies part `k`. With `h` the expected squared norm of `s`, its
/// value at a root of unity is a complex normal variable of variance `h`, so `s^k` has the expected squared norm
/// `k! h^k`. Dividing a ciphertext of degree 2 costs `sqrt(2 h)` times the error of dividing it after relinearization.
pub fn division_of_degree(parameters: &Parameters, degree: usize) -> f64 {
    rounding(parameters.secret().expected_norm2(parameters.n()), degree)
}

/// [`division_of_degree`] for a secret of expected squared norm `h`.
fn rounding(h: f64, degree: usize) -> f64 {
    let (mut norm2, mut sum) = (1.0, 1.0);
    for k in 1..=degree {
        norm2 *= k as f64 * h;
        sum += norm2;
    }
    sum / 12.0
}

/// Variance that one key switch adds: that of [`key_switch_raised`] and the rounding of the division. If it is merged
/// with a rescaling, it applies before the division by `q_level`; the rounding then counts for the rescaled ciphertext,
/// see [`division`].
pub fn key_switch(parameters: &Parameters, plan: &SwitchPlan, key: &impl AsRef<KeyLayout>) -> f64 {
    let inner = key_switch_raised(parameters, plan, key);
    if plan.rescales() {
        inner
    } else {
        inner + rounding(key.as_ref().spec.target_secret(parameters).expected_norm2(parameters.n()), 1)
    }
}

/// [`key_switch`] in parts: the secret multiplies the rounding of its division.
pub fn key_switch_parts(parameters: &Parameters, plan: &SwitchPlan, key: &impl AsRef<KeyLayout>) -> Variance {
    let inner = Variance { plain: key_switch_raised(parameters, plan, key), secret: 0.0 };
    if plan.rescales() {
        return inner;
    }
    inner + rounding_parts(key.as_ref().spec.target_secret(parameters).expected_norm2(parameters.n()))
}

/// Variance that one key switch adds if its result stays in the raised basis: the inner product with the key alone, in
/// units of a ciphertext modulo `Q` (its error modulo `Q P D`, divided by `P D`).
///
/// `N V_e / 12` times [`crate::SwitchLayout::relative_noise`], where `V_e` is [`KeyLayout::error_variance`]. A
/// polynomial from a ring of degree `n` has `n` coefficients, not `N`.
pub fn key_switch_raised(parameters: &Parameters, plan: &SwitchPlan, key: &impl AsRef<KeyLayout>) -> f64 {
    let digits = plan.layout.relative_noise(parameters.widths(), &key.as_ref().digits) / 12.0;
    let coefficients = match key.as_ref().spec.element {
        KeyElement::RingUp { from } | KeyElement::RingUpToSparse { from, .. } => 1 << from,
        _ => parameters.n(),
    };
    coefficients as f64 * digits * key.as_ref().error_variance
}

/// Variance that a switch to a smaller ring adds: the sum of the inner products with the keys of all parts, and the
/// rounding of one division. The parameters are those of the smaller ring.
pub fn ring_down(parameters: &Parameters, uses: &[KeyUse]) -> f64 {
    ring_down_parts(parameters, uses).mean()
}

/// [`ring_down()`] in parts: the secret multiplies the rounding of its division.
pub fn ring_down_parts(parameters: &Parameters, uses: &[KeyUse]) -> Variance {
    let inner = uses.iter().map(|key_use| key_switch_raised(parameters, &key_use.plan, &key_use.key)).sum();
    Variance { plain: inner, secret: 0.0 } + division_parts(parameters)
}

/// Variance that deriving a key with a master key adds to the errors of its rows: that of a key switch. At the `first`
/// derivation, from the key of 1, the digits are constants of at most half of the digit's product; later digits have
/// `N` coefficients of a twelfth of its square.
pub fn derivation(chain: &Parameters, plan: &SwitchPlan, master: &impl AsRef<KeyLayout>, first: bool) -> f64 {
    division(chain) + of_digits(key_switch_raised(chain, plan, master), chain.n(), first)
}

/// The part of the digits, given the `switched` variance that uniform polynomials of `n` coefficients would add.
fn of_digits(switched: f64, n: usize, first: bool) -> f64 {
    if first { switched * 3.0 / n as f64 } else { switched }
}

/// The variance of [`derivation`] divided by that of a fresh key's errors, for a uniform ternary secret and a fresh
/// master key of these digits: for the first derivation, and for every other one.
pub fn derivation_over_fresh(
    layout: &SwitchLayout,
    widths: &PrimeWidths,
    master_digits: &[Range<usize>],
) -> [f64; 2] {
    let n = 1 << widths.log_n();
    let rounding = rounding(SecretDistribution::Ternary.expected_norm2(n), 1) / fresh_symmetric();
    let switched = n as f64 * layout.relative_noise(widths, master_digits) / 12.0;
    [true, false].map(|first| rounding + of_digits(switched, n, first))
}

/// The variance of [`key_switch_raised`] with a fresh key divided by that of the rounding of a division, `N (2/3) / 12`
/// for a uniform ternary secret: independent of the ring degree.
pub fn over_rounding(layout: &SwitchLayout, widths: &PrimeWidths, key_digits: &[Range<usize>]) -> f64 {
    1.5 * SIGMA * SIGMA * layout.relative_noise(widths, key_digits)
}

/// The largest error of any coefficient for a given variance, except with probability below `2^-40`.
pub fn bound(variance: f64) -> f64 {
    TAIL * sqrt(variance)
}

/// Newton's square root, for a `core` without one.
fn sqrt(x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    let mut y = f64::from_bits((x.to_bits() >> 1) + (1023 << 51));
    for _ in 0..6 {
        y = 0.5 * (y + x / y);
    }
    y
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn square_roots() {
        for x in [0.0, 1e-30, 0.5, 2.0, 1e5, 3.7e40] {
            assert!((sqrt(x) - x.sqrt()).abs() <= 1e-12 * x.sqrt());
        }
    }
}
