use keywright_ckks::{CkksError, CkksParameters};

use super::iterations::Iterations;
use crate::CircuitError;
use crate::bootstrapping::keys::KeyDesign;
use crate::bootstrapping::mod_one::sine::MAX_DEGREE;
use crate::bootstrapping::stage::Stage;
use crate::bootstrapping::stages::coeffs_to_slots::Values;
use crate::bootstrapping::transforms::KeyBudget;

/// The order of the stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// `slots_to_coeffs` at the lowest levels, then `mod_raise`, `coeffs_to_slots`, `eval_mod`. ModRaise runs on a
    /// ciphertext whose coefficients are the message values.
    SlotsToCoeffsFirst,
    /// `mod_raise` from level 0, `coeffs_to_slots`, `eval_mod`, and `slots_to_coeffs` last, at the remaining levels:
    /// the order of Cheon, Han, Kim, Kim and Song (Eurocrypt 2018). Real values have complex coefficients and cost as
    /// much as complex ones.
    ModRaiseFirst,
}

/// The wanted bootstrapping: plain data, not yet checked.
#[derive(Debug, Clone, PartialEq)]
pub struct BootstrapperLiteral {
    /// `log2` of the number of slots.
    pub log_slots: u32,
    /// The values in the slots, of absolute value at most 1 in each part.
    pub values: Values,
    /// The order of the stages.
    pub order: Order,
    /// Levels of `slots_to_coeffs`: the number of matrices into which the Fourier transform is factored.
    pub slots_to_coeffs: usize,
    /// Levels of `coeffs_to_slots`.
    pub coeffs_to_slots: usize,
    /// Bytes allowed for all keys: fewer bytes cost time.
    pub budget: KeyBudget,
    /// Whether each stage must be usable alone. If not, for a full packing under an ephemeral secret, the switch back
    /// from that secret is fused with the rotations of the first factor of `coeffs_to_slots`, which saves time and
    /// bytes.
    pub stages_apart: bool,
    /// Digits and levels of the keys, if the stages are apart; `None` for the least work within the budget.
    pub keys: Option<KeyDesign>,
    /// Hamming weight of the ephemeral secret under which ModRaise runs; `None` runs it under the main secret.
    pub ephemeral_weight: Option<usize>,
    /// `log2` of the probability that a bootstrap fails.
    pub log2_failure: f64,
    /// `log2` of the message ratio, `q_0` divided by the scale of the coefficients.
    pub log_ratio: f64,
    /// Even degree of the cosine in the reduction: see [`crate::bootstrapping::sine`].
    pub cosine_degree: usize,
    /// Double angles after it.
    pub double_angles: u32,
    /// Odd degree of the arcsine at its end; 1 for none.
    pub arcsine_degree: usize,
    /// Passes that correct the error of the first one; `None` for a single pass.
    pub iterations: Option<Iterations>,
    /// Level of the result; `None` for the highest.
    pub output_level: Option<usize>,
    /// `log2` of the degree of the inputs' ring: a subring, in which `slots_to_coeffs` runs; `None` for the ring of the
    /// parameters. Results are always in the latter.
    pub input_log_n: Option<u32>,
}

impl BootstrapperLiteral {
    /// Refuses numbers that would size something too large, or that have no meaning.
    ///
    /// # Errors
    /// As [`BootstrapperPlan::new`].
    pub(super) fn require(&self, parameters: &CkksParameters) -> Result<(), CircuitError> {
        let (rlwe, max) = (parameters.rlwe(), parameters.max_log_slots());
        let (first, input_level) = match self.order {
            Order::SlotsToCoeffsFirst => (Stage::SlotsToCoeffs, self.slots_to_coeffs),
            Order::ModRaiseFirst => (Stage::ModRaise, 0),
        };
        if self.input_log_n.is_some() && (self.order == Order::ModRaiseFirst || self.iterations.is_some()) {
            return Err(first.error(input_level, CircuitError::InputRing));
        }
        if self.log_slots > max {
            return Err(first.error(input_level, CircuitError::LogSlots { log_slots: self.log_slots, max }));
        }
        for (stage, levels) in [
            (Stage::SlotsToCoeffs, self.slots_to_coeffs),
            (Stage::CoeffsToSlots, self.coeffs_to_slots),
            (Stage::EvalMod, self.double_angles as usize),
        ] {
            rlwe.require_level(levels).map_err(|error| stage.error(parameters.max_level(), error))?;
        }
        if !self.cosine_degree.is_multiple_of(2) {
            let (what, count) = ("degree of a cosine, even", self.cosine_degree);
            let error = CircuitError::Count { what, count, min: 2, max: MAX_DEGREE - 1 };
            return Err(Stage::EvalMod.error(parameters.max_level(), error));
        }
        let joins =
            self.order == Order::SlotsToCoeffsFirst && self.iterations.is_none() && self.log_slots == max;
        if self.values == Values::Pair && !joins {
            return Err(first.error(input_level, CircuitError::PairPlan));
        }
        let scale = rlwe.modulus(0).value() as f64 / self.log_ratio.exp2();
        if !(scale >= 1.0 && scale.is_finite()) {
            let (log_scale, log_q) = (scale.log2(), rlwe.log2_q(0));
            return Err(first.error(input_level, CkksError::Scale { log_scale, log_q, level: 0 }));
        }
        Ok(())
    }
}
