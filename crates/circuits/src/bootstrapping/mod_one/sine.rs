//! Reduction modulo 1 near integers, by a scaled cosine.
//!
//! For `x = mu + I`, `I` an integer in `[-K, K]` and `|mu| <= eps`, a small message in units of `q_0`,
//!
//! ```text
//! mu = A(sin(2 pi x)),      A(s) = arcsin(s) / (2 pi) = (s + s^3/6 + 3 s^5/40 + ...) / (2 pi).
//! ```
//!
//! The sine is a cosine, `sin(2 pi x) = cos(2 pi (x - 1/4))`, and `r` double angles compute it from a slower cosine:
//!
//! ```text
//! c_0 = cos(2 pi (x - 1/4) / 2^r),     c_(i+1) = 2 c_i^2 - 1,     c_r = sin(2 pi x).
//! ```
//!
//! * `c_0` is a polynomial in `y = (x - 1/4) / W`, `W = K + eps + 1/4`, in the Chebyshev basis of `[-1, 1]`. A
//!   least-squares fit at Chebyshev points in the neighbourhoods of the `2 K + 1` integers determines it; its values
//!   between them do not matter (Han and Ki, CT-RSA 2020, interpolate there). A polynomial of even degree has only even
//!   terms, like the cosine itself; it needs about `2 pi W / 2^r` of them before every further degree gains bits. A
//!   polynomial of odd degree has all terms and costs more products. It gains bits sooner, because symmetry forces no
//!   values on it near half integers.
//! * `A` is approximated on `[-sin 2 pi eps, sin 2 pi eps]` by an odd polynomial of degree 1 (a constant, free), 3, 5
//!   or 7, interpolated at Chebyshev nodes. At degree 1 the error is at most `pi^2 eps^2 / 6` of the message.
//!
//! The error of a choice is measured: [`SineApproximation::new`] runs the whole composition in `f64` on a grid in every
//! neighbourhood of an integer. For each number of levels, [`SineApproximation::pareto`] lists the sufficiently precise
//! approximation with the fewest relinearizations. `f64` costs up to `2^-46` of `q_0`, which bounds the available
//! precision.
//!
//! Its results, with the degree of the cosine, `r`, and the degree of the arcsine:
//!
//! | `K` | `1 / eps` | bits | levels | relinearizations | choice |
//! |---|---|---|---|---|---|
//! | 12 | `2^5` | 26 | 10 | 16 | 62, 1, 7 |
//! | | | | 11 | 14 | 40, 2, 7 |
//! | 12 | `2^6` | 32 | 10 | 17 | 108, 0, 7 |
//! | | | | 11 | 15 | 42, 2, 7 |
//! | | | | 12 | 14 | 22, 4, 7 |
//! | 12 | `2^7` | 22 | 9 | 13 | 60, 1, 3 |
//! | | | | 10 | 12 | 38, 2, 3 |
//! | 15 | `2^5` | 26 | 10 | 19 | 124, 0, 7 |
//! | | | | 11 | 15 | 46, 2, 7 |
//! | | | | 12 | 14 | 22, 4, 7 |
//! | 16 | `2^5` | 26 | 11 | 15 | 48, 2, 7 |
//! | | | | 12 | 14 | 22, 4, 7 |
//!
//! For comparison: a cosine of degree 30 with three double angles at `K = 16`, which other libraries use, takes 8
//! levels and 11 relinearizations without an arcsine.

use std::f64::consts::PI;

use super::least_squares;
use super::range::MAX_WEIGHT;
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
    /// `c_0` in the Chebyshev basis of `[-1, 1]`, as a function of `y = (x - 1/4) / W`. Only even terms if the degree
    /// is even.
    pub cosine: Polynomial,
    /// Number `r` of double angles.
    pub double_angles: u32,
    /// `A` in powers of `s`: odd; of degree 1 if it is a constant factor.
    pub arcsine: Polynomial,
    /// Largest error on the neighbourhoods of all integers, in units of `q_0`.
    pub error: f64,
}

/// Largest message on which the sine rises, in units of `q_0`: larger messages look like smaller ones.
const FOLDED: f64 = 0.25;

/// Points of the grid on each half of the neighbourhood of an integer, at which errors are evaluated.
const GRID: i32 = 16;

/// Chebyshev points in each neighbourhood at which the cosine is fitted.
const FIT_POINTS: usize = 9;

/// The weight of small coefficients in the least-squares fit, far below the errors that it reaches.
const RIDGE: f64 = 1e-13;

/// Degrees of the arcsine that [`SineApproximation::pareto`] considers.
const ARCSINE_DEGREES: [usize; 4] = [1, 3, 5, 7];

/// The largest sum of absolute values of a cosine's coefficients that it considers. An interpolated cosine has about 6;
/// larger sums amplify the errors of evaluation.
const MAX_COEFFICIENTS: f64 = 16.0;

/// Most double angles that it considers.
const MAX_DOUBLE_ANGLES: u32 = 4;

/// Largest degree of the cosine.
pub(crate) const MAX_DEGREE: usize = 127;

impl SineApproximation {
    /// The approximation with a cosine of the given degree, `double_angles` and an arcsine of the given odd degree.
    ///
    /// # Errors
    /// [`CircuitError::Count`] for a cosine's degree of 0 or above 127, an arcsine's degree that is even or above 7,
    /// more than 127 double angles, or a `k` above [`MAX_WEIGHT`]; [`CircuitError::Interval`] unless
    /// `0 < message < 1/4`.
    pub fn new(
        k: usize,
        message: f64,
        degree: usize,
        double_angles: u32,
        arcsine_degree: usize,
    ) -> Result<Self, CircuitError> {
        Self::with_arcsine(k, message, degree, double_angles, &arcsine(message, arcsine_degree)?)
    }

    fn with_arcsine(
        k: usize,
        message: f64,
        degree: usize,
        double_angles: u32,
        arcsine: &Polynomial,
    ) -> Result<Self, CircuitError> {
        if !(1..=MAX_DEGREE).contains(&degree) {
            return Err(CircuitError::Count {
                what: "degree of a cosine",
                count: degree,
                min: 1,
                max: MAX_DEGREE,
            });
        }
        if double_angles as usize > MAX_DEGREE {
            let (what, count) = ("double angles", double_angles as usize);
            return Err(CircuitError::Count { what, count, min: 0, max: MAX_DEGREE });
        }
        if k > MAX_WEIGHT {
            let what = "bound on the integers of a reduction";
            return Err(CircuitError::Count { what, count: k, min: 0, max: MAX_WEIGHT });
        }
        let cosine = cosine(k, message, degree, double_angles)?;
        let mut out = Self { k, message, cosine, double_angles, arcsine: arcsine.clone(), error: 0.0 };
        out.error = out.measure(message, GRID);
        Ok(out)
    }

    /// For each number of levels, the approximation with an error of at most `2^-bits` of the message and the fewest
    /// relinearizations, if more levels save any. Levels ascend, relinearizations descend.
    ///
    /// # Errors
    /// [`CircuitError::Precision`] if no approximation is that precise; [`CircuitError::Interval`] unless
    /// `0 < message < 1/4`.
    pub fn pareto(k: usize, message: f64, bits: f64) -> Result<Vec<Self>, CircuitError> {
        let bound = message * (-bits).exp2();
        // The first degree that leaves half of the error to the cosine; higher ones only cost more.
        let mut last = None;
        for degree in ARCSINE_DEGREES {
            let arcsine = arcsine(message, degree)?;
            let error = arcsine_error(message, &arcsine);
            let enough = error <= bound / 2.0;
            last = Some((arcsine, error));
            if enough {
                break;
            }
        }
        let refusal =
            |error: f64| CircuitError::Precision { k, message, bits, best: (message / error).log2() };
        let Some((arcsine, error)) = last.filter(|(_, error)| *error <= bound) else {
            return Err(refusal(last_error(message)?));
        };
        let mut pareto: Vec<Self> = Vec::new();
        let mut smallest = f64::INFINITY;
        let fits =
            |candidate: &Self| candidate.error <= bound && candidate.coefficients() <= MAX_COEFFICIENTS;
        for double_angles in 0..=MAX_DOUBLE_ANGLES {
            for parity in [0, 1] {
                // Errors and coefficients decrease with the degree: bisection over degrees of one parity finds the
                // lowest.
                let make =
                    |half: usize| Self::with_arcsine(k, message, 2 * half + parity, double_angles, &arcsine);
                let (mut low, mut high) = (0, (MAX_DEGREE - parity) / 2);
                let mut best = make(high)?;
                smallest = smallest.min(best.error);
                if !fits(&best) {
                    continue;
                }
                while high - low > 1 {
                    let middle = usize::midpoint(low, high);
                    let candidate = make(middle)?;
                    if fits(&candidate) {
                        (high, best) = (middle, candidate);
                    } else {
                        low = middle;
                    }
                }
                pareto.push(best);
            }
        }
        if pareto.is_empty() {
            return Err(refusal(smallest.max(error)));
        }
        pareto.sort_by_key(|sine| (sine.depth(), sine.relinearizations()));
        let mut fewest = usize::MAX;
        pareto.retain(|candidate| {
            let switches = candidate.relinearizations();
            let keep = switches < fewest;
            fewest = fewest.min(switches);
            keep
        });
        Ok(pareto)
    }

    /// `W`: the input is divided by it.
    pub fn half_width(&self) -> f64 {
        half_width(self.k, self.message)
    }

    /// Whether the plan evaluates an arcsine, rather than applying a constant factor.
    pub fn has_arcsine(&self) -> bool {
        self.arcsine.degree() > 1
    }

    /// Levels.
    pub fn depth(&self) -> usize {
        let arcsine = if self.has_arcsine() { PolynomialPlan::new(&self.arcsine).depth() } else { 0 };
        PolynomialPlan::new(&self.cosine).depth() + self.double_angles as usize + arcsine
    }

    /// Relinearizations.
    pub fn relinearizations(&self) -> usize {
        let count = |p: &Polynomial| PolynomialPlan::new(p).relinearizations().len();
        let arcsine = if self.has_arcsine() { count(&self.arcsine) } else { 0 };
        count(&self.cosine) + self.double_angles as usize + arcsine
    }

    /// The value at `x`, in units of `q_0`: the circuit's result without noise.
    pub fn value(&self, x: f64) -> f64 {
        let cosine = self.cosine.value((x - 0.25) / self.half_width());
        let sine = (0..self.double_angles).fold(cosine, |c, _| 2.0 * c * c - 1.0);
        self.arcsine.value(sine)
    }

    /// Values of `y` throughout the neighbourhoods of integers at which errors are propagated, for messages up to
    /// `message`, capped at [`FOLDED`].
    pub(crate) fn inputs(&self, message: f64) -> impl Iterator<Item = f64> + '_ {
        let message = message.clamp(self.message, FOLDED.max(self.message));
        let messages = move || (-2..=2).map(move |part| message * f64::from(part) / 2.0);
        (-(self.k as i64)..=self.k as i64)
            .flat_map(move |integer| messages().map(move |mu| integer as f64 + mu - 0.25))
            .map(|shifted| shifted / self.half_width())
    }

    /// A bound on the error for messages up to `message`, which may exceed [`Self::message`], in units of `q_0`. Up to
    /// `FOLDED` the error is measured. Beyond, where the sine confuses messages, the bound is the circuit's largest
    /// output plus the message.
    pub fn error_up_to(&self, message: f64) -> f64 {
        if message <= self.message {
            return self.error;
        }
        if message <= FOLDED {
            return self.error.max(self.measure(message, 4 * GRID));
        }
        // |T_k| <= T_k(|y|) for |y| > 1 in the Chebyshev basis; sums of absolute values from there.
        let y = ((self.k as f64 + message + 0.25) / self.half_width()).max(1.0);
        let powers = self.cosine.coefficients().iter().enumerate();
        let cosine: f64 = powers.map(|(k, c)| c.abs() * (k as f64 * y.acosh()).cosh().min(f64::MAX)).sum();
        let sine = (0..self.double_angles).fold(cosine, |c, _| 2.0 * c * c + 1.0);
        let arcsine: f64 = self
            .arcsine
            .coefficients()
            .iter()
            .enumerate()
            .map(|(k, c)| c.abs() * sine.powi(k as i32).min(f64::MAX))
            .sum();
        (arcsine + message).min(f64::MAX)
    }

    /// Sum of the absolute values of the cosine's coefficients.
    fn coefficients(&self) -> f64 {
        self.cosine.coefficients().iter().map(|c| c.abs()).sum()
    }

    /// Bits of the error relative to the largest message.
    pub fn bits(&self) -> f64 {
        (self.message / self.error).log2()
    }

    /// The largest error of messages up to `largest_message` on a grid of that many points for each sign.
    fn measure(&self, largest_message: f64, grid: i32) -> f64 {
        let mut largest = 0.0f64;
        for integer in -(self.k as i64)..=self.k as i64 {
            for point in -grid..=grid {
                let message = largest_message * f64::from(point) / f64::from(grid);
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

/// `cos(2 pi (x - 1/4) / 2^r)` on the neighbourhoods of integers, in the Chebyshev basis of `y = (x - 1/4) / W`.
fn cosine(k: usize, message: f64, degree: usize, double_angles: u32) -> Result<Polynomial, CircuitError> {
    let step = if degree.is_multiple_of(2) { 2 } else { 1 };
    let half_width = half_width(k, message);
    let rate = 2.0 * PI / f64::from(double_angles).exp2();
    let (mut rows, mut values) = (Vec::new(), Vec::new());
    for integer in -(k as i64)..=k as i64 {
        for point in 0..FIT_POINTS {
            let mu = message * (PI * (point as f64 + 0.5) / FIT_POINTS as f64).cos();
            let shifted = integer as f64 + mu - 0.25;
            let angle = (shifted / half_width).acos();
            rows.push((0..=degree).step_by(step).map(|j| (j as f64 * angle).cos()).collect());
            values.push((rate * shifted).cos());
        }
    }
    let mut coefficients = vec![0.0; degree + 1];
    let solution = least_squares::solve(&rows, &values, RIDGE);
    coefficients.iter_mut().step_by(step).zip(solution).for_each(|(c, solved)| *c = solved);
    Polynomial::new(Basis::chebyshev(-1.0, 1.0)?, coefficients)
}

/// The largest error of an arcsine for exact sines, in units of `q_0`.
fn arcsine_error(message: f64, arcsine: &Polynomial) -> f64 {
    (0..=GRID)
        .map(|point| message * f64::from(point) / f64::from(GRID))
        .map(|mu| (arcsine.value((2.0 * PI * mu).sin()) - mu).abs())
        .fold(0.0, f64::max)
}

/// The [`arcsine_error`] of the best degree.
fn last_error(message: f64) -> Result<f64, CircuitError> {
    Ok(arcsine_error(message, &arcsine(message, ARCSINE_DEGREES[ARCSINE_DEGREES.len() - 1])?))
}

/// `arcsin(s) / (2 pi)` on `|s| <= sin(2 pi message)`, odd, interpolated at Chebyshev nodes, in powers of `s`.
fn arcsine(message: f64, degree: usize) -> Result<Polynomial, CircuitError> {
    if !(message > 0.0 && message < 0.25) {
        return Err(CircuitError::Interval { a: -message, b: message });
    }
    if degree.is_multiple_of(2) || degree > 7 {
        return Err(CircuitError::Count { what: "degree of an arcsine, odd", count: degree, min: 1, max: 7 });
    }
    let end = (2.0 * PI * message).sin();
    // The even coefficient above an odd degree is zero: with one node more the error begins with T_(degree + 2).
    let arcsine = chebyshev_interpolate(|s| s.asin() / (2.0 * PI), -end, end, degree + 1)?.polynomial;
    // T_(k+1) = 2 y T_k - T_(k-1), in powers of y.
    let (mut before, mut current) = (vec![1.0], vec![0.0, 1.0]);
    let mut powers = vec![0.0; degree + 1];
    for &c in arcsine.coefficients().iter().skip(1) {
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
        let sine = SineApproximation::new(12, eps, 62, 2, 1).unwrap();
        let expected = PI * PI * eps * eps / 6.0;
        assert!((sine.error / eps / expected - 1.0).abs() < 0.05, "{:e} {expected:e}", sine.error / eps);
        assert!(!sine.has_arcsine());
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
    fn fitting_neighbourhoods_gains_over_interpolation() {
        // Interpolation on the whole interval, as the reference: degree 62, one double angle.
        let (k, eps) = (12, 1.0 / 64.0);
        let width = half_width(k, eps);
        let whole = chebyshev_interpolate(|y| (PI * width * y).cos(), -1.0, 1.0, 62).unwrap().polynomial;
        let even = SineApproximation::new(k, eps, 62, 1, 7).unwrap();
        let whole = SineApproximation { cosine: whole, ..even.clone() }.measure(eps, GRID);
        let odd = SineApproximation::new(k, eps, 63, 1, 7).unwrap();
        assert!(even.error < whole / 3.0, "{:e} {whole:e}", even.error);
        assert!(odd.error < even.error / 64.0, "{:e} {:e}", odd.error, even.error);
        assert!(even.cosine.coefficients().iter().skip(1).step_by(2).all(|&c| c == 0.0));
        // Coefficients amplify errors of evaluation, so they must stay small.
        for sine in [even, odd] {
            assert!(sine.cosine.coefficients().iter().map(|c| c.abs()).sum::<f64>() < 8.0);
        }
    }

    #[test]
    fn choices_are_minimal_and_precise() {
        for (ratio, bits) in [(32.0, 20.0), (32.0, 27.0), (256.0, 30.0), (1024.0, 16.0)] {
            let list = SineApproximation::pareto(12, 1.0 / ratio, bits).unwrap();
            assert!(list.windows(2).all(|pair| pair[0].depth() < pair[1].depth()
                && pair[0].relinearizations() > pair[1].relinearizations()));
            for sine in list {
                assert!(sine.bits() >= bits);
                // Between the points of the grid, too.
                for i in 0..1000 {
                    let (integer, mu) =
                        ((i % 25) as f64 - 12.0, sine.message * ((i as f64 * 0.618) % 2.0 - 1.0));
                    let error = (sine.value(integer + mu) - mu).abs();
                    assert!(error <= 1.1 * sine.error, "{ratio} {bits} {integer} {mu}: {error:e}");
                }
            }
        }
    }

    #[test]
    fn misuse_is_refused() {
        for bits in [30.0, 60.0] {
            let error = SineApproximation::pareto(12, 1.0 / 8.0, bits).unwrap_err();
            assert!(
                matches!(error, CircuitError::Precision { best, .. } if best > 10.0 && best < bits),
                "{error}"
            );
        }
        assert!(matches!(SineApproximation::new(12, 0.3, 30, 2, 1), Err(CircuitError::Interval { .. })));
        assert!(matches!(
            SineApproximation::new(12, 0.01, 0, 2, 1),
            Err(CircuitError::Count { count: 0, .. })
        ));
        assert!(matches!(
            SineApproximation::new(12, 0.01, 128, 2, 1),
            Err(CircuitError::Count { count: 128, .. })
        ));
        for (k, angles) in [(usize::MAX, 2), (MAX_WEIGHT + 1, 2), (12, 128), (12, u32::MAX)] {
            let error = SineApproximation::new(k, 0.01, 30, angles, 1);
            assert!(matches!(error, Err(CircuitError::Count { .. })), "{k} {angles}");
        }
        for arcsine in [2, 9] {
            assert!(matches!(
                SineApproximation::new(12, 0.01, 30, 2, arcsine),
                Err(CircuitError::Count { .. })
            ));
        }
    }

    #[test]
    fn choices_of_the_documentation() {
        type Row = (usize, usize, usize, u32, usize);
        let table: [(usize, i32, f64, &[Row]); 5] = [
            (12, 5, 26.0, &[(10, 16, 62, 1, 7), (11, 14, 40, 2, 7)]),
            (12, 6, 32.0, &[(10, 17, 108, 0, 7), (11, 15, 42, 2, 7), (12, 14, 22, 4, 7)]),
            (12, 7, 22.0, &[(9, 13, 60, 1, 3), (10, 12, 38, 2, 3)]),
            (15, 5, 26.0, &[(10, 19, 124, 0, 7), (11, 15, 46, 2, 7), (12, 14, 22, 4, 7)]),
            (16, 5, 26.0, &[(11, 15, 48, 2, 7), (12, 14, 22, 4, 7)]),
        ];
        for (k, log_ratio, bits, rows) in table {
            let sines = SineApproximation::pareto(k, 2f64.powi(-log_ratio), bits).unwrap();
            let pareto: Vec<Row> = sines
                .iter()
                .map(|f| {
                    let degrees = (f.cosine.degree(), f.double_angles, f.arcsine.degree());
                    (f.depth(), f.relinearizations(), degrees.0, degrees.1, degrees.2)
                })
                .collect();
            assert_eq!(pareto, rows, "K = {k}, 2^{log_ratio}, {bits} bits");
        }
        let usual = SineApproximation::new(16, 1.0 / 1024.0, 30, 3, 1).unwrap();
        assert_eq!((usual.depth(), usual.relinearizations()), (8, 11));
    }
}
