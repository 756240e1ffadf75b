//! Bootstraps with inputs of a subring: the same values as without it, within the estimate, with smaller keys.

use std::collections::BTreeSet;

use crate::bootstrapper::{FLOAT, keys, literal, values};
use crate::fixture::{Owner, largest, rng};
use keywright_circuits::CircuitError;
use keywright_circuits::bootstrapping::{
    Bootstrapper, BootstrapperLiteral, BootstrapperPlan, Iterations, KeyBudget, Order, Values,
};
use keywright_ckks::{Ciphertext, CkksError, CkksLiteral, CkksParameters, Complex64, Encryptor, Evaluator};
use keywright_rlwe::{KeyElement, KeyGenerator, RlweError, SecretDistribution};

/// Degree `2^12`, with subrings of `2^11` to level 4 and of `2^10` to level 2.
fn owner(secret: SecretDistribution) -> Owner {
    let mut q = vec![50, 40, 40, 45, 45, 45];
    q.extend([50; 14]);
    let mut literal = CkksLiteral::from_bits(12, &q, &[50, 50, 50], 45.0).unwrap().insecure();
    literal.rlwe.secret = secret;
    literal.rlwe = literal.rlwe.with_subrings(&[(11, 4, None), (10, 2, None)]);
    Owner::new(CkksParameters::new(literal).unwrap())
}

/// Values encrypted in a ring.
fn encrypt(owner: &Owner, values: &[Complex64], log_n: u32, level: usize) -> Ciphertext {
    let ring = owner.parameters.ring_of_degree(log_n).unwrap();
    let public = KeyGenerator::new(owner.secret.ring_of_degree(log_n).unwrap(), rng(5)).public_key();
    let encryptor = Encryptor::new(ring, &public, rng(4)).unwrap();
    let mut encryptor = encryptor.declaring(largest(values.iter().map(|v| v.norm())));
    encryptor.encrypt(values, values.len().ilog2(), level).unwrap()
}

#[test]
fn every_packing_of_a_subring_comes_back() {
    let owner = owner(SecretDistribution::Ternary);
    let p = &owner.parameters;
    for (log_n, log_slots, kind, level) in [
        (11, 10, Values::Complex, 4),
        (11, 6, Values::Real, 2),
        (10, 9, Values::Real, 2),
        (10, 3, Values::Complex, 2),
    ] {
        let what = format!("2^{log_slots} slots, {kind:?}, of the ring of 2^{log_n}");
        let bootstrap = BootstrapperLiteral { input_log_n: Some(log_n), ..literal(log_slots, kind) };
        let plan = BootstrapperPlan::new(p, &bootstrap).unwrap();
        let keys = keys(&owner, &plan);
        assert_eq!(keys.bytes(), plan.key_bytes(p.rlwe()).unwrap(), "{what}");
        let rings: BTreeSet<_> = plan.slots_to_coeffs.required_keys().iter().map(|key| key.subring).collect();
        assert_eq!(rings, BTreeSet::from([Some(log_n)]), "{what}");
        let switch = KeyElement::RingUpToSparse { from: log_n, weight: 32 };
        assert_eq!(plan.fixed_keys()[0].element, switch, "{what}");
        let evaluator = Evaluator::new(p, &keys).unwrap();
        let bootstrapper = Bootstrapper::new(p, &plan).unwrap();
        let z = values(kind, log_slots, 7);
        let input = encrypt(&owner, &z, log_n, level);
        let out = bootstrapper.bootstrap(&evaluator, &input).unwrap();
        assert_eq!((out.parameters.rlwe().log_n(), out.level(), out.scale), (12, 5, p.scale()), "{what}");
        let seen = owner.check(&out, &z, FLOAT, &what);
        // As precise as without the subring.
        let direct = BootstrapperPlan::new(p, &literal(log_slots, kind)).unwrap();
        let direct_keys = crate::bootstrapper::keys(&owner, &direct);
        let whole = Evaluator::new(p, &direct_keys).unwrap();
        let other = Bootstrapper::new(p, &direct).unwrap().bootstrap(&whole, &owner.encrypt(&z, 2)).unwrap();
        let ratio = out.estimate.deviation / other.estimate.deviation;
        assert!(
            (0.5..1.5).contains(&ratio),
            "{what}: {ratio} times the error of the large ring, seen {seen}"
        );
        let predicted = plan.prediction(p).unwrap().unwrap().mean_bits();
        let before = direct.prediction(p).unwrap().unwrap().mean_bits();
        assert!((predicted - before).abs() < 1.0, "{what}: {predicted} and {before} bits are predicted");
        assert!(bootstrapper.bootstrap(&evaluator, &owner.encrypt(&z, 2)).is_err(), "{what}: another ring");
    }
}

/// If the modulus is raised under the ring's own sparse secret, a key moves inputs up.
#[test]
fn without_an_ephemeral_secret_a_key_brings_inputs_up() {
    let owner = owner(SecretDistribution::Sparse { weight: 32 });
    let p = &owner.parameters;
    let bootstrap = BootstrapperLiteral {
        input_log_n: Some(11),
        ephemeral_weight: None,
        budget: KeyBudget::Fewest,
        ..literal(7, Values::Real)
    };
    let plan = BootstrapperPlan::new(p, &bootstrap).unwrap();
    let elements: Vec<_> = plan.fixed_keys().iter().map(|key| key.element).collect();
    assert_eq!(elements, [KeyElement::RingUp { from: 11 }]);
    let keys = keys(&owner, &plan);
    let evaluator = Evaluator::new(p, &keys).unwrap();
    let z = values(Values::Real, 7, 9);
    let input = encrypt(&owner, &z, 11, 3);
    let out = Bootstrapper::new(p, &plan).unwrap().bootstrap(&evaluator, &input).unwrap();
    owner.check(&out, &z, FLOAT, "without an ephemeral secret");
}

#[test]
fn what_cannot_begin_in_a_subring_is_refused() {
    let owner = owner(SecretDistribution::Ternary);
    let p = &owner.parameters;
    let refused = |literal: &BootstrapperLiteral| match BootstrapperPlan::new(p, literal).unwrap_err() {
        CircuitError::Stage { source, .. } => *source,
        error => error,
    };
    let bootstrap = BootstrapperLiteral { input_log_n: Some(11), ..literal(10, Values::Real) };
    let raise_first = BootstrapperLiteral { order: Order::ModRaiseFirst, ..bootstrap.clone() };
    assert!(matches!(refused(&raise_first), CircuitError::InputRing));
    let iterations = Some(Iterations { count: 2, log_precision: 10 });
    assert!(matches!(
        refused(&BootstrapperLiteral { iterations, ..bootstrap.clone() }),
        CircuitError::InputRing
    ));
    let full = BootstrapperLiteral { log_slots: 11, ..bootstrap.clone() };
    assert!(matches!(refused(&full), CircuitError::LogSlots { log_slots: 11, max: 10 }));
    let unknown = BootstrapperLiteral { input_log_n: Some(9), ..bootstrap.clone() };
    assert!(matches!(
        refused(&unknown),
        CircuitError::Ckks(CkksError::Rlwe(RlweError::NoRing { log_n: 9, .. }))
    ));
    let deep = BootstrapperLiteral { input_log_n: Some(10), slots_to_coeffs: 3, ..literal(9, Values::Real) };
    let error = refused(&deep);
    let as_said =
        matches!(&error, CircuitError::Ckks(CkksError::Rlwe(RlweError::Level { level: 3, max: 2, .. })));
    assert!(as_said, "{error}");
}
