//! The switch back from an ephemeral secret fused with the rotations of a transform: the same values as with both
//! apart.

use crate::fixture::{Owner, Values as Random, rng};
use keywright_circuits::CircuitError;
use keywright_circuits::bootstrapping::mod_raise::{ModRaisePlan, mod_raise, switch_to_ephemeral};
use keywright_circuits::bootstrapping::{CoeffsToSlots, CoeffsToSlotsPlan, Dft, KeyBudget, Stage, Values};
use keywright_ckks::{CkksError, Encryptor, Evaluator, Packing};
use keywright_rlwe::{EvaluationKeys, RlweError};

/// Error of decoding in `f64`, relative to values of up to the Hamming weight.
const FLOAT: f64 = 1.0 / (1u64 << 38) as f64;

#[test]
fn slots_hold_the_same_as_with_the_stages_apart() {
    let owner = Owner::small(&[50, 45, 45, 45, 45, 45, 45], &[50, 50], 40.0);
    let (p, rlwe) = (&owner.parameters, owner.parameters.rlwe());
    let scale = rlwe.modulus(0).value() as f64;
    let coefficients = Random(5).reals(1 << 11);
    let input = Encryptor::new(p, &owner.public, rng(9))
        .unwrap()
        .encrypt_real(&coefficients, Packing::Coefficients, 0)
        .unwrap();
    for (level, factors, values) in [(6, 3, Values::Complex), (4, 3, Values::Real), (3, 2, Values::Complex)] {
        let raise = ModRaisePlan::new(rlwe, level, Some(32)).unwrap();
        let plan = |budget, raise| {
            let dft = Dft::balanced(10, factors).unwrap();
            CoeffsToSlotsPlan::new(p, dft, values, level, scale, 1.0 / 16.0, scale, budget, raise).unwrap()
        };
        let apart = plan(KeyBudget::Fastest, None);
        let middle = KeyBudget::Bytes(
            [KeyBudget::Fastest, KeyBudget::Fewest]
                .map(|budget| plan(budget, raise.ephemeral.as_ref()))
                .iter()
                .flat_map(|plan| plan.factors.iter().map(|factor| factor.key_bytes))
                .sum::<usize>()
                / 2,
        );
        for budget in [KeyBudget::Fastest, KeyBudget::Fewest, middle] {
            let fused = plan(budget, raise.ephemeral.as_ref());
            assert!(fused.is_raised() && !apart.is_raised());
            let mut specs = raise.key_specs();
            for spec in apart.required_keys().into_iter().chain(fused.required_keys()) {
                if !specs.contains(&spec) {
                    specs.push(spec);
                }
            }
            let keys = owner.keys(specs.iter().cloned());
            let evaluator = Evaluator::new(p, &keys).unwrap();
            let [apart, fused] = [&apart, &fused].map(|plan| CoeffsToSlots::new(p, plan).unwrap());
            let raised = mod_raise(&evaluator, &raise, &input).unwrap();
            let expected = apart.evaluate(&evaluator, &raised).unwrap();
            let result = fused
                .evaluate_raised(&evaluator, &switch_to_ephemeral(&evaluator, &raise, &input).unwrap())
                .unwrap();
            assert_eq!(result.len(), expected.len());
            for (result, expected) in result.iter().zip(&expected) {
                let what = format!("level {level}, {budget:?}");
                assert_eq!((result.level(), result.packing), (expected.level(), expected.packing), "{what}");
                assert!((result.scale / expected.scale - 1.0).abs() < 1e-12, "{what}");
                let bound = result.estimate.bound() + expected.estimate.bound();
                let (result, expected) = (owner.decrypt(result), owner.decrypt(expected));
                let seen = result.iter().zip(&expected).map(|(a, b)| (a - b).norm()).fold(0.0, f64::max);
                let largest = expected.iter().map(|v| v.norm()).fold(0.0, f64::max);
                // The same integer parts are present.
                assert!(largest > 1.0 / 16.0, "{what}: {largest}");
                assert!(seen <= bound + FLOAT, "{what}: {seen:e} above {bound:e}");
            }
        }
    }
}

#[test]
fn misuse_is_refused() {
    let owner = Owner::small(&[50, 45, 45, 45], &[50, 50], 40.0);
    let (p, rlwe) = (&owner.parameters, owner.parameters.rlwe());
    let scale = rlwe.modulus(0).value() as f64;
    let raise = ModRaisePlan::new(rlwe, 3, Some(32)).unwrap();
    let dft = Dft::balanced(10, 3).unwrap();
    let plan = |raise| {
        let (dft, budget) = (dft.clone(), KeyBudget::Fewest);
        CoeffsToSlotsPlan::new(p, dft, Values::Real, 3, scale, 1.0, scale, budget, raise).unwrap()
    };
    let (fused, apart) = (plan(raise.ephemeral.as_ref()), plan(None));
    let mut specs = vec![raise.key_specs().remove(0)];
    specs.extend(fused.required_keys());
    let all = owner.keys(specs.iter().cloned());
    let input = owner.encrypt_real(&[0.5; 1024], 0);
    let input = keywright_ckks::Ciphertext { packing: Packing::Coefficients, ..input };
    let evaluator = Evaluator::new(p, &all).unwrap();
    let raised = switch_to_ephemeral(&evaluator, &raise, &input).unwrap();
    let [fused_stage, apart_stage] = [&fused, &apart].map(|plan| CoeffsToSlots::new(p, plan).unwrap());
    assert!(fused_stage.evaluate_raised(&evaluator, &raised).is_ok());
    let stage = |error: CircuitError| match error {
        CircuitError::Stage { stage: Stage::CoeffsToSlots, level: 3, source } => *source,
        other => panic!("{other}"),
    };
    let error = stage(apart_stage.evaluate_raised(&evaluator, &raised).unwrap_err());
    assert!(matches!(error, CircuitError::StageLevel { found: 0, expected: 3, .. }), "{error}");
    let without = ModRaisePlan::new(rlwe, 3, None).unwrap();
    let error = switch_to_ephemeral(&evaluator, &without, &input).unwrap_err();
    assert_eq!(error, CircuitError::NoEphemeralSecret);
    // Every key of the first factor is needed.
    for absent in &fused.factors[0].keys {
        let mut some = EvaluationKeys::new(rlwe);
        for key in all.iter().filter(|key| key.spec() != absent) {
            some.insert(key.clone()).unwrap();
        }
        let error = fused_stage.evaluate_raised(&Evaluator::new(p, &some).unwrap(), &raised).unwrap_err();
        let error = stage(error);
        assert!(
            matches!(&error, CircuitError::Ckks(CkksError::Rlwe(RlweError::MissingKey { element, level: 3, .. })) if *element == absent.element),
            "{error}"
        );
    }
}
