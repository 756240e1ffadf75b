use std::collections::BTreeMap;
use std::f64::consts::SQRT_2;

use keywright_ckks::{Ciphertext, CkksError, CkksParameters, Complex64, Evaluator, Packing};

use super::passes::{iterate, lowered, without_error};
use super::plan::{BootstrapperPlan, Order};
use super::stage::{SCALE_DRIFT, Stage};
use super::stages::coeffs_to_slots::{CoeffsToSlots, Values};
use super::stages::eval_mod::reduce;
use super::stages::mod_raise::{mod_raise, switch_to_ephemeral};
use super::stages::require_input;
use super::stages::slots_to_coeffs::SlotsToCoeffs;
use crate::CircuitError;
use crate::linear_transform::{LinearTransform, Spread, Storage, evaluate};

/// Relative excess of an estimated magnitude over the planned one that rounding in `f64` can cause.
const ROUNDING: f64 = 1e-12;

/// A bootstrapping of given parameters: the composition of the stages. Cheap to share; expensive to make if diagonals
/// are kept.
#[derive(Debug)]
pub struct Bootstrapper {
    parameters: CkksParameters,
    plan: BootstrapperPlan,
    slots_to_coeffs: SlotsToCoeffs,
    coeffs_to_slots: CoeffsToSlots,
    recombine: Option<LinearTransform>,
}

impl Bootstrapper {
    /// Encodes the diagonals of a plan.
    ///
    /// # Errors
    /// As [`LinearTransform::new`], for a plan that was made for other parameters.
    pub fn new(parameters: &CkksParameters, plan: &BootstrapperPlan) -> Result<Self, CircuitError> {
        Self::with_storage(parameters, plan, Some(Storage::Encoded))
    }

    /// A bootstrapping whose transforms keep their diagonals in one form, which takes time now, or make them for each
    /// use and drop them. The transform that recombines real and imaginary parts, two diagonals, is kept in any case.
    ///
    /// # Errors
    /// As [`LinearTransform::with_steps`], for a plan that was made for other parameters.
    pub fn with_storage(
        parameters: &CkksParameters,
        plan: &BootstrapperPlan,
        kept: Option<Storage>,
    ) -> Result<Self, CircuitError> {
        let recombine = plan
            .recombine
            .as_ref()
            .map(|factor| {
                let half = 1usize << (factor.log_slots - 1);
                let join = |a, b| [vec![a; half], vec![b; half]].concat();
                let (one, i) = (Complex64::ONE, Complex64::I);
                let values = BTreeMap::from([(0, join(one, i)), (half, join(i, one))]);
                factor.encode(parameters, &values, Spread::Arbitrary, kept.unwrap_or(Storage::Coefficients))
            })
            .transpose()?;
        Ok(Self {
            parameters: parameters.clone(),
            slots_to_coeffs: SlotsToCoeffs::with_storage(
                plan.input_ring(parameters)?,
                &plan.slots_to_coeffs,
                kept,
            )?,
            coeffs_to_slots: CoeffsToSlots::with_storage(parameters, &plan.coeffs_to_slots, kept)?,
            recombine,
            plan: plan.clone(),
        })
    }

    /// The plan.
    pub fn plan(&self) -> &BootstrapperPlan {
        &self.plan
    }

    /// The `slots_to_coeffs` stage.
    pub fn slots_to_coeffs(&self) -> &SlotsToCoeffs {
        &self.slots_to_coeffs
    }

    /// The `coeffs_to_slots` stage.
    pub fn coeffs_to_slots(&self) -> &CoeffsToSlots {
        &self.coeffs_to_slots
    }

    /// Bytes of all kept diagonals: [`BootstrapperPlan::diagonal_bytes`].
    pub fn bytes(&self) -> usize {
        let recombine = self.recombine.as_ref().map_or(0, LinearTransform::bytes);
        self.slots_to_coeffs.bytes() + self.coeffs_to_slots.bytes() + recombine
    }

    /// Returns the same values at the plan's output level and scale. Runs the stages in the plan's order, once per
    /// pass.
    ///
    /// With [`Order::SlotsToCoeffsFirst`] the input is at the plan's input level or above, and its scale is the plan's
    /// up to [`super::SCALE_DRIFT`]. With [`Order::ModRaiseFirst`] the input is at any level, and its level 0 is used.
    /// Its scale is at most that of the plan's coefficients; a larger one is reduced to it at level 1.
    ///
    /// # Errors
    /// [`CircuitError::Stage`] with the stage, before anything is computed: a missing key, a level below the plan's, a
    /// different packing or scale, or mixed parameters. [`CircuitError::Magnitude`] for values far larger than planned.
    /// [`CircuitError::Iteration`] if a pass is less precise than the next one needs.
    pub fn bootstrap(
        &self,
        evaluator: &Evaluator<'_>,
        input: &Ciphertext,
    ) -> Result<Ciphertext, CircuitError> {
        let plan = &self.plan;
        plan.require_keys(evaluator.keys())?;
        let back =
            |result: &Ciphertext, like: &Ciphertext| lowered(evaluator, result, like.level(), like.scale);
        let mut out = match plan.order {
            Order::SlotsToCoeffsFirst => {
                let lowest = self.slots_to_coeffs.take(evaluator, input)?;
                let pass = |c: &Ciphertext, scale| {
                    let largest = self.largest(c)?;
                    let coefficients = self.slots_to_coeffs.evaluate(evaluator, &without_error(c))?;
                    let out = self.coefficients_to_slots(evaluator, &coefficients, scale, largest)?;
                    Ok(with_error_of(out, c, 1.0))
                };
                iterate(evaluator, plan, &lowest, pass, back)
            }
            Order::ModRaiseFirst => {
                let lowest = self.take(evaluator, input)?;
                let pass = |c: &Ciphertext, scale| {
                    let (largest, coefficients) = (self.largest(c)?, as_coefficients(&without_error(c)));
                    let mut slots = self.coefficients_to_slots(evaluator, &coefficients, scale, largest)?;
                    // Bounded errors of the approximation in each part add up in a slot. They depend on the integers
                    // that ModRaise adds, which are independent. By Hoeffding's inequality for sums, their tails are no
                    // heavier than those of this deviation.
                    let ratio = plan.coeffs_to_slots.input_scale / c.scale;
                    let approximation = &plan.eval_mod.approximation;
                    let error = approximation.error_up_to(largest * approximation.message);
                    slots.estimate.deviation += SQRT_2 * ratio * error;
                    slots.estimate = slots.estimate.saturated();
                    let out = self.slots_to_coeffs.transform(evaluator, slots, c.estimate.magnitude)?;
                    Ok(with_error_of(out, c, 1.0))
                };
                iterate(evaluator, plan, &lowest, pass, back)
            }
        }?;
        // The same values.
        out.estimate.magnitude = input.estimate.magnitude;
        out.estimate.real |= input.estimate.real;
        Ok(out)
    }

    /// Bootstraps coefficients of the ring of inputs, as [`SlotsToCoeffs`] or a client leaves them, into slots at the
    /// plan's [`slots_level`](BootstrapperPlan::slots_level). Slot `j` of `n` holds coefficient `brv(j) N/2n` as its
    /// real part and, for complex values, coefficient `N/2 + brv(j) N/2n` as its imaginary part. `brv` reverses the
    /// bits of `j`. The input is at any level, and its level 0 is used; its scale is the plan's `coefficients_scale` up
    /// to [`super::SCALE_DRIFT`].
    ///
    /// # Errors
    /// As [`Self::bootstrap`].
    pub fn bootstrap_coefficients(
        &self,
        evaluator: &Evaluator<'_>,
        input: &Ciphertext,
    ) -> Result<Ciphertext, CircuitError> {
        let (plan, packing) = (&self.plan, Packing::Coefficients);
        plan.require_keys(evaluator.keys())?;
        let ring = plan.input_ring(&self.parameters)?;
        require_input(Stage::ModRaise, ring, input, packing, 0, plan.coefficients_scale)?;
        let lowest = evaluator.of(input).and_then(|evaluator| evaluator.drop_to_level(input, 0));
        let lowest = lowest.map_err(|e| Stage::ModRaise.error(0, e))?;
        // A slot has one coefficient for each of its parts.
        let parts = if plan.coeffs_to_slots.values == Values::Complex { SQRT_2 } else { 1.0 };
        let pass = |c: &Ciphertext, scale| {
            let largest = self.largest(c)?;
            let out = self.coefficients_to_slots(evaluator, &without_error(c), scale, largest)?;
            Ok(with_error_of(out, c, parts))
        };
        let back = |result: &Ciphertext, like: &Ciphertext| {
            let transform = self.slots_to_coeffs.plan();
            let (level, factor) = (transform.input_level(), transform.output_scale / transform.input_scale);
            let scale = match plan.order {
                Order::SlotsToCoeffsFirst => like.scale / factor,
                Order::ModRaiseFirst => result.scale,
            };
            let slots = lowered(evaluator, result, level, scale)?;
            lowered(evaluator, &self.slots_to_coeffs.evaluate(evaluator, &slots)?, 0, like.scale)
        };
        let mut out = iterate(evaluator, plan, &lowest, pass, back)?;
        out.estimate.magnitude = parts * input.estimate.magnitude;
        Ok(out)
    }

    /// Bootstraps two ciphertexts of real values at once, as the real and the imaginary parts of complex ones. It takes
    /// about two thirds of the work of two bootstraps of real values. The results are those of [`Self::bootstrap`], in
    /// the order of the inputs, with the same bounds: imaginary parts of errors are removed before, see
    /// [`super::slots_to_coeffs`].
    ///
    /// # Errors
    /// [`CircuitError::PairPlan`] for a plan of other values than [`Values::Pair`], [`CircuitError::PairValues`] for
    /// values that may be complex; as [`Self::bootstrap`], and [`CkksError::ScaleMismatch`] for different scales.
    pub fn bootstrap_pair(
        &self,
        evaluator: &Evaluator<'_>,
        inputs: [&Ciphertext; 2],
    ) -> Result<[Ciphertext; 2], CircuitError> {
        let plan = &self.plan;
        if plan.coeffs_to_slots.values != Values::Pair {
            return Err(CircuitError::PairPlan);
        }
        plan.require_keys(evaluator.keys())?;
        if let Some(place) = inputs.iter().position(|input| !input.estimate.real) {
            return Err(CircuitError::PairValues { place });
        }
        let most = |of: fn(&Ciphertext) -> f64| inputs.map(of).into_iter().fold(0.0, f64::max);
        let magnitude = most(|input| input.estimate.magnitude);
        let largest = plan.reducible(magnitude.max(1.0))? + most(|input| input.estimate.bound());
        let [first, second] = inputs.map(|input| self.slots_to_coeffs.take(evaluator, input));
        let (first, second) = (without_error(&first?), without_error(&second?));
        let coefficients = self.slots_to_coeffs.evaluate_pair(evaluator, [&first, &second], magnitude)?;
        let mut parts = self.reduced_parts(evaluator, &coefficients, plan.scale, largest, 2)?.into_iter();
        let mut part = |input: &Ciphertext| -> Result<Ciphertext, CircuitError> {
            let out = parts.next().ok_or(CircuitError::Empty("the list of reduced parts"))?;
            let mut out = with_error_of(out, input, 1.0);
            out.estimate.magnitude = input.estimate.magnitude;
            Ok(out)
        };
        Ok([part(inputs[0])?, part(inputs[1])?])
    }

    /// Brings an input of [`Order::ModRaiseFirst`] to level 0 and near the scale of the plan's coefficients. An integer
    /// multiplies a smaller scale; a larger one is divided, which costs a level.
    fn take(&self, evaluator: &Evaluator<'_>, input: &Ciphertext) -> Result<Ciphertext, CircuitError> {
        let (plan, stage) = (&self.plan, Stage::ModRaise);
        let packing = Packing::Slots { log_slots: plan.slots_to_coeffs.dft.log_slots() };
        let multiple = (plan.coefficients_scale * (1.0 + SCALE_DRIFT) / input.scale).floor();
        let (level, scale) = match (multiple >= 1.0, input.level()) {
            (true, _) => (0, input.scale),
            (false, 0) => (0, plan.coefficients_scale),
            (false, _) => (1, input.scale),
        };
        require_input(stage, &self.parameters, input, packing, level, scale)?;
        if level == 1 {
            return lowered(evaluator, input, 0, plan.coefficients_scale).map_err(|e| stage.error(0, e));
        }
        let named = |error: CkksError| stage.error(0, error);
        let mut lowest = evaluator.drop_to_level(input, 0).map_err(named)?;
        evaluator.mul_integer_assign(&mut lowest, multiple as i64).map_err(named)?;
        // The same values.
        (lowest.scale, lowest.estimate) = (input.scale * multiple, input.estimate);
        Ok(lowest)
    }

    /// The largest part of a value that a ciphertext decrypts to by its estimate, at least 1. The plan covers parts of
    /// at most 1, so complex values of absolute value up to the square root of 2 count as 1; real ones are a part.
    ///
    /// # Errors
    /// As [`BootstrapperPlan::reducible`].
    fn largest(&self, input: &Ciphertext) -> Result<f64, CircuitError> {
        let estimate = input.estimate;
        let whole = self.plan.coeffs_to_slots.values == Values::Complex
            && input.packing != Packing::Coefficients
            && !estimate.real;
        let planned = if whole { SQRT_2 } else { 1.0 };
        let magnitude =
            if estimate.magnitude <= planned * (1.0 + ROUNDING) { 1.0 } else { estimate.magnitude };
        Ok(self.plan.reducible(magnitude)? + estimate.bound())
    }

    /// Runs `mod_raise`, `coeffs_to_slots` and `eval_mod` on coefficients at level 0 up to `largest`, and joins the
    /// parts. The output is at `scale`.
    fn coefficients_to_slots(
        &self,
        evaluator: &Evaluator<'_>,
        input: &Ciphertext,
        scale: f64,
        largest: f64,
    ) -> Result<Ciphertext, CircuitError> {
        let plan = &self.plan;
        let count = if plan.coeffs_to_slots.values == Values::Pair { 1 } else { 2 };
        let parts = self.reduced_parts(evaluator, input, scale, largest, count)?;
        self.recombine(evaluator, parts).map_err(|e| {
            Stage::Recombine.error(plan.coeffs_to_slots.output_level() - plan.eval_mod.depth(), e)
        })
    }

    /// The same before the parts are joined: at most `count` of the ciphertexts of [`CoeffsToSlots`], reduced.
    fn reduced_parts(
        &self,
        evaluator: &Evaluator<'_>,
        input: &Ciphertext,
        scale: f64,
        largest: f64,
        count: usize,
    ) -> Result<Vec<Ciphertext>, CircuitError> {
        let plan = &self.plan;
        let mut parts = self.raise_to_slots(evaluator, input)?;
        parts.truncate(count);
        let ratio = plan.coeffs_to_slots.input_scale / input.scale;
        let message = largest * plan.eval_mod.approximation.message;
        let reduce = |part| reduce(evaluator, &plan.eval_mod, part, ratio, scale, message);
        let reduced: Result<Vec<_>, _> = match &parts[..] {
            // In parallel they wait for each other once, rather than at the end of each of their loops.
            [real, imaginary] => {
                // Two halves that load keys from a source at once would need memory for two key sets.
                let (real, imaginary) = if evaluator.keys().all_in_memory() {
                    keywright_rlwe::join(|| reduce(real), || reduce(imaginary))
                } else {
                    (reduce(real), reduce(imaginary))
                };
                real.and_then(|real| Ok(vec![real, imaginary?]))
            }
            parts => parts.iter().map(reduce).collect(),
        };
        reduced.map_err(|e| Stage::EvalMod.error(plan.coeffs_to_slots.output_level(), e))
    }

    /// Second and third stage, fused or one after the other as planned: from coefficients at level 0 to the input of
    /// `eval_mod`.
    ///
    /// # Errors
    /// Those of [`switch_to_ephemeral`] and [`CoeffsToSlots::evaluate_raised`], or of [`mod_raise`] and
    /// [`CoeffsToSlots::evaluate`].
    pub fn raise_to_slots(
        &self,
        evaluator: &Evaluator<'_>,
        lowest: &Ciphertext,
    ) -> Result<Vec<Ciphertext>, CircuitError> {
        let plan = &self.plan.mod_raise;
        let named = |error| Stage::ModRaise.error(0, error);
        if self.plan.coeffs_to_slots.is_raised() {
            let raised = switch_to_ephemeral(evaluator, plan, lowest).map_err(named)?;
            self.coeffs_to_slots.evaluate_raised(evaluator, &raised)
        } else {
            let raised = mod_raise(evaluator, plan, lowest).map_err(named)?;
            self.coeffs_to_slots.evaluate(evaluator, &raised)
        }
    }

    /// Joins real and imaginary parts, in the form of [`CoeffsToSlots`], to the values.
    fn recombine(
        &self,
        evaluator: &Evaluator<'_>,
        mut parts: Vec<Ciphertext>,
    ) -> Result<Ciphertext, CircuitError> {
        if let Some(transform) = &self.recombine {
            let mut joined = evaluate(evaluator, &[(transform, &parts[0])])?;
            joined.packing = Packing::Slots { log_slots: transform.log_slots() - 1 };
            return Ok(joined);
        }
        let mut sum = parts.remove(0);
        for imaginary in &parts {
            evaluator.add_assign(&mut sum, &evaluator.multiply_by_i(imaginary)?)?;
        }
        Ok(sum)
    }
}

/// A result whose error is its own plus `factor` times that of the input: `eval_mod` has slope 1.
fn with_error_of(mut out: Ciphertext, input: &Ciphertext, factor: f64) -> Ciphertext {
    out.estimate.deviation += factor * input.estimate.deviation;
    out.estimate = out.estimate.saturated();
    out
}

/// Reads values in slots as the coefficients that encode them.
fn as_coefficients(slots: &Ciphertext) -> Ciphertext {
    let mut out = Ciphertext { packing: Packing::Coefficients, ..slots.clone() };
    out.estimate.deviation /= slots.packing.spread().sqrt();
    out
}
