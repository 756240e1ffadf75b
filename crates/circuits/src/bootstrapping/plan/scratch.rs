//! The memory that each stage of a bootstrapping takes while it runs.

use keywright_ckks::{CkksParameters, Complex64};
use keywright_rlwe::{KeySpec, Parameters};

use super::bootstrapper_plan::BootstrapperPlan;
use crate::CircuitError;
use crate::bootstrapping::stage::Stage;
use crate::bootstrapping::transforms::{Dft, Direction, FactorPlan};
use crate::linear_transform::{ScratchShape, Storage, transformed_words};

/// Ciphertexts at the level of `slots_to_coeffs` while two are joined: both inputs, lowered and without their errors,
/// one of them turned, their sum, their difference and its conjugate.
const JOINED: usize = 8;

/// Threads, and the storage of diagonals.
#[derive(Clone, Copy)]
struct Run {
    kept: Option<Storage>,
    threads: usize,
}

impl BootstrapperPlan {
    /// Peak bytes of the buffers of each stage with that many threads, in the order of the stages. They include the
    /// result, but not keys, kept diagonals and the input.
    ///
    /// # Errors
    /// The errors for a plan that was made for other parameters.
    pub fn scratch_bytes(
        &self,
        parameters: &CkksParameters,
        kept: Option<Storage>,
        threads: usize,
    ) -> Result<Vec<(Stage, usize)>, CircuitError> {
        let (rlwe, run) = (parameters.rlwe(), Run { kept, threads });
        let limb = 8usize << rlwe.log_n();
        let slots = &self.coeffs_to_slots;
        let bytes = |(stage, level, _): (Stage, usize, usize)| {
            let bytes = match stage {
                Stage::SlotsToCoeffs => {
                    let plan = &self.slots_to_coeffs;
                    let rlwe = self.input_ring(parameters)?.rlwe();
                    // The input is lowered to the level of the stage.
                    let limb = 8 << rlwe.log_n();
                    let copy = 2 * (level + 1) * limb;
                    let factors = transforms(rlwe, &plan.factors, &plan.dft, Direction::Forward, run)?;
                    let joining = match &plan.conjugation {
                        Some(key) => JOINED * copy + switch(rlwe, key, level, false, threads)? * limb,
                        None => 0,
                    };
                    joining.max(copy + factors)
                }
                Stage::ModRaise => self.raising_limbs(rlwe, threads)? * limb,
                Stage::CoeffsToSlots => {
                    let last = slots.output_level() + 1;
                    let parts = 2 * last * (2 + slots.ciphertexts());
                    let conjugation = switch(rlwe, &slots.conjugation, slots.output_level(), false, threads)?;
                    let finish = (parts + conjugation) * limb;
                    let copy = 2 * (level + 1) * limb;
                    finish.max(copy + transforms(rlwe, &slots.factors, &slots.dft, Direction::Inverse, run)?)
                }
                Stage::EvalMod => {
                    // Both parts at once, each with its share of the threads.
                    let parts = slots.ciphertexts();
                    let share = threads.div_ceil(parts);
                    let key = &self.relinearization;
                    let at = |level: usize| switch(rlwe, key, level, true, share).unwrap_or(0);
                    let (given, result) = (2 * (level + 1), 2 * (level + 1 - self.eval_mod.depth()));
                    let scratch = self.eval_mod.scratch_limbs(level, &at);
                    let scratch = if threads == 1 { scratch + (parts - 1) * result } else { parts * scratch };
                    (parts * given + scratch) * limb
                }
                Stage::Recombine => match &self.recombine {
                    Some(factor) => transform(rlwe, factor, 1 << factor.log_slots, run)?,
                    None => 0,
                },
            };
            Ok((stage, bytes))
        };
        self.stage_levels().into_iter().map(bytes).collect()
    }

    /// Peak bytes of the numbers from which the diagonals of a transform are made. They are no buffers: idle buffers
    /// make no room for them.
    pub fn making_bytes(&self) -> usize {
        let numbers = |factors: &[FactorPlan], dft: &Dft, direction| {
            let factors = factors.iter().zip(dft.order(direction));
            // Of numbers for more slots, the result takes more than what it is made from.
            let numbers = |(factor, index): (&FactorPlan, usize)| {
                dft.working_numbers(index).max(factor.bsgs.diagonals << factor.log_slots)
            };
            factors.map(numbers).max().unwrap_or(0)
        };
        let (first, last) = (&self.coeffs_to_slots, &self.slots_to_coeffs);
        let first = numbers(&first.factors, &first.dft, Direction::Inverse);
        first.max(numbers(&last.factors, &last.dft, Direction::Forward)) * size_of::<Complex64>()
    }

    fn raising_limbs(&self, rlwe: &Parameters, threads: usize) -> Result<usize, CircuitError> {
        let level = self.mod_raise.level;
        let Some(keys) = &self.mod_raise.ephemeral else { return Ok(2 * (level + 1)) };
        let sparse = switch(rlwe, &keys.to_sparse, 0, false, threads)?;
        if self.coeffs_to_slots.is_raised() {
            return Ok(sparse);
        }
        Ok(2 + level + 1 + switch(rlwe, &keys.to_dense, level, false, threads)?)
    }
}

/// Limbs of a switch with one key.
fn switch(
    rlwe: &Parameters,
    key: &KeySpec,
    level: usize,
    rescale: bool,
    threads: usize,
) -> Result<usize, CircuitError> {
    Ok(key.best_layout(rlwe, level, rescale)?.switch_limbs(1, rescale, threads))
}

/// The largest of some transforms, each next to its input.
fn transforms(
    rlwe: &Parameters,
    factors: &[FactorPlan],
    dft: &Dft,
    direction: Direction,
    run: Run,
) -> Result<usize, CircuitError> {
    let period = |factor: &FactorPlan, index: usize| match factor.log_slots > dft.log_slots() {
        true => 1 << factor.log_slots,
        false => dft.period(index),
    };
    let factors = factors.iter().zip(dft.order(direction));
    let mut bytes = factors.map(|(factor, index)| transform(rlwe, factor, period(factor, index), run));
    bytes.try_fold(0, |most, bytes| Ok(most.max(bytes?)))
}

/// One transform, and its diagonals if they are made for it.
fn transform(rlwe: &Parameters, factor: &FactorPlan, period: usize, run: Run) -> Result<usize, CircuitError> {
    let (level, diagonals) = (factor.level, factor.bsgs.diagonals);
    let periods = || std::iter::repeat_n(period, diagonals);
    let mut shape = ScratchShape::new(&[&factor.bsgs]);
    if factor.raised.is_some() {
        (shape.switched, shape.lifted) = (factor.bsgs.babies.len(), 0);
    }
    if run.kept != Some(Storage::Encoded) {
        shape.transformed = transformed_words(periods());
    }
    let key = factor.keys.first().ok_or(CircuitError::Empty("the list of a factor's keys"))?;
    let layout = key.best_layout(rlwe, level, false)?;
    let scratch = shape.bytes(rlwe.log_n(), &layout, run.threads);
    let diagonals = Storage::Coefficients.bytes(false, periods(), 1);
    Ok(if run.kept.is_none() { diagonals + scratch } else { scratch })
}
