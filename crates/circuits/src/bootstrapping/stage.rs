use std::fmt;

use keywright_ckks::{Ciphertext, CkksError, CkksParameters, Packing};
use keywright_rlwe::RlweError;

use crate::CircuitError;

/// How far the scale of a stage's input may be from the plan's, relatively. Scales drift with the ratio of primes to the scale
/// by much less; the exact one is tracked, and only the range that `eval_mod` was built for depends on it.
pub const SCALE_DRIFT: f64 = 1.0 / 128.0;

/// The stages of bootstrapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Slots to coefficients, at the lowest levels.
    SlotsToCoeffs,
    /// From level 0 to the highest level used.
    ModRaise,
    /// Coefficients to slots.
    CoeffsToSlots,
    /// The reduction modulo `q_0`.
    EvalMod,
    /// Real and imaginary parts to complex values.
    Recombine,
}

impl Stage {
    /// The stage's name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::SlotsToCoeffs => "slots_to_coeffs",
            Self::ModRaise => "mod_raise",
            Self::CoeffsToSlots => "coeffs_to_slots",
            Self::EvalMod => "eval_mod",
            Self::Recombine => "recombine",
        }
    }

    /// An error of the stage, whose input is at `level`.
    pub(super) fn error(self, level: usize, source: impl Into<CircuitError>) -> CircuitError {
        match source.into() {
            named @ CircuitError::Stage { .. } => named,
            source => CircuitError::Stage { stage: self, level, source: Box::new(source) },
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Refuses a ciphertext that a stage cannot take.
pub(super) fn require_input(
    stage: Stage,
    parameters: &CkksParameters,
    input: &Ciphertext,
    packing: Packing,
    level: usize,
    scale: f64,
) -> Result<(), CircuitError> {
    let refuse = |error: CkksError| Err(stage.error(level, error));
    if let Err(error) = parameters.require_same(&input.parameters, "the stage", "the ciphertext") {
        return refuse(error.into());
    }
    if input.degree() != 1 {
        return refuse(CkksError::Degree { operation: stage.name(), degree: input.degree() });
    }
    if input.packing != packing {
        return refuse(CkksError::PackingMismatch { left: input.packing, right: packing });
    }
    if input.level() < level {
        let max = input.level();
        return refuse(RlweError::Level { level, max, object: "the ciphertext" }.into());
    }
    if (input.scale / scale - 1.0).abs() > SCALE_DRIFT {
        return refuse(CkksError::ScaleMismatch { left: input.scale.log2(), right: scale.log2() });
    }
    Ok(())
}
