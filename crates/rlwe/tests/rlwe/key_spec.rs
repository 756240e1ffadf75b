//! Choice of keys, and the meaning of elements.
use keywright_ring::{RingError, sampling::SecretRng};
use keywright_rlwe::{
    KeyElement, KeyGenerator, KeyIdentity, KeyRow, KeySpec, Parameters, ParametersLiteral, RlweError,
    SecretKey, SwitchingKey, UniformPart,
};

#[test]
fn best_alpha_makes_the_fewest_transforms_and_is_legal_at_every_level() {
    let literal = ParametersLiteral::from_bits(13, &[40, 30, 30, 30], &[42]).unwrap();
    let parameters = Parameters::new(literal).unwrap();
    for level in 0..=parameters.max_level() {
        let cost = |alpha| {
            let spec = KeySpec::new(&parameters, KeyElement::Relinearization, level, alpha, true);
            spec.validate(&parameters).ok().map(|digits| (digits.len() + 2) * spec.primes().count())
        };
        let best = KeySpec::best_alpha(&parameters, level);
        assert_eq!(cost(best), (1..=level + 1).filter_map(cost).min(), "level {level}, alpha {best}");
    }
}

#[test]
fn rotation_steps_invert_rotation_elements() {
    for steps in [0, 1, -1, 5, 512, -511] {
        let element = KeyElement::Galois(keywright_ring::rotation_element(11, steps));
        assert_eq!(element.rotation_steps(11), Some(steps));
    }
    let (mut power, order) = (1, 1 << 9);
    for steps in 0..order {
        let expected = if steps > order / 2 { steps - order } else { steps };
        assert_eq!(KeyElement::Galois(power).rotation_steps(10), Some(expected));
        power = power * 5 % (2 << 10);
    }
    for none in [0, 2, 3, 7, 2047, 2049, u64::MAX] {
        assert_eq!(KeyElement::Galois(none).rotation_steps(10), None, "{none}");
    }
    for log_n in [0, 1, 9, 18, 30, 62, 63, 64, 127, 255, u32::MAX] {
        assert_eq!(KeyElement::Galois(7).rotation_steps(log_n), None, "{log_n}");
    }
    assert_eq!(KeyElement::Galois((2 << 11) - 1).rotation_steps(11), None);
    assert_eq!(KeyElement::Relinearization.rotation_steps(11), None);
}

#[test]
fn specs_that_no_key_can_have_are_refused_wherever_they_come_in() {
    let literal = ParametersLiteral::from_bits(13, &[40, 30, 30, 30], &[42]).unwrap();
    let parameters = Parameters::new(literal).unwrap();
    let secret = SecretKey::sample(&parameters, &mut SecretRng::from_entropy(&[1; 32].into())).unwrap();
    let mut generator = KeyGenerator::new(&secret, SecretRng::from_entropy(&[2; 32].into()));
    let good = KeySpec::new(&parameters, KeyElement::Galois(5), 3, 1, true);
    let refused = |spec: KeySpec, expected: &dyn Fn(&RlweError) -> bool| {
        let seed = UniformPart::Seeded(keywright_ring::Seed([0; 32]));
        for error in [
            spec.validate(&parameters).unwrap_err(),
            spec.bytes(&parameters).unwrap_err(),
            parameters.switch_plan(&spec, 0, 1, false).unwrap_err(),
            SwitchingKey::from_parts(
                &parameters,
                KeyIdentity::UNKNOWN,
                spec.clone(),
                Vec::<KeyRow>::new(),
                seed,
            )
            .unwrap_err(),
        ] {
            assert!(expected(&error), "{spec:?}: {error}");
        }
    };
    for element in [0, 4, 2 << 13, u64::MAX] {
        let spec = KeySpec { element: KeyElement::Galois(element), ..good.clone() };
        refused(spec, &|e| matches!(e, RlweError::Ring(RingError::GaloisElement { .. })));
    }
    refused(KeySpec { level: usize::MAX, ..good.clone() }, &|e| matches!(e, RlweError::Level { max: 3, .. }));
    refused(KeySpec { alpha: 0, ..good.clone() }, &|e| matches!(e, RlweError::Count { count: 0, .. }));
    refused(KeySpec { alpha: 5, ..good.clone() }, &|e| {
        matches!(e, RlweError::Count { count: 5, max: 4, .. })
    });
    for index in [0, 3, 5, usize::MAX] {
        let spec = KeySpec { special: vec![index], ..good.clone() };
        refused(spec, &|e| matches!(e, RlweError::SpecialPrime { level: 3, .. }));
    }
    let none = KeySpec { special: Vec::new(), ..good.clone() };
    refused(none, &|e| matches!(e, RlweError::SpecialTooSmall { index: 0, .. }));
    let error = generator.switching_key(&KeySpec { element: KeyElement::Secret(7), ..good }).unwrap_err();
    assert_eq!(error, RlweError::SourceSecret(7));
    assert!(matches!(parameters.widths().digits(4, 1, 42.0), Err(RlweError::Level { level: 4, max: 3, .. })));
    assert!(matches!(parameters.widths().digits(3, 0, 42.0), Err(RlweError::Count { count: 0, .. })));
}
