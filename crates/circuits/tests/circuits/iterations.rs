//! Iterated bootstrapping: each pass corrects the error of the one before, down to the rounding at the scale of the
//! result.

use crate::bootstrapper::{keys, literal, values};
use crate::fixture::Owner;
use keywright_circuits::CircuitError;
use keywright_circuits::bootstrapping::{
    Bootstrapper, BootstrapperLiteral, BootstrapperPlan, Iterations, Order, Values,
};
use keywright_ckks::{Ciphertext, Evaluator, PRODUCT_TAIL};

/// Bits by which each pass corrects the one before.
const BITS: u32 = 12;

/// Error of `f64` decoding, relative to values of 1: far below the scale of these tests.
const FLOAT: f64 = 1.0 / (1u64 << 44) as f64;

/// `q_0`, two levels of `slots_to_coeffs`, three for computation, fourteen for the other stages.
fn owner(q0: u32, slots_to_coeffs: u32) -> Owner {
    let mut q = vec![q0, slots_to_coeffs, slots_to_coeffs];
    q.extend([50; 17]);
    Owner::insecure(10, &q, &[q0, 50, 50], 50.0)
}

/// Without an arcsine, at a ratio for which the approximation has 19 bits.
fn iterated(log_slots: u32, kind: Values, count: usize) -> BootstrapperLiteral {
    BootstrapperLiteral {
        log_ratio: 10.0,
        arcsine_degree: 1,
        iterations: (count > 1).then_some(Iterations { count, log_precision: BITS }),
        ..literal(log_slots, kind)
    }
}

/// Largest difference between the decryptions of two ciphertexts: the error of bootstrapping, without that of
/// encryption.
fn added(owner: &Owner, out: &Ciphertext, input: &Ciphertext) -> f64 {
    let (result, expected) = (owner.decrypt(out), owner.decrypt(input));
    result.iter().zip(&expected).map(|(a, b)| (a - b).norm()).fold(0.0, f64::max)
}

/// `sqrt(2n (1 + |s|^2) / 12) / S`: the deviation of one rounding at the scale of the result, in a slot.
fn rounding(owner: &Owner, log_slots: u32) -> f64 {
    let rlwe = owner.parameters.rlwe();
    let variance = (1.0 + rlwe.secret().expected_norm2(rlwe.n())) / 12.0;
    (variance * 2.0 * f64::from(log_slots).exp2()).sqrt() / owner.parameters.scale()
}

/// The error of a bootstrap, and the bound on it.
fn run(owner: &Owner, literal: &BootstrapperLiteral, drift: f64) -> (f64, f64) {
    let p = &owner.parameters;
    let plan = BootstrapperPlan::new(p, literal).unwrap();
    let keys = keys(owner, &plan);
    let evaluator = Evaluator::new(p, &keys).unwrap();
    let z = values(literal.values, literal.log_slots, 7);
    let input = owner.encrypt_at(&z, plan.input_level(), p.scale() * drift);
    let out = Bootstrapper::new(p, &plan).unwrap().bootstrap(&evaluator, &input).unwrap();
    assert_eq!((out.level(), out.scale), (plan.output_level(), p.scale()));
    // The estimate includes the error of the input.
    let total = owner.check(&out, &z, FLOAT, "all in all");
    assert!(total <= out.estimate.bound() + FLOAT);
    let bound = out.estimate.bound() - input.estimate.bound();
    let error = added(owner, &out, &input);
    assert!(error <= bound + FLOAT, "{literal:?}: {error:e} above {bound:e}");
    (error, bound)
}

#[test]
fn every_pass_gains_its_bits_until_only_the_rounding_is_left() {
    let owner = owner(51, 36);
    let floor = rounding(&owner, 9);
    let [one, two, three] = [1, 2, 3].map(|count| run(&owner, &iterated(9, Values::Complex, count), 1.0));
    let gain = f64::from(BITS).exp2();
    assert!(two.0 < one.1 / gain && two.1 < 2.0 * one.1 / gain, "{one:?} {two:?}");
    assert!(three.1 < two.1 / 16.0, "{two:?} {three:?}");
    // 512 values do not exceed five deviations; the bound has 21, and the end of a pass has more than one rounding.
    assert!(three.0 < 8.0 * floor && three.1 < 4.0 * PRODUCT_TAIL * floor, "{three:?} {floor:e}");
}

#[test]
fn other_orders_packings_and_scales_are_corrected() {
    let of = |log_slots, kind, order, log_precision| BootstrapperLiteral {
        order,
        iterations: Some(Iterations { count: 2, log_precision }),
        ..iterated(log_slots, kind, 2)
    };
    let (first, last) = (Order::SlotsToCoeffsFirst, Order::ModRaiseFirst);
    // The last one ends with slots_to_coeffs, in which errors of coefficients add up: one pass of it has fewer bits.
    for (what, owner, literal, drift) in [
        ("sparse", owner(51, 36), of(3, Values::Complex, first, BITS), 1.0),
        ("real", owner(51, 36), of(9, Values::Real, first, BITS), 1.0),
        ("another scale", owner(51, 36), of(9, Values::Real, first, BITS), 0.993),
        ("modulus first", owner(60, 50), of(6, Values::Complex, last, 7), 1.0),
    ] {
        let Some(Iterations { log_precision, .. }) = literal.iterations else { continue };
        let (_, bound) = run(&owner, &BootstrapperLiteral { iterations: None, ..literal.clone() }, drift);
        let (error, _) = run(&owner, &literal, drift);
        assert!(error < bound / f64::from(log_precision).exp2(), "{what}: {error:e}, one pass {bound:e}");
    }
}

#[test]
fn coefficients_are_corrected_but_for_the_way_back() {
    let owner = owner(51, 50);
    let p = &owner.parameters;
    let mut errors = Vec::new();
    for count in [1, 2] {
        let plan = BootstrapperPlan::new(p, &iterated(9, Values::Complex, count)).unwrap();
        let keys = keys(&owner, &plan);
        let evaluator = Evaluator::new(p, &keys).unwrap();
        let bootstrapper = Bootstrapper::new(p, &plan).unwrap();
        let z = values(Values::Complex, 9, 7);
        let slots = owner.encrypt(&z, plan.input_level());
        let input = bootstrapper.slots_to_coeffs().evaluate(&evaluator, &slots).unwrap();
        let out = bootstrapper.bootstrap_coefficients(&evaluator, &input).unwrap();
        assert_eq!((out.level(), out.scale), (plan.output_level(), p.scale()));
        errors.push((owner.check(&out, &z, FLOAT, "from coefficients"), out.estimate.bound()));
    }
    assert!(errors[1].0 < errors[0].0 / 256.0 && errors[1].1 < errors[0].1 / 256.0, "{errors:?}");
}

#[test]
fn what_cannot_be_iterated_is_refused() {
    let owner = owner(51, 36);
    let p = &owner.parameters;
    let with = |count, log_precision| BootstrapperLiteral {
        iterations: Some(Iterations { count, log_precision }),
        ..iterated(3, Values::Complex, 2)
    };
    for (literal, count, max) in [
        (with(0, BITS), 0, 4),
        (with(1, BITS), 1, 4),
        (with(5, BITS), 5, 4),
        (with(usize::MAX, BITS), usize::MAX, 4),
        // The approximation of the reduction has 19.2 bits.
        (with(2, 20), 20, 19),
        (with(2, 0), 0, 19),
        (with(2, u32::MAX), u32::MAX as usize, 19),
        // Three corrections by a scale of 50 bits.
        (with(4, 17), 17, 16),
    ] {
        let error = BootstrapperPlan::new(p, &literal).unwrap_err();
        let CircuitError::Count { count: passes, max: bound, .. } = error else { panic!("{error}") };
        assert_eq!((passes, bound), (count, max));
    }
    // More bits than the bound on one pass has, which is known only after the pass.
    let plan = BootstrapperPlan::new(p, &with(2, 19)).unwrap();
    let keys = keys(&owner, &plan);
    let evaluator = Evaluator::new(p, &keys).unwrap();
    let input = owner.encrypt(&values(Values::Complex, 3, 1), plan.input_level());
    let error = Bootstrapper::new(p, &plan).unwrap().bootstrap(&evaluator, &input).unwrap_err();
    assert!(
        matches!(error, CircuitError::Iteration { iteration: 1, bits: 19, found } if found > 15.0 && found < 19.0),
        "{error}"
    );
}
