//! Polynomial evaluation with the fewest levels: [`degree_depth`].
//!
//! The coefficients are divided recursively by powers `X^g`, `g` a power of two (Paterson and Stockmeyer 1973; in the
//! Chebyshev basis by `T_g`, with `2 T_a T_b = T_{a+b} + T_{|a-b|}`). All quotients at one depth of the recursion are
//! summed before the sum is relinearized and rescaled:
//!
//! ```text
//! node_D = rescale( relinearize( sum_i node_{D-1,i} X^{g_i} + sum_k c_k X^k ) ) + c_0,
//! ```
//!
//! so a node costs one key switch for any number of products, or none if it has only terms `c_k X^k`. Every power is
//! relinearized before it is rescaled: in a ciphertext of degree 2 the rounding of a division is multiplied by `s^2`,
//! which makes it `sqrt(2 |s|^2)` times larger.
//!
//! # Scales
//! `X^k` has the scale of its products. A node has a required scale `S`. With `q` the prime that its rescaling removes,
//! each of its products must have scale `S q`, so the quotient `node_i` has the required scale `S q / scale(X^{g_i})`,
//! and the constant `c_k` is encoded at scale `S q / scale(X^k)`. The result has exactly the required scale, and no
//! level is spent on adjusting scales (the target scales of Bossuat et al. 2021, section 5). The primes should be close
//! to the scale of the input: `X^k` is at scale `D (D/q)^(k-1)` for an input at scale `D`.
//!
//! # Error
//! Each power and each node adds its own error: that of its key switch and rounding at its scale, and half a unit for
//! each constant. These are computed for known bounds of the values: `|T_k| <= 1` on the interval, and a node is
//! bounded by the sum of its coefficients' absolute values, times those of their powers. Differentiating the plan gives
//! the effect of these errors and of the input's error on the result. For real values in the Chebyshev basis this is
//! done on a grid of the interval, or of the whole range of the input. In the monomial basis and for complex values it
//! uses bounds on the absolute values of powers and the absolute values of coefficients.

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

/// The functions that coefficients multiply.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Basis {
    /// Powers `x^k`.
    Monomial,
    /// `T_k(y)` for `y = (2 x - a - b) / (b - a)`. Outside `[a, b]` Chebyshev polynomials grow fast, and so do
    /// estimates: if the input may exceed both ends, or be complex, they follow the bound on its absolute values. Any
    /// other input must be in the interval. The change of variable costs a level unless `b - a = 2`.
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
    /// Makes a polynomial from coefficients, the constant first. Drops trailing zeros.
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

    /// Coefficients, the constant first, without trailing zeros.
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
