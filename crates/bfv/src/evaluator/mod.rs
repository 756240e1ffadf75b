//! Operations on ciphertexts, one file per family.

mod add;
mod mod_switch;
mod multiply;
mod plain;
mod rotate;

use keywright_rlwe::{EvaluationKeys, KeyIdentity, RlweError};

use crate::{BfvError, BfvParameters, Ciphertext, Packing, Plaintext};

/// Computes on ciphertexts, with only the keys that it was given.
#[derive(Debug, Clone)]
pub struct Evaluator<'k> {
    parameters: BfvParameters,
    keys: &'k EvaluationKeys,
}

impl<'k> Evaluator<'k> {
    /// An evaluator for parameters and the keys of the owner of the data.
    ///
    /// # Errors
    /// [`BfvError::Rlwe`] if the keys belong to other parameters.
    pub fn new(parameters: &BfvParameters, keys: &'k EvaluationKeys) -> Result<Self, BfvError> {
        parameters.rlwe().require_same(keys.parameters(), "the evaluator", "the key set")?;
        Ok(Self { parameters: parameters.clone(), keys })
    }

    /// The parameters it computes with.
    pub fn parameters(&self) -> &BfvParameters {
        &self.parameters
    }

    fn require(&self, ciphertext: &Ciphertext) -> Result<(), BfvError> {
        self.parameters.require_same(&ciphertext.parameters, "the evaluator", "the ciphertext")?;
        self.keys.identity().join(ciphertext.key(), "the evaluator's key set", "the ciphertext")?;
        Ok(())
    }

    fn require_plain(&self, ciphertext: &Ciphertext, plaintext: &Plaintext) -> Result<(), BfvError> {
        self.require(ciphertext)?;
        self.parameters.require_same(plaintext.parameters(), "the evaluator", "the plaintext")?;
        Self::require_packing(ciphertext, plaintext.packing())
    }

    /// Refuses two operands that do not match. Returns the identity of the result.
    fn require_pair(&self, a: &Ciphertext, b: &Ciphertext) -> Result<KeyIdentity, BfvError> {
        self.require(a)?;
        self.require(b)?;
        Self::require_packing(a, b.packing)?;
        let key = a.key().join(b.key(), "one ciphertext", "the other")?;
        if a.level() == b.level() {
            Ok(key)
        } else {
            Err(BfvError::LevelMismatch { left: a.level(), right: b.level() })
        }
    }

    fn require_degree_one(operation: &'static str, ciphertext: &Ciphertext) -> Result<(), BfvError> {
        match ciphertext.degree() {
            1 => Ok(()),
            degree => Err(BfvError::Degree { operation, degree }),
        }
    }

    fn require_packing(left: &Ciphertext, right: Packing) -> Result<(), BfvError> {
        if left.packing == right {
            Ok(())
        } else {
            Err(BfvError::PackingMismatch { left: left.packing, right })
        }
    }

    fn level_error(level: usize, max: usize) -> BfvError {
        RlweError::Level { level, max, object: "the ciphertext" }.into()
    }
}
