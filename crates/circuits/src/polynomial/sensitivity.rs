//! The effect of intermediate errors on the result of a planned polynomial.
//!
//! With `x` the (changed) variable, every power and every node is a step that adds its own error: rounding, key
//! switching, and half a unit for constants. To first order the error of the result is
//!
//! ```text
//! p'(x) e_x + sum_k (dp / dX^k) e_k + sum_j (dp / dnode_j) e_j,
//! ```
//!
//! with the derivatives taken through every later step. One forward pass over the plan gives the values, and one
//! backward pass the derivatives (reverse-mode differentiation), at every point of interest. Errors of different steps
//! are independent, so their squares are added; the variable's error is a single error, no matter how often it is used.
//! The effect of steps on each other's errors is of second order: products of two errors, each about `2^-30` in
//! practice.

use std::collections::BTreeMap;

use super::plan::{Node, PolynomialPlan, Power};
use super::{Basis, Point};

/// Standard deviations of the errors that the steps add, in units of their values.
#[derive(Debug, Clone, Default)]
pub(super) struct StepErrors {
    /// By exponent.
    pub(super) powers: BTreeMap<usize, f64>,
    /// In the order of completion: quotients before the node that multiplies them.
    pub(super) nodes: Vec<f64>,
}

/// Values of a node and of its quotients.
struct Evaluated {
    value: f64,
    quotients: Vec<Evaluated>,
}

/// One point of one plan. With `absolute`, it takes absolute values of coefficients, powers and derivatives: a bound at
/// all points for which the powers are bounded.
pub(super) struct Differentiation<'p> {
    plan: &'p PolynomialPlan,
    absolute: bool,
    values: BTreeMap<usize, f64>,
    derivatives: BTreeMap<usize, f64>,
}

impl<'p> Differentiation<'p> {
    pub(super) fn new(plan: &'p PolynomialPlan, x: f64) -> Self {
        let mut values = BTreeMap::from([(1, x)]);
        for &Power { exponent, factors: (a, b), .. } in plan.powers() {
            let product = values[&a] * values[&b];
            let value = match plan.basis() {
                Basis::Monomial => product,
                Basis::Chebyshev { .. } if a == b => 2.0 * product - 1.0,
                Basis::Chebyshev { .. } => 2.0 * product - values[&(a - b)],
            };
            values.insert(exponent, value);
        }
        Self { plan, absolute: false, values, derivatives: BTreeMap::new() }
    }

    /// A bound for all points at which `bound` bounds the absolute value of each power.
    pub(super) fn bounding(plan: &'p PolynomialPlan, bound: impl Fn(usize) -> f64) -> Self {
        let exponents = std::iter::once(1).chain(plan.powers().iter().map(|power| power.exponent));
        let values = exponents.map(|exponent| (exponent, bound(exponent))).collect();
        Self { plan, absolute: true, values, derivatives: BTreeMap::new() }
    }

    /// In the monomial basis, a bound for every point whose absolute value is at most `x`; in the Chebyshev basis, the
    /// point `x`.
    pub(super) fn absolute(plan: &'p PolynomialPlan, x: f64) -> Self {
        match plan.basis() {
            Basis::Monomial => Self::bounding(plan, |exponent| x.abs().powi(exponent as i32)),
            Basis::Chebyshev { .. } => Self::new(plan, x),
        }
    }

    fn coefficient(&self, c: f64) -> f64 {
        if self.absolute { c.abs() } else { c }
    }

    fn evaluate(&self, node: &Node) -> Evaluated {
        let quotients: Vec<_> = node.products.iter().map(|(quotient, _)| self.evaluate(quotient)).collect();
        let products = quotients.iter().zip(&node.products).map(|(q, (_, k))| q.value * self.values[k]);
        let terms = node.terms.iter().map(|&(k, c)| self.coefficient(c) * self.values[&k]);
        let value = self.coefficient(node.constant) + products.sum::<f64>() + terms.sum::<f64>();
        Evaluated { value, quotients }
    }

    fn add(&mut self, exponent: usize, derivative: f64) {
        *self.derivatives.entry(exponent).or_insert(0.0) += derivative;
    }

    /// Adds a node's derivatives to those of the powers, and its own error and that of its quotients to the sum of
    /// squares.
    fn differentiate(
        &mut self,
        node: &Node,
        evaluated: &Evaluated,
        derivative: f64,
        errors: &mut std::slice::Iter<'_, f64>,
        sum: &mut f64,
    ) {
        for ((quotient, exponent), value) in node.products.iter().zip(&evaluated.quotients) {
            self.add(*exponent, derivative * value.value);
            let inner = derivative * self.values[exponent];
            self.differentiate(quotient, value, inner, errors, sum);
        }
        for &(exponent, c) in &node.terms {
            self.add(exponent, derivative * self.coefficient(c));
        }
        *sum += (derivative * errors.next().copied().unwrap_or(0.0)).powi(2);
    }

    /// Value of the polynomial and standard deviation of its error, for a variable with an error.
    pub(super) fn run(mut self, root: &Node, errors: &StepErrors, deviation: f64) -> Point {
        let evaluated = self.evaluate(root);
        let mut sum = 0.0;
        self.differentiate(root, &evaluated, 1.0, &mut errors.nodes.iter(), &mut sum);
        for &Power { exponent, factors: (a, b), .. } in self.plan.powers().iter().rev() {
            let derivative = self.derivatives.remove(&exponent).unwrap_or(0.0);
            sum += (derivative * errors.powers.get(&exponent).copied().unwrap_or(0.0)).powi(2);
            let (of_a, of_b) = (self.values[&a], self.values[&b]);
            let factor = if self.plan.basis() == Basis::Monomial { 1.0 } else { 2.0 };
            self.add(a, factor * derivative * of_b);
            self.add(b, factor * derivative * of_a);
            if self.plan.basis() != Basis::Monomial && a != b {
                self.add(a - b, if self.absolute { derivative } else { -derivative });
            }
        }
        sum += (self.derivatives.get(&1).copied().unwrap_or(0.0) * deviation).powi(2);
        Point { value: evaluated.value, deviation: sum.sqrt() }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Polynomial;
    use super::*;

    fn plan(basis: Basis, degree: usize) -> PolynomialPlan {
        let coefficients = (0..=degree).map(|k| ((k * k + 1) as f64 * 0.37).sin()).collect();
        PolynomialPlan::new(&Polynomial::new(basis, coefficients).unwrap())
    }

    fn run(plan: &PolynomialPlan, x: f64, errors: &StepErrors, deviation: f64) -> Point {
        Differentiation::absolute(plan, x).run(plan.root().unwrap(), errors, deviation)
    }

    #[test]
    fn the_variable_is_amplified_by_the_derivative() {
        let basis = Basis::Chebyshev { a: -1.0, b: 1.0 };
        for degree in [1, 2, 7, 30, 63] {
            let plan = plan(basis, degree);
            for x in [-0.9, -0.1, 0.45] {
                let h = 1e-6;
                let at = |x| run(&plan, x, &StepErrors::default(), 1.0);
                let slope = (at(x + h).value - at(x - h).value) / (2.0 * h);
                let result = at(x).deviation;
                assert!((result / slope.abs() - 1.0).abs() < 1e-5, "{degree} {x}: {result} {slope}");
            }
        }
    }

    #[test]
    fn a_point_has_the_value_and_the_slope_of_its_sign() {
        let polynomial = Polynomial::new(Basis::Monomial, vec![0.3, -1.0, 0.5, 2.0]).unwrap();
        let plan = PolynomialPlan::new(&polynomial);
        for x in [-0.7, 0.4] {
            let result =
                Differentiation::new(&plan, x).run(plan.root().unwrap(), &StepErrors::default(), 1.0);
            let slope: f64 = -1.0 + x + 6.0 * x * x;
            assert!((result.value - polynomial.value(x)).abs() < 1e-12);
            assert!((result.deviation - slope.abs()).abs() < 1e-12, "{x}: {result:?}");
        }
    }

    #[test]
    fn steps_are_amplified_by_what_is_made_of_them() {
        // x^3 = (x^2) x: x multiplies the error of x^2; that of the only node counts unchanged.
        let cube = Polynomial::new(Basis::Monomial, vec![0.0, 0.0, 0.0, 1.0]).unwrap();
        let plan = PolynomialPlan::new(&cube);
        let powers: Vec<_> = plan.powers().iter().map(|p| p.exponent).collect();
        let errors = StepErrors { powers: powers.iter().map(|&k| (k, 3.0)).collect(), nodes: vec![0.0; 8] };
        let result = run(&plan, 0.5, &errors, 0.0).deviation;
        let expected = if powers.contains(&3) { 3.0f64.hypot(3.0 * 0.5) } else { 3.0 * 0.5 };
        assert!((result - expected).abs() < 1e-12, "{result} {powers:?}");
        let errors = StepErrors { nodes: vec![2.0; 8], ..StepErrors::default() };
        assert!(run(&plan, 0.5, &errors, 0.0).deviation >= 2.0);
    }

    #[test]
    fn absolute_coefficients_bound_complex_variables() {
        let plan = plan(Basis::Monomial, 12);
        let bound: f64 = (0..=12).map(|k| ((k * k + 1) as f64 * 0.37).sin().abs() * 0.8f64.powi(k)).sum();
        let result = run(&plan, 0.8, &StepErrors::default(), 0.0);
        assert!((result.value - bound).abs() < 1e-12);
    }
}
