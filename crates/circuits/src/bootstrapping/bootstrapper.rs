use std::collections::BTreeMap;

use keywright_ckks::{Ciphertext, CkksParameters, Complex64, Evaluator, Packing};
use keywright_rlwe::KeySpec;

use super::coeffs_to_slots::CoeffsToSlots;
use super::eval_mod::eval_mod;
use super::key_supply::KeySupply;
use super::mod_raise::mod_raise;
use super::plan::BootstrapperPlan;
use super::slots_to_coeffs::SlotsToCoeffs;
use super::stage::{Stage, require_input};
use crate::CircuitError;
use crate::linear_transform::{LinearTransform, Spread, evaluate};

/// A bootstrapping with its diagonals encoded: the composition of the stages. Cheap to share, expensive to make.
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
        let recombine = plan
            .recombine
            .as_ref()
            .map(|factor| {
                let half = 1usize << (factor.log_slots - 1);
                let join = |a, b| [vec![a; half], vec![b; half]].concat();
                let (one, i) = (Complex64::ONE, Complex64::I);
                let diagonals = BTreeMap::from([(0, join(one, i)), (half, join(i, one))]);
                factor.encode(parameters, &diagonals, Spread::Arbitrary)
            })
            .transpose()?;
        Ok(Self {
            parameters: parameters.clone(),
            slots_to_coeffs: SlotsToCoeffs::new(parameters, &plan.slots_to_coeffs)?,
            coeffs_to_slots: CoeffsToSlots::new(parameters, &plan.coeffs_to_slots)?,
            recombine,
            plan: plan.clone(),
        })
    }

    /// What it does.
    pub fn plan(&self) -> &BootstrapperPlan {
        &self.plan
    }

    /// The first stage.
    pub fn slots_to_coeffs(&self) -> &SlotsToCoeffs {
        &self.slots_to_coeffs
    }

    /// The third stage.
    pub fn coeffs_to_slots(&self) -> &CoeffsToSlots {
        &self.coeffs_to_slots
    }

    /// Bytes of all encoded diagonals.
    pub fn bytes(&self) -> usize {
        let recombine = self.recombine.as_ref().map_or(0, LinearTransform::bytes);
        self.slots_to_coeffs.bytes() + self.coeffs_to_slots.bytes() + recombine
    }

    /// The same values at the plan's output level and scale: `slots_to_coeffs`, then [`Self::bootstrap_coefficients`].
    ///
    /// # Errors
    /// [`CircuitError::Stage`] naming the stage, before anything is computed: a missing key; a level below the plan's, another packing,
    /// a scale that differs from the plan's by more than [`super::SCALE_DRIFT`], mixed parameters.
    pub fn bootstrap(
        &self,
        evaluator: &Evaluator<'_>,
        input: &Ciphertext,
    ) -> Result<Ciphertext, CircuitError> {
        self.plan.require_keys(evaluator.keys())?;
        self.require_evaluator(Stage::SlotsToCoeffs, self.plan.input_level(), evaluator)?;
        self.bootstrap_streamed(&mut evaluator.keys(), input)
    }

    /// [`Self::bootstrap`] with keys that come when they are needed, so that no more than the keys of one step have to be in memory:
    /// [`BootstrapperPlan::steps`] lists the steps.
    ///
    /// # Errors
    /// As [`Self::bootstrap`], but a missing key is found at its step, and those of the supply.
    pub fn bootstrap_streamed(
        &self,
        keys: &mut dyn KeySupply,
        input: &Ciphertext,
    ) -> Result<Ciphertext, CircuitError> {
        let coefficients = self.slots_to_coeffs.evaluate_streamed(keys, input)?;
        self.raise_streamed(keys, &coefficients)
    }

    fn require_evaluator(
        &self,
        stage: Stage,
        level: usize,
        evaluator: &Evaluator<'_>,
    ) -> Result<(), CircuitError> {
        let same = self.parameters.require_same(evaluator.parameters(), "the bootstrapping", "the evaluator");
        same.map_err(|error| stage.error(level, error))
    }

    /// From coefficients at level 0, where [`SlotsToCoeffs`] leaves them or a client has put them, to slots at the plan's output level:
    /// slot `j` of `n` holds coefficient `brv(j) N/2n` as its real and, for complex values, coefficient `N/2 + brv(j) N/2n` as its
    /// imaginary part. `brv` reverses the bits of `j`. The coefficients' scale is the plan's `slots_to_coeffs.output_scale`.
    ///
    /// # Errors
    /// As [`Self::bootstrap`].
    pub fn bootstrap_coefficients(
        &self,
        evaluator: &Evaluator<'_>,
        input: &Ciphertext,
    ) -> Result<Ciphertext, CircuitError> {
        self.require_evaluator(Stage::ModRaise, 0, evaluator)?;
        self.raise_streamed(&mut evaluator.keys(), input)
    }

    /// The stages after `slots_to_coeffs`, a step with keys each; `coeffs_to_slots` has its own.
    fn raise_streamed(
        &self,
        keys: &mut dyn KeySupply,
        input: &Ciphertext,
    ) -> Result<Ciphertext, CircuitError> {
        let plan = &self.plan;
        let scale = plan.slots_to_coeffs.output_scale;
        require_input(Stage::ModRaise, &self.parameters, input, Packing::Coefficients, 0, scale)?;
        let raised = self
            .step(keys, Stage::ModRaise, &plan.mod_raise.key_specs(), |evaluator| {
                mod_raise(evaluator, &plan.mod_raise, &evaluator.drop_to_level(input, 0)?)
            })
            .map_err(|e| Stage::ModRaise.error(0, e))?;
        let parts = self.coeffs_to_slots.evaluate_streamed(keys, &raised)?;
        let ratio = raised.scale / input.scale;
        let reduced = self
            .step(keys, Stage::EvalMod, std::slice::from_ref(&plan.relinearization), |evaluator| {
                let reduce = |part| eval_mod(evaluator, &plan.eval_mod, part, ratio, plan.scale);
                parts.iter().map(reduce).collect::<Result<Vec<_>, _>>()
            })
            .map_err(|e| Stage::EvalMod.error(plan.coeffs_to_slots.output_level(), e))?;
        let specs = plan.recombine.as_ref().map_or(&[][..], |factor| &factor.keys);
        self.step(keys, Stage::Recombine, specs, |evaluator| self.recombine(evaluator, reduced)).map_err(
            |e| Stage::Recombine.error(plan.coeffs_to_slots.output_level() - plan.eval_mod.depth(), e),
        )
    }

    /// Work with the keys of one step.
    fn step<T>(
        &self,
        keys: &mut dyn KeySupply,
        stage: Stage,
        specs: &[KeySpec],
        work: impl FnOnce(&Evaluator<'_>) -> Result<T, CircuitError>,
    ) -> Result<T, CircuitError> {
        work(&Evaluator::new(&self.parameters, keys.supply(stage, specs)?)?)
    }

    /// Real and imaginary parts, in the form of [`CoeffsToSlots`], to the values.
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
