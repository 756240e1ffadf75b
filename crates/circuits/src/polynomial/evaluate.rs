use std::collections::BTreeMap;

use keywright_ckks::{Ciphertext, CkksError, ErrorEstimate, Evaluator, Packing};
use keywright_rlwe::KeyElement;

use super::plan::{Node, PolynomialPlan, Power};
use super::sensitivity::{Differentiation, StepErrors};
use super::sum::{Term, accumulate};
use super::{Basis, Point};
use crate::CircuitError;

/// Powers of the variable computed so far, for one input.
struct Powers<'e, 'k> {
    evaluator: &'e Evaluator<'k>,
    basis: Basis,
    /// Level of the variable.
    top: usize,
    by_exponent: BTreeMap<usize, Ciphertext>,
    /// Errors that the steps added so far. The estimates of powers carry none: the end computes their effect on the
    /// result.
    errors: StepErrors,
}

/// Evaluates a planned polynomial on every slot. The result is [`PolynomialPlan::depth`] levels below the input, at
/// exactly the given scale, or at the input's scale if none is given.
///
/// # Errors
/// Before anything is computed: [`CkksError::LevelsExhausted`], a missing relinearization key, [`CkksError::Degree`],
/// [`CkksError::PackingMismatch`] for coefficient packing, mixed parameters. [`CkksError::Scale`] if scales leave the
/// modulus; they drift with the ratio of the input's scale to the primes.
pub fn evaluate(
    evaluator: &Evaluator<'_>,
    plan: &PolynomialPlan,
    input: &Ciphertext,
    scale: Option<f64>,
) -> Result<Ciphertext, CircuitError> {
    let scale = scale.unwrap_or(input.scale);
    check(evaluator, plan, input, scale)?;
    let Some(root) = plan.root() else {
        let mut zero = evaluator.mul_integer(input, 0)?;
        zero.scale = scale;
        return Ok(evaluator.add_constant(&zero, plan.constant())?);
    };
    let variable = change_variable(evaluator, plan, input)?;
    let estimate = variable.estimate;
    let (mut out, errors) = evaluate_tree(evaluator, plan, root, variable, scale)?;
    match plan.basis() {
        Basis::Chebyshev { .. } if estimate.real => {
            let end = estimate.magnitude.max(1.0);
            let reached: Vec<Point> = chebyshev_points(plan.root_degree())
                .map(|x| Differentiation::new(plan, end * x).run(root, &errors, estimate.deviation))
                .collect();
            out.estimate.deviation = largest(reached.iter().map(|point| point.deviation));
            let value = largest(reached.iter().map(|point| point.value.abs())) * BETWEEN_POINTS;
            out.estimate.magnitude = out.estimate.magnitude.min(value);
        }
        basis => {
            // The derivatives grow with |x|, so they are taken where the error may have moved the variable.
            let reach = ErrorEstimate { magnitude: estimate.magnitude + estimate.bound(), ..estimate };
            let at = Differentiation::bounding(plan, |exponent| power_bound(basis, reach, exponent));
            out.estimate.deviation = largest([at.run(root, &errors, estimate.deviation).deviation]);
        }
    }
    out.estimate = out.estimate.saturated();
    Ok(out)
}

/// The largest of some nonnegative numbers; infinite if one is NaN.
fn largest(values: impl IntoIterator<Item = f64>) -> f64 {
    values.into_iter().fold(0.0, |a: f64, b| if b.is_nan() { f64::INFINITY } else { a.max(b) })
}

/// Bound on the absolute value of a power of the (changed) variable.
///
/// In the Chebyshev basis `|T_k(y)|` is at most 1 for real `y` in `[-1, 1]` and `T_k(|y|) = cosh(k acosh |y|)` beyond.
/// Complex values of absolute value up to `M` are within the Bernstein ellipse of semi-axes `M` and `sqrt(M^2 + 1)`, of
/// parameter `rho = M + sqrt(M^2 + 1)`, on which `|T_k| <= (rho^k + rho^-k) / 2`.
fn power_bound(basis: Basis, ErrorEstimate { magnitude, real, .. }: ErrorEstimate, exponent: usize) -> f64 {
    let bound = match (basis, real) {
        (Basis::Monomial, _) => magnitude.powi(exponent as i32),
        (Basis::Chebyshev { .. }, true) => (exponent as f64 * magnitude.max(1.0).acosh()).cosh(),
        (Basis::Chebyshev { .. }, false) => (exponent as f64 * magnitude.asinh()).cosh(),
    };
    bound.min(f64::MAX)
}

/// Checks everything that can fail before anything is computed.
///
/// # Errors
/// As [`evaluate`].
pub(crate) fn check(
    evaluator: &Evaluator<'_>,
    plan: &PolynomialPlan,
    input: &Ciphertext,
    scale: f64,
) -> Result<(), CircuitError> {
    const OPERATION: &str = "polynomial evaluation";
    let parameters = evaluator.parameters();
    evaluator.require(input)?;
    if input.degree() != 1 {
        return Err(CkksError::Degree { operation: OPERATION, degree: input.degree() }.into());
    }
    if input.packing == Packing::Coefficients {
        let right = Packing::Slots { log_slots: parameters.max_log_slots() };
        return Err(CkksError::PackingMismatch { left: input.packing, right }.into());
    }
    let (needed, available) = (plan.depth(), input.level());
    if needed > available {
        return Err(CkksError::LevelsExhausted { operation: OPERATION, needed, available }.into());
    }
    let log_q = parameters.rlwe().log2_q(available - needed);
    if !(scale >= 1.0 && scale.log2() < log_q) {
        return Err(CkksError::Scale { log_scale: scale.log2(), log_q, level: available - needed }.into());
    }
    for offset in plan.relinearizations() {
        evaluator.keys().best(KeyElement::Relinearization, available - offset, true)?;
    }
    Ok(())
}

/// Points per degree of a grid equispaced in angle: between them a polynomial exceeds its grid values by a factor of at
/// most `1 / cos(pi / 16) < 1.02` (Ehlich and Zeller 1964).
const POINTS_PER_DEGREE: usize = 8;

/// An upper bound on that factor.
const BETWEEN_POINTS: f64 = 1.02;

fn chebyshev_points(degree: usize) -> impl Iterator<Item = f64> {
    let count = POINTS_PER_DEGREE * degree;
    (0..=count).map(move |i| (std::f64::consts::PI * i as f64 / count as f64).cos())
}

/// Evaluates the tree of a planned polynomial at a (changed) variable that takes only the given values, up to its
/// error; the estimate covers these. Also returns the result for each of them.
///
/// # Errors
/// As [`evaluate`], after [`check`].
pub(crate) fn evaluate_at(
    evaluator: &Evaluator<'_>,
    plan: &PolynomialPlan,
    root: &Node,
    variable: Ciphertext,
    scale: f64,
    points: &[Point],
) -> Result<(Ciphertext, Vec<Point>), CircuitError> {
    let (mut out, errors) = evaluate_tree(evaluator, plan, root, variable, scale)?;
    let reached: Vec<Point> = points
        .iter()
        .map(|point| Differentiation::absolute(plan, point.value).run(root, &errors, point.deviation))
        .collect();
    out.estimate.deviation = largest(reached.iter().map(|point| point.deviation));
    Ok((out, reached))
}

/// Evaluates the tree of a planned polynomial at a (changed) variable. The estimate of the result has no error; the
/// errors of the steps are returned separately.
fn evaluate_tree(
    evaluator: &Evaluator<'_>,
    plan: &PolynomialPlan,
    root: &Node,
    mut variable: Ciphertext,
    scale: f64,
) -> Result<(Ciphertext, StepErrors), CircuitError> {
    variable.estimate.deviation = 0.0;
    let mut powers = Powers {
        evaluator,
        basis: plan.basis(),
        top: variable.level(),
        by_exponent: BTreeMap::from([(1, variable)]),
        errors: StepErrors::default(),
    };
    for power in plan.powers() {
        powers.make(power)?;
    }
    let out = powers.node(root, scale)?;
    Ok((out, powers.errors))
}

/// Excess of a magnitude over the end of an interval that rounding in `f64` can cause.
const ROUNDING: f64 = 1e-12;

/// `y = w x + t`, at the scale of `x`. In the Chebyshev basis real values count as inside the interval if the bound on
/// their absolute values does not exceed that of its ends: the magnitude is then 1.
fn change_variable(
    evaluator: &Evaluator<'_>,
    plan: &PolynomialPlan,
    input: &Ciphertext,
) -> Result<Ciphertext, CircuitError> {
    let (factor, shift) = plan.basis().change_of_variable();
    let mut variable =
        if plan.change_depth() == 0 { input.clone() } else { evaluator.mul_constant(input, factor)? };
    if shift != 0.0 {
        variable = evaluator.add_constant(&variable, shift)?;
    }
    if let Basis::Chebyshev { a, b } = plan.basis() {
        let ends = a.abs().max(b.abs()) * (1.0 + ROUNDING);
        if input.estimate.real && input.estimate.magnitude <= ends {
            variable.estimate.magnitude = 1.0;
        }
    }
    Ok(variable)
}

impl Powers<'_, '_> {
    fn get(&self, exponent: usize) -> &Ciphertext {
        // Plans list every power before its first use; only PolynomialPlan::new makes plans.
        &self.by_exponent[&exponent]
    }

    /// A bound on `|X^k|` or `|T_k|`.
    fn magnitude(&self, exponent: usize) -> f64 {
        power_bound(self.basis, self.get(1).estimate, exponent)
    }

    fn make(&mut self, power: &Power) -> Result<(), CircuitError> {
        let (a, b) = power.factors;
        let (left, right) = (self.get(a), self.get(b));
        let mut out = if self.basis == Basis::Monomial {
            product(self.evaluator, left, right, 1, None)?
        } else if a == b {
            double_angle(self.evaluator, left)?
        } else {
            product(self.evaluator, left, right, 2, Some((self.get(a - b), -1.0)))?
        };
        out.estimate.magnitude = out.estimate.magnitude.min(self.magnitude(power.exponent));
        self.errors.powers.insert(power.exponent, std::mem::take(&mut out.estimate.deviation));
        self.by_exponent.insert(power.exponent, out);
        Ok(())
    }

    /// A node's polynomial, `node.depth` levels below the variable, at an exact scale.
    fn node(&mut self, node: &Node, scale: f64) -> Result<Ciphertext, CircuitError> {
        let evaluator = self.evaluator;
        let level = self.top + 1 - node.depth;
        let before = scale * evaluator.parameters().rlwe().modulus(level).value() as f64;
        require_scale(evaluator, level, before)?;
        let mut quotients = Vec::with_capacity(node.products.len());
        for (quotient, exponent) in &node.products {
            quotients.push(self.node(quotient, before / self.get(*exponent).scale)?);
        }
        let products: Vec<_> =
            quotients.iter().zip(&node.products).map(|(q, (_, exponent))| (q, self.get(*exponent))).collect();
        let terms = node
            .terms
            .iter()
            .map(|&(exponent, c)| Term::new(evaluator, self.get(exponent), c, level, before))
            .collect::<Result<Vec<_>, _>>()?;
        let sum = accumulate(evaluator, &products, 1, &terms, self.get(1), level, before);
        let mut out = evaluator.relinearize_rescale(&sum)?;
        // By construction, up to the rounding of f64.
        out.scale = scale;
        if node.constant != 0.0 {
            evaluator.add_constant_assign(&mut out, node.constant)?;
        }
        let bound: f64 = node.coefficients.iter().enumerate().map(|(k, c)| c.abs() * self.magnitude(k)).sum();
        out.estimate.magnitude = out.estimate.magnitude.min(bound);
        self.errors.nodes.push(std::mem::take(&mut out.estimate.deviation));
        Ok(out)
    }
}

fn require_scale(evaluator: &Evaluator<'_>, level: usize, scale: f64) -> Result<(), CircuitError> {
    let log_q = evaluator.parameters().rlwe().log2_q(level);
    if scale > 0.0 && scale.log2() < log_q {
        return Ok(());
    }
    Err(CkksError::Scale { log_scale: scale.log2(), log_q, level }.into())
}

/// `multiple a b + c t`, relinearized and rescaled, one level below the lower of `a` and `b`. Its estimate has the
/// errors that this step adds.
fn product(
    evaluator: &Evaluator<'_>,
    a: &Ciphertext,
    b: &Ciphertext,
    multiple: u64,
    term: Option<(&Ciphertext, f64)>,
) -> Result<Ciphertext, CircuitError> {
    let (level, scale) = (a.level().min(b.level()), a.scale * b.scale);
    require_scale(evaluator, level, scale)?;
    let terms = term
        .map(|(power, c)| Term::new(evaluator, power, c, level, scale))
        .into_iter()
        .collect::<Result<Vec<_>, _>>()?;
    let sum = accumulate(evaluator, &[(a, b)], multiple, &terms, a, level, scale);
    Ok(evaluator.relinearize_rescale(&sum)?)
}

/// `2 c^2 - 1`, one level below `c`. Its estimate has the errors that this step adds.
///
/// # Errors
/// A missing key, [`CkksError::Scale`].
pub(crate) fn double_angle(
    evaluator: &Evaluator<'_>,
    cosine: &Ciphertext,
) -> Result<Ciphertext, CircuitError> {
    let mut out = product(evaluator, cosine, cosine, 2, None)?;
    evaluator.add_constant_assign(&mut out, -1.0)?;
    Ok(out)
}
