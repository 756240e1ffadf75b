//! ModRaise first, with the same stages: the output has the input's values, within the derived estimate.

use crate::bootstrapper::{FLOAT, keys, literal, values};
use crate::fixture::Owner;
use keywright_circuits::CircuitError;
use keywright_circuits::bootstrapping::{
    Bootstrapper, BootstrapperLiteral, BootstrapperPlan, Order, Stage, Values,
};
use keywright_ckks::{Ciphertext, CkksError, Decryptor, Evaluator, Packing};

/// `q_0`, three levels for computation, two of `slots_to_coeffs`, fourteen of 50 bits for the other stages.
fn owner() -> Owner {
    let mut q = vec![51, 45, 45, 45, 45, 45];
    q.extend([50; 14]);
    Owner::insecure(10, &q, &[51, 50, 50], 45.0)
}

fn first(log_slots: u32, kind: Values) -> BootstrapperLiteral {
    BootstrapperLiteral { order: Order::ModRaiseFirst, output_level: Some(3), ..literal(log_slots, kind) }
}

#[test]
fn every_packing_comes_back() {
    let owner = owner();
    let p = &owner.parameters;
    for log_slots in 0..=9 {
        for kind in [Values::Real, Values::Complex] {
            // Real values in slots are complex ones in coefficients: the two differ in their range, not in the
            // computation.
            if kind == Values::Real && log_slots % 4 != 1 {
                continue;
            }
            let what = format!("2^{log_slots} slots, {kind:?}");
            let plan = BootstrapperPlan::new(p, &first(log_slots, kind)).unwrap();
            assert_eq!((plan.input_level(), plan.output_level(), plan.levels_left()), (0, 3, 3), "{what}");
            let keys = keys(&owner, &plan);
            let evaluator = Evaluator::new(p, &keys).unwrap();
            let z = values(kind, log_slots, 7);
            let input = owner.encrypt(&z, 0);
            let out = Bootstrapper::new(p, &plan).unwrap().bootstrap(&evaluator, &input).unwrap();
            assert_eq!((out.level(), out.scale, out.packing), (3, p.scale(), Packing::Slots { log_slots }));
            owner.check(&out, &z, FLOAT, &what);
            // The remaining errors are small: 2^-12 of values up to 1.4.
            assert!(out.estimate.bound() < 1.0 / 4096.0, "{what}: {:e}", out.estimate.bound());
        }
    }
}

#[test]
fn any_scale_and_level_enters() {
    let owner = owner();
    let p = &owner.parameters;
    let plan = BootstrapperPlan::new(p, &first(9, Values::Complex)).unwrap();
    let keys = keys(&owner, &plan);
    let evaluator = Evaluator::new(p, &keys).unwrap();
    let bootstrapper = Bootstrapper::new(p, &plan).unwrap();
    let z = values(Values::Complex, 9, 7);
    let scale = plan.coefficients_scale;
    for (level, scale) in [(0, scale / 3.3), (0, scale * 1.007), (2, scale * 1.9), (3, scale)] {
        let input = owner.encrypt_at(&z, level, scale);
        let out = bootstrapper.bootstrap(&evaluator, &input).unwrap();
        assert_eq!((out.level(), out.scale), (3, p.scale()));
        owner.check(&out, &z, FLOAT, &format!("level {level}, scale {scale:e}"));
    }
    let stage = |input: &Ciphertext| match bootstrapper.bootstrap(&evaluator, input).unwrap_err() {
        CircuitError::Stage { stage, level, source } => (stage, level, *source),
        other => panic!("{other}"),
    };
    let (at, level, error) = stage(&owner.encrypt_at(&z, 0, scale * 1.01));
    assert_eq!((at, level), (Stage::ModRaise, 0));
    assert!(matches!(error, CircuitError::Ckks(CkksError::ScaleMismatch { .. })), "{error}");
    let (at, _, error) = stage(&owner.encrypt(&z[..8], 0));
    assert!(at == Stage::ModRaise && matches!(error, CircuitError::Ckks(CkksError::PackingMismatch { .. })));
}

#[test]
fn a_result_can_be_left_in_coefficients_at_one_prime() {
    let owner = owner();
    let p = &owner.parameters;
    for order in [Order::SlotsToCoeffsFirst, Order::ModRaiseFirst] {
        let plan =
            BootstrapperPlan::new(p, &BootstrapperLiteral { order, ..first(9, Values::Complex) }).unwrap();
        let keys = keys(&owner, &plan);
        let evaluator = Evaluator::new(p, &keys).unwrap();
        let bootstrapper = Bootstrapper::new(p, &plan).unwrap();
        let z = values(Values::Complex, 9, 7);
        let coefficients =
            bootstrapper.slots_to_coeffs().evaluate(&evaluator, &owner.encrypt(&z, 5)).unwrap();
        assert_eq!(coefficients.level(), plan.slots_to_coeffs.output_level());
        let input = match order {
            Order::SlotsToCoeffsFirst => coefficients,
            // Not at the scale of the input.
            Order::ModRaiseFirst => evaluator.set_scale(&coefficients, plan.coefficients_scale).unwrap(),
        };
        let slots = bootstrapper.bootstrap_coefficients(&evaluator, &input).unwrap();
        assert_eq!(slots.level(), plan.slots_level());
        owner.check(&slots, &z, FLOAT, "slots");
        let out = bootstrapper.slots_to_coeffs().evaluate(&evaluator, &slots).unwrap();
        let out = evaluator.drop_to_level(&out, 0).unwrap();
        assert_eq!((out.level(), out.packing), (0, Packing::Coefficients));
        let result = Decryptor::new(p, &owner.secret).unwrap().decrypt_real(&out).unwrap();
        let half = z.len();
        for (j, value) in z.iter().enumerate() {
            let index = j.reverse_bits() >> (usize::BITS - 9);
            let error = (result[index] - value.re).hypot(result[half + index] - value.im);
            assert!(error <= 2f64.sqrt() * out.estimate.bound() + FLOAT, "{order:?}, slot {j}: {error:e}");
        }
    }
}

#[test]
fn keys_and_levels_are_in_the_order_of_the_stages() {
    let owner = owner();
    let plan = BootstrapperPlan::new(&owner.parameters, &first(3, Values::Complex)).unwrap();
    let stages =
        [Stage::ModRaise, Stage::CoeffsToSlots, Stage::EvalMod, Stage::Recombine, Stage::SlotsToCoeffs];
    let levels = plan.stage_levels();
    assert_eq!(levels.iter().map(|(stage, _, _)| *stage).collect::<Vec<_>>(), stages);
    assert!(levels.windows(2).all(|pair| pair[0].2 == pair[1].1), "{levels:?}");
    assert_eq!((levels[0].1, levels[4].2), (0, plan.output_level()));
    let mut order: Vec<Stage> = plan.stage_keys().into_iter().map(|(stage, _)| stage).collect();
    order.dedup();
    assert_eq!(order, stages);
    // One level more than there are.
    let literal = BootstrapperLiteral { output_level: Some(4), ..first(3, Values::Complex) };
    let error = BootstrapperPlan::new(&owner.parameters, &literal).unwrap_err();
    assert!(
        matches!(error, CircuitError::BootstrapLevels { needed: 16, input_level: 0, available: 19, .. }),
        "{error}"
    );
}
