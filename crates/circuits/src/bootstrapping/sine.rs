//! Reduction modulo 1 near integers, by a scaled cosine.
//!
//! For `x = mu + I`, `I` an integer in `[-K, K]` and `|mu| <= eps`, a small message in units of `q_0`,
//!
//! ```text
//! mu = A(sin(2 pi x)),      A(s) = arcsin(s) / (2 pi) = (s + s^3/6 + 3 s^5/40 + ...) / (2 pi).
//! ```
//!
//! The sine is a cosine, `sin(2 pi x) = cos(2 pi (x - 1/4))`, and that one `r` double angles away from a slower one:
//!
//! ```text
//! c_0 = cos(2 pi (x - 1/4) / 2^r),     c_(i+1) = 2 c_i^2 - 1,     c_r = sin(2 pi x).
//! ```
//!
//! * `c_0` is even in `x - 1/4`, so its Chebyshev series on `[-W, W]`, `W = K + eps + 1/4`, has even terms only. Chebyshev
//!   interpolation needs a degree somewhat above `2 pi W / 2^r`, and then gains bits with every degree (Han and Ki, CT-RSA 2020;
//!   Bossuat, Mouchet, Troncoso-Pastoriza and Hubaux, Eurocrypt 2021).
//! * `A` is approximated on `[-sin 2 pi eps, sin 2 pi eps]` by an odd polynomial, interpolated at Chebyshev nodes: its degree is 1
//!   (a constant, free), 3, 5 or 7. At degree 1 the error is `pi^2 eps^2 / 6` of the message, at most.
//!
//! The error of a choice is not assumed: [`SineApproximation::new`] runs the whole composition in `f64` on a grid in every
//! neighbourhood of an integer, and [`SineApproximation::choose`] takes, of all that are precise enough, the one of fewest levels,
//! then of fewest relinearisations. `f64` costs `2^-48` of `q_0` at most, which bounds what can be asked for.

use std::f64::consts::PI;

use crate::CircuitError;
use crate::approximate::chebyshev_interpolate;
use crate::polynomial::{Basis, Polynomial, PolynomialPlan};

/// A polynomial circuit for `x - round(x)` near integers.
#[derive(Debug, Clone, PartialEq)]
pub struct SineApproximation {
    /// Largest absolute value of the integer part.
    pub k: usize,
    /// Largest absolute value of the message, in units of `q_0`.
    pub message: f64,
    /// `c_0` in the Chebyshev basis of `[-1, 1]`, as a function of `y = (x - 1/4) / W`.
    pub cosine: Polynomial,
    /// Number `r` of double angles.
    pub double_angles: u32,
    /// `A` in powers of `s`: odd; of degree 1 if it is a constant factor.
    pub arcsine: Polynomial,
    /// Largest error on the neighbourhoods of all integers, in units of `q_0`.
    pub error: f64,
}

/// Points of the grid on each neighbourhood of an integer, at which errors are evaluated.
const GRID: i32 = 32;

/// Degrees of the arcsine that [`SineApproximation::choose`] considers.
const ARCSINE_DEGREES: [usize; 4] = [1, 3, 5, 7];

/// Most double angles that it considers.
const MAX_DOUBLE_ANGLES: u32 = 4;

/// Largest degree of the cosine that it considers.
const MAX_DEGREE: usize = 126;

impl SineApproximation {
    /// The approximation with a cosine of the given even degree, `double_angles` and an arcsine of the given odd degree.
    ///
    /// # Errors
    /// [`CircuitError::Count`] for degrees of the wrong parity; [`CircuitError::Interval`] unless `0 < message < 1/4`.
    pub fn new(
        k: usize,
        message: f64,
        degree: usize,
        double_angles: u32,
        arcsine_degree: usize,
    ) -> Result<Self, CircuitError> {
        if !(message > 0.0 && message < 0.25) {
            return Err(CircuitError::Interval { a: -message, b: message });
        }
        if !degree.is_multiple_of(2) || degree == 0 {
            return Err(CircuitError::Count {
                what: "degree of a cosine, even",
                count: degree,
                min: 2,
                max: MAX_DEGREE,
            });
        }
        if arcsine_degree.is_multiple_of(2) {
            let what = "degree of an arcsine, odd";
            return Err(CircuitError::Count { what, count: arcsine_degree, min: 1, max: 7 });
        }
        let half_width = half_width(k, message);
        let rate = 2.0 * PI * half_width / f64::from(double_angles).exp2();
        let cosine = chebyshev_interpolate(|y| (rate * y).cos(), -1.0, 1.0, degree)?.polynomial;
        let arcsine = arcsine(message, arcsine_degree)?;
        let mut out = Self { k, message, cosine, double_angles, arcsine, error: 0.0 };
        out.error = out.measure();
        Ok(out)
    }

    /// The approximation of fewest levels, then of fewest relinearisations, whose error is at most `2^-bits` of the message.
    ///
    /// # Errors
    /// [`CircuitError::Precision`] with the best there is; [`CircuitError::Interval`] unless `0 < message < 1/4`.
    pub fn choose(k: usize, message: f64, bits: f64) -> Result<Self, CircuitError> {
        let wanted = message * (-bits).exp2();
        let mut best: Option<(usize, usize, Self)> = None;
        let mut smallest = f64::INFINITY;
        for arcsine_degree in ARCSINE_DEGREES {
            for double_angles in 0..=MAX_DOUBLE_ANGLES {
                // A degree of 2^d or more takes another level; below half the bandwidth nothing converges.
                let bandwidth = 2.0 * PI * half_width(k, message) / f64::from(double_angles).exp2();
                let least = (bandwidth / 2.0) as usize / 2 * 2 + 2;
                for degree in (least..=MAX_DEGREE).step_by(2) {
                    let candidate = Self::new(k, message, degree, double_angles, arcsine_degree)?;
                    smallest = smallest.min(candidate.error);
                    if candidate.error > wanted {
                        continue;
                    }
                    let cost = (candidate.depth(), candidate.relinearizations());
                    if best.as_ref().is_none_or(|(depth, switches, _)| cost < (*depth, *switches)) {
                        best = Some((cost.0, cost.1, candidate));
                    }
                    break;
                }
            }
        }
        let failure = CircuitError::Precision { k, message, bits, best: (message / smallest).log2() };
        best.map(|(_, _, found)| found).ok_or(failure)
    }

    /// `W`: the input is divided by it.
    pub fn half_width(&self) -> f64 {
        half_width(self.k, self.message)
    }

    /// Whether an arcsine is evaluated, rather than a constant factor applied.
    pub fn has_arcsine(&self) -> bool {
        self.arcsine.degree() > 1
    }

    /// Levels.
    pub fn depth(&self) -> usize {
        let arcsine = if self.has_arcsine() { PolynomialPlan::new(&self.arcsine).depth() } else { 0 };
        PolynomialPlan::new(&self.cosine).depth() + self.double_angles as usize + arcsine
    }

    /// Relinearisations.
    pub fn relinearizations(&self) -> usize {
        let count = |p: &Polynomial| PolynomialPlan::new(p).relinearizations().len();
        let arcsine = if self.has_arcsine() { count(&self.arcsine) } else { 0 };
        count(&self.cosine) + self.double_angles as usize + arcsine
    }

    /// The value at `x`, in units of `q_0`: what the circuit computes without noise.
    pub fn value(&self, x: f64) -> f64 {
        let cosine = self.cosine.value((x - 0.25) / self.half_width());
        let sine = (0..self.double_angles).fold(cosine, |c, _| 2.0 * c * c - 1.0);
        self.arcsine.value(sine)
    }

    /// Bits of the error relative to the largest message.
    pub fn bits(&self) -> f64 {
        (self.message / self.error).log2()
    }

    fn measure(&self) -> f64 {
        let mut largest = 0.0f64;
        for integer in -(self.k as i64)..=self.k as i64 {
            for point in -GRID..=GRID {
                let message = self.message * f64::from(point) / f64::from(GRID);
                largest = largest.max((self.value(integer as f64 + message) - message).abs());
            }
        }
        largest
    }
}

/// `W`: all of `x - 1/4`.
fn half_width(k: usize, message: f64) -> f64 {
    k as f64 + message + 0.25
}

/// `arcsin(s) / (2 pi)` on `|s| <= sin(2 pi message)`, odd, interpolated at Chebyshev nodes, in powers of `s`.
fn arcsine(message: f64, degree: usize) -> Result<Polynomial, CircuitError> {
    let end = (2.0 * PI * message).sin();
    // Of an odd function the coefficient of the even degree above is zero: with one node more the error begins with T_(degree + 2).
    let found = chebyshev_interpolate(|s| s.asin() / (2.0 * PI), -end, end, degree + 1)?.polynomial;
    // T_(k+1) = 2 y T_k - T_(k-1), in powers of y.
    let (mut before, mut current) = (vec![1.0], vec![0.0, 1.0]);
    let mut powers = vec![0.0; degree + 1];
    for &c in found.coefficients().iter().skip(1) {
        powers.iter_mut().zip(&current).for_each(|(power, t)| *power += c * t);
        let mut next = vec![0.0; current.len() + 1];
        next.iter_mut().skip(1).zip(&current).for_each(|(n, t)| *n += 2.0 * t);
        next.iter_mut().zip(&before).for_each(|(n, t)| *n -= t);
        before = std::mem::replace(&mut current, next);
    }
    // y = s / end.
    powers.iter_mut().enumerate().for_each(|(k, power)| *power /= end.powi(k as i32));
    Polynomial::new(Basis::Monomial, powers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_linear_arcsine_leaves_the_cubic_term() {
        // The best line leaves a quarter of the cubic term (2 pi)^2 eps^3 / 6: pi^2 eps^2 / 6 of the message.
        let eps = 1.0 / 1024.0;
        let found = SineApproximation::new(12, eps, 62, 2, 1).unwrap();
        let expected = PI * PI * eps * eps / 6.0;
        assert!((found.error / eps / expected - 1.0).abs() < 0.05, "{:e} {expected:e}", found.error / eps);
        assert!(!found.has_arcsine());
    }

    #[test]
    fn errors_fall_with_the_degrees() {
        let eps = 1.0 / 64.0;
        let error =
            |degree, arcsine| SineApproximation::new(12, eps, degree, 2, arcsine).unwrap().error / eps;
        // Orders of the arcsine: the first coefficient left out times 2^(1 - degree left out), at 2 pi eps.
        for (degree, coefficient) in [(1, 1.0 / 6.0), (3, 3.0 / 40.0), (5, 15.0 / 336.0), (7, 105.0 / 3456.0)]
        {
            let next = degree + 2;
            let expected = coefficient * (2.0 * PI * eps).powi(next - 1) * 2f64.powi(1 - next);
            let seen = error(62, degree as usize);
            assert!(seen < 2.0 * expected && seen > expected / 2.0, "{degree}: {seen:e} {expected:e}");
        }
        assert!(error(26, 7) > 4.0 * error(30, 7));
    }

    #[test]
    fn choices_are_minimal_and_precise() {
        for (ratio, bits) in [(32.0, 20.0), (32.0, 26.0), (64.0, 24.0), (256.0, 30.0), (1024.0, 16.0)] {
            let found = SineApproximation::choose(12, 1.0 / ratio, bits).unwrap();
            assert!(found.bits() >= bits);
            // Between the points of the grid, too.
            for i in 0..1000 {
                let (integer, mu) =
                    ((i % 25) as f64 - 12.0, found.message * ((i as f64 * 0.618) % 2.0 - 1.0));
                let error = (found.value(integer + mu) - mu).abs();
                assert!(error <= 1.05 * found.error, "{ratio} {bits} {integer} {mu}: {error:e}");
            }
        }
        assert!(matches!(
            SineApproximation::choose(12, 1.0 / 64.0, 60.0),
            Err(CircuitError::Precision { best, .. }) if best > 30.0
        ));
        assert!(matches!(SineApproximation::new(12, 0.3, 30, 2, 1), Err(CircuitError::Interval { .. })));
        assert!(matches!(SineApproximation::new(12, 0.01, 31, 2, 1), Err(CircuitError::Count { .. })));
        assert!(matches!(SineApproximation::new(12, 0.01, 30, 2, 2), Err(CircuitError::Count { .. })));
    }
}
