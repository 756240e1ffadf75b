//! The keys of a bootstrapping.

use std::collections::BTreeSet;

use keywright_rlwe::{EvaluationKeys, KeyElement, KeySpec, Parameters};

use crate::CircuitError;
use crate::bootstrapping::plan::bootstrapper_plan::BootstrapperPlan;
use crate::bootstrapping::stage::Stage;

impl BootstrapperPlan {
    /// Bytes of all keys in memory.
    ///
    /// # Errors
    /// As [`KeySpec::bytes`], for a plan that was made for other parameters.
    pub fn key_bytes(&self, rlwe: &Parameters) -> Result<usize, CircuitError> {
        Ok(self.required_keys().iter().map(|key| key.bytes(rlwe)).sum::<Result<_, _>>()?)
    }

    /// The keys to and from an ephemeral secret, and the key from the ring of inputs.
    pub fn fixed_keys(&self) -> Vec<KeySpec> {
        let mut keys = self.required_keys();
        keys.retain(|spec| spec.element.ephemeral_weight().is_some() || spec.element.source_ring().is_some());
        keys
    }

    /// Every key with its stage, in the order of the stages.
    pub fn stage_keys(&self) -> Vec<(Stage, KeySpec)> {
        let keys = |stage| match stage {
            Stage::SlotsToCoeffs => self.slots_to_coeffs.required_keys(),
            Stage::ModRaise => self.mod_raise.key_specs(),
            Stage::CoeffsToSlots => self.coeffs_to_slots.required_keys(),
            Stage::EvalMod => vec![self.relinearization.clone()],
            Stage::Recombine => self.recombine.iter().flat_map(|factor| factor.keys.clone()).collect(),
        };
        let stages = self.stage_levels().into_iter().map(|(stage, _, _)| stage);
        stages.flat_map(|stage| keys(stage).into_iter().map(move |spec| (stage, spec))).collect()
    }

    /// Every key that the bootstrapping uses, each once, at the level where it is used.
    pub fn required_keys(&self) -> Vec<KeySpec> {
        let mut seen = BTreeSet::new();
        let specs = self.stage_keys().into_iter().map(|(_, spec)| spec);
        specs
            .filter(|spec| {
                seen.insert((spec.subring, spec.element, spec.level, spec.alpha, spec.special.clone()))
            })
            .collect()
    }

    /// Refuses a key set that lacks a key, before anything is computed. A set with routes has all keys of these; its
    /// steps check whether they suit this bootstrapping.
    ///
    /// # Errors
    /// [`CircuitError::Stage`] with the stage and level of the first missing key, or of the first key whose special
    /// primes differ from those of its diagonals.
    pub fn require_keys(&self, keys: &EvaluationKeys) -> Result<(), CircuitError> {
        let factors = self.slots_to_coeffs.factors.iter().chain(&self.coeffs_to_slots.factors);
        let encoded: Vec<&KeySpec> = factors
            .chain(&self.recombine)
            .flat_map(|factor| factor.keys.iter().filter(|key| key.special == factor.special))
            .collect();
        for (stage, spec) in self.stage_keys() {
            let (element, level) = (spec.element, spec.level);
            let keys = keys.ring_named(spec.subring).map_err(|error| stage.error(level, error))?;
            let planned = matches!(element, KeyElement::Galois(_) | KeyElement::Relinearization);
            if planned && keys.routes().is_some() {
                continue;
            }
            keys.best(element, level, false).map_err(|error| stage.error(level, error))?;
            let removed: Vec<_> = keys
                .uses(element, level, false)
                .map(|key_use| key_use.plan.mod_down.removed.clone())
                .collect();
            if encoded.contains(&&spec) && !removed.contains(&spec.special) {
                let (encoded, found) = (spec.special, format!("{element} over {removed:?}"));
                return Err(stage.error(level, CircuitError::SpecialPrimes { encoded, level, found }));
            }
        }
        Ok(())
    }
}
