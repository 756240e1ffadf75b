//! Keys that are in memory only while they are needed.

use keywright_rlwe::{EvaluationKeys, KeySpec};

use crate::CircuitError;
use crate::bootstrapping::stage::Stage;

/// The source of a streamed stage's keys, one step after the other: a file, a network or a generator.
///
/// The stage asks once for each of its steps, in the order that [`crate::bootstrapping::CoeffsToSlotsPlan::steps`]
/// lists.
pub trait StageKeys {
    /// A set that holds at least these keys, those of one step of `stage`. Keys of earlier steps are no longer in use.
    ///
    /// # Errors
    /// Why the keys are unavailable; the stage ends with this error.
    fn supply(&mut self, stage: Stage, keys: &[KeySpec]) -> Result<&EvaluationKeys, CircuitError>;
}

/// All keys at once.
impl StageKeys for &EvaluationKeys {
    fn supply(&mut self, _stage: Stage, _keys: &[KeySpec]) -> Result<&EvaluationKeys, CircuitError> {
        Ok(self)
    }
}
