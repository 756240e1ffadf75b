//! Keys that are in memory only while they are needed.

use keywright_rlwe::{EvaluationKeys, KeySpec};

use crate::CircuitError;
use crate::bootstrapping::stage::Stage;

/// The keys of a streamed stage, one step after the other: from a file, a network, a generator.
///
/// The stage asks once for each of its steps, in their order, which
/// [`crate::bootstrapping::CoeffsToSlotsPlan::steps`] lists beforehand.
pub trait StageKeys {
    /// A set that holds at least these keys, the keys of one step of `stage`. Those of earlier steps are no longer
    /// in use.
    ///
    /// # Errors
    /// Why there are none; the stage ends with it.
    fn supply(&mut self, stage: Stage, keys: &[KeySpec]) -> Result<&EvaluationKeys, CircuitError>;
}

/// All keys at once.
impl StageKeys for &EvaluationKeys {
    fn supply(&mut self, _stage: Stage, _keys: &[KeySpec]) -> Result<&EvaluationKeys, CircuitError> {
        Ok(self)
    }
}
