//! Bootstrapping, stage by stage, with errors inside the derived estimates.

use std::collections::BTreeSet;

use crate::fixture::{Owner, Values as Random};
use keywright_circuits::CircuitError;
use keywright_circuits::bootstrapping::{
    CoeffsToSlots, CoeffsToSlotsPlan, Dft, KeyBudget, SlotsToCoeffs, SlotsToCoeffsPlan, Stage, Values,
};
use keywright_ckks::{CkksError, Complex64, Decryptor, Encryptor, Evaluator, Packing};
use keywright_rlwe::{KeySpec, RlweError};

use crate::fixture::rng;

/// Bound on the error of references and decoding in `f64`, relative to the largest value: fewer than 100 additions and
/// 30 butterflies of 4 units each.
const FLOAT: f64 = 1.0 / (1u64 << 44) as f64;
/// A bound that exceeds the measured error by more than this factor is useless. It is 21 deviations, and the largest of
/// many errors is four or five. Deviations of dependent errors are added, such as those of up to ten rotations. The
/// factor does not apply to few slots.
const SLACK: f64 = 100.0;
const FEW_SLOTS: u32 = 5;

/// A small key budget makes hops and chains, which have the largest errors.
const BUDGET: KeyBudget = KeyBudget::Fewest;

fn small() -> Owner {
    Owner::small(&[50, 45, 45, 45, 45, 45, 45], &[50, 50], 40.0)
}

fn reversed(log_slots: u32, j: usize) -> usize {
    if log_slots == 0 { 0 } else { j.reverse_bits() >> (usize::BITS - log_slots) }
}

/// Coefficients of the real and of the imaginary part of slot `j`.
fn positions(log_n: u32, log_slots: u32, j: usize) -> (usize, usize) {
    let index = reversed(log_slots, j) << (log_n - 1 - log_slots);
    (index, index + (1 << (log_n - 1)))
}

fn close(result: &[f64], expected: &[f64], bound: f64, what: &str) -> f64 {
    assert_eq!(result.len(), expected.len(), "{what}");
    let largest = expected.iter().map(|x| x.abs()).fold(1.0, f64::max);
    let seen = result.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(seen <= bound + FLOAT * largest, "{what}: error {seen:e} above {bound:e}");
    bound / seen
}

#[test]
fn coefficients_hold_the_slots_of_every_packing() {
    let owner = small();
    let p = &owner.parameters;
    for log_slots in 0..=10u32 {
        for (factors, level) in [(1, 2), (2, 4), (3, 3)] {
            let what = format!("2^{log_slots} slots, {factors} factors");
            let dft = Dft::balanced(log_slots, factors).unwrap();
            let plan = SlotsToCoeffsPlan::new(p, dft, level, p.scale(), p.scale() * 16.0, BUDGET).unwrap();
            let keys = owner.keys(plan.required_keys());
            let stage = SlotsToCoeffs::new(p, &plan).unwrap();
            let z = Random(u64::from(log_slots)).complex(1 << log_slots);
            let input = owner.encrypt(&z, level + 1);
            let out = stage.evaluate(&Evaluator::new(p, &keys).unwrap(), &input).unwrap();
            assert_eq!((out.level(), out.packing), (level - factors, Packing::Coefficients), "{what}");
            assert_eq!((out.scale, plan.output_level()), (p.scale() * 16.0, level - factors), "{what}");
            let mut expected = vec![0.0; 1 << 11];
            for (j, value) in z.iter().enumerate() {
                let (re, im) = positions(11, log_slots, j);
                (expected[re], expected[im]) = (value.re, value.im);
            }
            let result = Decryptor::new(p, &owner.secret).unwrap().decrypt_real(&out).unwrap();
            let ratio = close(&result, &expected, out.estimate.bound(), &what);
            assert!(ratio < SLACK || log_slots < FEW_SLOTS, "{what}: the bound is {ratio} times the error");
        }
    }
}

#[test]
fn slots_hold_the_coefficients_of_every_packing() {
    let owner = small();
    let p = &owner.parameters;
    let coefficients = Random(5).reals(1 << 11);
    let mut encryptor = Encryptor::new(p, &owner.public, rng(9)).unwrap();
    for log_slots in 0..=10u32 {
        for (values, factors, level) in [
            (Values::Real, 1, 4),
            (Values::Complex, 2, 5),
            (Values::Complex, 3, 3),
            (Values::Real, 3, 4),
            (Values::Pair, 2, 3),
        ] {
            let what = format!("2^{log_slots} slots, {values:?}, {factors} factors");
            let dft = Dft::balanced(log_slots, factors).unwrap();
            let (factor, scale) = (0.25, 45f64.exp2());
            let plan = CoeffsToSlotsPlan::new(p, dft, values, level, p.scale(), factor, scale, BUDGET, None)
                .unwrap();
            let keys = owner.keys(plan.required_keys());
            let stage = CoeffsToSlots::new(p, &plan).unwrap();
            let input = encryptor.encrypt_real(&coefficients, Packing::Coefficients, level + 1).unwrap();
            let out = stage.evaluate(&Evaluator::new(p, &keys).unwrap(), &input).unwrap();
            let slots = 1 << log_slots;
            let part = |imaginary: bool| {
                let pick = |j| {
                    let (re, im) = positions(11, log_slots, j);
                    factor * coefficients[if imaginary { im } else { re }]
                };
                (0..slots).map(pick).collect::<Vec<f64>>()
            };
            let expected = match (values, log_slots) {
                (Values::Real, _) => vec![part(false)],
                (Values::Complex, 10) | (Values::Pair, _) => vec![part(false), part(true)],
                (Values::Complex, _) => vec![[part(false), part(true)].concat()],
            };
            assert_eq!((out.len(), plan.ciphertexts()), (expected.len(), expected.len()), "{what}");
            for (out, expected) in out.iter().zip(&expected) {
                assert_eq!((out.level(), out.scale), (level - factors, scale), "{what}");
                let expected: Vec<Complex64> = expected.iter().map(|&x| x.into()).collect();
                let seen = owner.check(out, &expected, FLOAT, &what);
                let ratio = out.estimate.bound() / seen;
                assert!(
                    ratio < SLACK || log_slots < FEW_SLOTS,
                    "{what}: the bound is {ratio} times the error"
                );
            }
        }
    }
}

#[test]
fn the_stages_are_inverse_to_each_other() {
    let owner = small();
    let p = &owner.parameters;
    let forward =
        SlotsToCoeffsPlan::new(p, Dft::balanced(10, 2).unwrap(), 6, p.scale(), p.scale(), KeyBudget::Fastest)
            .unwrap();
    let dft = Dft::new(10, &[3, 7]).unwrap();
    let backward = CoeffsToSlotsPlan::new(
        p,
        dft,
        Values::Complex,
        4,
        p.scale(),
        1.0,
        p.scale(),
        KeyBudget::Fastest,
        None,
    )
    .unwrap();
    let keys = owner.keys(forward.required_keys().into_iter().chain(backward.required_keys()));
    let evaluator = Evaluator::new(p, &keys).unwrap();
    let z = Random(3).complex(1 << 10);
    let coefficients =
        SlotsToCoeffs::new(p, &forward).unwrap().evaluate(&evaluator, &owner.encrypt(&z, 6)).unwrap();
    let parts = CoeffsToSlots::new(p, &backward).unwrap().evaluate(&evaluator, &coefficients).unwrap();
    let imaginary = evaluator.multiply_by_i(&parts[1]).unwrap();
    let out = evaluator.add(&parts[0], &imaginary).unwrap();
    owner.check(&out, &z, FLOAT, "there and back");
}

#[test]
fn exactly_the_listed_keys_are_needed_and_a_missing_one_is_named() {
    let owner = small();
    let p = &owner.parameters;
    let dft = Dft::balanced(4, 2).unwrap();
    let plan = CoeffsToSlotsPlan::new(
        p,
        dft,
        Values::Complex,
        4,
        p.scale(),
        1.0,
        p.scale(),
        KeyBudget::Fastest,
        None,
    )
    .unwrap();
    let stage = CoeffsToSlots::new(p, &plan).unwrap();
    let input = Encryptor::new(p, &owner.public, rng(9))
        .unwrap()
        .encrypt_real(&[0.5], Packing::Coefficients, 4)
        .unwrap();
    let specs = plan.required_keys();
    let distinct: BTreeSet<String> = specs.iter().map(|spec| format!("{spec:?}")).collect();
    assert_eq!(distinct.len(), specs.len());
    let run = |specs: &mut dyn Iterator<Item = KeySpec>| {
        stage.evaluate(&Evaluator::new(p, &owner.keys(specs)).unwrap(), &input)
    };
    assert!(run(&mut specs.iter().cloned()).is_ok());
    for absent in &specs {
        // A key of a higher level would serve too; of two missing keys, the error names that of the first factor.
        let first = specs.iter().filter(|spec| spec.element == absent.element).map(|spec| spec.level).max();
        let mut rest =
            specs.iter().filter(|spec| spec.element != absent.element || spec.level < absent.level);
        let error = run(&mut rest.by_ref().cloned()).unwrap_err();
        let CircuitError::Stage { stage: Stage::CoeffsToSlots, source, .. } = &error else {
            panic!("{error}");
        };
        assert!(
            matches!(&**source, CircuitError::Ckks(CkksError::Rlwe(RlweError::MissingKey { element, level, .. }))
                if *element == absent.element && Some(*level) == first),
            "{error}"
        );
        assert!(error.to_string().starts_with("coeffs_to_slots, whose input is at level"), "{error}");
    }
}

#[test]
fn inputs_that_a_stage_cannot_take_are_refused() {
    let owner = small();
    let p = &owner.parameters;
    let dft = Dft::balanced(4, 2).unwrap();
    let plan = SlotsToCoeffsPlan::new(p, dft.clone(), 3, p.scale(), p.scale(), KeyBudget::Fastest).unwrap();
    let stage = SlotsToCoeffs::new(p, &plan).unwrap();
    let keys = owner.keys(plan.required_keys());
    let evaluator = Evaluator::new(p, &keys).unwrap();
    let refuse = |input: &_| match stage.evaluate(&evaluator, input).unwrap_err() {
        CircuitError::Stage { stage: Stage::SlotsToCoeffs, level: 3, source } => *source,
        other => panic!("{other}"),
    };
    let z = Random(3).complex(1 << 4);
    let good = owner.encrypt(&z, 3);
    assert!(matches!(
        refuse(&owner.encrypt(&z, 2)),
        CircuitError::Ckks(CkksError::Rlwe(RlweError::Level { level: 3, max: 2, .. }))
    ));
    assert!(matches!(
        refuse(&owner.encrypt(&Random(3).complex(1 << 5), 3)),
        CircuitError::Ckks(CkksError::PackingMismatch { .. })
    ));
    let mut scaled = good.clone();
    scaled.scale *= 1.01;
    assert!(matches!(refuse(&scaled), CircuitError::Ckks(CkksError::ScaleMismatch { .. })));
    let square = evaluator.multiply_lazy(&good, &good).unwrap();
    assert!(matches!(refuse(&square), CircuitError::Ckks(CkksError::Degree { degree: 2, .. })));
    let foreign = Owner::small(&[50, 45, 45, 45], &[50, 50], 40.0);
    assert!(matches!(
        refuse(&foreign.encrypt(&z, 3)),
        CircuitError::Ckks(CkksError::Rlwe(RlweError::MixedParameters { .. }))
    ));

    let plan = |dft: &Dft, level, scale| {
        SlotsToCoeffsPlan::new(p, dft.clone(), level, scale, scale, KeyBudget::Fastest)
    };
    assert!(matches!(
        plan(&dft, 1, 1e12),
        Err(CircuitError::Ckks(CkksError::LevelsExhausted { needed: 2, available: 1, .. }))
    ));
    assert!(matches!(plan(&dft, 7, 1e12), Err(CircuitError::Ckks(CkksError::Rlwe(RlweError::Level { .. })))));
    assert!(matches!(plan(&dft, 3, f64::NAN), Err(CircuitError::Ckks(CkksError::Scale { .. }))));
    assert!(matches!(
        plan(&Dft::balanced(11, 2).unwrap(), 3, 1e12),
        Err(CircuitError::LogSlots { log_slots: 11, max: 10 })
    ));
}
