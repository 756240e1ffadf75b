//! Digits and levels of a bootstrapping's keys: every choice gives the same values within its estimate, and matches its
//! description.

use crate::bootstrapper::{FLOAT, keys, literal, values};
use crate::fixture::Owner;
use keywright_circuits::CircuitError;
use keywright_circuits::bootstrapping::mod_raise::mod_raise;
use keywright_circuits::bootstrapping::{
    Bootstrapper, BootstrapperLiteral, BootstrapperPlan, DigitRule, KeyDesign, KeyLevels, Stage, StageKeys,
    Values,
};
use keywright_ckks::{CkksError, Evaluator};
use keywright_rlwe::{EvaluationKeys, KeyElement, KeySpec, RlweError};

const LOG_SLOTS: u32 = 4;

/// As in the tests of the composition, with a first special prime above all others.
fn owner() -> Owner {
    let mut q = vec![50, 40, 40, 45, 45, 45];
    q.extend([50; 14]);
    Owner::small(&q, &[51, 50, 50], 45.0)
}

fn plan(owner: &Owner, digits: DigitRule, levels: KeyLevels) -> Result<BootstrapperPlan, CircuitError> {
    let literal = BootstrapperLiteral {
        keys: Some(KeyDesign { digits, levels }),
        ..literal(LOG_SLOTS, Values::Complex)
    };
    BootstrapperPlan::new(&owner.parameters, &literal)
}

/// Keys that the design decides: those of an ephemeral secret always have one digit.
fn designed(plan: &BootstrapperPlan) -> Vec<KeySpec> {
    let ephemeral = plan.mod_raise.key_specs();
    plan.stage_keys().into_iter().map(|(_, spec)| spec).filter(|spec| !ephemeral.contains(spec)).collect()
}

const DIGITS: [DigitRule; 5] = [
    DigitRule::Static { alpha: 1 },
    DigitRule::Static { alpha: 2 },
    DigitRule::Static { alpha: 3 },
    DigitRule::Dynamic { dropped_primes: false },
    DigitRule::Dynamic { dropped_primes: true },
];

#[test]
fn every_choice_of_digits_and_levels_comes_back() {
    let owner = owner();
    let (p, rlwe) = (&owner.parameters, owner.parameters.rlwe());
    assert_eq!(DigitRule::maximum(rlwe), DIGITS[2]);
    let z = values(Values::Complex, LOG_SLOTS, 7);
    let input = owner.encrypt(&z, 2);
    for digits in DIGITS {
        for levels in [KeyLevels::Needed, KeyLevels::Top] {
            let what = format!("{digits:?}, {levels:?}");
            let plan = plan(&owner, digits, levels).unwrap();
            let bootstrapper = Bootstrapper::new(p, &plan).unwrap();
            let keys = keys(&owner, &plan);
            let run = |keys: &EvaluationKeys| {
                bootstrapper.bootstrap(&Evaluator::new(p, keys).unwrap(), &input).unwrap()
            };
            owner.check(&run(&keys), &z, FLOAT, &what);
            if digits == DIGITS[0] {
                owner.check(&run(&keys.without_coalescing()), &z, FLOAT, &what);
            }
        }
    }
}

#[test]
fn static_digits_have_as_many_special_primes_as_primes() {
    let owner = owner();
    let rlwe = owner.parameters.rlwe();
    for alpha in 1..=3 {
        for levels in [KeyLevels::Needed, KeyLevels::Top] {
            let plan = plan(&owner, DigitRule::Static { alpha }, levels).unwrap();
            for spec in designed(&plan) {
                let what = format!("{spec:?}");
                assert_eq!((spec.alpha, spec.special.len()), (alpha, alpha), "{what}");
                let digits = spec.validate(rlwe).unwrap();
                assert!(digits.len() >= (spec.level + 1).div_ceil(alpha), "{what}");
                // 51 bits next to primes of at most 50: no digit but the last is shorter.
                assert!(digits.iter().rev().skip(1).all(|digit| digit.len() == alpha), "{what}");
                assert!(levels == KeyLevels::Needed || spec.level == rlwe.max_level(), "{what}");
            }
        }
    }
}

#[test]
fn keys_are_at_the_level_where_they_are_used_or_as_high_as_they_can_be() {
    let owner = owner();
    let rlwe = owner.parameters.rlwe();
    for digits in DIGITS {
        let needed = plan(&owner, digits, KeyLevels::Needed).unwrap();
        for factor in needed.slots_to_coeffs.factors.iter().chain(&needed.coeffs_to_slots.factors) {
            assert!(factor.keys.iter().all(|spec| spec.level == factor.level), "{digits:?}");
        }
        let top = plan(&owner, digits, KeyLevels::Top).unwrap();
        for spec in designed(&top) {
            // One level more would be a special prime of its own, or above the highest, or too large for its special
            // primes.
            let higher = KeySpec { level: spec.level + 1, ..spec.clone() };
            assert!(higher.validate(rlwe).is_err(), "{digits:?}: {spec:?}");
        }
        for (needed, top) in designed(&needed).iter().zip(designed(&top)) {
            assert_eq!(needed.element, top.element);
            assert!(
                needed.bytes(rlwe).unwrap() <= top.bytes(rlwe).unwrap(),
                "{digits:?}: {needed:?}, {top:?}"
            );
        }
    }
}

#[test]
fn dynamic_digits_make_the_fewest_transforms() {
    let owner = owner();
    let rlwe = owner.parameters.rlwe();
    let design = |digits| KeyDesign { digits, levels: KeyLevels::Needed };
    let transforms = |digits, level| {
        let spec = design(digits).key(rlwe, KeyElement::Relinearization, level).unwrap();
        (spec.validate(rlwe).unwrap().len() + 2) * (level + 1 + spec.special.len())
    };
    let mut gained = 0;
    for level in 0..=rlwe.max_level() {
        let [one, two, three, own, dropped] = DIGITS.map(|digits| transforms(digits, level));
        assert!(own <= one.min(two).min(three), "level {level}");
        assert!(dropped <= own, "level {level}");
        gained += usize::from(dropped < own);
        // By brute force: any special primes of the parameters with any primes above the level, and any alpha.
        let mut least = usize::MAX;
        for count in 0..=3 {
            for more in 0..=rlwe.max_level() - level {
                for alpha in 1..=level + 1 {
                    let special: Vec<usize> = (level + 1..=level + more).chain(20..20 + count).collect();
                    let element = KeyElement::Relinearization;
                    let spec = KeySpec { element, level, alpha, special, seeded: true, subring: None };
                    if let Ok(digits) = spec.validate(rlwe) {
                        least = least.min((digits.len() + 2) * (level + 1 + count + more));
                    }
                }
            }
        }
        assert_eq!(dropped, least, "level {level}");
    }
    assert!(gained > 5, "dropped primes help at {gained} levels");
}

#[test]
fn an_alpha_that_cannot_be_is_refused() {
    let owner = owner();
    let refuse = |owner: &Owner, alpha| {
        let error = plan(owner, DigitRule::Static { alpha }, KeyLevels::Needed).unwrap_err();
        let CircuitError::Stage { stage: Stage::SlotsToCoeffs, source, .. } = error else {
            panic!("{error}")
        };
        let CircuitError::Ckks(CkksError::Rlwe(error)) = *source else { panic!("{source}") };
        error
    };
    for alpha in [0, 4, usize::MAX] {
        let error = refuse(&owner, alpha);
        assert!(matches!(error, RlweError::Count { count, min: 1, max: 3, .. } if count == alpha), "{error}");
    }
    // A special prime of 44 bits is below q_0.
    let mut q = vec![50, 40, 40, 45, 45, 45];
    q.extend([50; 14]);
    let error = refuse(&Owner::small(&q, &[44, 60], 45.0), 1);
    assert!(matches!(error, RlweError::SpecialTooSmall { index: 0, .. }), "{error}");
}

/// The keys of one step at a time.
struct Steps<'k> {
    all: &'k EvaluationKeys,
    now: EvaluationKeys,
    asked: Vec<(Stage, Vec<KeySpec>)>,
    fail_at: usize,
}

impl StageKeys for Steps<'_> {
    fn supply(&mut self, stage: Stage, keys: &[KeySpec]) -> Result<&EvaluationKeys, CircuitError> {
        if self.asked.len() == self.fail_at {
            return Err(CircuitError::Empty("the supply"));
        }
        self.asked.push((stage, keys.to_vec()));
        self.now = EvaluationKeys::new(self.all.parameters());
        for key in self.all.iter().filter(|key| keys.contains(key.spec())) {
            self.now.insert(key.clone())?;
        }
        Ok(&self.now)
    }
}

#[test]
fn streamed_coeffs_to_slots_needs_the_keys_of_one_step_at_a_time() {
    let owner = owner();
    let p = &owner.parameters;
    let plan = plan(&owner, DigitRule::Dynamic { dropped_primes: true }, KeyLevels::Needed).unwrap();
    let bootstrapper = Bootstrapper::new(p, &plan).unwrap();
    let all = keys(&owner, &plan);
    let evaluator = Evaluator::new(p, &all).unwrap();
    let input = owner.encrypt(&values(Values::Complex, LOG_SLOTS, 7), 2);
    let coefficients = bootstrapper.slots_to_coeffs().evaluate(&evaluator, &input).unwrap();
    let raised = mod_raise(&evaluator, &plan.mod_raise, &coefficients).unwrap();
    let stage = bootstrapper.coeffs_to_slots();
    let supply = |fail_at| Steps { all: &all, now: EvaluationKeys::new(p.rlwe()), asked: vec![], fail_at };

    let mut steps = supply(usize::MAX);
    let streamed = stage.evaluate_streamed(&mut steps, &raised).unwrap();
    assert!(steps.asked.iter().all(|(stage, _)| *stage == Stage::CoeffsToSlots));
    let asked: Vec<_> = steps.asked.into_iter().map(|(_, keys)| keys).collect();
    assert_eq!(asked, plan.coeffs_to_slots.steps());
    let whole = stage.evaluate(&evaluator, &raised).unwrap();
    assert_eq!(streamed.len(), whole.len());
    for (streamed, whole) in streamed.iter().zip(&whole) {
        assert_eq!((&streamed.rlwe.polys, streamed.estimate), (&whole.rlwe.polys, whole.estimate));
    }

    for fail_at in 0..asked.len() {
        let error = stage.evaluate_streamed(&mut supply(fail_at), &raised).unwrap_err();
        assert!(
            matches!(&error, CircuitError::Stage { stage: Stage::CoeffsToSlots, source, .. }
                if **source == CircuitError::Empty("the supply")),
            "{error}"
        );
    }
}
