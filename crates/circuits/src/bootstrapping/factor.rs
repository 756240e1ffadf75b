use keywright_ckks::{Ciphertext, CkksParameters, Complex64, Evaluator};
use keywright_ring::rotation_element;
use keywright_rlwe::{KeyElement, KeySpec};
use std::collections::BTreeMap;

use crate::CircuitError;
use crate::linear_transform::{BsgsPlan, LinearTransform, Spread, SwitchShape, evaluate};

/// One linear transform of a stage: its level, its baby and giant steps and its keys. Plain data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FactorPlan {
    /// Level of the ciphertexts it takes; it leaves them one lower.
    pub level: usize,
    /// `log2` of the number of slots.
    pub log_slots: u32,
    /// Baby and giant steps.
    pub bsgs: BsgsPlan,
    /// Primes that its key switches remove.
    pub special: Vec<usize>,
    /// One key for each rotation, at the factor's level, all with the same special primes.
    pub keys: Vec<KeySpec>,
}

impl FactorPlan {
    /// Plans a transform with diagonals at `indices`: the alpha of fewest transforms at the level, the baby-step count of
    /// least work with it, up to `max_babies`, and chained giant steps, which cost no more and need one key.
    ///
    /// # Errors
    /// What [`KeySpec::validate`] says of the keys; [`CircuitError::Empty`] without indices.
    pub(super) fn new(
        parameters: &CkksParameters,
        indices: impl IntoIterator<Item = usize>,
        log_slots: u32,
        level: usize,
        max_babies: usize,
    ) -> Result<Self, CircuitError> {
        let rlwe = parameters.rlwe();
        let alpha = KeySpec::best_alpha(rlwe, level);
        let spec = |element| KeySpec::new(rlwe, element, level, alpha, true);
        let model = spec(KeyElement::Galois(rotation_element(rlwe.log_n(), 1)));
        let shape = SwitchShape { level, digits: model.validate(rlwe)?.len(), special: model.special.len() };
        let bsgs = BsgsPlan::optimal(indices, 1 << log_slots, rlwe.log_n(), shape, max_babies)?.chained();
        let keys = bsgs
            .rotations()
            .into_iter()
            .map(|steps| spec(KeyElement::Galois(rotation_element(rlwe.log_n(), steps as i64))))
            .collect();
        Ok(Self { level, log_slots, bsgs, special: model.special, keys })
    }

    /// The transform with its diagonals encoded, for errors of the given [`Spread`].
    pub(super) fn encode(
        &self,
        parameters: &CkksParameters,
        diagonals: &BTreeMap<usize, Vec<Complex64>>,
        spread: Spread,
    ) -> Result<LinearTransform, CircuitError> {
        let transform = LinearTransform::new(
            parameters,
            diagonals,
            self.log_slots,
            self.level,
            &self.special,
            self.bsgs.n1,
        )?;
        Ok(transform.chained().with_spread(spread))
    }
}

/// The transforms in order.
pub(super) fn apply<'t>(
    evaluator: &Evaluator<'_>,
    transforms: impl IntoIterator<Item = &'t LinearTransform>,
    input: Ciphertext,
) -> Result<Ciphertext, CircuitError> {
    transforms.into_iter().try_fold(input, |ciphertext, transform| {
        let mut ciphertext = ciphertext;
        ciphertext.packing = keywright_ckks::Packing::Slots { log_slots: transform.log_slots() };
        evaluate(evaluator, &[(transform, &ciphertext)])
    })
}
