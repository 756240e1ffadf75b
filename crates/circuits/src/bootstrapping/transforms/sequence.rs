use keywright_ckks::{Ciphertext, CkksParameters, Evaluator};

use super::factor::{FactorPlan, apply};
use crate::CircuitError;
use crate::bootstrapping::keys::StageKeys;
use crate::bootstrapping::stage::Stage;
use crate::linear_transform::{LinearTransform, Storage, evaluate_raised};

/// Diagonals that are used once are transformed once, earlier or at use; as coefficients they take less memory until
/// then.
const FOR_ONE_USE: Storage = Storage::Coefficients;

/// The transforms of a stage, in the order of application.
#[derive(Debug)]
pub(crate) struct Transforms {
    count: usize,
    /// `None` if they are made at use and dropped.
    stored: Option<Vec<LinearTransform>>,
}

impl Transforms {
    /// `count` transforms, each made by `encode`: now, to be kept, or at each use.
    pub(crate) fn new(
        kept: Option<Storage>,
        count: usize,
        encode: impl Fn(usize, Storage) -> Result<LinearTransform, CircuitError>,
    ) -> Result<Self, CircuitError> {
        let stored = kept.map(|storage| (0..count).map(|i| encode(i, storage)).collect()).transpose()?;
        Ok(Self { count, stored })
    }

    /// Bytes of the kept diagonals.
    pub(crate) fn bytes(&self) -> usize {
        self.stored.iter().flatten().map(LinearTransform::bytes).sum()
    }

    /// Applies all of them in order, each with the keys of its factor; `encode` as in [`Self::new`].
    pub(crate) fn apply(
        &self,
        parameters: &CkksParameters,
        keys: &mut dyn StageKeys,
        stage: Stage,
        factors: &[FactorPlan],
        input: Ciphertext,
        encode: impl Fn(usize, Storage) -> Result<LinearTransform, CircuitError>,
    ) -> Result<Ciphertext, CircuitError> {
        factors.iter().enumerate().try_fold(input, |ciphertext, (index, factor)| {
            let evaluator = Evaluator::new(parameters, keys.supply(stage, &factor.keys)?)?;
            match self.stored.as_ref().and_then(|stored| stored.get(index)) {
                Some(stored) => apply(&evaluator, [stored], ciphertext),
                None => apply(&evaluator, [&encode(index, FOR_ONE_USE)?], ciphertext),
            }
        })
    }

    /// The same for the result of [`crate::bootstrapping::mod_raise::switch_to_ephemeral`] under an ephemeral secret of
    /// that weight.
    pub(crate) fn apply_raised(
        &self,
        evaluator: &Evaluator<'_>,
        weight: usize,
        input: Ciphertext,
        encode: impl Fn(usize, Storage) -> Result<LinearTransform, CircuitError>,
    ) -> Result<Ciphertext, CircuitError> {
        let first = |transform: &LinearTransform| evaluate_raised(evaluator, transform, weight, &input);
        match self.stored.as_deref() {
            Some([transform, others @ ..]) => apply(evaluator, others, first(transform)?),
            Some([]) => Ok(input),
            None => (1..self.count).try_fold(first(&encode(0, FOR_ONE_USE)?)?, |ciphertext, index| {
                apply(evaluator, [&encode(index, FOR_ONE_USE)?], ciphertext)
            }),
        }
    }
}
