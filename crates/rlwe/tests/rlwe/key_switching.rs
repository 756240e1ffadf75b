//! Every kind of key switch against its definition, with the error within the derived bound.

use std::sync::Arc;

use keywright_ring::{galois_inverse, rotation_element};
use keywright_ring_testing::rng;
use keywright_rlwe::{
    Decomposed, EvaluationKeys, Finish, KeyElement, KeyGenerator, KeySpec, Parameters, ParametersLiteral,
    RlweCiphertext, RlweError, SecretKey, Security, SwitchingKey, decrypt, noise, raise_modulus,
};

use crate::fixture::{check_switch, insecure, switch, uniform};

/// A wide q_0, narrow primes, three special primes.
fn parameters(log_n: u32) -> Parameters {
    insecure(log_n, &[58, 45, 45, 45, 45, 45, 45, 45], &[50, 50, 50])
}

#[test]
fn every_level_alpha_and_special() {
    let parameters = parameters(11);
    let secret = SecretKey::sample(&parameters, &mut rng(1)).unwrap();
    let mut generator = KeyGenerator::new(&secret, rng(2));
    let rotation = KeyElement::Galois(rotation_element(11, 3));
    let mut cases = 0;
    for key_level in [0, 1, 3, 4, 7] {
        for alpha in 1..=4 {
            // Special primes of the parameters, and dropped ciphertext primes with or instead of them.
            let mut specials: Vec<Vec<usize>> = vec![vec![8, 9], vec![8, 9, 10]];
            specials.extend((key_level < 7).then(|| vec![8, 9, 7]));
            specials.extend((key_level < 5).then(|| vec![6, 7]));
            for special in specials {
                for (element, seeded) in [(rotation, true), (KeyElement::Relinearization, false)] {
                    let spec = KeySpec {
                        element,
                        level: key_level,
                        alpha,
                        special: special.clone(),
                        seeded,
                        subring: None,
                    };
                    if spec.alpha > (key_level + 1).max(special.len()) {
                        assert!(matches!(spec.validate(&parameters), Err(RlweError::Count { .. })));
                        continue;
                    }
                    let key = generator.switching_key(&spec).unwrap();
                    assert_eq!(key.bytes(), spec.bytes(&parameters).unwrap());
                    for level in 0..=key_level {
                        check_switch(&secret, &key, level, 1, None);
                        cases += 1;
                    }
                }
            }
        }
    }
    assert!(cases > 200, "{cases}");
}

#[test]
fn coalesced_rows_serve_coarser_digits() {
    let parameters = parameters(11);
    let secret = SecretKey::sample(&parameters, &mut rng(3)).unwrap();
    let mut generator = KeyGenerator::new(&secret, rng(4));
    for element in [KeyElement::Galois(rotation_element(11, -7)), KeyElement::Relinearization] {
        let spec = KeySpec { element, level: 7, alpha: 1, special: vec![8, 9], seeded: true, subring: None };
        let key = generator.switching_key(&spec).unwrap();
        let mut used = 0;
        for level in 0..=7 {
            for coalesce in 2..=8 {
                let plan = parameters.switch_plan(&spec, level, coalesce, false);
                let Ok(plan) = plan else { continue };
                assert_eq!(plan.layout.digits.len(), (level + 1).div_ceil(coalesce));
                check_switch(&secret, &key, level, coalesce, None);
                used += usize::from(plan.mod_down.removed.len() > 2);
            }
        }
        assert!(used >= 4, "only {used} uses merged dropped primes");
        // Nothing is dropped at the top, so three primes do not fit two special ones.
        assert!(matches!(parameters.switch_plan(&spec, 7, 3, false), Err(RlweError::KeyUse { .. })));
    }
}

/// A key of one prime per row with two rows for a digit, and one of two primes per row, have the same digits. They
/// share the plan, and with it decompositions, and each still takes its own rows.
#[test]
fn keys_of_different_rows_share_a_plan() {
    let parameters = parameters(11);
    let secret = SecretKey::sample(&parameters, &mut rng(5)).unwrap();
    let mut generator = KeyGenerator::new(&secret, rng(6));
    let element = KeyElement::Galois(rotation_element(11, 5));
    let mut key = |alpha| {
        let spec = KeySpec { element, level: 7, alpha, special: vec![8, 9, 10], seeded: true, subring: None };
        generator.switching_key(&spec).unwrap()
    };
    let (fine, coarse) = (key(1), key(2));
    for level in [3, 5] {
        let plan = |key: &SwitchingKey, coalesce| {
            parameters.switch_plan(key.spec(), level, coalesce, false).unwrap()
        };
        assert!(Arc::ptr_eq(&plan(&fine, 2), &plan(&coarse, 1)));
        check_switch(&secret, &fine, level, 2, None);
        check_switch(&secret, &coarse, level, 1, None);
    }
}

#[test]
fn a_set_without_coalescing_uses_keys_with_their_own_digits() {
    let parameters = parameters(11);
    let secret = SecretKey::sample(&parameters, &mut rng(3)).unwrap();
    let element = KeyElement::Relinearization;
    let spec = KeySpec { element, level: 7, alpha: 1, special: vec![8, 9], seeded: true, subring: None };
    let mut keys = EvaluationKeys::new(&parameters);
    keys.insert(KeyGenerator::new(&secret, rng(4)).switching_key(&spec).unwrap()).unwrap();
    assert!(keys.uses(element, 3, false).any(|key_use| key_use.coalesce > 1));
    let keys = keys.without_coalescing();
    for level in 0..=7 {
        let counts: Vec<usize> = keys.uses(element, level, false).map(|key_use| key_use.coalesce).collect();
        assert_eq!(counts, [1], "level {level}");
    }
}

#[test]
fn truncation_is_generation_at_the_lower_level() {
    let parameters = parameters(11);
    let secret = SecretKey::sample(&parameters, &mut rng(5)).unwrap();
    let mut generator = KeyGenerator::new(&secret, rng(6));
    for seeded in [false, true] {
        let spec = KeySpec {
            element: KeyElement::Relinearization,
            level: 7,
            alpha: 2,
            special: vec![8, 9, 10],
            seeded,
            subring: None,
        };
        let key = generator.switching_key(&spec).unwrap();
        for level in 0..7 {
            let cut = key.truncate(level).unwrap();
            assert_eq!(cut.bytes(), cut.spec().bytes(&parameters).unwrap());
            let c = uniform(&parameters, level, 77);
            assert_eq!(switch(&cut, &c, 1).unwrap(), switch(&key, &c, 1).unwrap());
        }
        assert!(matches!(key.truncate(8), Err(RlweError::Level { level: 8, max: 7, .. })));
    }
}

#[test]
fn hoisted_is_the_same_as_one_by_one() {
    let parameters = parameters(12);
    let secret = SecretKey::sample(&parameters, &mut rng(7)).unwrap();
    let mut generator = KeyGenerator::new(&secret, rng(8));
    let keys: Vec<_> = [1, 2, -5]
        .iter()
        .map(|&k| {
            let element = KeyElement::Galois(rotation_element(12, k));
            generator.switching_key(&KeySpec::new(&parameters, element, 7, 3, k > 0)).unwrap()
        })
        .collect();
    let c = uniform(&parameters, 6, 9);
    let plan = parameters.switch_plan(keys[0].spec(), 6, 1, false).unwrap();
    let decomposed = Decomposed::new(&parameters, plan, &c).unwrap();
    let rows: Vec<_> = keys.iter().map(|k| (k, decomposed.rows_of(k, 1).unwrap())).collect();
    let automorphisms: Vec<_> = keys
        .iter()
        .map(|k| match k.spec().element {
            KeyElement::Galois(g) => parameters.automorphism(g).unwrap(),
            _ => unreachable!(),
        })
        .collect();
    let finish: Vec<_> =
        automorphisms.iter().map(|a| Finish { addend: [None, None], automorphism: Some(a) }).collect();
    for (key, out) in keys.iter().zip(decomposed.switch(&rows, &finish)) {
        assert_eq!(out, switch(key, &c, 1).unwrap());
    }
    let other =
        generator.switching_key(&KeySpec::new(&parameters, KeyElement::Relinearization, 7, 2, true)).unwrap();
    assert!(matches!(decomposed.rows_of(&other, 1), Err(RlweError::KeyUse { .. })));
}

#[test]
fn secret_to_secret_and_full_size() {
    let mut literal =
        ParametersLiteral::from_bits(16, &[60, 50, 50, 50, 50, 50, 50, 50], &[50, 50, 50, 50, 50]).unwrap();
    literal.security = Security::Classical128;
    let parameters = Parameters::new(literal).unwrap();
    let (secret, other) = (
        SecretKey::sample(&parameters, &mut rng(9)).unwrap(),
        SecretKey::sample(&parameters, &mut rng(10)).unwrap(),
    );
    let mut generator = KeyGenerator::new(&secret, rng(11));
    let spec = KeySpec::new(&parameters, KeyElement::Secret(1), 7, 5, true);
    let key = generator.switching_key_from(&other, 1, &spec).unwrap();
    // q_0 has 60 bits, so the first digit holds four primes.
    assert_eq!(key.digits(), &[0..4, 4..8]);
    check_switch(&secret, &key, 7, 1, Some(&other));
    check_switch(&secret, &key, 2, 1, Some(&other));
    assert!(generator.switching_key(&spec).is_err());
}

#[test]
fn rescaling_can_be_merged() {
    let parameters = parameters(11);
    let secret = SecretKey::sample(&parameters, &mut rng(12)).unwrap();
    let mut generator = KeyGenerator::new(&secret, rng(13));
    let spec = KeySpec::new(&parameters, KeyElement::Relinearization, 7, 3, false);
    let key = generator.switching_key(&spec).unwrap();
    let ring = parameters.ring();
    for level in [1, 4, 7] {
        let c = uniform(&parameters, level, 21);
        let addend = [uniform(&parameters, level, 22), uniform(&parameters, level, 23)];
        let plan = parameters.switch_plan(&spec, level, 1, true).unwrap();
        let decomposed = Decomposed::new(&parameters, plan.clone(), &c).unwrap();
        let rows = decomposed.rows_of(&key, 1).unwrap();
        let finish = [Finish { addend: [Some(&addend[0]), Some(&addend[1])], automorphism: None }];
        let merged = decomposed.switch(&[(&key, rows)], &finish).remove(0);
        assert_eq!(merged.level(), level - 1);
        // q_level * merged - (switched + addend) is the rounding and the switch's own error.
        let mut whole = switch(&key, &c, 1).unwrap();
        let mut difference = RlweCiphertext { polys: merged.polys.clone(), key: merged.key };
        for half in 0..2 {
            for i in 0..level {
                let m = parameters.modulus(i);
                let w = m.shoup(m.reduce(parameters.modulus(level).value()));
                let out = difference.polys[half].limb_mut(i);
                ring.backend().mul_scalar_assign(m, out, w);
                ring.backend().add_assign(m, whole.polys[half].limb_mut(i), addend[half].limb(i));
                ring.backend().sub_assign(m, out, whole.polys[half].limb(i));
            }
        }
        let coefficients = decrypt(&secret, &difference, 1);
        let seen = coefficients
            .limb(0)
            .iter()
            .map(|&x| parameters.modulus(0).centered(x).unsigned_abs())
            .max()
            .unwrap() as f64;
        let q = parameters.modulus(level).value() as f64;
        let plain = parameters.switch_plan(&spec, level, 1, false).unwrap();
        let bound = q * noise::bound(noise::division(&parameters))
            + 2.0 * noise::bound(noise::key_switch(&parameters, &plain, &key));
        assert!(seen <= bound && seen >= bound / 6.0, "level {level}: {seen} against {bound}");
    }
}

#[test]
fn insecure_keys_are_refused() {
    let literal = ParametersLiteral::from_bits(13, &[50, 40, 40, 40], &[50]).unwrap();
    let parameters = Parameters::new(literal).unwrap();
    let spec = KeySpec::new(&parameters, KeyElement::Relinearization, 3, 1, true);
    let error = spec.validate(&parameters).unwrap_err();
    assert!(matches!(error, RlweError::Insecure { bound: 214, .. }), "{error}");
    assert!(error.to_string().contains("220.0"), "{error}");
    assert!(KeySpec { level: 2, ..spec }.validate(&parameters).is_ok());
    let too_big = ParametersLiteral::from_bits(13, &[50, 50, 50, 50, 50], &[50]).unwrap();
    assert!(matches!(Parameters::new(too_big), Err(RlweError::Insecure { .. })));
}

#[test]
fn missing_keys_are_named() {
    let parameters = parameters(11);
    let secret = SecretKey::sample(&parameters, &mut rng(14)).unwrap();
    let element = |k| KeyElement::Galois(rotation_element(11, k));
    let specs =
        [(1, 7), (4, 2), (-3, 5)].map(|(k, level)| KeySpec::new(&parameters, element(k), level, 2, true));
    let keys = KeyGenerator::new(&secret, rng(15)).evaluation_keys(&specs).unwrap();
    let error = keys.best(element(4), 3, false).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("rotation by 4) at level 3") && text.contains("rotation by 4 at level 2"),
        "{text}"
    );
    assert!(text.contains("rotation by 1 at level 7"), "{text}");
    assert!(keys.best(element(4), 2, false).is_ok());
    assert!(keys.best(KeyElement::Relinearization, 0, false).is_err());
    assert_eq!(galois_inverse(11, rotation_element(11, 3)), rotation_element(11, -3));
}

#[test]
fn raised_residues_are_those_of_the_centred_representative() {
    let parameters = parameters(11);
    let ring = parameters.ring();
    let q0 = parameters.modulus(0).value();
    let input = uniform(&parameters, 0, 30);
    let mut coefficients = input.limb(0).to_vec();
    ring.inverse_limb(0, &mut coefficients);
    for level in [0, 1, 7] {
        let raised = raise_modulus(&parameters, &input, level).unwrap();
        assert_eq!(raised.limb_count(), level + 1);
        assert_eq!(raised.limb(0), input.limb(0));
        for i in 1..=level {
            let m = parameters.modulus(i);
            let mut residues = raised.limb(i).to_vec();
            ring.inverse_limb(i, &mut residues);
            for (&residue, &c) in residues.iter().zip(&coefficients) {
                let centred = i128::from(parameters.modulus(0).centered(c));
                let allowed = |x: i128| x.rem_euclid(i128::from(m.value())) == i128::from(residue);
                // Within 2^-14 of the ends either representative is valid, see the documentation.
                let end = centred.unsigned_abs() as f64 > (0.5 - 1.0 / 16384.0) * q0 as f64;
                let other = centred - centred.signum() * i128::from(q0);
                assert!(allowed(centred) || (end && allowed(other)), "prime {i}: {c}");
            }
        }
    }
    assert!(matches!(raise_modulus(&parameters, &input, 8), Err(RlweError::Level { level: 8, max: 7, .. })));
}

#[test]
fn keys_of_an_ephemeral_secret_are_checked_against_its_bound() {
    let literal = ParametersLiteral::from_bits(16, &[60, 50, 50], &[60, 50]).unwrap();
    let parameters = Parameters::new(literal).unwrap();
    let spec = |special| KeySpec {
        element: KeyElement::DenseToSparse(32),
        level: 0,
        alpha: 1,
        special,
        seeded: true,
        subring: None,
    };
    assert!(spec(vec![3]).validate(&parameters).is_ok());
    let error = spec(vec![3, 4]).validate(&parameters).unwrap_err();
    assert!(matches!(error, RlweError::Insecure { bound: 121, .. }), "{error}");
    assert!(matches!(spec(vec![4]).validate(&parameters), Err(RlweError::SpecialTooSmall { .. })));
    let heavy = KeySpec { element: KeyElement::DenseToSparse(1 << 17), ..spec(vec![3]) };
    assert!(matches!(heavy.validate(&parameters), Err(RlweError::Count { .. })));
    // The switch back is under the main secret: one digit, and a special modulus above q_0.
    let back = KeySpec { element: KeyElement::SparseToDense(32), level: 2, ..spec(vec![3]) };
    let digits = back.validate(&parameters).unwrap();
    assert_eq!((digits.len(), &digits[0]), (1, &(0..3)));
    let small = KeySpec { special: vec![4], ..back };
    assert!(matches!(small.validate(&parameters), Err(RlweError::SpecialTooSmall { .. })));
}
