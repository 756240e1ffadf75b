//! Ciphertexts in several rings: every operation in its ring, switches between them, errors within the derived
//! estimate.

use keywright_ckks::{
    Ciphertext, CkksError, CkksLiteral, CkksParameters, Complex64, Decryptor, Encryptor, Evaluator, Packing,
};
use keywright_ring::rotation_element;
use keywright_ring_testing::rng;
use keywright_rlwe::{EvaluationKeys, KeyElement, KeyGenerator, KeySpec, RlweError, SecretKey};
use proptest::prelude::*;

use crate::{largest, values};

/// Rings of degrees `2^13`, `2^12` to level 3, `2^10` to level 2. Not secure.
fn parameters() -> CkksParameters {
    let mut literal = CkksLiteral::from_bits(13, &[55, 40, 40, 40, 40], &[50, 50], 40.0).unwrap().insecure();
    literal.rlwe = literal.rlwe.with_subrings(&[(12, 3, None), (10, 2, None)]);
    CkksParameters::new(literal).unwrap()
}

struct Party {
    parameters: CkksParameters,
    secret: SecretKey,
    keys: EvaluationKeys,
}

impl Party {
    /// Keys for a rotation by 3 and for products in every ring, and for every switch between two.
    fn new() -> Self {
        let parameters = parameters();
        let rlwe = parameters.rlwe();
        let mut specs = Vec::new();
        for log_n in [13, 12, 10] {
            let ring = rlwe.ring_of_degree(log_n).unwrap();
            let spec = |element| KeySpec::new(ring, element, ring.max_level(), 1, true);
            specs.push(spec(KeyElement::Relinearization));
            specs.push(spec(KeyElement::Galois(rotation_element(log_n, 3))));
            for other in [13, 12, 10] {
                specs.extend(KeyElement::ring_down(other, log_n).map(spec));
                specs.extend((other < log_n).then(|| spec(KeyElement::RingUp { from: other })));
            }
        }
        let secret = SecretKey::sample(rlwe, &mut rng(1)).unwrap();
        let keys = KeyGenerator::new(&secret, rng(2)).evaluation_keys(&specs).unwrap();
        Self { parameters, secret, keys }
    }

    fn evaluator(&self) -> Evaluator<'_> {
        Evaluator::new(&self.parameters, &self.keys).unwrap()
    }

    /// A fresh encryption in a ring.
    fn encrypt(&self, values: &[f64], log_slots: u32, log_n: u32, level: usize, byte: u8) -> Ciphertext {
        let ring = self.parameters.ring_of_degree(log_n).unwrap();
        let public = KeyGenerator::new(self.secret.ring_of_degree(log_n).unwrap(), rng(3)).public_key();
        let encryptor = Encryptor::new(ring, &public, rng(byte)).unwrap();
        let mut encryptor = encryptor.declaring(largest(values.iter().copied()));
        encryptor.encrypt_real(values, Packing::Slots { log_slots }, level).unwrap()
    }

    /// The error of a ciphertext, within its own estimate.
    fn check(&self, what: &str, ciphertext: &Ciphertext, expected: &[f64]) {
        let seen = Decryptor::new(&self.parameters, &self.secret).unwrap().decrypt(ciphertext).unwrap();
        assert_eq!(seen.len(), expected.len(), "{what}");
        let off = |(a, &b): (&Complex64, &f64)| (a - Complex64::new(b, 0.0)).norm();
        let error = seen.iter().zip(expected).map(off).fold(0.0, f64::max);
        let estimate = ciphertext.estimate;
        let bound = ciphertext.error_bound();
        assert!(error <= bound, "{what}: error {error:e} above {bound:e}");
        assert!(error >= estimate.deviation / 8.0, "{what}: error {error:e} suspiciously below {bound:e}");
    }
}

fn rolled(values: &[f64], steps: usize) -> Vec<f64> {
    [&values[steps..], &values[..steps]].concat()
}

fn products(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a * b).collect()
}

/// Down through two rings with an operation in each, and up again.
#[test]
fn a_computation_passes_through_the_rings() {
    let party = Party::new();
    let evaluator = party.evaluator();
    let (x, y) = (values(512, 5), values(512, 6));
    let a = evaluator.drop_to_level(&party.encrypt(&x, 9, 13, 4, 20), 3).unwrap();
    let down = evaluator.switch_ring(&a, 12).unwrap();
    assert_eq!((down.parameters.rlwe().n(), down.level(), down.scale), (4096, 3, a.scale));
    party.check("down to 2^12", &down, &x);
    let in_12 = evaluator.of(&down).unwrap();
    let b = party.encrypt(&y, 9, 12, 3, 21);
    let product = in_12.multiply(&down, &b).unwrap();
    let xy = products(&x, &y);
    party.check("product at 2^12", &product, &xy);
    let rotated = in_12.rotate(&product, 3).unwrap();
    party.check("rotation at 2^12", &rotated, &rolled(&xy, 3));
    let least = evaluator.switch_ring(&rotated, 10).unwrap();
    party.check("down to 2^10", &least, &rolled(&xy, 3));
    let in_10 = evaluator.of(&least).unwrap();
    let square = in_10.square(&least).unwrap();
    let expected = products(&rolled(&xy, 3), &rolled(&xy, 3));
    party.check("square at 2^10", &square, &expected);
    let rotated = in_10.rotate(&square, 3).unwrap();
    party.check("rotation at 2^10", &rotated, &rolled(&expected, 3));
    for log_n in [12, 13] {
        let up = evaluator.switch_ring(&rotated, log_n).unwrap();
        assert_eq!((up.parameters.rlwe().log_n(), up.level()), (log_n, rotated.level()));
        party.check("up", &up, &rolled(&expected, 3));
        party.check(
            "rotation after it",
            &evaluator.of(&up).unwrap().rotate(&up, 3).unwrap(),
            &rolled(&expected, 6),
        );
    }
    // Both decrypting and encrypting in a ring.
    let symmetric = Decryptor::new(&party.parameters, &party.secret).unwrap();
    let symmetric = symmetric.declaring(largest(x.iter().copied())).in_ring(10).unwrap();
    let fresh = symmetric.encrypt_real(&x, Packing::Slots { log_slots: 9 }, 2, &mut rng(30)).unwrap();
    party.check("symmetric", &fresh.expand(), &x);
}

#[test]
fn rings_are_not_mixed() {
    let party = Party::new();
    let evaluator = party.evaluator();
    let a = party.encrypt(&values(64, 5), 6, 13, 2, 20);
    let b = party.encrypt(&values(64, 5), 6, 12, 2, 20);
    let mixed = |error: CkksError| {
        matches!(error, CkksError::Rlwe(RlweError::MixedRings { .. }))
            && error.to_string().contains("switch_ring")
    };
    assert!(mixed(evaluator.add(&a, &b).unwrap_err()));
    assert!(mixed(evaluator.of(&b).unwrap().multiply(&b, &a).unwrap_err()));
    let full = party.encrypt(&values(4096, 5), 12, 13, 2, 20);
    assert!(matches!(evaluator.switch_ring(&full, 12), Err(CkksError::PackingMismatch { .. })));
    let high = party.encrypt(&values(64, 5), 6, 13, 4, 20);
    let refused = evaluator.switch_ring(&high, 12).unwrap_err();
    assert!(matches!(refused, CkksError::Rlwe(RlweError::Level { level: 4, max: 3, .. })), "{refused}");
    let refused = evaluator.switch_ring(&a, 11).unwrap_err();
    assert!(matches!(refused, CkksError::Rlwe(RlweError::NoRing { log_n: 11, .. })), "{refused}");
    let lazy = evaluator.multiply_lazy(&a, &a).unwrap();
    assert!(matches!(evaluator.switch_ring(&lazy, 12), Err(CkksError::Degree { .. })));
    let stranger = CkksParameters::preset("N13_QP214_S38").unwrap();
    let foreign = Ciphertext { parameters: stranger, ..a };
    assert!(matches!(
        evaluator.switch_ring(&foreign, 12),
        Err(CkksError::Rlwe(RlweError::MixedParameters { .. }))
    ));
    let keyless = EvaluationKeys::new(party.parameters.rlwe());
    let without = Evaluator::new(&party.parameters, &keyless).unwrap();
    for (c, log_n) in [(&b, 10), (&b, 13)] {
        let refused = without.switch_ring(c, log_n).unwrap_err();
        assert!(matches!(refused, CkksError::Rlwe(RlweError::MissingKey { level: 2, .. })), "{refused}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// More slots repeat the same values, fewer are their means; a ciphertext read wide can be switched down narrow.
    #[test]
    fn views_repeat_values_and_see_through_repetitions(log_slots in 3u32..=8, wider in 1u32..=3, byte: u8) {
        let party = Party::new();
        let evaluator = party.evaluator();
        let x = values(1 << log_slots, byte);
        let repeated = x.repeat(1 << wider);
        let a = party.encrypt(&repeated, log_slots + wider, 13, 2, byte);
        let narrow = evaluator.view_slots(&a, log_slots)?;
        prop_assert_eq!(narrow.estimate, a.estimate);
        let seen = Decryptor::new(&party.parameters, &party.secret)?.decrypt_real(&narrow)?;
        for (seen, x) in seen.iter().zip(&x) {
            prop_assert!((seen - x).abs() <= narrow.estimate.bound());
        }
        let down = evaluator.switch_ring(&narrow, 10)?;
        let square = evaluator.of(&down)?.square(&down)?;
        let wide = evaluator.view_slots(&square, 9)?;
        party.check("square seen wide", &wide, &products(&x, &x).repeat(1 << (9 - log_slots)));
        let too_wide = matches!(evaluator.view_slots(&square, 10), Err(CkksError::PackingMismatch { .. }));
        prop_assert!(too_wide);
        // Slots that differ are read as their means.
        let y = values(2 << log_slots, byte ^ 1);
        let b = party.encrypt(&y, log_slots + 1, 13, 2, byte);
        let means: Vec<f64> = y[..1 << log_slots].iter().zip(&y[1 << log_slots..]).map(|(a, b)| (a + b) / 2.0).collect();
        let seen = Decryptor::new(&party.parameters, &party.secret)?.decrypt_real(&evaluator.view_slots(&b, log_slots)?)?;
        for (seen, mean) in seen.iter().zip(&means) {
            prop_assert!((seen - mean).abs() <= b.estimate.bound());
        }
    }
}
