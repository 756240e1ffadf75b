use keywright_ckks::{Ciphertext, CkksParameters, Complex64, Evaluator};
use keywright_ring::rotation_element;
use keywright_rlwe::{KeyElement, KeySpec, Parameters, RlweError};
use std::collections::BTreeMap;
use std::ops::Range;

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

/// Bits by which the digits of a [`quiet_key`] are smaller than its special modulus.
const MARGIN_BITS: f64 = 5.0;

/// A seeded key at `level` that adds less than the rounding of its division: with digits `2^-5` of the special modulus or less the variance
/// of a switch is `N sigma^2 d 2^-10 / 12` for `d` digits, below that of the rounding, `N / 18` under a ternary secret, for up to 67 of
/// them. A digit as large as the special modulus adds four times the rounding's deviation, which matters where no rescaling follows.
///
/// Of all alphas and numbers of special primes the one of fewest transforms, without the margin if there is none with it.
///
/// # Errors
/// What [`KeySpec::validate`] says if no key is legal.
pub(super) fn quiet_key(rlwe: &Parameters, element: KeyElement, level: usize) -> Result<KeySpec, RlweError> {
    let all = rlwe.special_primes();
    let mut best: Option<((bool, usize), KeySpec)> = None;
    for count in 1..=all.len() {
        for alpha in 1..=(level + 1).max(count) {
            let special = (all.start..all.start + count).collect();
            let spec = KeySpec { element, level, alpha, special, seeded: true };
            let Ok(digits) = spec.validate(rlwe) else { continue };
            let bits = |digit: &Range<usize>| digit.clone().map(|i| rlwe.log2_prime(i)).sum::<f64>();
            let largest = digits.iter().map(bits).fold(0.0, f64::max);
            let loud = largest + MARGIN_BITS > spec.special_bits(rlwe);
            let cost = (loud, (digits.len() + 2) * (level + 1 + count));
            if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                best = Some((cost, spec));
            }
        }
    }
    match best {
        Some((_, spec)) => Ok(spec),
        None => {
            let spec = KeySpec::new(rlwe, element, level, 1, true);
            spec.validate(rlwe).map(|_| spec)
        }
    }
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
