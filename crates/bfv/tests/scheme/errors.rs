use keywright_bfv::{BfvError, preset};
use keywright_rlwe::{KeyIdentity, ParametersLiteral, RlweError};

use super::*;

#[test]
fn plaintext_moduli_out_of_range_are_refused() {
    let literal = |q: &[u32], t| BfvLiteral {
        plaintext_modulus: t,
        rlwe: ParametersLiteral {
            security: Security::InsecureForExperiments,
            ..ParametersLiteral::from_bits(10, q, &[]).unwrap()
        },
    };
    for t in [0, 1, 1 << 60, u64::MAX] {
        let refused = BfvParameters::new(literal(&[61], t));
        assert!(matches!(refused, Err(BfvError::PlaintextModulus { value, .. }) if value == t), "{t}");
    }
    let smallest = literal(&[61, 30], 2).rlwe.q[1];
    let refused = BfvParameters::new(literal(&[61, 30], smallest)).unwrap_err();
    assert_eq!(refused, BfvError::PlaintextModulus { value: smallest, smallest });
    assert!(refused.to_string().contains(&smallest.to_string()));
    // Below the prime it is a legal modulus, but no fresh ciphertext would decrypt.
    assert!(BfvParameters::new(literal(&[61, 30], smallest - 1)).is_ok());
}

#[test]
fn values_out_of_range_are_refused() {
    let parameters = parameters(10, &[45], &[], 257);
    for packing in [Packing::Coefficients, Packing::Slots] {
        for value in [257, -129, i64::MAX, i64::MIN] {
            let expected = BfvError::Value { index: 2, value, min: -128, max: 256 };
            let refused = match packing {
                Packing::Coefficients => parameters.encode(&[0, 1, value], packing),
                // 257 is not 1 modulo 2048.
                Packing::Slots => {
                    let refused = parameters.encode(&[0], packing).unwrap_err();
                    assert_eq!(refused, BfvError::NoSlots { modulus: 257, two_n: 2048 });
                    continue;
                }
            };
            assert_eq!(refused.unwrap_err(), expected);
            assert!(parameters.encode_scalar(value, packing).is_err());
        }
    }
    let refused = parameters.encode(&[0; 1025], Packing::Coefficients).unwrap_err();
    assert_eq!(refused, BfvError::TooManyValues { count: 1025, max: 1024 });
}

#[test]
fn nothing_of_two_owners_is_combined_or_decrypted() {
    let alice = Party::new(parameters(10, &[45, 45], &[45], 65537), &[1]);
    let mut bob = Party::new(parameters(10, &[45, 45], &[45], 65537), &[]);
    bob.secret = SecretKey::sample(bob.parameters.rlwe(), &mut rng(77)).unwrap();
    let (a, b) = (alice.encrypt(&[1], Packing::Slots), bob.encrypt(&[1], Packing::Slots));
    let (left_key, right_key) = (alice.secret.identity(), bob.secret.identity());
    let mismatch = |error: BfvError| {
        matches!(error, BfvError::Rlwe(RlweError::KeyMismatch { left_key: left, right_key: right, .. })
            if (left, right) == (left_key, right_key))
    };
    assert!(mismatch(alice.decryptor().decrypt(&b).unwrap_err()));
    assert!(mismatch(alice.decryptor().noise_budget(&b).unwrap_err()));
    assert!(mismatch(alice.evaluator().rotate_rows(&b, 1).unwrap_err()));
    assert!(mismatch(alice.evaluator().multiply(&a, &b).unwrap_err()));
    let none = EvaluationKeys::new(alice.parameters.rlwe());
    let evaluator = Evaluator::new(&alice.parameters, &none).unwrap();
    assert!(mismatch(evaluator.add(&a, &b).unwrap_err()));
    assert_eq!(alice.evaluator().rotate_rows(&a, 1).unwrap().key(), left_key);
}

#[test]
fn operands_that_do_not_fit_are_refused() {
    let party = Party::new(parameters(10, &[45, 45], &[45], 65537), &[]);
    let other = Party::new(parameters(10, &[45, 45], &[45], 12289), &[]);
    let evaluator = party.evaluator();
    let a = party.encrypt(&[1], Packing::Slots);
    let b = other.encrypt(&[1], Packing::Slots);
    let c = party.encrypt(&[1], Packing::Coefficients);
    let mixed = BfvError::MixedPlaintextModuli { left: 65537, right: 12289 };
    assert_eq!(evaluator.add(&a, &b).unwrap_err(), mixed);
    assert_eq!(evaluator.multiply(&b, &a).unwrap_err(), mixed);
    assert_eq!(party.decryptor().decrypt(&b).unwrap_err(), mixed);
    assert_eq!(party.decryptor().noise_budget(&b).unwrap_err(), mixed);
    let plain = other.parameters.encode(&[1], Packing::Slots).unwrap();
    assert_eq!(evaluator.multiply_plain(&a, &plain).unwrap_err(), mixed);
    assert!(matches!(evaluator.add(&a, &c), Err(BfvError::PackingMismatch { .. })));
    assert!(matches!(evaluator.rotate_rows(&c, 1), Err(BfvError::PackingMismatch { .. })));
    let missing = evaluator.rotate_rows(&a, 1).unwrap_err();
    assert!(matches!(missing, BfvError::Rlwe(RlweError::MissingKey { .. })), "{missing}");
    let public = KeyGenerator::new(&party.secret, rng(3)).public_key();
    let mut encryptor = Encryptor::new(&party.parameters, &public, rng(4)).unwrap();
    assert_eq!(encryptor.encrypt(&plain, 1).unwrap_err(), mixed);
    let plain = party.parameters.encode(&[1], Packing::Slots).unwrap();
    let bottom = encryptor.encrypt(&plain, 0).unwrap();
    let refused = evaluator.mod_switch(&bottom).unwrap_err();
    assert_eq!(refused, BfvError::LastPrime);
    assert!(refused.to_string().contains("at level 0 one prime is left"), "{refused}");
    assert!(matches!(encryptor.encrypt(&plain, 2), Err(BfvError::Rlwe(RlweError::Level { .. }))));
    let other_ring = parameters(11, &[45, 45], &[45], 65537);
    assert!(matches!(Encryptor::new(&other_ring, &public, rng(4)), Err(BfvError::Rlwe(_))));
}

#[test]
fn a_foreign_secret_is_noticed_without_an_identity() {
    let party = Party::new(parameters(10, &[45, 45], &[45], 65537), &[]);
    let foreign = SecretKey::sample(party.parameters.rlwe(), &mut rng(77)).unwrap();
    let mut a = party.encrypt(&random(1024, 65537, 40), Packing::Slots);
    a.rlwe.key = KeyIdentity::UNKNOWN;
    let decryptor = Decryptor::new(&party.parameters, &foreign).unwrap();
    assert_eq!(decryptor.decrypt(&a).unwrap_err(), BfvError::NoiseOverflow);
    assert!(decryptor.noise_budget(&a).unwrap() < 0.1);
}

#[test]
fn a_level_too_small_for_the_plaintext_modulus_is_refused() {
    let party = Party::new(parameters(10, &[45, 45], &[45], 1 << 40), &[]);
    let plain = party.parameters.encode(&[1], Packing::Coefficients).unwrap();
    let public = KeyGenerator::new(&party.secret, rng(3)).public_key();
    let mut encryptor = Encryptor::new(&party.parameters, &public, rng(4)).unwrap();
    let refused = encryptor.encrypt(&plain, 0).unwrap_err();
    assert!(matches!(refused, BfvError::NoiseExhausted { operation: "encrypt", .. }), "{refused}");
    let a = encryptor.encrypt(&plain, 1).unwrap();
    assert!(matches!(party.evaluator().mod_switch(&a), Err(BfvError::NoiseExhausted { .. })));
}

#[test]
fn unknown_presets_list_the_known() {
    let error = preset("N13").unwrap_err().to_string();
    assert!(error.contains("N13_QP214_T20"), "{error}");
}
