//! Choice of keys, and what elements stand for.
#![expect(clippy::unwrap_used, reason = "tests")]

use keywright_rlwe::{KeyElement, KeySpec, Parameters, ParametersLiteral};

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
    assert_eq!(KeyElement::Galois((2 << 11) - 1).rotation_steps(11), None);
    assert_eq!(KeyElement::Relinearization.rotation_steps(11), None);
}
