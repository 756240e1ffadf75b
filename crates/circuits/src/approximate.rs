//! Polynomial approximation of functions on an interval.

use std::f64::consts::PI;

use crate::CircuitError;
use crate::polynomial::{Basis, Polynomial};

/// A polynomial that approximates a function, and its error.
#[derive(Debug, Clone, PartialEq)]
pub struct Approximation {
    /// In the Chebyshev basis of the interval.
    pub polynomial: Polynomial,
    /// Largest error at `64 (degree + 1) + 1` points, equispaced in angle, ends included.
    pub max_error: f64,
}

/// Relative difference of samples below which a function counts as even or odd: the rounding of the function itself.
const SYMMETRY: f64 = 1.0 / (1u64 << 48) as f64;

/// Interpolates `f` at the Chebyshev nodes of `[a, b]`: within a factor of `2 + (2/pi) ln(degree + 1)` of the best
/// approximation (Trefethen, Approximation Theory and Approximation Practice, chapter 15). If the samples are even or
/// odd about 0, coefficients of the other parity are exactly zero.
///
/// # Errors
/// [`CircuitError::Interval`]; [`CircuitError::NotFinite`] where `f` is not finite.
pub fn chebyshev_interpolate(
    f: impl Fn(f64) -> f64,
    a: f64,
    b: f64,
    degree: usize,
) -> Result<Approximation, CircuitError> {
    let basis = Basis::chebyshev(a, b)?;
    let count = degree + 1;
    let at = |y: f64| {
        // Each end is met exactly, and symmetric intervals have symmetric points.
        let x = 0.5 * (a * (1.0 - y) + b * (1.0 + y));
        (x, f(x))
    };
    // Nodes form exact opposites in pairs, and a middle one is exactly 0.
    let node = |j: usize| {
        let cosine = |j: usize| (PI * (j as f64 + 0.5) / count as f64).cos();
        match (2 * j + 1).cmp(&count) {
            std::cmp::Ordering::Less => cosine(j),
            std::cmp::Ordering::Equal => 0.0,
            std::cmp::Ordering::Greater => -cosine(degree - j),
        }
    };
    let samples: Vec<f64> = (0..count).map(|j| at(node(j)).1).collect();
    if let Some((index, &value)) = samples.iter().enumerate().find(|(_, v)| !v.is_finite()) {
        return Err(CircuitError::NotFinite { what: "the function at Chebyshev node", index, value });
    }
    let largest = samples.iter().fold(0.0f64, |m, v| m.max(v.abs()));
    let symmetric = |sign: f64| {
        a == -b
            && samples
                .iter()
                .zip(samples.iter().rev())
                .all(|(x, y)| (x - sign * y).abs() <= SYMMETRY * largest)
    };
    let (even, odd) = (symmetric(1.0), symmetric(-1.0));
    let coefficients = (0..count)
        .map(|k| {
            if (even && k % 2 == 1) || (odd && k % 2 == 0) {
                return 0.0;
            }
            // The angle is reduced in integers: k (2j + 1) modulo 4 count.
            let angle = |j: usize| PI * ((k * (2 * j + 1)) % (4 * count)) as f64 / (2 * count) as f64;
            let sum: f64 = samples.iter().enumerate().map(|(j, v)| v * angle(j).cos()).sum();
            if k == 0 { sum / count as f64 } else { 2.0 * sum / count as f64 }
        })
        .collect();
    let polynomial = Polynomial::new(basis, coefficients)?;
    let grid = 64 * count;
    let mut max_error = 0.0f64;
    for index in 0..=grid {
        let (x, value) = at((PI * index as f64 / grid as f64).cos());
        if !value.is_finite() {
            return Err(CircuitError::NotFinite { what: "the function at grid point", index, value });
        }
        max_error = max_error.max((value - polynomial.value(x)).abs());
    }
    Ok(Approximation { polynomial, max_error })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polynomials_are_found_exactly() {
        let f = |x: f64| 1.0 - 3.0 * x + 0.5 * x.powi(3);
        let approximation = chebyshev_interpolate(f, -2.0, 5.0, 3).unwrap();
        assert!(approximation.max_error < 1e-13, "{}", approximation.max_error);
        assert!((approximation.polynomial.value(1.25) - f(1.25)).abs() < 1e-13);
    }

    #[test]
    fn parity_and_convergence() {
        let tanh = |degree| chebyshev_interpolate(f64::tanh, -3.0, 3.0, degree).unwrap();
        assert!(tanh(15).polynomial.coefficients().iter().step_by(2).all(|&c| c == 0.0));
        // The nearest singularity is i pi/2: errors fall by 1/(r + sqrt(r^2 + 1)) per degree, r = pi/6.
        let rate = (PI / 6.0 + (PI * PI / 36.0 + 1.0).sqrt()).recip();
        let (coarse, fine) = (tanh(15).max_error, tanh(31).max_error);
        assert!(
            fine < coarse * rate.powi(16) * 2.0 && fine > coarse * rate.powi(16) / 2.0,
            "{coarse} {fine}"
        );
        let cosh = chebyshev_interpolate(f64::cosh, -1.0, 1.0, 10).unwrap();
        assert!(cosh.polynomial.coefficients().iter().skip(1).step_by(2).all(|&c| c == 0.0));
        // On an asymmetric interval both parities occur.
        let shifted = chebyshev_interpolate(f64::cosh, -1.0, 2.0, 10).unwrap();
        assert!(shifted.polynomial.coefficients().iter().all(|&c| c != 0.0));
    }

    #[test]
    fn poles_and_empty_intervals_are_refused() {
        assert!(matches!(
            chebyshev_interpolate(|x| 1.0 / x, -1.0, 1.0, 4),
            Err(CircuitError::NotFinite { index: 2, .. })
        ));
        for (a, b) in [(1.0, 1.0), (2.0, 1.0), (f64::NAN, 1.0), (0.0, f64::INFINITY)] {
            assert!(matches!(chebyshev_interpolate(f64::sin, a, b, 4), Err(CircuitError::Interval { .. })));
        }
    }
}
