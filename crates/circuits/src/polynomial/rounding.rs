//! The effect of a planned evaluation's roundings on its result, before there is a ciphertext: the scales of all steps
//! and their derivatives.

use std::collections::BTreeMap;

use keywright_ckks::CkksError;
use keywright_rlwe::Parameters;

use super::Point;
use super::plan::{Node, PolynomialPlan, Power};
use super::sensitivity::{Differentiation, StepErrors};
use crate::CircuitError;

/// The steps of one evaluation, each with the error of its rounding in units of its value.
pub(crate) struct Roundings<'p> {
    plan: &'p PolynomialPlan,
    errors: StepErrors,
}

impl<'p> Roundings<'p> {
    /// For a variable at a level and scale, and a result at exactly `scale`, as [`super::evaluate_at`] computes them.
    /// `unit` is the deviation of a rounding at scale 1. `None` for a plan with more levels than there are.
    pub(crate) fn new(
        plan: &'p PolynomialPlan,
        parameters: &Parameters,
        level: usize,
        variable_scale: f64,
        scale: f64,
        unit: f64,
    ) -> Self {
        let prime = |below: usize| level.checked_sub(below).map_or(1.0, |i| parameters.log2_prime(i).exp2());
        let mut scales = BTreeMap::from([(1, variable_scale)]);
        let mut errors = StepErrors::default();
        for &Power { exponent, factors: (a, b), depth } in plan.powers() {
            let scale = scales[&a] * scales[&b] / prime(depth - 1);
            errors.powers.insert(exponent, unit / scale);
            scales.insert(exponent, scale);
        }
        if let Some(root) = plan.root() {
            nodes(root, scale, unit, &scales, &prime, &mut errors.nodes);
        }
        Self { plan, errors }
    }

    /// Value of the polynomial and deviation of its error, for a variable with a value and an error.
    pub(crate) fn reach(&self, at: Point) -> Point {
        let constant = Point { value: self.plan.constant(), deviation: 0.0 };
        self.plan.root().map_or(constant, |root| {
            Differentiation::new(self.plan, at.value).run(root, &self.errors, at.deviation)
        })
    }
}

/// The factor by which one evaluation of a planned polynomial amplifies a rounding at scale 1, for each of some real
/// values of the input: the deviation that its steps add to the result for roundings of unit deviation.
///
/// The input is at a level and scale and the result at exactly `scale`, as in [`super::evaluate`]. Relinearizations are
/// not counted: each is divided by the prime of the rescaling.
///
/// # Errors
/// [`CkksError::LevelsExhausted`] for a level below the depth of the plan, [`keywright_rlwe::RlweError::Level`] for one
/// that does not exist.
pub fn rounding_gains(
    plan: &PolynomialPlan,
    parameters: &Parameters,
    level: usize,
    input_scale: f64,
    scale: f64,
    values: &[f64],
) -> Result<Vec<f64>, CircuitError> {
    parameters.require_level(level)?;
    let needed = plan.depth();
    if needed > level {
        let operation = "polynomial evaluation";
        return Err(CkksError::LevelsExhausted { operation, needed, available: level }.into());
    }
    let (factor, shift) = plan.basis().change_of_variable();
    // A change of variable that multiplies ends with a rounding of its own.
    let deviation = if plan.change_depth() > 0 { 1.0 / input_scale } else { 0.0 };
    let roundings = Roundings::new(plan, parameters, level - plan.change_depth(), input_scale, scale, 1.0);
    let at = |value: &f64| roundings.reach(Point { value: factor * value + shift, deviation }).deviation;
    Ok(values.iter().map(at).collect())
}

/// Errors of a node and its quotients in the order of completion.
fn nodes(
    node: &Node,
    scale: f64,
    unit: f64,
    powers: &BTreeMap<usize, f64>,
    prime: &dyn Fn(usize) -> f64,
    errors: &mut Vec<f64>,
) {
    let before = scale * prime(node.depth - 1);
    for (quotient, exponent) in &node.products {
        nodes(quotient, before / powers[exponent], unit, powers, prime, errors);
    }
    errors.push(unit / scale);
}
