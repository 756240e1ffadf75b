//! The composition of the stages: the output has the input's values, within the derived estimate, at the level of the
//! plan.

use std::collections::BTreeSet;

use crate::fixture::{Owner, Values as Random, rng};
use keywright_circuits::CircuitError;
use keywright_circuits::bootstrapping::mod_raise::mod_raise;
use keywright_circuits::bootstrapping::{
    BOOTSTRAP_PRESETS, Bootstrapper, BootstrapperLiteral, BootstrapperPlan, KeyBudget, Order, Stage, Values,
    bootstrap_preset,
};
use keywright_ckks::{
    Ciphertext, CkksError, CkksLiteral, CkksParameters, Complex64, Decryptor, Encryptor, Evaluator, Packing,
};
use keywright_rlwe::{EvaluationKeys, KeyGenerator, KeySpec, RlweError};

/// Error of encoding, decoding and the grid of the approximation in `f64`, relative to values of 1.
pub(crate) const FLOAT: f64 = 1.0 / (1u64 << 40) as f64;

/// A bound that exceeds the measured error by more than this factor is useless; few slots are exempt.
const SLACK: f64 = 50.0;
const FEW_SLOTS: u32 = 7;

/// `q_0`, two levels of `slots_to_coeffs`, three for computation, fourteen of 50 bits for the other stages.
pub(crate) fn owner() -> Owner {
    let mut q = vec![50, 40, 40, 45, 45, 45];
    q.extend([50; 14]);
    Owner::small(&q, &[50, 50, 50], 45.0)
}

pub(crate) fn literal(log_slots: u32, values: Values) -> BootstrapperLiteral {
    BootstrapperLiteral {
        log_slots,
        values,
        slots_to_coeffs: 2,
        coeffs_to_slots: 2,
        budget: KeyBudget::Fastest,
        log2_failure: -40.0,
        log_ratio: 6.0,
        cosine_degree: 30,
        double_angles: 3,
        arcsine_degree: 5,
        output_level: Some(5),
        ..BootstrapperLiteral::default()
    }
}

pub(crate) fn keys(owner: &Owner, plan: &BootstrapperPlan) -> EvaluationKeys {
    owner.keys(plan.required_keys())
}

/// Values whose parts are at most 1.
pub(crate) fn values(kind: Values, log_slots: u32, seed: u64) -> Vec<Complex64> {
    let mut random = Random(seed);
    let imaginary = if kind == Values::Complex { 1.0 } else { 0.0 };
    (0..1 << log_slots).map(|_| Complex64::new(random.real(), imaginary * random.real())).collect()
}

#[test]
fn every_packing_comes_back() {
    let mut q = vec![50, 40, 40, 45, 45, 45];
    q.extend([50; 14]);
    let owner = Owner::insecure(10, &q, &[50, 50, 50], 45.0);
    let p = &owner.parameters;
    let kinds = |log_slots| [Values::Real, Values::Complex].map(|kind| (log_slots, kind));
    for (log_slots, kind) in (0..=9).flat_map(kinds) {
        let what = format!("2^{log_slots} slots, {kind:?}");
        let plan = BootstrapperPlan::new(p, &literal(log_slots, kind)).unwrap();
        assert_eq!(plan.coeffs_to_slots.is_raised(), log_slots == p.max_log_slots(), "{what}");
        let keys = keys(&owner, &plan);
        assert_eq!(keys.len(), plan.required_keys().len(), "{what}");
        let evaluator = Evaluator::new(p, &keys).unwrap();
        let bootstrapper = Bootstrapper::new(p, &plan).unwrap();
        let z = values(kind, log_slots, 7);
        let out = bootstrapper.bootstrap(&evaluator, &owner.encrypt(&z, 3)).unwrap();
        assert_eq!(
            (out.level(), out.scale, out.packing),
            (5, p.scale(), Packing::Slots { log_slots }),
            "{what}"
        );
        assert_eq!((plan.input_level(), plan.output_level(), plan.levels_left()), (2, 5, 3), "{what}");
        let seen = owner.check(&out, &z, FLOAT, &what);
        // The bound is 21 deviations; of many errors the largest is four or five.
        let excess = out.estimate.bound() / seen;
        assert!(excess < SLACK || log_slots < FEW_SLOTS, "{what}: the bound is {excess} times the error");
    }
}

#[test]
fn two_ciphertexts_of_real_values_come_back_from_one_bootstrap() {
    let owner =
        Owner::insecure(10, &[vec![50, 40, 40, 45, 45, 45], vec![50; 14]].concat(), &[50, 50, 50], 45.0);
    let p = &owner.parameters;
    let plan = BootstrapperPlan::new(p, &literal(9, Values::Pair)).unwrap();
    let keys = keys(&owner, &plan);
    let evaluator = Evaluator::new(p, &keys).unwrap();
    let bootstrapper = Bootstrapper::new(p, &plan).unwrap();
    let numbers = [7, 8].map(|seed| Random(seed).reals(512));
    let complex = |x: &[f64]| x.iter().map(|&x| Complex64::new(x, 0.0)).collect::<Vec<_>>();
    // One is at a higher level, and one larger than planned.
    for largest in [1.0, 4.0] {
        let mut numbers = numbers.clone();
        numbers[1][5] = largest;
        let inputs = [owner.encrypt_real(&numbers[0], 2), owner.encrypt_real(&numbers[1], 4)];
        let out = bootstrapper.bootstrap_pair(&evaluator, [&inputs[0], &inputs[1]]).unwrap();
        for ((out, x), input) in out.iter().zip(&numbers).zip(&inputs) {
            assert_eq!(
                (out.level(), out.scale, out.packing),
                (5, p.scale(), Packing::Slots { log_slots: 9 })
            );
            assert!(out.estimate.real && out.estimate.magnitude == input.estimate.magnitude);
            let seen = owner.check(out, &complex(x), FLOAT, &format!("a pair, up to {largest}"));
            assert!(out.estimate.bound() < SLACK * seen || largest > 1.0);
        }
        // As precise as alone, and bootstrapped again.
        let alone = bootstrapper.bootstrap(&evaluator, &inputs[1]).unwrap();
        owner.check(&alone, &complex(&numbers[1]), FLOAT, "one ciphertext by a plan for pairs");
        assert!(out[1].estimate.deviation < 1.01 * alone.estimate.deviation);
        if largest == 1.0 {
            let [second, first] = bootstrapper.bootstrap_pair(&evaluator, [&out[1], &out[0]]).unwrap();
            owner.check(&first, &complex(&numbers[0]), FLOAT, "the first of a second pair");
            owner.check(&second, &complex(&numbers[1]), FLOAT, "the second of a second pair");
        }
    }

    let real = owner.encrypt_real(&numbers[0], 2);
    let other = owner.encrypt(&values(Values::Complex, 9, 1), 2);
    let error = bootstrapper.bootstrap_pair(&evaluator, [&real, &other]).unwrap_err();
    assert_eq!(error, CircuitError::PairValues { place: 1 });
    for kind in [Values::Real, Values::Complex] {
        let plan = BootstrapperPlan::new(p, &literal(9, kind)).unwrap();
        let refused = Bootstrapper::new(p, &plan).unwrap().bootstrap_pair(&evaluator, [&real, &real]);
        assert_eq!(refused.unwrap_err(), CircuitError::PairPlan);
    }
    for (log_slots, order) in [(8, Order::SlotsToCoeffsFirst), (9, Order::ModRaiseFirst)] {
        let literal = BootstrapperLiteral { order, output_level: None, ..literal(log_slots, Values::Pair) };
        let refused = BootstrapperPlan::new(p, &literal).unwrap_err();
        assert!(matches!(refused, CircuitError::Stage { source, .. } if *source == CircuitError::PairPlan));
    }
}

#[test]
fn a_pair_keeps_the_errors_of_its_ciphertexts_apart() {
    const IMAGINARY: f64 = 1.0 / 64.0;
    let owner =
        Owner::insecure(10, &[vec![50, 40, 40, 45, 45, 45], vec![50; 14]].concat(), &[50, 50, 50], 45.0);
    let p = &owner.parameters;
    let plan = BootstrapperPlan::new(p, &literal(9, Values::Pair)).unwrap();
    // The keys of one ciphertext are among those of a pair.
    let (alone, needed) = (plan.alone().required_keys(), plan.required_keys());
    assert!(alone.iter().all(|key| needed.contains(key)) && alone.len() + 1 == needed.len());
    assert_eq!(plan.alone().alone(), plan.alone());
    let keys = keys(&owner, &plan);
    let evaluator = Evaluator::new(p, &keys).unwrap();
    let bootstrapper = Bootstrapper::new(p, &plan).unwrap();
    // Real values with imaginary errors far above all others.
    let numbers = [7, 8].map(|seed| Random(seed).reals(512));
    let inputs = numbers.clone().map(|numbers| {
        let z: Vec<_> = numbers.iter().map(|&x| Complex64::new(x, IMAGINARY)).collect();
        let mut input = owner.encrypt(&z, 2);
        input.estimate.real = true;
        input
    });
    for out in bootstrapper.bootstrap_pair(&evaluator, [&inputs[0], &inputs[1]]).unwrap().iter().zip(&numbers)
    {
        let z: Vec<_> = out.1.iter().map(|&x| Complex64::new(x, 0.0)).collect();
        assert!(owner.check(out.0, &z, FLOAT, "without the imaginary parts") < IMAGINARY / 1024.0);
    }
}

#[test]
fn larger_values_than_planned_are_within_the_bound_or_refused() {
    let owner =
        Owner::insecure(10, &[vec![50, 40, 40, 45, 45, 45], vec![50; 14]].concat(), &[50, 50, 50], 45.0);
    let p = &owner.parameters;
    for (kind, order) in [
        (Values::Real, Order::SlotsToCoeffsFirst),
        (Values::Complex, Order::SlotsToCoeffsFirst),
        (Values::Real, Order::ModRaiseFirst),
    ] {
        let plan =
            BootstrapperPlan::new(p, &BootstrapperLiteral { order, output_level: None, ..literal(9, kind) })
                .unwrap();
        let keys = keys(&owner, &plan);
        let evaluator = Evaluator::new(p, &keys).unwrap();
        let bootstrapper = Bootstrapper::new(p, &plan).unwrap();
        let planned = bootstrapper.bootstrap(&evaluator, &owner.encrypt(&values(kind, 9, 7), 3)).unwrap();
        // Real values are one part of complex ones, whose absolute values may be as large as this.
        let parts = vec![1.4; 512];
        let out = bootstrapper.bootstrap(&evaluator, &owner.encrypt_real(&parts, 3)).unwrap();
        let complex = parts.iter().map(|&x| Complex64::new(x, 0.0)).collect::<Vec<_>>();
        owner.check(&out, &complex, FLOAT, &format!("{kind:?}, {order:?}, real values"));
        for largest in [2.0, 4.0, 16.0, 40.0] {
            let mut z = values(kind, 9, 7);
            z[3] = Complex64::new(largest, 0.0);
            let out = bootstrapper.bootstrap(&evaluator, &owner.encrypt(&z, 3));
            if largest > 4.0 {
                assert!(
                    matches!(out, Err(CircuitError::Magnitude { .. })),
                    "{kind:?}, {order:?}, up to {largest}"
                );
                continue;
            }
            let out = out.unwrap();
            let seen = owner.check(&out, &z, FLOAT, &format!("{kind:?}, {order:?}, up to {largest}"));
            let bound = out.estimate.bound();
            assert!(bound.is_finite() && bound >= planned.estimate.bound(), "{bound}");
            // In coefficients one slot contributes little.
            assert!(order == Order::ModRaiseFirst || bound < 1e3 * seen, "{bound} {seen}");
        }
    }
}

#[test]
fn every_preset_refuses_the_magnitudes_that_its_reduction_confuses() {
    for preset in BOOTSTRAP_PRESETS {
        let plan = BootstrapperPlan::new(&preset.parameters().unwrap(), &preset.bootstrapper).unwrap();
        let approximation = &plan.eval_mod.approximation;
        let (k, unit) = (approximation.k as i64, approximation.message);
        assert_eq!(plan.reducible(1.0), Ok(1.0), "{}", preset.name);
        // Up to what bounds of whole networks are.
        for step in 1..80 {
            let magnitude = (f64::from(step) / 3.0).exp2();
            let Ok(largest) = plan.reducible(magnitude) else { continue };
            assert!(
                magnitude * unit <= 0.25,
                "{}: messages up to {magnitude} look like smaller ones",
                preset.name
            );
            for (integer, point) in (-k..=k).flat_map(|integer| (-29..=29).map(move |point| (integer, point)))
            {
                let part = largest * f64::from(point) / 29.0;
                let error = approximation.value(integer as f64 + part * unit) / unit - part;
                assert!(error.abs() <= 0.11 * largest, "{}: {part} of {magnitude}: {error}", preset.name);
            }
        }
        assert!(matches!(plan.reducible(1e6), Err(CircuitError::Magnitude { largest: 1e6, .. })));
    }
}

#[test]
fn bounds_of_bootstraps_in_a_row_are_added() {
    const COUNT: usize = 10;
    let owner =
        Owner::insecure(10, &[vec![50, 40, 40, 45, 45, 45], vec![50; 14]].concat(), &[50, 50, 50], 45.0);
    let p = &owner.parameters;
    for kind in [Values::Real, Values::Complex, Values::Pair] {
        let plan = BootstrapperPlan::new(p, &literal(9, kind)).unwrap();
        let keys = keys(&owner, &plan);
        let evaluator = Evaluator::new(p, &keys).unwrap();
        let bootstrapper = Bootstrapper::new(p, &plan).unwrap();
        let z = values(kind, 9, 7);
        let run = |input: &Ciphertext| match kind {
            Values::Pair => bootstrapper.bootstrap_pair(&evaluator, [input, input]).unwrap()[1].clone(),
            _ => bootstrapper.bootstrap(&evaluator, input).unwrap(),
        };
        let mut fresh = owner.encrypt(&z, 3);
        fresh.estimate.real = kind != Values::Complex;
        let first = run(&fresh);
        let mut out = first.clone();
        for number in 2..=COUNT {
            out = run(&out);
            owner.check(&out, &z, FLOAT, &format!("{kind:?}, bootstrap {number}"));
        }
        let growth = out.estimate.bound() / first.estimate.bound();
        assert!(growth < 1.1 * COUNT as f64, "{kind:?}: {growth}");
        assert!(out.estimate.magnitude <= first.estimate.magnitude);
    }
}

#[test]
fn a_full_packing_comes_back_with_stages_apart_or_not_for_every_budget() {
    let owner = owner();
    let (p, rlwe) = (&owner.parameters, owner.parameters.rlwe());
    let z = values(Values::Complex, 10, 5);
    let input = owner.encrypt(&z, 2);
    let run = |budget, stages_apart| {
        let literal = BootstrapperLiteral { budget, stages_apart, ..literal(10, Values::Complex) };
        let plan = BootstrapperPlan::new(p, &literal).unwrap();
        let what = format!("{budget:?}, stages apart: {stages_apart}");
        assert_eq!(plan.coeffs_to_slots.is_raised(), !stages_apart, "{what}");
        let keys = keys(&owner, &plan);
        assert_eq!(keys.bytes(), plan.key_bytes(rlwe).unwrap(), "{what}");
        let evaluator = Evaluator::new(p, &keys).unwrap();
        let bootstrapper = Bootstrapper::new(p, &plan).unwrap();
        let out = bootstrapper.bootstrap(&evaluator, &input).unwrap();
        owner.check(&out, &z, FLOAT, &what);
        let low = bootstrapper.slots_to_coeffs().evaluate(&evaluator, &input).unwrap();
        let raised = mod_raise(&evaluator, &plan.mod_raise, &low).unwrap();
        let alone = bootstrapper.coeffs_to_slots().evaluate(&evaluator, &raised);
        match alone {
            Ok(parts) => assert!(stages_apart && parts.len() == 2),
            Err(CircuitError::Stage { stage: Stage::CoeffsToSlots, source, .. }) => {
                assert!(!stages_apart && *source == CircuitError::StagesFused);
            }
            Err(error) => panic!("{error}"),
        }
        plan.key_bytes(rlwe).unwrap()
    };
    let (most, least) = (run(KeyBudget::Fastest, false), run(KeyBudget::Fewest, false));
    run(KeyBudget::Bytes((most + 3 * least) / 4), false);
    assert!(run(KeyBudget::Fewest, true) >= least && run(KeyBudget::Fastest, true) > most);
}

#[test]
fn a_budget_of_keys_is_kept_and_the_least_work_within_it_chosen() {
    let owner = owner();
    let (p, rlwe) = (&owner.parameters, owner.parameters.rlwe());
    let plan =
        |budget| BootstrapperPlan::new(p, &BootstrapperLiteral { budget, ..literal(6, Values::Complex) });
    let work = |plan: &BootstrapperPlan| {
        let factors = plan.slots_to_coeffs.factors.iter().chain(&plan.coeffs_to_slots.factors);
        factors.map(|factor| factor.work).sum::<f64>()
    };
    let fastest = plan(KeyBudget::Fastest).unwrap();
    let fewest = plan(KeyBudget::Fewest).unwrap();
    let (most, least) = (fastest.key_bytes(rlwe).unwrap(), fewest.key_bytes(rlwe).unwrap());
    assert!(least < most && work(&fastest) < work(&fewest));

    // Every combination of the options of the factors: bytes and work.
    let options = fastest.factor_options(p).unwrap();
    assert_eq!(options.len(), 4);
    let mut all = vec![(0, 0.0)];
    for (_, options) in &options {
        all = all
            .iter()
            .flat_map(|(bytes, work)| options.iter().map(move |o| (bytes + o.key_bytes, work + o.work)))
            .collect();
    }
    let used = fewest.slots_to_coeffs.factors.iter().chain(&fewest.coeffs_to_slots.factors);
    let fixed = least - used.map(|factor| factor.key_bytes).sum::<usize>();
    for budget in [least, least + 1, (3 * least + most) / 4, (least + most) / 2, most - 1, most, usize::MAX] {
        let chosen = plan(KeyBudget::Bytes(budget)).unwrap();
        assert!(chosen.key_bytes(rlwe).unwrap() <= budget);
        let within = all.iter().filter(|(bytes, _)| bytes.saturating_add(fixed) <= budget);
        let best = within.map(|&(_, work)| work).fold(f64::INFINITY, f64::min);
        assert!((work(&chosen) / best - 1.0).abs() < 1e-12, "{budget}: {} above {best}", work(&chosen));
        assert_eq!(chosen, plan(KeyBudget::Bytes(budget)).unwrap());
    }
    for budget in [0, least - 1] {
        let error = plan(KeyBudget::Bytes(budget)).unwrap_err();
        assert_eq!(error, CircuitError::KeyBudget { budget, minimum: least });
        assert!(error.to_string().contains(&least.to_string()), "{error}");
    }

    for plan in [fewest, plan(KeyBudget::Bytes((3 * least + most) / 4)).unwrap()] {
        let keys = keys(&owner, &plan);
        assert_eq!(keys.bytes(), plan.key_bytes(rlwe).unwrap());
        let evaluator = Evaluator::new(p, &keys).unwrap();
        let z = values(Values::Complex, 6, 7);
        let out = Bootstrapper::new(p, &plan).unwrap().bootstrap(&evaluator, &owner.encrypt(&z, 3)).unwrap();
        owner.check(&out, &z, FLOAT, "few keys");
    }
}

#[test]
fn coefficients_can_enter_and_leave() {
    let owner = owner();
    let p = &owner.parameters;
    let (log_slots, slots) = (6, 64);
    let plan = BootstrapperPlan::new(p, &literal(log_slots, Values::Complex)).unwrap();
    let keys = keys(&owner, &plan);
    let evaluator = Evaluator::new(p, &keys).unwrap();
    let bootstrapper = Bootstrapper::new(p, &plan).unwrap();
    // A client puts 2n numbers in coefficients, at the scale of the first stage's output, and knows no slots.
    let mut literal = p.literal();
    literal.log_scale = plan.slots_to_coeffs.output_scale.log2();
    let client = CkksParameters::new(literal).unwrap();
    let numbers = Random(4).reals(2 * slots);
    let gap = p.rlwe().n() / (2 * slots);
    let mut coefficients = vec![0.0; p.rlwe().n()];
    coefficients.iter_mut().step_by(gap).zip(&numbers).for_each(|(c, x)| *c = *x);
    let input = Encryptor::new(&client, &owner.public, rng(6))
        .unwrap()
        .encrypt_real(&coefficients, Packing::Coefficients, 0)
        .unwrap();
    let input = Ciphertext { parameters: p.clone(), ..input };
    let slots_of = bootstrapper.bootstrap_coefficients(&evaluator, &input).unwrap();
    let reversed = |j: usize| j.reverse_bits() >> (usize::BITS - log_slots);
    let expected: Vec<Complex64> =
        (0..slots).map(|j| Complex64::new(numbers[reversed(j)], numbers[slots + reversed(j)])).collect();
    owner.check(&slots_of, &expected, FLOAT, "from coefficients");

    // And back, for a client that cannot decode slots.
    let out = bootstrapper.slots_to_coeffs().evaluate(&evaluator, &slots_of).unwrap();
    let result = Decryptor::new(p, &owner.secret).unwrap().decrypt_real(&out).unwrap();
    let error = result.iter().zip(&coefficients).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(error <= out.estimate.bound() + FLOAT, "{error:e} above {:e}", out.estimate.bound());
}

#[test]
fn a_missing_key_is_named_before_anything_is_computed() {
    let owner = owner();
    let p = &owner.parameters;
    let plan = BootstrapperPlan::new(p, &literal(3, Values::Complex)).unwrap();
    let all = keys(&owner, &plan);
    let bootstrapper = Bootstrapper::new(p, &plan).unwrap();
    let input = owner.encrypt(&values(Values::Complex, 3, 1), 2);
    let mut named = BTreeSet::new();
    for (stage, absent) in plan.stage_keys() {
        let mut keys = EvaluationKeys::new(p.rlwe());
        // Keys of higher levels serve too.
        for key in all.iter().filter(|k| k.spec().element != absent.element || k.spec().level < absent.level)
        {
            keys.insert(key.clone()).unwrap();
        }
        let error = bootstrapper.bootstrap(&Evaluator::new(p, &keys).unwrap(), &input).unwrap_err();
        let CircuitError::Stage { stage: refused, source, .. } = &error else { panic!("{error}") };
        assert!(
            matches!(&**source, CircuitError::Ckks(CkksError::Rlwe(RlweError::MissingKey { .. }))),
            "{error}"
        );
        // The first of the stages that lack it.
        assert!(*refused <= stage && error.to_string().starts_with(refused.name()), "{error}");
        named.insert(*refused);
    }
    // The rotation of the recombination is also one of the trace's.
    let stages = [Stage::SlotsToCoeffs, Stage::ModRaise, Stage::CoeffsToSlots, Stage::EvalMod];
    assert_eq!(named.into_iter().collect::<Vec<_>>(), stages);

    // Keys over other special primes than the diagonals are as good as missing.
    let mut keys = EvaluationKeys::new(p.rlwe());
    let (first, factor) = (&plan.slots_to_coeffs.factors[0], plan.slots_to_coeffs.factors[0].keys[0].element);
    for key in all.iter().filter(|k| k.spec().element != factor) {
        keys.insert(key.clone()).unwrap();
    }
    let special: Vec<usize> = p.rlwe().special_primes().skip(1).collect();
    assert_ne!(special, first.special);
    let unfit = KeySpec { special, alpha: 1, ..first.keys[0].clone() };
    keys.insert(KeyGenerator::new(&owner.secret, rng(8)).switching_key(&unfit).unwrap()).unwrap();
    let error = bootstrapper.bootstrap(&Evaluator::new(p, &keys).unwrap(), &input).unwrap_err();
    assert!(
        matches!(&error, CircuitError::Stage { stage: Stage::SlotsToCoeffs, source, .. }
            if matches!(**source, CircuitError::SpecialPrimes { .. })),
        "{error}"
    );
}

#[test]
fn what_cannot_be_bootstrapped_is_refused() {
    let owner = owner();
    let p = &owner.parameters;
    let good = literal(3, Values::Complex);
    let refuse = |literal: BootstrapperLiteral| BootstrapperPlan::new(p, &literal).unwrap_err();
    let stage = |error: CircuitError| match error {
        CircuitError::Stage { stage, source, .. } => (stage, *source),
        other => panic!("{other}"),
    };
    for output_level in [Some(1), Some(6), Some(usize::MAX)] {
        let error = refuse(BootstrapperLiteral { output_level, ..good.clone() });
        assert!(
            matches!(error, CircuitError::BootstrapLevels { available: 19, input_level: 2, .. }),
            "{error}"
        );
    }
    // Counts that must not size anything.
    for huge in [20, usize::MAX] {
        for (at, literal) in [
            (Stage::SlotsToCoeffs, BootstrapperLiteral { slots_to_coeffs: huge, ..good.clone() }),
            (Stage::CoeffsToSlots, BootstrapperLiteral { coeffs_to_slots: huge, ..good.clone() }),
            (Stage::EvalMod, BootstrapperLiteral { double_angles: huge as u32, ..good.clone() }),
        ] {
            let (refused, error) = stage(refuse(literal));
            assert!(
                refused == at
                    && matches!(error, CircuitError::Ckks(CkksError::Rlwe(RlweError::Level { max: 19, .. }))),
                "{error}"
            );
        }
    }
    for degree in [0, 1, 31, 128, usize::MAX, usize::MAX - 1] {
        let (at, error) = stage(refuse(BootstrapperLiteral { cosine_degree: degree, ..good.clone() }));
        assert!(
            at == Stage::EvalMod && matches!(error, CircuitError::Count { count, .. } if count == degree),
            "{error}"
        );
    }
    for log_slots in [11, u32::MAX] {
        let (_, error) = stage(refuse(BootstrapperLiteral { log_slots, ..good.clone() }));
        assert!(matches!(error, CircuitError::LogSlots { max: 10, .. }), "{error}");
    }
    for log_ratio in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 60.0] {
        for (order, first) in
            [(Order::SlotsToCoeffsFirst, Stage::SlotsToCoeffs), (Order::ModRaiseFirst, Stage::ModRaise)]
        {
            let (at, error) = stage(refuse(BootstrapperLiteral { log_ratio, order, ..good.clone() }));
            assert!(at == first && matches!(error, CircuitError::Ckks(CkksError::Scale { .. })), "{error}");
        }
    }
    let (at, error) = stage(refuse(BootstrapperLiteral { log_slots: 11, ..good.clone() }));
    assert!(at == Stage::SlotsToCoeffs && matches!(error, CircuitError::LogSlots { log_slots: 11, max: 10 }));
    let (at, error) =
        stage(refuse(BootstrapperLiteral { coeffs_to_slots: 0, output_level: None, ..good.clone() }));
    assert!(at == Stage::CoeffsToSlots && matches!(error, CircuitError::Empty(_)), "{error}");
    let (at, error) = stage(refuse(BootstrapperLiteral { log_ratio: 1.0, ..good.clone() }));
    assert!(at == Stage::EvalMod && matches!(error, CircuitError::Interval { .. }), "{error}");
    let (at, error) = stage(refuse(BootstrapperLiteral { ephemeral_weight: Some(0), ..good.clone() }));
    assert!(at == Stage::ModRaise, "{error}");
    // Weight 16 is below the weights with a pinned bound, and q_0 with a special prime exceeds the bound for weight 32
    // at 2^15.
    let secure =
        |q: &[u32]| CkksParameters::new(CkksLiteral::from_bits(15, q, &[50], 40.0).unwrap()).unwrap();
    let mut q = vec![50; 16];
    q[1] = 40;
    for weight in [16, 32] {
        let literal = BootstrapperLiteral { ephemeral_weight: Some(weight), ..good.clone() };
        let (at, error) = stage(BootstrapperPlan::new(&secure(&q), &literal).unwrap_err());
        assert_eq!(at, Stage::ModRaise);
        assert!(
            matches!(
                error,
                CircuitError::Ckks(CkksError::Rlwe(
                    RlweError::NoBound { .. } | RlweError::Insecure { bound: 96, .. }
                ))
            ),
            "{error}"
        );
    }

    let plan = BootstrapperPlan::new(p, &good).unwrap();
    let keys = keys(&owner, &plan);
    let evaluator = Evaluator::new(p, &keys).unwrap();
    let bootstrapper = Bootstrapper::new(p, &plan).unwrap();
    let z = values(Values::Complex, 3, 1);
    let run = |input: &Ciphertext| stage(bootstrapper.bootstrap(&evaluator, input).unwrap_err());
    let (at, error) = run(&owner.encrypt(&z, 1));
    assert!(at == Stage::SlotsToCoeffs, "{error}");
    let mut scaled = owner.encrypt(&z, 2);
    scaled.scale *= 0.98;
    let (at, error) = run(&scaled);
    assert!(
        at == Stage::SlotsToCoeffs && matches!(error, CircuitError::Ckks(CkksError::ScaleMismatch { .. }))
    );
    let slots = owner.encrypt(&z, 2);
    let (at, error) = stage(bootstrapper.bootstrap_coefficients(&evaluator, &slots).unwrap_err());
    assert!(at == Stage::ModRaise && matches!(error, CircuitError::Ckks(CkksError::PackingMismatch { .. })));
}

#[test]
fn every_preset_is_secure_and_what_its_name_says() {
    for preset in BOOTSTRAP_PRESETS {
        let parameters = preset.parameters().unwrap();
        let plan = BootstrapperPlan::new(&parameters, &preset.bootstrapper).unwrap();
        let rlwe = parameters.rlwe();
        let largest = plan
            .required_keys()
            .iter()
            .map(|spec| {
                spec.validate(rlwe).unwrap();
                rlwe.log2_q(spec.level) + spec.special_bits(rlwe)
            })
            .fold(0.0, f64::max);
        let name = |levels| format!("N{}_QP{largest:.0}_L{levels}_S{}", preset.log_n, preset.log_scale);
        assert!(
            preset.name.starts_with(&name(plan.levels_left())),
            "{}: {}",
            preset.name,
            name(plan.levels_left())
        );
        // Primes of this form are N ln(q) apart on average. Allow four times that for each, and at most a thousandth
        // for wide ones.
        let bits = f64::from(preset.log_scale);
        let gap = rlwe.n() as f64 * bits / bits.exp2();
        let tolerance = (4.0 * gap * plan.levels_left() as f64).max(1e-3);
        for level in plan.input_level() + 1..=plan.output_level() {
            let width = rlwe.log2_prime(level);
            assert!((width - bits).abs() < tolerance, "{} {level}: {width}", preset.name);
        }
        // A scale is chosen by this: the bits of the worst part of 100 vectors.
        let prediction = plan.prediction(&parameters).unwrap().unwrap();
        let table = [(32, 13.0), (35, 16.5), (37, 17.5), (40, 20.6), (45, 24.0), (50, 20.0), (55, 30.0)];
        let required = table.iter().find(|(scale, _)| *scale == preset.log_scale).unwrap().1;
        let bits = prediction.worst_bits(100);
        assert!(bits >= required, "{}: {bits}", preset.name);
        let cheaper = ["N16_QP1746_L16_S50", "N16_QP1729_L12_S50_two_passes"];
        let fails = if cheaper.contains(&preset.name) { -40.0 } else { -139.0 };
        assert!(prediction.log2_failure <= fails, "{}: 2^{}", preset.name, prediction.log2_failure);
        assert_eq!(bootstrap_preset(preset.name).unwrap(), preset);
        // Those of thin clients have the prime of the clients' arithmetic.
        let thin = [("_q30", (1u64 << 30) - (1 << 18) + 1), ("_q60", (1 << 60) - (1 << 18) + 1)];
        if let Some((_, q_0)) = thin.iter().find(|(end, _)| preset.name.ends_with(end)) {
            assert_eq!(rlwe.modulus(0).value(), *q_0, "{}", preset.name);
        }
    }
    assert!(matches!(bootstrap_preset("N16"), Err(CkksError::UnknownPreset { .. })));
}
