//! Homomorphic reduction modulo 1 near integers.
//!
//! # Form
//! *Input*: slots holding `y = x / W`, with `x = mu + I`, `|I| <= K`, `|mu| <= eps` and `W` the half width of the
//! [`SineApproximation`]. Slots are real, at approximately the scale of [`EvalModPlan::input_scale`]. *Output*:
//! [`EvalModPlan::depth`] levels below, slots holding `ratio mu` at exactly the requested scale. With `ratio = q_0 / D`
//! that is the message that [`super::mod_raise`] received at scale `D`.
//!
//! # Scales
//! Constant factors cost nothing: a ciphertext that holds `s` at scale `S` holds `f s` at scale `S / f`. Scales are
//! fixed from the end, so that every step has exactly its required scale:
//!
//! ```text
//! S_r    = S ratio f              f the linear coefficient of the arcsine, if it has no other,
//! S_r    = the prime that the arcsine removes first, otherwise; the arcsine itself has scale S ratio,
//! S_i    = sqrt(S_(i+1) q)        q the prime that double angle i removes,
//! ```
//!
//! and the cosine is evaluated at scale `S_0` ([`crate::polynomial`]).
//!
//! # Error
//! The error of `y` reaches the result times `W ratio`: the derivative of `x -> mu` is 1. Every step adds its own error
//! `e_k`, the rounding of a division and a key switch at the scale of the step. The steps are the powers of the
//! cosine's variable, the nodes of its tree, the double angles, and the powers and nodes of the arcsine. The derivative
//! of the result by each step is computed along the plan at a grid of messages around every integer, to first order,
//! and
//!
//! ```text
//! deviation^2 = ratio^2 max_x ( (W e_y)^2 + sum_k ((d mu / d step_k)(x) e_k)^2 ),
//! ```
//!
//! The bound is [`keywright_ckks::PRODUCT_TAIL`] times this deviation, plus the error of the approximation. If a
//! bootstrapping knows that the input may exceed 1, that error covers messages up to the largest one.
//!
//! For steps of equal errors `e` the powers count most. The derivative by `T_2 = 2 y^2 - 1` is `W / (4 y)`, which is
//! `W^2` at the integer 0, where `y = -1 / (4 W)`; `T_4` has a quarter of it, and so on. Larger scales for the first
//! powers remove this: wide primes at the first levels, and the input scale that goes with them.

use keywright_ckks::{Ciphertext, CkksError, Decryptor, ErrorEstimate, Evaluator, PRODUCT_TAIL};
use keywright_rlwe::{KeyElement, KeySpec, Parameters};

use crate::bootstrapping::mod_one::sine::SineApproximation;
use crate::polynomial::{self, Point, PolynomialPlan};
use crate::{Arithmetic, CircuitError};

const OPERATION: &str = "eval_mod";

/// The plan of the reduction: plain data.
#[derive(Debug, Clone, PartialEq)]
pub struct EvalModPlan {
    /// The approximation that it evaluates.
    pub approximation: SineApproximation,
    /// Evaluation of the cosine.
    pub cosine: PolynomialPlan,
    /// Evaluation of the arcsine, if there is one.
    pub arcsine: Option<PolynomialPlan>,
}

impl EvalModPlan {
    /// Plans the evaluation of an approximation.
    pub fn new(approximation: SineApproximation) -> Self {
        let cosine = PolynomialPlan::new(&approximation.cosine);
        let arcsine = approximation.has_arcsine().then(|| PolynomialPlan::new(&approximation.arcsine));
        Self { approximation, cosine, arcsine }
    }

    /// Levels from the input to the output.
    pub fn depth(&self) -> usize {
        self.cosine.depth() + self.double_angles() + self.arcsine.as_ref().map_or(0, PolynomialPlan::depth)
    }

    fn double_angles(&self) -> usize {
        self.approximation.double_angles as usize
    }

    /// For each relinearization, its depth below the input's level, ascending.
    pub fn relinearizations(&self) -> Vec<usize> {
        let before_angles = self.cosine.depth();
        let before_arcsine = before_angles + self.double_angles();
        let mut offsets = self.cosine.relinearizations();
        offsets.extend(before_angles..before_arcsine);
        offsets.extend(
            self.arcsine.iter().flat_map(PolynomialPlan::relinearizations).map(|o| before_arcsine + o),
        );
        offsets
    }

    /// The operations of the reduction of one ciphertext except relinearizations, each with its depth below the input's
    /// level.
    pub fn arithmetic(&self) -> Vec<(usize, Arithmetic)> {
        let before_angles = self.cosine.depth();
        let before_arcsine = before_angles + self.double_angles();
        let mut out = vec![(0, Arithmetic::constant())];
        out.extend(self.cosine.arithmetic());
        out.extend((before_angles..before_arcsine).map(|below| (below, Arithmetic::sum(1, 0, true, true))));
        let arcsine = self.arcsine.iter().flat_map(PolynomialPlan::arithmetic);
        out.extend(arcsine.map(|(below, step)| (before_arcsine + below, step)));
        out
    }

    /// Peak number of limbs of the reduction of one ciphertext at `level`, including the result but not the input;
    /// relinearizations as in [`PolynomialPlan::scratch_limbs`].
    pub fn scratch_limbs(&self, level: usize, relinearization: &dyn Fn(usize) -> usize) -> usize {
        let angles = level - self.cosine.depth();
        let arcsine = angles - self.double_angles();
        let angle = |level: usize| 2 * (level + 1) + 3 * (level + 1) + relinearization(level);
        let first = self.cosine.scratch_limbs(level, relinearization);
        let second = (arcsine + 1..=angles).map(angle).max().unwrap_or(0);
        let last = self.arcsine.as_ref().map_or(0, |plan| plan.scratch_limbs(arcsine, relinearization));
        first.max(second).max(last)
    }

    /// The input scale from which repeated squaring, with a division by the removed prime each time, ends at the scale
    /// of the prime after the cosine. Wider primes at the first levels give the first powers larger scales, and their
    /// errors count most: see [the module](self).
    ///
    /// # Errors
    /// [`CkksError::LevelsExhausted`] for a level below the depth, [`keywright_rlwe::RlweError::Level`] for a level
    /// that does not exist.
    pub fn input_scale(&self, parameters: &Parameters, level: usize) -> Result<f64, CircuitError> {
        parameters.require_level(level)?;
        let needed = self.depth();
        if needed > level {
            return Err(CkksError::LevelsExhausted { operation: OPERATION, needed, available: level }.into());
        }
        let end = level - self.cosine.depth();
        let halfway = |log_scale: f64, level: usize| (log_scale + parameters.log2_prime(level)) / 2.0;
        Ok((end + 1..=level).fold(parameters.log2_prime(end), halfway).exp2())
    }

    /// A seeded relinearization key for an input at `level`, with the digits that need the fewest transforms there.
    ///
    /// # Errors
    /// The errors of [`KeySpec::validate`].
    pub fn key_spec(&self, parameters: &Parameters, level: usize) -> Result<KeySpec, CircuitError> {
        parameters.require_level(level)?;
        let alpha = KeySpec::best_alpha(parameters, level);
        let spec = KeySpec::new(parameters, KeyElement::Relinearization, level, alpha, true);
        spec.validate(parameters)?;
        Ok(spec)
    }

    /// Scales of `c_0 .. c_r` for an input at `level`, and the scale at which the arcsine is evaluated.
    pub(crate) fn scales(
        &self,
        parameters: &Parameters,
        level: usize,
        ratio: f64,
        scale: f64,
    ) -> (Vec<f64>, f64) {
        let prime = |below: usize| parameters.modulus(level - below).value() as f64;
        let end = self.cosine.depth() + self.double_angles();
        let last = scale * ratio;
        let sine = match self.arcsine {
            Some(_) => prime(end),
            None => last * self.approximation.arcsine.coefficients().get(1).copied().unwrap_or(1.0),
        };
        let mut scales = vec![sine];
        for angle in (self.cosine.depth()..end).rev() {
            scales.insert(0, (scales[0] * prime(angle)).sqrt());
        }
        (scales, last)
    }
}

/// Reduces every slot. `ratio` multiplies the result, `scale` is the output's.
///
/// # Errors
/// Before anything is computed: [`CkksError::LevelsExhausted`], [`CkksError::Degree`],
/// [`CkksError::PackingMismatch`] for coefficients, [`CkksError::NotFinite`] for a ratio that is not a positive
/// number, a missing relinearization key, mixed parameters. [`CkksError::Scale`] if scales leave the modulus.
pub fn eval_mod(
    evaluator: &Evaluator<'_>,
    plan: &EvalModPlan,
    input: &Ciphertext,
    ratio: f64,
    scale: f64,
) -> Result<Ciphertext, CircuitError> {
    reduce(evaluator, plan, input, ratio, scale, plan.approximation.message)
}

/// [`eval_mod`] of messages up to `message`, in units of `q_0`. The estimate also covers messages beyond the range of
/// the approximation.
///
/// # Errors
/// As [`eval_mod`].
pub(crate) fn reduce(
    evaluator: &Evaluator<'_>,
    plan: &EvalModPlan,
    input: &Ciphertext,
    ratio: f64,
    scale: f64,
    message: f64,
) -> Result<Ciphertext, CircuitError> {
    let parameters = evaluator.parameters();
    evaluator.require(input)?;
    let (needed, available) = (plan.depth(), input.level());
    if needed > available {
        return Err(CkksError::LevelsExhausted { operation: OPERATION, needed, available }.into());
    }
    if !(ratio > 0.0 && ratio.is_finite()) {
        return Err(CkksError::NotFinite(ratio).into());
    }
    let log_q = parameters.rlwe().log2_q(available - needed);
    let largest = scale * ratio * plan.approximation.message;
    if !(scale > 0.0 && largest.log2() + 1.0 < log_q) {
        return Err(CkksError::Scale { log_scale: scale.log2(), log_q, level: available - needed }.into());
    }
    for offset in plan.relinearizations() {
        evaluator.keys().best(KeyElement::Relinearization, available - offset, true)?;
    }
    let approximation = &plan.approximation;
    let (scales, last) = plan.scales(parameters.rlwe(), available, ratio, scale);

    let shifted = evaluator.add_constant(input, -0.25 / approximation.half_width())?;
    let points = approximation
        .inputs(message)
        .map(|value| Point { value, deviation: shifted.estimate.deviation })
        .collect::<Vec<_>>();
    let (mut value, mut points) = evaluate(evaluator, &plan.cosine, shifted, scales[0], &points)?;
    for &next in &scales[1..] {
        (value, points) = double_angle(evaluator, &value, next, &points)?;
    }
    if let Some(arcsine) = &plan.arcsine {
        (value, _) = evaluate(evaluator, arcsine, value, last, &points)?;
    }
    // The same integers, read at the requested scale.
    value.estimate.deviation = value.estimate.deviation * value.scale / scale
        + ratio * approximation.error_up_to(message) / PRODUCT_TAIL;
    value.estimate.magnitude = ratio * message.max(approximation.message);
    value.estimate = value.estimate.saturated();
    value.scale = scale;
    Ok(value)
}

/// A polynomial in the unchanged variable, at the given points.
fn evaluate(
    evaluator: &Evaluator<'_>,
    plan: &PolynomialPlan,
    mut variable: Ciphertext,
    scale: f64,
    points: &[Point],
) -> Result<(Ciphertext, Vec<Point>), CircuitError> {
    polynomial::check(evaluator, plan, &variable, scale)?;
    variable.estimate.real = true;
    variable.estimate.magnitude = points.iter().map(|point| point.value.abs()).fold(0.0, f64::max);
    let Some(root) = plan.root() else { return Err(CircuitError::Empty("the polynomial")) };
    polynomial::evaluate_at(evaluator, plan, root, variable, scale, points)
}

/// `2 c^2 - 1`, exactly at the scale that the caller arranged.
fn double_angle(
    evaluator: &Evaluator<'_>,
    cosine: &Ciphertext,
    scale: f64,
    points: &[Point],
) -> Result<(Ciphertext, Vec<Point>), CircuitError> {
    let mut out = polynomial::double_angle(evaluator, cosine)?;
    // By construction, up to the rounding of f64.
    out.scale = scale;
    let points: Vec<_> = points
        .iter()
        .map(|&Point { value, deviation }| Point {
            value: 2.0 * value * value - 1.0,
            deviation: (4.0 * value * deviation).hypot(out.estimate.deviation),
        })
        .collect();
    let deviation = points.iter().map(|point| point.deviation).fold(0.0, f64::max);
    out.estimate = ErrorEstimate { deviation, magnitude: 1.0, real: true };
    Ok((out, points))
}

/// The inputs of a reduction, as found with the secret key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct InputRange {
    /// Largest absolute value of an integer part.
    pub integer: usize,
    /// Largest distance from an integer: the message in units of `q_0`, and any remaining imaginary part.
    pub message: f64,
}

/// Decrypts an input of [`eval_mod`] and reports how much of the plan's range it uses, for diagnosing a failed
/// bootstrap. The result depends on the secret: keep it with the secret's owner.
///
/// # Errors
/// [`CircuitError::OutOfRange`] for the first slot outside; [`CkksError::PackingMismatch`] for coefficients, mixed
/// parameters.
pub fn inspect_input(
    decryptor: &Decryptor<'_>,
    plan: &EvalModPlan,
    input: &Ciphertext,
) -> Result<InputRange, CircuitError> {
    let SineApproximation { k, message, .. } = plan.approximation;
    let mut seen = InputRange { integer: 0, message: 0.0 };
    for (slot, y) in decryptor.decrypt(input)?.into_iter().enumerate() {
        let value = y.re * plan.approximation.half_width();
        let imaginary = y.im * plan.approximation.half_width();
        let (integer, distance) = (value.round().abs(), (value - value.round()).hypot(imaginary));
        if integer > k as f64 || distance > message {
            return Err(CircuitError::OutOfRange { slot, value, k, message });
        }
        seen =
            InputRange { integer: seen.integer.max(integer as usize), message: seen.message.max(distance) };
    }
    Ok(seen)
}
