use keywright_ckks::{CkksParameters, Complex64};
use keywright_ring::rotation_element;
use keywright_rlwe::{KeyElement, KeySpec};
use std::collections::BTreeMap;

use super::key_design::KeyDesign;
use crate::CircuitError;
use crate::linear_transform::{BsgsPlan, LinearTransform, Spread, SwitchShape};

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
    /// One key for each rotation, at the factor's level or above, all with the same special primes.
    pub keys: Vec<KeySpec>,
}

impl FactorPlan {
    /// Plans a transform with diagonals at `indices`: keys by the design, the baby-step count of least work with them, up to
    /// `max_babies`, and chained giant steps, which cost no more and need one key.
    ///
    /// # Errors
    /// What [`KeySpec::validate`] says of the keys; [`CircuitError::Empty`] without indices.
    pub(super) fn new(
        parameters: &CkksParameters,
        indices: impl IntoIterator<Item = usize>,
        log_slots: u32,
        level: usize,
        max_babies: usize,
        design: KeyDesign,
    ) -> Result<Self, CircuitError> {
        let rlwe = parameters.rlwe();
        let model = design.key(rlwe, KeyElement::Galois(rotation_element(rlwe.log_n(), 1)), level)?;
        let spec = |element| KeySpec { element, ..model.clone() };
        let digits = model.validate(rlwe)?.iter().filter(|digit| digit.start <= level).count();
        let shape = SwitchShape { level, digits, special: model.special.len() };
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
