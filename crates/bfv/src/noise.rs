use keywright_rlwe::noise::{PRODUCT_TAIL, division_of_degree};

use crate::{BfvError, BfvParameters};

/// Bits of noise budget that decryption requires: see [`crate::Decryptor::decrypt`].
pub const SPARE_BITS: u32 = 1;

/// Bounds on a ciphertext's noise that hold without decryption.
///
/// The noise is the polynomial `v` of `t/Q c(s) = m + v + t k`, over the reals; decryption is right while every
/// coefficient is below 1/2. Three numbers describe it, as base-2 logarithms because `Q` may exceed the range of `f64`:
///
/// * the deviation: the root mean square of a coefficient, or equally of a value of `v` at the roots of `X^N + 1`
///   divided by `sqrt(N)`;
/// * the peak: a bound on the deviation at any single root. It exceeds the deviation only after products with
///   plaintexts, whose values at the roots are fixed;
/// * the order: the number of successive products of ciphertexts. Each multiplies by `k`, which is `c_0 + c_1 s` over
///   `Q`. After `d` of them the noise has `d + 1` factors `s` and `d` factors that may all be equal, so the mean square
///   is up to `d! (d + 1)!` times that of independent factors (moments of complex normal variables).
///
/// Deviations of dependent errors are added, not their squares, so the estimate is an upper bound for any dependencies.
/// `docs/explanation/bfv.md` derives each rule.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NoiseEstimate {
    /// `log2` of the deviation, without the factor of the order.
    pub log_deviation: f64,
    /// `log2` of the peak, without the factor of the order.
    pub log_peak: f64,
    /// Successive products of ciphertexts.
    pub order: u32,
}

/// `log2(2^a + 2^b)`.
fn log_sum(a: f64, b: f64) -> f64 {
    let (high, low) = if a > b { (a, b) } else { (b, a) };
    if high == f64::NEG_INFINITY { high } else { high + (low - high).exp2().ln_1p() / std::f64::consts::LN_2 }
}

/// `log2(2^a + 2^b)` of variances: independent errors.
fn log_hypot(a: f64, b: f64) -> f64 {
    log_sum(2.0 * a, 2.0 * b) / 2.0
}

/// `log2` of the variance of a coefficient of `k`: `(c_0 + c_1 s) / Q` for uniform `c_0` and `c_1`.
fn log_variance_of_k(parameters: &BfvParameters) -> f64 {
    ((1.0 + parameters.secret().expected_norm2(parameters.rlwe().n())) / 12.0).log2()
}

impl NoiseEstimate {
    /// The noise of a fresh encryption whose error has this variance: `t / Q` times the error and the rounding of
    /// `Q m / t`.
    pub fn fresh(parameters: &BfvParameters, level: usize, variance: f64) -> Self {
        let log = scaled(parameters, level, variance + 1.0 / 12.0);
        Self { log_deviation: log, log_peak: log, order: 0 }
    }

    /// Bound on the noise of all coefficients, `log2`: [`PRODUCT_TAIL`] deviations.
    pub fn log_bound(&self) -> f64 {
        // d! (d + 1)!
        let moments: f64 = (1..=self.order).map(|k| (f64::from(k) * f64::from(k + 1)).log2()).sum();
        PRODUCT_TAIL.log2() + self.log_deviation + moments / 2.0
    }

    /// The noise budget by the bound, in bits: a lower bound of [`crate::Decryptor::noise_budget`], except with
    /// probability below `2^-40`.
    pub fn budget_bits(&self) -> f64 {
        -1.0 - self.log_bound()
    }

    /// This estimate, if it allows decryption.
    ///
    /// # Errors
    /// [`BfvError::NoiseExhausted`].
    pub fn checked(self, operation: &'static str) -> Result<Self, BfvError> {
        let budget = self.budget_bits();
        if budget >= f64::from(SPARE_BITS) {
            Ok(self)
        } else {
            Err(BfvError::NoiseExhausted { operation, budget })
        }
    }

    /// The estimate of a sum.
    pub fn plus(self, other: Self) -> Self {
        Self {
            log_deviation: log_sum(self.log_deviation, other.log_deviation),
            log_peak: log_sum(self.log_peak, other.log_peak),
            order: self.order.max(other.order),
        }
    }

    /// The estimate with an added independent error of this variance per coefficient of `c(s)`.
    pub(crate) fn with_error(self, parameters: &BfvParameters, level: usize, variance: f64) -> Self {
        let log = scaled(parameters, level, variance);
        Self {
            log_deviation: log_hypot(self.log_deviation, log),
            log_peak: log_hypot(self.log_peak, log),
            ..self
        }
    }

    /// The estimate of a product with a plaintext polynomial, by its norms: at a root of unity the plaintext is at most
    /// the sum `norm1` of its absolute coefficients, and its mean square there is `norm2^2`.
    pub(crate) fn times_plain(self, (norm2, norm1): (f64, f64)) -> Self {
        // A product with zero has no noise: one bit below any other estimate suffices.
        let (norm2, norm1) = (norm2.max(0.5).log2(), norm1.max(0.5).log2());
        Self {
            log_deviation: (self.log_peak + norm2).min(self.log_deviation + norm1),
            log_peak: self.log_peak + norm1,
            order: self.order,
        }
    }

    /// The estimate of a product of ciphertexts at a level, before relinearization; `log_r` is `log2` of the auxiliary
    /// modulus.
    pub(crate) fn times(self, other: Self, parameters: &BfvParameters, level: usize, log_r: f64) -> Self {
        let log_t = (parameters.plaintext_modulus() as f64).log2();
        let half_n = f64::from(parameters.rlwe().log_n()) / 2.0;
        let log_k = log_variance_of_k(parameters);
        // t k_a v_b + t k_b v_a, a product of values at the roots of unity.
        let growth = log_t + half_n + log_k / 2.0;
        let sum = self.plus(other);
        // v_a v_b: one factor at its bound.
        let second = half_n + self.log_deviation + other.log_bound();
        // The rounded second operand, t / R a(s) (e_0 + e_1 s), whose s^2 has twice the mean square; the rounding of
        // the result.
        let operand = 2.0 * log_t - log_r + half_n + log_k + 0.5;
        let rounding = scaled(parameters, level, division_of_degree_two(parameters));
        let added = log_sum(second, log_sum(operand, rounding));
        Self {
            log_deviation: log_sum(sum.log_deviation + growth, added),
            log_peak: log_sum(sum.log_peak + growth, added),
            order: sum.order + 1,
        }
    }
}

fn division_of_degree_two(parameters: &BfvParameters) -> f64 {
    division_of_degree(parameters.rlwe(), 2)
}

/// `log2` of `t / Q` times a deviation, for the modulus of a level.
fn scaled(parameters: &BfvParameters, level: usize, variance: f64) -> f64 {
    (parameters.plaintext_modulus() as f64).log2() - parameters.rlwe().log2_q(level) + variance.log2() / 2.0
}
