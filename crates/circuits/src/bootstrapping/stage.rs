use std::fmt;

/// How far the scale of a stage's input may be from the plan's, relatively. Scales drift with the ratio of primes to
/// the scale by much less; the exact one is tracked, and only the range that `eval_mod` was built for depends on it.
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
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
