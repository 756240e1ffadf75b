//! Polynomial evaluation in the fewest levels: [`degree_depth`].
//!
//! The coefficients are divided recursively by powers `X^g`, `g` a power of two (Paterson and Stockmeyer 1973; in the
//! Chebyshev basis by `T_g`, with `2 T_a T_b = T_{a+b} + T_{|a-b|}`). All quotients at one depth of the recursion are
//! summed before the sum is relinearized and rescaled:
//!
//! ```text
//! node_D = rescale( relinearize( sum_i node_{D-1,i} X^{g_i} + sum_k c_k X^k ) ) + c_0,
//! ```
//!
//! so that a node costs one key switch however many products it sums, or none if it has only terms `c_k X^k`. Every
//! power is relinearized before it is rescaled: the rounding of a division meets `s^2` in a ciphertext of degree 2, and
//! is `sqrt(2 |s|^2)` times larger there.
//!
//! # Scales
//! `X^k` has the scale that its products give it. A node is asked for a scale `S`; with `q` the prime that its
//! rescaling removes, each of its products must have scale `S q`, so the quotient `node_i` is asked for scale
//! `S q / scale(X^{g_i})`, and the constant `c_k` is encoded at scale `S q / scale(X^k)`. The result has the scale
//! asked for, and nothing is spent on adjusting scales (the target scales of Bossuat et al. 2021, section 5). The
//! primes should be close to the scale of the input: `X^k` is at scale `D (D/q)^(k-1)` for an input at scale `D`.
//!
//! # Error
//! Each power and each node adds an error of its own: that of its key switch and rounding at its scale, and half a unit
//! for each constant, for values that are known of polynomials: `|T_k| <= 1` on the interval, and a node is bounded by
//! the sum of its coefficients' absolute values, times those of their powers. What these errors and that of the input
//! do to the result is found by differentiating the plan: on a grid of the interval, or of all that the input may be,
//! for real values in the Chebyshev basis; with bounds on the absolute values of powers and the absolute values of
//! coefficients in the monomial basis and for complex values.

mod evaluate;
mod plan;
mod rounding;
mod scratch;
mod sensitivity;
mod sum;

pub use evaluate::evaluate;
pub(crate) use evaluate::{check, double_angle, evaluate_at};
pub use plan::{Node, PolynomialPlan, Power, degree_depth};
pub(crate) use rounding::Roundings;
pub use rounding::rounding_gains;

use crate::CircuitError;

/// What coefficients multiply.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Basis {
    /// Powers `x^k`.
    Monomial,
    /// `T_k(y)` for `y = (2 x - a - b) / (b - a)`. Outside `[a, b]` Chebyshev polynomials grow fast, and estimates with
    /// them: where the input may be larger than both ends, or complex, they follow the bound on its absolute values. An
    /// input that is not must be in the interval. The change of variable costs a level unless `b - a = 2`.
    Chebyshev {
        /// Lower end.
        a: f64,
        /// Upper end.
        b: f64,
    },
}

impl Basis {
    /// The Chebyshev basis of an interval.
    ///
    /// # Errors
    /// [`CircuitError::Interval`] unless `a < b` are finite.
    pub fn chebyshev(a: f64, b: f64) -> Result<Self, CircuitError> {
        let basis = Self::Chebyshev { a, b };
        basis.check().map(|()| basis)
    }

    fn check(self) -> Result<(), CircuitError> {
        match self {
            Self::Chebyshev { a, b } if !(a < b && (b - a).is_finite()) => {
                Err(CircuitError::Interval { a, b })
            }
            _ => Ok(()),
        }
    }

    /// `(w, t)` of the change of variable `y = w x + t`.
    fn change_of_variable(self) -> (f64, f64) {
        match self {
            Self::Monomial => (1.0, 0.0),
            Self::Chebyshev { a, b } => (2.0 / (b - a), -(a + b) / (b - a)),
        }
    }
}

/// A value that slots may have, and the standard deviation of its error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Point {
    pub(crate) value: f64,
    pub(crate) deviation: f64,
}

/// A real polynomial.
#[derive(Debug, Clone, PartialEq)]
pub struct Polynomial {
    basis: Basis,
    coefficients: Vec<f64>,
}

impl Polynomial {
    /// From coefficients, the constant first. Zeros at the end are dropped.
    ///
    /// # Errors
    /// [`CircuitError::NotFinite`] for a coefficient, [`CircuitError::Interval`].
    pub fn new(basis: Basis, mut coefficients: Vec<f64>) -> Result<Self, CircuitError> {
        basis.check()?;
        if let Some((index, &value)) = coefficients.iter().enumerate().find(|(_, c)| !c.is_finite()) {
            return Err(CircuitError::NotFinite { what: "coefficient", index, value });
        }
        while coefficients.last() == Some(&0.0) {
            coefficients.pop();
        }
        Ok(Self { basis, coefficients })
    }

    /// The basis.
    pub fn basis(&self) -> Basis {
        self.basis
    }

    /// Coefficients, the constant first, without zeros at the end.
    pub fn coefficients(&self) -> &[f64] {
        &self.coefficients
    }

    /// Degree; 0 for the zero polynomial.
    pub fn degree(&self) -> usize {
        self.coefficients.len().saturating_sub(1)
    }

    /// The value at `x`, by Horner's or Clenshaw's scheme.
    pub fn value(&self, x: f64) -> f64 {
        match self.basis {
            Basis::Monomial => self.coefficients.iter().rev().fold(0.0, |sum, c| sum * x + c),
            Basis::Chebyshev { .. } => {
                let (w, t) = self.basis.change_of_variable();
                let y = w * x + t;
                let Some((constant, rest)) = self.coefficients.split_first() else { return 0.0 };
                let (b1, b2) = rest.iter().rev().fold((0.0, 0.0), |(b1, b2), c| (c + 2.0 * y * b1 - b2, b1));
                constant + y * b1 - b2
            }
        }
    }
}
