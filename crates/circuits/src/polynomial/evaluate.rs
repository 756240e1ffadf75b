use std::collections::BTreeMap;

use keywright_ckks::{Ciphertext, CkksError, ErrorEstimate, Evaluator, Packing, TAIL};
use keywright_ring::Poly;
use keywright_rlwe::{KeyElement, RlweCiphertext, for_each_item};

use super::plan::{Node, PolynomialPlan, Power};
use super::sensitivity::{Differentiation, StepErrors};
use super::{Basis, Point};
use crate::CircuitError;

/// Powers of the variable made so far, for one input.
struct Powers<'e, 'k> {
    evaluator: &'e Evaluator<'k>,
    basis: Basis,
    /// Level of the variable.
    top: usize,
    by_exponent: BTreeMap<usize, Ciphertext>,
    /// Errors that the steps added so far. The estimates of powers have none: what reaches the result is found at the end.
    errors: StepErrors,
}

/// Evaluates a planned polynomial on every slot. The result is [`PolynomialPlan::depth`] levels below the input and has
/// exactly the given scale, or the input's if none is given.
///
/// # Errors
/// Before anything is computed: [`CkksError::LevelsExhausted`], a missing relinearisation key, [`CkksError::Degree`],
/// [`CkksError::PackingMismatch`] for coefficient packing, mixed parameters. [`CkksError::Scale`] if scales, which drift with
/// the ratio of the input's scale to the primes, leave the modulus.
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
    let ErrorEstimate { deviation, magnitude } = variable.estimate;
    let points = match plan.basis() {
        // The derivatives grow with |x|, and are taken where the error of the variable may have moved it to.
        Basis::Monomial => vec![Point { value: magnitude + TAIL * deviation, deviation }],
        Basis::Chebyshev { .. } => chebyshev_points(plan.root_degree(), deviation),
    };
    Ok(evaluate_at(evaluator, plan, root, variable, scale, &points)?.0)
}

/// What can be refused before anything is computed.
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
    parameters.require_same(&input.parameters, "the evaluator", "the ciphertext")?;
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

/// Points per degree of a grid equispaced in angle: between them a polynomial exceeds its values on it by
/// `1 / cos(pi / 16) < 1.02` (Ehlich and Zeller 1964).
const POINTS_PER_DEGREE: usize = 8;

fn chebyshev_points(degree: usize, deviation: f64) -> Vec<Point> {
    let count = POINTS_PER_DEGREE * degree;
    let value = |i: usize| (std::f64::consts::PI * i as f64 / count as f64).cos();
    (0..=count).map(|i| Point { value: value(i), deviation }).collect()
}

/// Evaluates the tree of a planned polynomial at a (changed) variable that takes, up to its error, only the given values: the
/// estimate covers these. Also what becomes of each of them.
///
/// # Errors
/// As [`evaluate`], after [`check`].
pub(crate) fn evaluate_at(
    evaluator: &Evaluator<'_>,
    plan: &PolynomialPlan,
    root: &Node,
    mut variable: Ciphertext,
    scale: f64,
    points: &[Point],
) -> Result<(Ciphertext, Vec<Point>), CircuitError> {
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
    let mut out = powers.node(root, scale)?;
    let errors = powers.errors;
    let reached: Vec<Point> = points
        .iter()
        .map(|point| Differentiation::new(plan, point.value).run(root, &errors, point.deviation))
        .collect();
    out.estimate.deviation = reached.iter().map(|point| point.deviation).fold(0.0, f64::max);
    Ok((out, reached))
}

/// `y = w x + t`, at the scale of `x`. In the Chebyshev basis `|y| <= 1` is assumed from here on.
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
    if plan.basis() != Basis::Monomial {
        variable.estimate.magnitude = 1.0;
    }
    Ok(variable)
}

impl Powers<'_, '_> {
    fn get(&self, exponent: usize) -> &Ciphertext {
        // Plans list every power before its first use; a plan is only made by PolynomialPlan::new.
        &self.by_exponent[&exponent]
    }

    /// `|X^k|` or `|T_k|` at most.
    fn magnitude(&self, exponent: usize) -> f64 {
        match self.basis {
            Basis::Monomial => self.get(1).estimate.magnitude.powi(exponent as i32),
            Basis::Chebyshev { .. } => 1.0,
        }
    }

    fn make(&mut self, power: &Power) -> Result<(), CircuitError> {
        let (a, b) = power.factors;
        let mut product = self.evaluator.multiply_lazy(self.get(a), self.get(b))?;
        let chebyshev = self.basis != Basis::Monomial;
        if chebyshev {
            product = self.evaluator.mul_integer(&product, 2)?;
            if a != b {
                self.add_term(&mut product, a - b, -1.0)?;
            }
        }
        let mut out = self.evaluator.relinearize_rescale(&product)?;
        if chebyshev && a == b {
            out = self.evaluator.add_constant(&out, -1.0)?;
        }
        out.estimate.magnitude = out.estimate.magnitude.min(self.magnitude(power.exponent));
        self.errors.powers.insert(power.exponent, std::mem::take(&mut out.estimate.deviation));
        self.by_exponent.insert(power.exponent, out);
        Ok(())
    }

    /// `sum += c X^k`, exactly at the scale of the sum and at its level: the constant is encoded at the quotient of the
    /// two scales, off by at most half a unit.
    fn add_term(&self, sum: &mut Ciphertext, exponent: usize, c: f64) -> Result<(), CircuitError> {
        let rlwe = self.evaluator.parameters().rlwe();
        let (power, level) = (self.get(exponent), sum.level());
        let constant_scale = sum.scale / power.scale;
        let constant = (c * constant_scale).round_ties_even();
        // Below 1 constants would round to nothing; integers of 127 bits are more than any scale asks for.
        if !(constant_scale >= 1.0 && constant.abs() < 127f64.exp2()) {
            let log_q = rlwe.log2_q(level);
            return Err(CkksError::Scale { log_scale: constant_scale.log2(), log_q, level }.into());
        }
        let polys = sum.rlwe.polys.iter_mut().zip(&power.rlwe.polys);
        let limbs = polys.flat_map(|(x, y)| x.limbs_mut().zip(y.limbs()).enumerate()).collect();
        for_each_item(limbs, |_, (i, (x, y)): (usize, (&mut [u64], &[u64]))| {
            let m = rlwe.modulus(i);
            let magnitude = m.reduce_u128(constant.abs() as u128);
            let residue = if constant < 0.0 { m.neg(magnitude) } else { magnitude };
            rlwe.ring().backend().mul_scalar_add_assign(m, x, y, m.shoup(residue));
        });
        let factor = ErrorEstimate { deviation: 0.5 / constant_scale, magnitude: c.abs() };
        sum.estimate = sum.estimate.plus(power.estimate.times(factor));
        Ok(())
    }

    /// Zero at a level and a scale.
    fn zero(&self, level: usize, scale: f64) -> Ciphertext {
        let n = self.evaluator.parameters().rlwe().n();
        Ciphertext {
            parameters: self.evaluator.parameters().clone(),
            rlwe: RlweCiphertext { polys: vec![Poly::zero(n, level + 1), Poly::zero(n, level + 1)] },
            scale,
            packing: self.get(1).packing,
            estimate: ErrorEstimate { deviation: 0.0, magnitude: 0.0 },
        }
    }

    /// A node's polynomial, `node.depth` levels below the variable, exactly at a scale.
    fn node(&mut self, node: &Node, scale: f64) -> Result<Ciphertext, CircuitError> {
        let evaluator = self.evaluator;
        let level = self.top + 1 - node.depth;
        let before = scale * evaluator.parameters().rlwe().modulus(level).value() as f64;
        let log_q = evaluator.parameters().rlwe().log2_q(level);
        if !(before > 0.0 && before.log2() < log_q) {
            return Err(CkksError::Scale { log_scale: before.log2(), log_q, level }.into());
        }
        let mut sum: Option<Ciphertext> = None;
        for (quotient, exponent) in &node.products {
            let quotient = self.node(quotient, before / self.get(*exponent).scale)?;
            let product = evaluator.multiply_lazy(&quotient, self.get(*exponent))?;
            match &mut sum {
                Some(sum) => evaluator.add_assign(sum, &product)?,
                None => sum = Some(product),
            }
        }
        let mut sum = sum.unwrap_or_else(|| self.zero(level, before));
        for &(exponent, c) in &node.terms {
            self.add_term(&mut sum, exponent, c)?;
        }
        let mut out = evaluator.relinearize_rescale(&sum)?;
        // By construction, up to the rounding of f64.
        out.scale = scale;
        if node.constant != 0.0 {
            out = evaluator.add_constant(&out, node.constant)?;
        }
        let bound: f64 = node.coefficients.iter().enumerate().map(|(k, c)| c.abs() * self.magnitude(k)).sum();
        out.estimate.magnitude = out.estimate.magnitude.min(bound);
        self.errors.nodes.push(std::mem::take(&mut out.estimate.deviation));
        Ok(out)
    }
}
