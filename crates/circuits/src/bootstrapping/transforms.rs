use keywright_ckks::{Ciphertext, CkksParameters, Evaluator, Packing};

use super::factor::FactorPlan;
use super::key_supply::KeySupply;
use super::stage::Stage;
use crate::CircuitError;
use crate::linear_transform::{LinearTransform, evaluate};

/// What becomes of the encoded diagonals of a stage's transforms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Diagonals {
    /// They are encoded once and kept.
    Stored,
    /// Those of one transform at a time are encoded when it is evaluated, and dropped: memory against time.
    Generated,
}

/// The transforms of a stage, in the order in which they are applied.
#[derive(Debug)]
pub(super) struct Transforms {
    /// None if they are encoded when they are needed.
    stored: Option<Vec<LinearTransform>>,
}

impl Transforms {
    /// `count` transforms, of which `encode` makes each.
    pub(super) fn new(
        diagonals: Diagonals,
        count: usize,
        encode: impl Fn(usize) -> Result<LinearTransform, CircuitError>,
    ) -> Result<Self, CircuitError> {
        let stored = match diagonals {
            Diagonals::Stored => Some((0..count).map(encode).collect::<Result<_, _>>()?),
            Diagonals::Generated => None,
        };
        Ok(Self { stored })
    }

    /// Bytes of what is kept.
    pub(super) fn bytes(&self) -> usize {
        self.stored.iter().flatten().map(LinearTransform::bytes).sum()
    }

    /// All of them, one after the other, each with the keys of its factor; `encode` as in [`Self::new`].
    pub(super) fn apply(
        &self,
        parameters: &CkksParameters,
        keys: &mut dyn KeySupply,
        stage: Stage,
        factors: &[FactorPlan],
        input: Ciphertext,
        encode: impl Fn(usize) -> Result<LinearTransform, CircuitError>,
    ) -> Result<Ciphertext, CircuitError> {
        factors.iter().enumerate().try_fold(input, |mut ciphertext, (index, factor)| {
            let evaluator = Evaluator::new(parameters, keys.supply(stage, &factor.keys)?)?;
            let generated;
            let transform = match self.stored.as_ref().and_then(|stored| stored.get(index)) {
                Some(stored) => stored,
                None => {
                    generated = encode(index)?;
                    &generated
                }
            };
            ciphertext.packing = Packing::Slots { log_slots: transform.log_slots() };
            evaluate(&evaluator, &[(transform, &ciphertext)])
        })
    }
}
