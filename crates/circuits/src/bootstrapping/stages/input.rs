use keywright_ckks::{Ciphertext, CkksError, CkksParameters, Packing};
use keywright_rlwe::RlweError;

use crate::CircuitError;
use crate::bootstrapping::stage::{SCALE_DRIFT, Stage};

/// Refuses a ciphertext that a stage cannot use.
pub(crate) fn require_input(
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
