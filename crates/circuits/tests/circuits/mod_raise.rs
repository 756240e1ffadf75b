//! Raising the modulus: the decryption at the raised level is the message plus small multiples of `q_0`.

use crate::fixture::{Owner, Values, rng};
use keywright_circuits::CircuitError;
use keywright_circuits::bootstrapping::mod_raise::{ModRaisePlan, mod_raise};
use keywright_circuits::bootstrapping::range::integer_part_bound;
use keywright_ckks::{Ciphertext, CkksError, CkksLiteral, CkksParameters, Encryptor, Evaluator, Packing};
use keywright_rlwe::{
    EvaluationKeys, KeyElement, KeyGenerator, KeySpec, PublicKey, RlweError, SecretDistribution, SecretKey,
};

const WEIGHT: usize = 32;

fn parameters(q0_bits: u32, secret: SecretDistribution) -> CkksParameters {
    let q_bits = [&[q0_bits][..], &[45; 6]].concat();
    let mut literal = CkksLiteral::from_bits(11, &q_bits, &[q0_bits, 50], 40.0).unwrap().insecure();
    literal.rlwe.secret = secret;
    CkksParameters::new(literal).unwrap()
}

fn ephemeral_keys(owner: &Owner, plan: &ModRaisePlan, entropy: u8) -> EvaluationKeys {
    KeyGenerator::new(&owner.secret, rng(entropy)).evaluation_keys(&plan.key_specs()).unwrap()
}

fn encrypt(owner: &Owner, public: &PublicKey, values: &[f64], entropy: u8) -> Ciphertext {
    let mut encryptor = Encryptor::new(&owner.parameters, public, rng(entropy)).unwrap();
    encryptor.encrypt_real(values, Packing::Coefficients, 0).unwrap()
}

/// Largest integer part; every message must be within the estimate's bound.
fn check(owner: &Owner, plan: &ModRaisePlan, keys: &EvaluationKeys, entropy: u8) -> usize {
    let evaluator = Evaluator::new(&owner.parameters, keys).unwrap();
    let values = Values(u64::from(entropy)).reals(owner.parameters.rlwe().n());
    let input = encrypt(owner, &owner.public, &values, entropy);
    let out = mod_raise(&evaluator, plan, &input).unwrap();
    let q0 = owner.parameters.rlwe().modulus(0).value() as f64;
    assert_eq!((out.level(), out.scale, out.packing), (plan.level, q0, Packing::Coefficients));
    let decrypted: Vec<f64> = owner.decrypt_real(&out);
    let mut largest = 0.0f64;
    let mut seen = 0.0f64;
    for (x, value) in decrypted.iter().zip(&values) {
        let integer = x.round();
        largest = largest.max(integer.abs());
        seen = seen.max((x - integer - value * input.scale / q0).abs());
        assert!(x.abs() <= out.estimate.magnitude);
    }
    // The reference is exact to a unit of f64 at values up to K.
    assert!(seen <= out.estimate.bound() + 1e-14, "{seen:e} above {:e}", out.estimate.bound());
    assert!(seen >= out.estimate.bound() / 50.0, "{seen:e} far below {:e}", out.estimate.bound());
    largest as usize
}

#[test]
fn integer_parts_are_bounded_under_several_ephemeral_secrets() {
    let k = integer_part_bound(WEIGHT, 11, -40.0, 1e-3).unwrap();
    for q0_bits in [50, 58] {
        let owner = Owner::new(parameters(q0_bits, SecretDistribution::Ternary));
        for (entropy, level) in (10..16).zip([6, 6, 6, 3, 2, 1]) {
            let plan = ModRaisePlan::new(owner.parameters.rlwe(), level, Some(WEIGHT)).unwrap();
            let keys = ephemeral_keys(&owner, &plan, entropy);
            let largest = check(&owner, &plan, &keys, entropy);
            // Of 2^11 coefficients with deviation sqrt(32/12) one is beyond three deviations, almost surely.
            assert!((4..=k).contains(&largest), "{largest} {k}");
        }
    }
}

#[test]
fn one_key_serves_all_levels_below_its_own() {
    let owner = Owner::new(parameters(50, SecretDistribution::Ternary));
    let top = ModRaisePlan::new(owner.parameters.rlwe(), 6, Some(WEIGHT)).unwrap();
    let keys = ephemeral_keys(&owner, &top, 1);
    for level in 0..=6 {
        let plan = ModRaisePlan::new(owner.parameters.rlwe(), level, Some(WEIGHT)).unwrap();
        check(&owner, &plan, &keys, level as u8);
    }
    // A single digit for a single special prime, at any level.
    let spec = &top.key_specs()[1];
    let digits = spec.validate(owner.parameters.rlwe()).unwrap();
    assert_eq!((digits.len(), &digits[0]), (1, &(0..7)));
    assert_eq!(spec.bytes(owner.parameters.rlwe()).unwrap(), (((7 + spec.special.len()) * 8) << 11) + 32);
}

#[test]
fn a_sparse_main_secret_needs_no_keys() {
    let owner = Owner::new(parameters(50, SecretDistribution::Sparse { weight: 192 }));
    let plan = ModRaisePlan::new(owner.parameters.rlwe(), 6, None).unwrap();
    assert!(plan.key_specs().is_empty());
    let largest = check(&owner, &plan, &EvaluationKeys::new(owner.parameters.rlwe()), 3);
    assert!((8..=integer_part_bound(192, 11, -40.0, 1e-3).unwrap()).contains(&largest), "{largest}");
    // A dense secret makes integer parts far beyond those of weight 32.
    let dense = Owner::new(parameters(50, SecretDistribution::Ternary));
    let plan = ModRaisePlan::new(dense.parameters.rlwe(), 6, None).unwrap();
    assert!(check(&dense, &plan, &EvaluationKeys::new(dense.parameters.rlwe()), 3) > 16);
}

#[test]
fn the_key_to_a_sparse_secret_is_checked_as_one() {
    // 50 + 60 bits are secure at 2^16 for a weight of 32; 60 + 2 * 50 are not, nor is any modulus for a weight of 16.
    let literal = |q0, p: &[u32]| CkksLiteral::from_bits(16, &[q0, 50, 50], p, 45.0).unwrap();
    let secure = CkksParameters::new(literal(50, &[60])).unwrap();
    let plan = ModRaisePlan::new(secure.rlwe(), 2, Some(WEIGHT)).unwrap();
    assert_eq!(plan.key_specs().len(), 2);
    let refuse = |p: &CkksParameters, weight| ModRaisePlan::new(p.rlwe(), 2, Some(weight)).unwrap_err();
    let wide = CkksParameters::new(literal(60, &[50, 50])).unwrap();
    let error = refuse(&wide, WEIGHT);
    assert!(
        matches!(&error, CircuitError::Ckks(CkksError::Rlwe(RlweError::Insecure { bound: 121, log_qp, .. })) if *log_qp > 159.0),
        "{error}"
    );
    let error = refuse(&secure, 16);
    assert!(matches!(&error, CircuitError::Ckks(CkksError::Rlwe(RlweError::NoBound { .. }))), "{error}");
    // The dense secret's key at the same modulus is secure: the bound is that of the target secret.
    KeySpec::new(wide.rlwe(), KeyElement::Secret(1), 0, 1, true).validate(wide.rlwe()).unwrap();
    // At level 1 the key would exceed the bound.
    let higher = KeySpec { level: 1, ..plan.key_specs()[0].clone() };
    assert!(matches!(higher.validate(secure.rlwe()), Err(RlweError::Insecure { .. })));
}

#[test]
fn misuse_is_refused() {
    let owner = Owner::new(parameters(50, SecretDistribution::Ternary));
    let rlwe = owner.parameters.rlwe();
    let plan = ModRaisePlan::new(rlwe, 6, Some(WEIGHT)).unwrap();
    let keys = ephemeral_keys(&owner, &plan, 1);
    let evaluator = Evaluator::new(&owner.parameters, &keys).unwrap();
    let input = owner.encrypt_real(&[0.5; 8], 1);
    assert!(matches!(
        mod_raise(&evaluator, &plan, &input),
        Err(CircuitError::StageLevel { stage: "mod_raise", found: 1, expected: 0 })
    ));
    let input = owner.encrypt_real(&[0.5; 8], 0);
    for (missing, kept) in [(0, 1), (1, 0)] {
        let mut some = EvaluationKeys::new(rlwe);
        keys.iter()
            .filter(|key| key.spec() == &plan.key_specs()[kept])
            .for_each(|key| some.insert(key.clone()).unwrap());
        let error = mod_raise(&Evaluator::new(&owner.parameters, &some).unwrap(), &plan, &input).unwrap_err();
        let removed = plan.key_specs()[missing].element;
        assert!(
            matches!(&error, CircuitError::Ckks(CkksError::Rlwe(RlweError::MissingKey { element, .. })) if *element == removed),
            "{error}"
        );
    }
    assert!(matches!(
        ModRaisePlan::new(rlwe, 7, None),
        Err(CircuitError::Ckks(CkksError::Rlwe(RlweError::Level { level: 7, max: 6, .. })))
    ));
    assert!(matches!(
        ModRaisePlan::new(rlwe, 6, Some(0)),
        Err(CircuitError::Ckks(CkksError::Rlwe(RlweError::Count { count: 0, .. })))
    ));
    // The two keys share a secret that only their common maker knows.
    let secret = SecretKey::sample(rlwe, &mut rng(1)).unwrap();
    let mut generator = KeyGenerator::new(&secret, rng(2));
    let [to_sparse, to_dense] = &plan.key_specs()[..] else { panic!("two keys") };
    for spec in [to_sparse, to_dense] {
        assert!(matches!(generator.switching_key(spec), Err(RlweError::EphemeralSecret(_))));
    }
    let other = KeySpec { element: KeyElement::SparseToDense(31), ..to_dense.clone() };
    let refused = generator.switching_keys(&[to_sparse.clone(), other]).err();
    assert!(matches!(refused, Some(RlweError::EphemeralSecret(_))));
}
