use keywright_ckks::CkksParameters;
use keywright_rlwe::KeySpec;

use super::iterations::Iterations;
use super::literal::Order;
use crate::CircuitError;
use crate::bootstrapping::keys::KeyDesign;
use crate::bootstrapping::stage::Stage;
use crate::bootstrapping::stages::coeffs_to_slots::CoeffsToSlotsPlan;
use crate::bootstrapping::stages::eval_mod::EvalModPlan;
use crate::bootstrapping::stages::mod_raise::ModRaisePlan;
use crate::bootstrapping::stages::slots_to_coeffs::SlotsToCoeffsPlan;
use crate::bootstrapping::transforms::{Direction, FactorPlan};
use crate::linear_transform::Storage;

/// The largest error of the reduction modulo `q_0`, as a share of the largest value. Results of larger values than
/// planned soon have nothing to do with them.
const WORST: f64 = 0.1;

/// The ring of that degree, or that of the parameters.
pub(super) fn input_ring(
    parameters: &CkksParameters,
    log_n: Option<u32>,
) -> Result<&CkksParameters, CircuitError> {
    Ok(log_n.map_or(Ok(parameters), |log_n| parameters.ring_of_degree(log_n))?)
}

/// The work of a bootstrapping, stage by stage, before any key is made or diagonal encoded. Plain data.
///
/// Levels, from the top, of [`Order::SlotsToCoeffsFirst`]:
///
/// ```text
/// mod_raise            0 -> output level + depths of the stages below
/// coeffs_to_slots      one level for each factor
/// eval_mod             depth of the approximation
/// recombine            one level, for complex values of fewer than N/2 slots
///                      = output level
/// slots_to_coeffs      input level = its number of factors -> 0
/// ```
///
/// With [`Order::ModRaiseFirst`] the input level is 0, and `slots_to_coeffs` runs from the end of `recombine` down to
/// the output level. [`Iterations`] consume no levels: the passes are alike.
#[derive(Debug, Clone, PartialEq)]
pub struct BootstrapperPlan {
    /// The order of the stages.
    pub order: Order,
    /// Passes that correct the error of the first one.
    pub iterations: Option<Iterations>,
    /// Digits and levels of the keys; `None` if chosen for the least work.
    pub keys: Option<KeyDesign>,
    /// Slots to coefficients.
    pub slots_to_coeffs: SlotsToCoeffsPlan,
    /// From level 0 to the highest level used.
    pub mod_raise: ModRaisePlan,
    /// Coefficients to slots.
    pub coeffs_to_slots: CoeffsToSlotsPlan,
    /// Reduction modulo `q_0`.
    pub eval_mod: EvalModPlan,
    /// The relinearization key of the reduction.
    pub relinearization: KeySpec,
    /// Joins real and imaginary parts, side by side, to complex values: the diagonals 0 and `n` of `2n` slots.
    pub recombine: Option<FactorPlan>,
    /// Scale of the result, and of the input of `slots_to_coeffs`: that of the parameters.
    pub scale: f64,
    /// Scale of the coefficients that ModRaise takes: `q_0` divided by the message ratio.
    pub coefficients_scale: f64,
    /// `log2` of the degree of the inputs' subring, in which `slots_to_coeffs` runs.
    pub input_log_n: Option<u32>,
}

impl BootstrapperPlan {
    /// The parameters of inputs: those of the ring that the plan is for, or of a subring.
    ///
    /// # Errors
    /// [`keywright_rlwe::RlweError::NoRing`] for a plan that was made for other parameters.
    pub fn input_ring<'p>(&self, parameters: &'p CkksParameters) -> Result<&'p CkksParameters, CircuitError> {
        input_ring(parameters, self.input_log_n)
    }

    /// Level at which [`crate::bootstrapping::Bootstrapper::bootstrap`] uses ciphertexts; those above are lowered to
    /// it.
    pub fn input_level(&self) -> usize {
        match self.order {
            Order::SlotsToCoeffsFirst => self.slots_to_coeffs.input_level(),
            Order::ModRaiseFirst => 0,
        }
    }

    /// Level of the result.
    pub fn output_level(&self) -> usize {
        match self.order {
            Order::SlotsToCoeffsFirst => self.slots_level(),
            Order::ModRaiseFirst => self.slots_to_coeffs.output_level(),
        }
    }

    /// Level of the result of [`crate::bootstrapping::Bootstrapper::bootstrap_coefficients`], after `eval_mod` and
    /// `recombine`.
    pub fn slots_level(&self) -> usize {
        let reduced = self.coeffs_to_slots.output_level() - self.eval_mod.depth();
        reduced - usize::from(self.recombine.is_some())
    }

    /// The stages in their order, each with the levels of its input and of its output.
    pub fn stage_levels(&self) -> Vec<(Stage, usize, usize)> {
        let (slots, to_coeffs) = (self.coeffs_to_slots.output_level(), &self.slots_to_coeffs);
        let last = self.recombine.as_ref().map(|factor| (Stage::Recombine, factor.level, factor.level - 1));
        let mut out = vec![
            (Stage::ModRaise, 0, self.mod_raise.level),
            (Stage::CoeffsToSlots, self.coeffs_to_slots.input_level(), slots),
            (Stage::EvalMod, slots, slots - self.eval_mod.depth()),
        ];
        out.extend(last);
        let position = if self.order == Order::SlotsToCoeffsFirst { 0 } else { out.len() };
        out.insert(position, (Stage::SlotsToCoeffs, to_coeffs.input_level(), to_coeffs.output_level()));
        out
    }

    /// Levels for computation between two bootstraps.
    pub fn levels_left(&self) -> usize {
        self.output_level() - self.input_level()
    }

    /// Returns the largest part of values, at least 1, if `eval_mod` tells values up to it apart. It is the declared
    /// one: bounds of errors assume the worst case of every operation, and stay in the result.
    ///
    /// # Errors
    /// [`CircuitError::Magnitude`] if its error may exceed a tenth of that part.
    pub fn reducible(&self, largest: f64) -> Result<f64, CircuitError> {
        let approximation = &self.eval_mod.approximation;
        let error = approximation.error_up_to(largest * approximation.message) / approximation.message;
        if error <= WORST * largest { Ok(largest) } else { Err(CircuitError::Magnitude { largest, error }) }
    }

    /// Bytes of the diagonals of all stages that [`crate::bootstrapping::Bootstrapper::with_storage`] keeps.
    pub fn diagonal_bytes(&self, kept: Option<Storage>) -> usize {
        let (to_coeffs, to_slots) = (&self.slots_to_coeffs, &self.coeffs_to_slots);
        let bytes = |factor: &FactorPlan, period: usize, storage: Storage| {
            let periods = std::iter::repeat_n(period, factor.bsgs.diagonals);
            storage.bytes(false, periods, factor.level + 1 + factor.special.len())
        };
        let stages = kept.map_or(0, |storage| {
            let first = to_coeffs.factors.iter().zip(to_coeffs.dft.order(Direction::Forward));
            let second = to_slots.factors.iter().zip(to_slots.dft.order(Direction::Inverse));
            let first = first.map(|(factor, index)| bytes(factor, to_coeffs.dft.period(index), storage));
            let second = second.map(|(factor, index)| {
                // In parallel with its product with -i, a factor has no shorter period.
                let doubled = factor.log_slots > to_slots.dft.log_slots();
                let period = if doubled { 1 << factor.log_slots } else { to_slots.dft.period(index) };
                bytes(factor, period, storage)
            });
            first.chain(second).sum()
        });
        let join = self.recombine.as_ref();
        stages
            + join.map_or(0, |factor| {
                bytes(factor, 1 << factor.log_slots, kept.unwrap_or(Storage::Coefficients))
            })
    }

    /// The ratio of `q_0` to the scale of the coefficients.
    pub fn ratio(&self) -> f64 {
        self.coeffs_to_slots.input_scale / self.coefficients_scale
    }
}
