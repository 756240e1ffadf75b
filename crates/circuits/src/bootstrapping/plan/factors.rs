//! Ways to evaluate the factors of the transforms, and plans with other ways.

use keywright_ckks::CkksParameters;

use super::bootstrapper_plan::BootstrapperPlan;
use crate::CircuitError;
use crate::bootstrapping::stage::Stage;
use crate::bootstrapping::stages::coeffs_to_slots::{CoeffsToSlotsPlan, Values};
use crate::bootstrapping::stages::slots_to_coeffs::SlotsToCoeffsPlan;
use crate::bootstrapping::transforms::{Dft, Direction, FactorPlan, KeyBudget, worthwhile};

/// How to evaluate one factor of a transform.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FactorSteps {
    /// Radix-2 layers of the Fourier transform that it merges.
    pub layers: u32,
    /// Its possible baby steps, 0 among them: [`FactorPlan::baby_steps`].
    pub baby_steps: usize,
}

impl BootstrapperPlan {
    /// The ways to evaluate each factor of the transforms, by ascending [`FactorPlan::key_bytes`] and descending
    /// [`FactorPlan::work`]. Those of `slots_to_coeffs` come first, then those of `coeffs_to_slots`, in the order of
    /// application. A key budget chooses from these.
    ///
    /// # Errors
    /// As [`Self::new`], for a plan that was made for other parameters.
    pub fn factor_options(
        &self,
        parameters: &CkksParameters,
    ) -> Result<Vec<(Stage, Vec<FactorPlan>)>, CircuitError> {
        let ways = self.ways(parameters, &self.slots_to_coeffs.dft, &self.coeffs_to_slots.dft)?;
        Ok(ways.into_iter().enumerate().map(|(i, ways)| (self.stage_of(i), worthwhile(ways))).collect())
    }

    /// The stage of a factor, by its index in [`Self::factor_options`].
    fn stage_of(&self, factor: usize) -> Stage {
        if factor < self.slots_to_coeffs.factors.len() { Stage::SlotsToCoeffs } else { Stage::CoeffsToSlots }
    }

    /// The ways with other factorisations.
    fn ways(
        &self,
        parameters: &CkksParameters,
        to_coeffs: &Dft,
        to_slots: &Dft,
    ) -> Result<Vec<Vec<FactorPlan>>, CircuitError> {
        let (first, second) = (&self.slots_to_coeffs, &self.coeffs_to_slots);
        let raise = self.mod_raise.ephemeral.as_ref().filter(|_| second.is_raised());
        let level = second.input_level();
        let lowest = first.input_level();
        let input = self.input_ring(parameters)?;
        let mut out = SlotsToCoeffsPlan::ways(input, to_coeffs, lowest, self.keys)
            .map_err(|error| Stage::SlotsToCoeffs.error(lowest, error))?;
        out.extend(
            CoeffsToSlotsPlan::ways(parameters, to_slots, second.values, level, raise, self.keys)
                .map_err(|error| Stage::CoeffsToSlots.error(level, error))?,
        );
        Ok(out)
    }

    /// The plan of the bootstraps of one ciphertext by a plan of [`Values::Pair`], whose keys are among those of the
    /// pair; of other plans, the plan itself.
    #[must_use]
    pub fn alone(&self) -> Self {
        let mut plan = self.clone();
        if plan.slots_to_coeffs.conjugation.take().is_some() {
            plan.coeffs_to_slots.values = Values::Real;
        }
        plan
    }

    /// The same plan with the factors that are best for another budget.
    ///
    /// # Errors
    /// [`CircuitError::KeyBudget`] with the fewest possible bytes; as [`Self::new`], for a plan that was made for other
    /// parameters.
    pub fn with_key_budget(
        &self,
        parameters: &CkksParameters,
        budget: KeyBudget,
    ) -> Result<Self, CircuitError> {
        self.clone().within(parameters, budget)
    }

    /// How each factor of the transforms is evaluated, in the order of [`Self::factor_options`].
    pub fn factor_steps(&self) -> Vec<FactorSteps> {
        let (first, second) = (&self.slots_to_coeffs, &self.coeffs_to_slots);
        let stage = |dft: &Dft, direction, factors: &[FactorPlan]| {
            let layers = dft.order(direction).into_iter().map(|factor| dft.layers()[factor]);
            let steps = layers.zip(factors).map(|(layers, plan)| (layers, plan.baby_steps()));
            steps.map(|(layers, baby_steps)| FactorSteps { layers, baby_steps }).collect::<Vec<_>>()
        };
        let mut out = stage(&first.dft, Direction::Forward, &first.factors);
        out.extend(stage(&second.dft, Direction::Inverse, &second.factors));
        out
    }

    /// For each factor, in the order of [`Self::factor_options`], one way for every number of baby steps, all of which
    /// are rotations of its input. A key planner chooses from these and decides how the rotations are made.
    ///
    /// # Errors
    /// As [`Self::new`], for a plan that was made for other parameters.
    pub fn factor_ways(
        &self,
        parameters: &CkksParameters,
    ) -> Result<Vec<(Stage, Vec<FactorPlan>)>, CircuitError> {
        let ways = self.ways(parameters, &self.slots_to_coeffs.dft, &self.coeffs_to_slots.dft)?;
        let of = |(i, ways)| (self.stage_of(i), FactorPlan::by_baby_steps(ways).into_values().collect());
        Ok(ways.into_iter().enumerate().map(of).collect())
    }

    /// The same plan with the ways that a key planner chose, in the order of [`Self::factor_options`].
    ///
    /// # Errors
    /// [`CircuitError::Count`] for another number of factors, or for baby steps that [`Self::factor_ways`] lacks;
    /// [`CircuitError::DftLayers`].
    pub fn with_factors(
        &self,
        parameters: &CkksParameters,
        steps: &[FactorSteps],
    ) -> Result<Self, CircuitError> {
        let (first, second) = (&self.slots_to_coeffs, &self.coeffs_to_slots);
        let (before, after) = (first.dft.depth(), second.dft.depth());
        if steps.len() != before + after {
            let (count, bound) = (steps.len(), before + after);
            return Err(CircuitError::Count { what: "factors", count, min: bound, max: bound });
        }
        let dft = |dft: &Dft, direction, steps: &[FactorSteps]| {
            let mut layers = vec![0; steps.len()];
            for (place, step) in dft.order(direction).into_iter().zip(steps) {
                layers[place] = step.layers;
            }
            Dft::new(dft.log_slots(), &layers)
        };
        let (to_coeffs, to_slots) = steps.split_at(before);
        let to_coeffs = dft(&first.dft, Direction::Forward, to_coeffs)?;
        let to_slots = dft(&second.dft, Direction::Inverse, to_slots)?;
        let ways = self.ways(parameters, &to_coeffs, &to_slots)?;
        let mut factors = Vec::with_capacity(steps.len());
        for (ways, &FactorSteps { baby_steps: count, .. }) in ways.into_iter().zip(steps) {
            let mut ways = FactorPlan::by_baby_steps(ways);
            let max = ways.keys().last().copied().unwrap_or(1);
            let what = "baby steps of a factor";
            factors.push(ways.remove(&count).ok_or(CircuitError::Count { what, count, min: 1, max })?);
        }
        let mut plan = self.clone();
        plan.coeffs_to_slots.factors = factors.split_off(before);
        plan.slots_to_coeffs.factors = factors;
        (plan.slots_to_coeffs.dft, plan.coeffs_to_slots.dft) = (to_coeffs, to_slots);
        Ok(plan)
    }

    /// The same plan with the ways of least work for keys of that budget. Layers of `coeffs_to_slots` move between
    /// factors, because factors at low levels, and one fused with ModRaise, have cheaper rotations.
    pub(super) fn within(
        mut self,
        parameters: &CkksParameters,
        budget: KeyBudget,
    ) -> Result<Self, CircuitError> {
        let (rlwe, dft) = (parameters.rlwe(), &self.coeffs_to_slots.dft);
        // Starts from the same plan for every budget.
        let dfts = Dft::balanced(dft.log_slots(), dft.depth())?.neighbours();
        let stage = &self.coeffs_to_slots;
        let recombine = self.recombine.iter().flat_map(|factor| &factor.keys);
        let single = [&stage.conjugation, &self.relinearization];
        let joining = self.slots_to_coeffs.conjugation.iter();
        let others = stage.trace.iter().chain(single).chain(recombine).chain(joining).cloned();
        // The switch back is the first baby step of a raised factor, and counted there.
        let raise = self.mod_raise.key_specs().into_iter().filter(|key| !stage.is_raised() || key.level == 0);
        let fixed = others.chain(raise).map(|key| key.bytes(rlwe)).sum::<Result<usize, _>>()?;
        let mut best: Option<(f64, Dft, Vec<FactorPlan>)> = None;
        let mut refused = CircuitError::Empty("the list of factorisations");
        let mut minimum = usize::MAX;
        for dft in dfts {
            match budget.choose(fixed, self.ways(parameters, &self.slots_to_coeffs.dft, &dft)?) {
                Ok((work, factors)) if best.as_ref().is_none_or(|(least, ..)| work < *least) => {
                    best = Some((work, dft, factors));
                }
                Ok(_) => {}
                Err(CircuitError::KeyBudget { budget, minimum: fewest }) => {
                    minimum = minimum.min(fewest);
                    refused = CircuitError::KeyBudget { budget, minimum };
                }
                Err(error) => return Err(error),
            }
        }
        let Some((_, dft, mut factors)) = best else { return Err(refused) };
        self.coeffs_to_slots.factors =
            factors.split_off(self.slots_to_coeffs.factors.len().min(factors.len()));
        self.coeffs_to_slots.dft = dft;
        self.slots_to_coeffs.factors = factors;
        Ok(self)
    }
}
