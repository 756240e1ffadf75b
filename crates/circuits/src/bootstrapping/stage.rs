use std::fmt;

/// Largest relative difference between the scale of a stage's input and the plan's. Drift from the ratio of primes to
/// the scale is much smaller. The exact scale is tracked; only the range that `eval_mod` was built for depends on this
/// bound.
pub const SCALE_DRIFT: f64 = 1.0 / 128.0;

/// The stages of bootstrapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Slots to coefficients, at the lowest levels.
    SlotsToCoeffs,
    /// ModRaise: from level 0 to the highest level used.
    ModRaise,
    /// Coefficients to slots.
    CoeffsToSlots,
    /// The reduction modulo `q_0`.
    EvalMod,
    /// Joining real and imaginary parts to complex values.
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
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
