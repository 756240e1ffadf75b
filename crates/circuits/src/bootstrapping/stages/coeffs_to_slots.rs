//! Coefficients to slots: the homomorphic decoding.
//!
//! | | form | level | scale |
//! |---|---|---|---|
//! | input | real values `x_i` in the coefficients; of `n = 2^log_slots` slots those at multiples of `N/2n` are wanted | the plan's, or above | `S` |
//! | output | `f x_i` in slots, see below | the plan's depth below the plan's level | the plan's |
//!
//! With `j` for the slot and `brv` reversing `log_slots` bits, `u_j = x_(brv(j) N/2n)` and
//! `v_j = x_(N/2 + brv(j) N/2n)`, the output is
//!
//! | values | slots | ciphertexts |
//! |---|---|---|
//! | [`Values::Real`] | any | one of `n` slots: `f u_j` |
//! | [`Values::Complex`] | `n < N/2` | one of `2n` slots: `f u_j` in slot `j`, `f v_j` in slot `n + j` |
//! | [`Values::Complex`] | `n = N/2` | two of `n` slots: `f u_j`; `f v_j` |
//! | [`Values::Pair`] | any | the same |
//!
//! 1. *Trace.* If `n < N/2`, the rotations by `n, 2n, .., N/4`, each added to the sum so far, remove all coefficients
//!    but those at multiples of `N/2n`, and multiply these by `N/2n`, which is a change of scale.
//! 2. *Transform* by `B F^-1` of [`crate::bootstrapping::dft`]: slot `j` holds `u_j + i v_j`. Each factor carries
//!    `(f S'/S)^(1/m)`, with `S'` the output's scale; the last one carries another 1/2. For complex values of `n < N/2`
//!    slots the last factor also multiplies the second of the two copies in `2n` slots by `-i`.
//! 3. *Real parts.* The sum with the conjugate; for two ciphertexts also `-i` times the difference from it.
//!
//! # Error
//! As for [`super::slots_to_coeffs`], with factors `2^(-l/2)` times unitary matrices. The slots of a plaintext with
//! coefficients of root mean square `r` have `sqrt(2n) r`, and the transform divides errors by `sqrt(n)`. The last
//! rounding, at scale `S'`, counts in full. So does the conjugation: the digits of its key are small enough that its
//! own error is below its rounding.

use keywright_ckks::{Ciphertext, CkksError, CkksParameters, Complex64, Evaluator, Packing};
use keywright_ring::rotation_element;
use keywright_rlwe::{KeyElement, KeySpec};

use super::encoded::encoded_stage;
use super::mod_raise::{EphemeralKeys, Raised};
use super::require_input;
use crate::CircuitError;
use crate::bootstrapping::keys::StageKeys;
use crate::bootstrapping::keys::{KeyDesign, quiet_key};
use crate::bootstrapping::stage::Stage;
use crate::bootstrapping::transforms::FactorPlan;
use crate::bootstrapping::transforms::KeyBudget;
use crate::bootstrapping::transforms::Transforms;
use crate::bootstrapping::transforms::dft::{Dft, Direction};
use crate::linear_transform::{LinearTransform, Spread, Storage};

/// The values in the slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Values {
    /// Real values: imaginary parts are not bootstrapped, and become 0.
    Real,
    /// Complex values.
    Complex,
    /// Real values of two ciphertexts at once, or of one: the real and the imaginary parts of complex values, which
    /// stay apart. A whole bootstrapping has them in all `N/2` slots.
    Pair,
}

/// The plan of the stage, without diagonals and keys.
#[derive(Debug, Clone, PartialEq)]
pub struct CoeffsToSlotsPlan {
    /// Factorisation.
    pub dft: Dft,
    /// The values in the slots.
    pub values: Values,
    /// Keys of the rotations by `n, 2n, .., N/4`, at the input's level.
    pub trace: Vec<KeySpec>,
    /// Factors in the order of application.
    pub factors: Vec<FactorPlan>,
    /// Key of the conjugation, at the output's level.
    pub conjugation: KeySpec,
    /// Scale of the input.
    pub input_scale: f64,
    /// `f`: the factor that multiplies the values.
    pub factor: f64,
    /// Scale of the output, for an input at exactly [`Self::input_scale`].
    pub output_scale: f64,
}

impl CoeffsToSlotsPlan {
    /// Plans the stage for inputs at `level`: one level per factor, with a budget for the keys. With the keys that
    /// raise the modulus to that level, the first factor of a full packing is fused with the switch back:
    /// [`CoeffsToSlots::evaluate_raised`].
    ///
    /// # Errors
    /// [`CircuitError::LogSlots`]; [`CircuitError::Ckks`] for too low a level, scales that are not positive and finite,
    /// and impossible keys; [`CircuitError::KeyBudget`].
    pub fn new(
        parameters: &CkksParameters,
        dft: Dft,
        values: Values,
        level: usize,
        input_scale: f64,
        factor: f64,
        output_scale: f64,
        budget: KeyBudget,
        raise: Option<&EphemeralKeys>,
    ) -> Result<Self, CircuitError> {
        let (rlwe, stage) = (parameters.rlwe(), Stage::CoeffsToSlots);
        let (log_slots, max) = (dft.log_slots(), parameters.max_log_slots());
        if log_slots > max {
            return Err(CircuitError::LogSlots { log_slots, max });
        }
        let (needed, operation) = (dft.depth(), stage.name());
        if needed > level {
            return Err(CkksError::LevelsExhausted { operation, needed, available: level }.into());
        }
        for scale in [input_scale, output_scale, output_scale * factor] {
            if !(scale >= 1.0 && scale.is_finite()) {
                let log_q = rlwe.log2_q(level);
                return Err(CkksError::Scale { log_scale: scale.log2(), log_q, level }.into());
            }
        }
        let trace = (log_slots..max)
            .map(|k| quiet_key(rlwe, KeyElement::Galois(rotation_element(rlwe.log_n(), 1 << k)), level))
            .collect::<Result<_, _>>()?;
        let ways = Self::ways(parameters, &dft, values, level, raise, None)?;
        let (_, factors) = budget.choose(0, ways)?;
        let conjugation = quiet_key(rlwe, KeyElement::Galois((2 << rlwe.log_n()) - 1), level - needed)?;
        Ok(Self { dft, values, trace, factors, conjugation, input_scale, factor, output_scale })
    }

    /// The ways to evaluate each factor, see [`FactorPlan::ways`].
    pub(crate) fn ways(
        parameters: &CkksParameters,
        dft: &Dft,
        values: Values,
        level: usize,
        raise: Option<&EphemeralKeys>,
        design: Option<KeyDesign>,
    ) -> Result<Vec<Vec<FactorPlan>>, CircuitError> {
        let log_slots = dft.log_slots();
        let halves = values == Values::Complex && log_slots < parameters.max_log_slots();
        let factors = dft.order(Direction::Inverse).into_iter().zip((0..=level).rev());
        factors
            .map(|(factor, level)| {
                let log_slots = log_slots + u32::from(halves && factor == 0);
                let indices = dft.indices(factor);
                // The first factor to be applied takes the raised ciphertext. A trace would have to come before.
                match raise.filter(|_| factor + 1 == dft.depth() && log_slots == parameters.max_log_slots()) {
                    Some(EphemeralKeys { weight, to_dense, .. }) => {
                        FactorPlan::raised_ways(parameters, indices, log_slots, *weight, to_dense)
                    }
                    None => FactorPlan::ways(parameters, indices, log_slots, level, design),
                }
            })
            .collect()
    }

    /// Whether the first factor is fused with ModRaise.
    pub fn is_raised(&self) -> bool {
        self.factors.first().is_some_and(|factor| factor.raised.is_some())
    }

    /// Level of the input; ciphertexts above are lowered to it.
    pub fn input_level(&self) -> usize {
        self.factors[0].level
    }

    /// Level of the output.
    pub fn output_level(&self) -> usize {
        self.input_level() - self.factors.len()
    }

    /// `log2` of the number of slots of the output's ciphertexts.
    pub fn output_log_slots(&self) -> u32 {
        self.factors.last().map_or(0, |factor| factor.log_slots)
    }

    /// Ciphertexts of the output.
    pub fn ciphertexts(&self) -> usize {
        let doubled = self.output_log_slots() > self.dft.log_slots();
        if self.values == Values::Real || doubled { 1 } else { 2 }
    }

    /// Every key that the stage uses.
    pub fn required_keys(&self) -> Vec<KeySpec> {
        self.steps().concat()
    }

    /// The keys of each step, in the order in which [`CoeffsToSlots::evaluate_streamed`] asks for them: those of the
    /// trace, empty for a full packing; of every factor; of the conjugation.
    pub fn steps(&self) -> Vec<Vec<KeySpec>> {
        let factors = self.factors.iter().map(|factor| factor.keys.clone());
        let last = vec![self.conjugation.clone()];
        std::iter::once(self.trace.clone()).chain(factors).chain([last]).collect()
    }

    /// The factor of the trace: `N/2n`.
    fn multiplicity(&self) -> f64 {
        (self.trace.len() as f64).exp2()
    }

    /// The product of the factors by which the transforms multiply integers.
    pub(crate) fn constant(&self) -> f64 {
        self.factor * self.output_scale / (self.input_scale * self.multiplicity())
    }
}

encoded_stage!(CoeffsToSlots, CoeffsToSlotsPlan);

impl CoeffsToSlots {
    /// Moves the values from coefficients to slots: the ciphertexts of the table in the [module documentation](self).
    ///
    /// # Errors
    /// [`CircuitError::Stage`] with: a ciphertext whose values are in slots, a level below the plan's, a scale that
    /// differs from the plan's by more than [`crate::bootstrapping::SCALE_DRIFT`], a missing key, mixed parameters, or
    /// a plan that [`CoeffsToSlotsPlan::is_raised`].
    pub fn evaluate(
        &self,
        evaluator: &Evaluator<'_>,
        input: &Ciphertext,
    ) -> Result<Vec<Ciphertext>, CircuitError> {
        self.require_evaluator(evaluator)?;
        self.evaluate_streamed(&mut evaluator.keys(), input)
    }

    fn require_evaluator(&self, evaluator: &Evaluator<'_>) -> Result<(), CircuitError> {
        let same = self.parameters.require_same(evaluator.parameters(), "the stage", "the evaluator");
        same.map_err(|error| Stage::CoeffsToSlots.error(self.plan.input_level(), error))
    }

    /// The same with keys that arrive step by step: [`CoeffsToSlotsPlan::steps`].
    ///
    /// # Errors
    /// As [`Self::evaluate`], but a missing key is found at its step; the errors of the supply.
    pub fn evaluate_streamed(
        &self,
        keys: &mut dyn StageKeys,
        input: &Ciphertext,
    ) -> Result<Vec<Ciphertext>, CircuitError> {
        let (plan, stage) = (&self.plan, Stage::CoeffsToSlots);
        let packing = Packing::Coefficients;
        require_input(stage, &self.parameters, input, packing, plan.input_level(), plan.input_scale)?;
        if plan.is_raised() {
            return Err(stage.error(plan.input_level(), CircuitError::StagesFused));
        }
        let traced = self.trace(keys, input).map_err(|e| stage.error(plan.input_level(), e))?;
        let scale = traced.scale;
        let slots = self
            .transforms
            .apply(&self.parameters, keys, stage, &plan.factors, traced, |i, storage| {
                encode(&self.parameters, plan, i, storage)
            })
            .map_err(|e| stage.error(plan.input_level(), e))?;
        self.finish(keys, slots, scale, input.estimate.magnitude)
    }

    /// The same for the result of [`super::mod_raise::switch_to_ephemeral`] and a plan that
    /// [`CoeffsToSlotsPlan::is_raised`].
    ///
    /// # Errors
    /// [`CircuitError::Stage`] with: [`CircuitError::StageLevel`] for a plan that is not raised, a scale that differs
    /// from the plan's by more than [`crate::bootstrapping::SCALE_DRIFT`], a missing key, mixed parameters.
    pub fn evaluate_raised(
        &self,
        evaluator: &Evaluator<'_>,
        Raised(input): &Raised,
    ) -> Result<Vec<Ciphertext>, CircuitError> {
        self.require_evaluator(evaluator)?;
        let (plan, stage, level) = (&self.plan, Stage::CoeffsToSlots, self.plan.input_level());
        require_input(stage, &self.parameters, input, Packing::Coefficients, 0, plan.input_scale)?;
        let Some(weight) = plan.factors[0].raised else {
            let error = CircuitError::StageLevel { stage: stage.name(), found: 0, expected: level };
            return Err(stage.error(level, error));
        };
        let mut sum = input.clone();
        self.spread(&mut sum, input);
        let (scale, magnitude) = (sum.scale, input.estimate.magnitude);
        let slots = self
            .transforms
            .apply_raised(evaluator, weight, sum, |i, storage| encode(&self.parameters, plan, i, storage))
            .map_err(|e| stage.error(level, e))?;
        self.finish(&mut evaluator.keys(), slots, scale, magnitude)
    }

    /// The steps after the transforms.
    fn finish(
        &self,
        keys: &mut dyn StageKeys,
        mut slots: Ciphertext,
        scale: f64,
        magnitude: f64,
    ) -> Result<Vec<Ciphertext>, CircuitError> {
        let (plan, stage) = (&self.plan, Stage::CoeffsToSlots);
        slots.scale = scale * plan.constant() / plan.factor;
        slots.estimate.deviation *= plan.factor / plan.constant();
        if plan.output_log_slots() > plan.dft.log_slots() {
            // The error of the first factors, seen in twice as many slots, has twice the coefficients.
            slots.estimate.deviation *= 2f64.sqrt();
        }
        let mut out = self.real_parts(keys, &slots).map_err(|e| stage.error(plan.output_level(), e))?;
        for part in &mut out {
            part.estimate.magnitude = magnitude * plan.factor;
            part.estimate.real = true;
        }
        Ok(out)
    }

    /// Keeps only multiples of `X^(N/2n)`, read as slots. Magnitudes are root mean squares from here on.
    fn trace(&self, keys: &mut dyn StageKeys, input: &Ciphertext) -> Result<Ciphertext, CircuitError> {
        let (plan, log_slots) = (&self.plan, self.plan.dft.log_slots());
        let evaluator = Evaluator::new(&self.parameters, keys.supply(Stage::CoeffsToSlots, &plan.trace)?)?;
        let mut sum = evaluator.drop_to_level(input, plan.input_level())?;
        sum.packing = Packing::Slots { log_slots: self.parameters.max_log_slots() };
        sum.estimate.deviation = 0.0;
        sum = evaluator.inner_sum(&sum, 1 << log_slots, 1 << plan.trace.len())?;
        sum.scale *= plan.multiplicity();
        // The error of the rotations.
        sum.estimate.deviation /= plan.multiplicity();
        let rotations = sum.estimate.deviation;
        self.spread(&mut sum, input);
        sum.estimate.deviation += rotations;
        Ok(sum)
    }

    /// Reads coefficients as slots: of the input's errors and values, only the kept ones add up in a slot.
    fn spread(&self, sum: &mut Ciphertext, input: &Ciphertext) {
        sum.packing = Packing::Slots { log_slots: self.plan.dft.log_slots() };
        let values = sum.packing.spread().sqrt();
        sum.estimate.deviation = values * input.estimate.deviation;
        sum.estimate.magnitude = values * input.estimate.magnitude;
    }

    fn real_parts(
        &self,
        keys: &mut dyn StageKeys,
        slots: &Ciphertext,
    ) -> Result<Vec<Ciphertext>, CircuitError> {
        let conjugation = std::slice::from_ref(&self.plan.conjugation);
        let evaluator = Evaluator::new(&self.parameters, keys.supply(Stage::CoeffsToSlots, conjugation)?)?;
        let conjugate = evaluator.conjugate(slots)?;
        let mut parts = vec![evaluator.add(slots, &conjugate)?];
        if self.plan.ciphertexts() == 2 {
            parts.push(evaluator.multiply_by_i(&evaluator.sub(&conjugate, slots)?)?);
        }
        Ok(parts)
    }
}

/// Factor `index` in the order of evaluation.
fn encode(
    parameters: &CkksParameters,
    plan: &CoeffsToSlotsPlan,
    index: usize,
    storage: Storage,
) -> Result<LinearTransform, CircuitError> {
    let constant = plan.constant().powf(1.0 / plan.factors.len() as f64);
    let (factor, step) = (plan.dft.order(Direction::Inverse)[index], &plan.factors[index]);
    let last = if factor == 0 { 0.5 } else { 1.0 };
    let mut diagonals = plan.dft.diagonals(Direction::Inverse, factor, last * constant);
    if step.log_slots > plan.dft.log_slots() {
        for diagonal in diagonals.values_mut() {
            diagonal.extend(diagonal.clone().into_iter().map(|v| Complex64::new(v.im, -v.re)));
        }
    }
    step.encode(parameters, &diagonals, Spread::RootMeanSquare, storage)
}
