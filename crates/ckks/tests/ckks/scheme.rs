//! The scheme end to end: every operation against its definition, with the error within the derived estimate.

use std::cell::Cell;

use keywright_ckks::encoder::EncoderError;
use keywright_ckks::{
    Ciphertext, CkksError, CkksLiteral, CkksParameters, Complex64, Decryptor, Encryptor, Evaluator, PRESETS,
    Packing,
};
use keywright_ring::rotation_element;
use keywright_ring_testing::rng;
use keywright_rlwe::{EvaluationKeys, KeyElement, KeyGenerator, KeySpec, RlweError, SecretKey, Security};

use crate::largest;

fn small() -> CkksParameters {
    CkksParameters::new(
        CkksLiteral::from_bits(11, &[55, 40, 40, 40, 40], &[50, 50], 40.0).unwrap().insecure(),
    )
    .unwrap()
}

struct Party {
    parameters: CkksParameters,
    secret: SecretKey,
    keys: EvaluationKeys,
    encryptions: Cell<u8>,
}

impl Party {
    fn new(parameters: CkksParameters, rotations: &[i64]) -> Self {
        let rlwe = parameters.rlwe();
        let secret = SecretKey::sample(rlwe, &mut rng(1)).unwrap();
        let log_n = rlwe.log_n();
        let elements = rotations
            .iter()
            .map(|&k| KeyElement::Galois(rotation_element(log_n, k)))
            .chain([KeyElement::Relinearization, KeyElement::Galois((2 << log_n) - 1)]);
        let specs: Vec<_> =
            elements.map(|element| KeySpec::new(rlwe, element, rlwe.max_level(), 2, true)).collect();
        let keys = KeyGenerator::new(&secret, rng(2)).evaluation_keys(&specs).unwrap();
        Self { parameters, secret, keys, encryptions: Cell::new(100) }
    }

    fn encrypt(&self, values: &[Complex64], log_slots: u32) -> Ciphertext {
        let public = KeyGenerator::new(&self.secret, rng(3)).public_key();
        // Two messages have independent errors.
        let randomness = rng(self.encryptions.replace(self.encryptions.get().wrapping_add(1)));
        let encryptor = Encryptor::new(&self.parameters, &public, randomness).unwrap();
        let mut encryptor = encryptor.declaring(largest(values.iter().map(|v| v.norm())));
        encryptor.encrypt(values, log_slots, self.parameters.max_level()).unwrap()
    }

    /// Decrypts and compares with the expected values, within the ciphertext's own estimate.
    fn check(&self, what: &str, ciphertext: &Ciphertext, expected: &[Complex64]) {
        let seen = Decryptor::new(&self.parameters, &self.secret).unwrap().decrypt(ciphertext).unwrap();
        assert_eq!(seen.len(), expected.len());
        let error = seen.iter().zip(expected).map(|(a, b)| (a - b).norm()).fold(0.0, f64::max);
        let bound = ciphertext.error_bound();
        assert!(error <= bound, "{what}: error {error:e} above {bound:e}");
        if expected.len() >= 512 {
            // The bound is not vacuous. Among this many values some errors reach several of their own deviations, and
            // the estimate adds the deviations that may depend on each other.
            assert!(
                error >= ciphertext.estimate.deviation / 4.0,
                "{what}: error {error:e} suspiciously below {bound:e}"
            );
        }
        let magnitude = expected.iter().map(|v| v.norm()).fold(0.0, f64::max);
        assert!(magnitude <= ciphertext.estimate.magnitude * (1.0 + 1e-9), "{what}: magnitude {magnitude}");
    }
}

fn values(count: usize, byte: u8) -> Vec<Complex64> {
    let mut rng = rng(byte);
    let mut unit = || rng.next_word() as f64 / 2f64.powi(63) - 1.0;
    (0..count).map(|_| Complex64::new(unit(), unit())).collect()
}

fn map2(a: &[Complex64], b: &[Complex64], f: impl Fn(Complex64, Complex64) -> Complex64) -> Vec<Complex64> {
    a.iter().zip(b).map(|(&x, &y)| f(x, y)).collect()
}

#[test]
fn arithmetic_at_every_packing() {
    let party = Party::new(small(), &[1, 3, -2]);
    let evaluator = Evaluator::new(&party.parameters, &party.keys).unwrap();
    for log_slots in 0..=party.parameters.max_log_slots() {
        let n = 1 << log_slots;
        let (x, y) = (values(n, 5), values(n, 6));
        let (a, b) = (party.encrypt(&x, log_slots), party.encrypt(&y, log_slots));
        party.check("encrypt", &a, &x);
        party.check("add", &evaluator.add(&a, &b).unwrap(), &map2(&x, &y, |x, y| x + y));
        party.check("sub", &evaluator.sub(&a, &b).unwrap(), &map2(&x, &y, |x, y| x - y));
        party.check("neg", &evaluator.neg(&a).unwrap(), &map2(&x, &y, |x, _| -x));
        let product = evaluator.multiply(&a, &b).unwrap();
        assert_eq!(product.level(), party.parameters.max_level() - 1);
        party.check("multiply", &product, &map2(&x, &y, |x, y| x * y));
        party.check("square", &evaluator.square(&a).unwrap(), &map2(&x, &y, |x, _| x * x));
        party.check("conjugate", &evaluator.conjugate(&a).unwrap(), &map2(&x, &y, |x, _| x.conj()));
        party.check("times i", &evaluator.multiply_by_i(&a).unwrap(), &map2(&x, &y, |x, _| x * Complex64::I));
        for steps in [1i64, 3, -2, 0] {
            let expected: Vec<_> =
                (0..n).map(|i| x[(i as i64 + steps).rem_euclid(n as i64) as usize]).collect();
            // In a sparse packing a rotation acts modulo the number of slots, and needs that rotation's key.
            match evaluator.rotate(&a, steps) {
                Ok(rotated) => party.check("rotate", &rotated, &expected),
                Err(CkksError::Rlwe(RlweError::MissingKey { .. })) => {
                    assert!(log_slots < party.parameters.max_log_slots())
                }
                Err(other) => panic!("{other}"),
            }
        }
        // Degree 2 stays usable: a sum of products needs one relinearization.
        let lazy = evaluator
            .add(&evaluator.multiply_lazy(&a, &b).unwrap(), &evaluator.multiply_lazy(&a, &a).unwrap())
            .unwrap();
        assert_eq!(lazy.degree(), 2);
        let expected = map2(&x, &y, |x, y| x * y + x * x);
        party.check("degree 2", &lazy, &expected);
        party.check("degree 2, rescaled", &evaluator.rescale(&lazy).unwrap(), &expected);
        party.check("relinearize", &evaluator.relinearize(&lazy).unwrap(), &expected);
        party.check("relinearize and rescale", &evaluator.relinearize_rescale(&lazy).unwrap(), &expected);
    }
}

#[test]
fn constants_and_plaintexts() {
    let party = Party::new(small(), &[]);
    let evaluator = Evaluator::new(&party.parameters, &party.keys).unwrap();
    let log_slots = 6;
    let (x, y) = (values(64, 7), values(64, 8));
    let a = party.encrypt(&x, log_slots);
    party.check("add constant", &evaluator.add_constant(&a, -3.25).unwrap(), &map2(&x, &y, |x, _| x - 3.25));
    let scaled = evaluator.mul_constant(&a, 0.7).unwrap();
    assert_eq!(scaled.scale, a.scale);
    party.check("times constant", &scaled, &map2(&x, &y, |x, _| x * 0.7));
    party.check("times integer", &evaluator.mul_integer(&a, -5).unwrap(), &map2(&x, &y, |x, _| x * -5.0));
    let p = party.parameters.encode(&y, log_slots, a.level(), a.scale).unwrap();
    party.check("add plain", &evaluator.add_plain(&a, &p).unwrap(), &map2(&x, &y, |x, y| x + y));
    party.check("sub plain", &evaluator.sub_plain(&a, &p).unwrap(), &map2(&x, &y, |x, y| x - y));
    let product = evaluator.multiply_plain_lazy(&a, &p).unwrap();
    party.check("times plain", &product, &map2(&x, &y, |x, y| x * y));
    party.check("rescaled", &evaluator.rescale(&product).unwrap(), &map2(&x, &y, |x, y| x * y));
    let reals: Vec<f64> = y.iter().map(|v| v.re).collect();
    let exact = evaluator.multiply_values(&a, &reals).unwrap();
    assert_eq!(exact.scale, a.scale);
    party.check("times values", &exact, &map2(&x, &y, |x, y| x * y.re));
    // Another exact scale: then a product and a fresh message can be added.
    let squared = evaluator.square(&a).unwrap();
    let lowered = evaluator.drop_to_level(&a, squared.level()).unwrap();
    assert!(matches!(evaluator.add(&squared, &lowered), Err(CkksError::ScaleMismatch { .. })));
    let matched = evaluator.set_scale(&squared, a.scale).unwrap();
    party.check("sum", &evaluator.add(&matched, &a).unwrap(), &map2(&x, &y, |x, _| x * x + x));
}

#[test]
fn sums_over_slots_and_hoisting() {
    let party = Party::new(small(), &[1, 2, 4, 8, 16, 32]);
    let evaluator = Evaluator::new(&party.parameters, &party.keys).unwrap();
    let x = values(1 << 10, 9);
    let a = party.encrypt(&x, 10);
    let rotations = [1, 0, 32, 8];
    for (rotated, steps) in evaluator.rotate_hoisted(&a, &rotations).unwrap().iter().zip(rotations) {
        let expected: Vec<_> = (0..1 << 10).map(|i| x[(i + steps as usize) % (1 << 10)]).collect();
        party.check("hoisted", rotated, &expected);
        assert_eq!(rotated.rlwe, evaluator.rotate(&a, steps).unwrap().rlwe);
    }
    let summed = evaluator.inner_sum(&a, 2, 16).unwrap();
    let expected: Vec<_> = (0..1 << 10).map(|i| (0..16).map(|k| x[(i + 2 * k) % (1 << 10)]).sum()).collect();
    party.check("inner sum", &summed, &expected);
    assert!(matches!(evaluator.inner_sum(&a, 1, 12), Err(CkksError::NotPowerOfTwo(12))));
    // Steps count modulo the slots, and i64::MIN is a multiple of them.
    let doubled = evaluator.inner_sum(&a, i64::MIN, 4).unwrap();
    party.check("inner sum in place", &doubled, &map2(&x, &x, |x, _| x * 4.0));
}

#[test]
fn coefficients_and_symmetric_encryption() {
    let party = Party::new(small(), &[]);
    let evaluator = Evaluator::new(&party.parameters, &party.keys).unwrap();
    let x: Vec<f64> = values(2048, 11).iter().map(|v| v.re).collect();
    let decryptor = Decryptor::new(&party.parameters, &party.secret).unwrap();
    let decryptor = decryptor.declaring(largest(x.iter().copied()));
    for level in [0, 2, 4] {
        let fresh = decryptor.encrypt_real(&x, Packing::Coefficients, level, &mut rng(12)).unwrap();
        assert_eq!(fresh.bytes(), fresh.expand().bytes() / 2 + 32);
        let a = fresh.expand();
        let seen = decryptor.decrypt_real(&a).unwrap();
        let error = seen.iter().zip(&x).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(error <= a.error_bound(), "level {level}: {error:e} above {:e}", a.error_bound());
        let shifted = evaluator.add_constant(&a, 2.0).unwrap();
        let seen = decryptor.decrypt_real(&shifted).unwrap();
        assert!(seen.iter().zip(&x).all(|(a, b)| (a - b - 2.0).abs() <= shifted.error_bound()));
    }
}

#[test]
fn coefficients_multiply_as_polynomials() {
    let party = Party::new(small(), &[]);
    let evaluator = Evaluator::new(&party.parameters, &party.keys).unwrap();
    let decryptor = Decryptor::new(&party.parameters, &party.secret).unwrap();
    let reals = |byte| -> Vec<f64> { values(2048, byte).iter().map(|v| v.re).collect() };
    let (x, y) = (reals(17), reals(18));
    let mut expected = vec![0.0; 2048];
    for (i, a) in x.iter().enumerate() {
        for (j, b) in y.iter().enumerate() {
            let sign = if i + j < 2048 { 1.0 } else { -1.0 };
            expected[(i + j) % 2048] += sign * a * b;
        }
    }
    let encrypt = |v: &[f64], byte| {
        let decryptor = Decryptor::new(&party.parameters, &party.secret).unwrap();
        let decryptor = decryptor.declaring(largest(v.iter().copied()));
        decryptor.encrypt_real(v, Packing::Coefficients, 4, &mut rng(byte)).unwrap().expand()
    };
    let (a, b) = (encrypt(&x, 19), encrypt(&y, 20));
    for product in [evaluator.multiply(&a, &b).unwrap(), evaluator.multiply_values(&a, &y).unwrap()] {
        let seen = decryptor.decrypt_real(&product).unwrap();
        let error = seen.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(error <= product.error_bound(), "{error:e} above {:e}", product.error_bound());
        let largest = expected.iter().fold(0.0f64, |m, v| m.max(v.abs()));
        assert!(largest <= product.estimate.magnitude, "{largest}: {:?}", product.estimate);
    }
}

/// With messages of zero only errors multiply. Those between the coefficients of a sparse packing return, and the
/// square of the secret multiplies the rounding of a division at degree 2.
#[test]
fn products_of_zeros_stay_within_the_estimate() {
    let party = Party::new(small(), &[]);
    let evaluator = Evaluator::new(&party.parameters, &party.keys).unwrap();
    for log_slots in [0, 3, 10] {
        let zeros = vec![Complex64::ZERO; 1 << log_slots];
        let (a, b) = (party.encrypt(&zeros, log_slots), party.encrypt(&zeros, log_slots));
        assert_eq!(a.estimate.magnitude, f64::MIN_POSITIVE);
        let decryptor = Decryptor::new(&party.parameters, &party.secret).unwrap();
        for factor in [&a, &b] {
            let product = evaluator.multiply_lazy(&a, factor).unwrap();
            for result in [&product, &evaluator.rescale(&product).unwrap()] {
                let error = decryptor.decrypt(result).unwrap().iter().map(|v| v.norm()).fold(0.0, f64::max);
                assert!(error <= result.error_bound(), "2^{log_slots}: {error:e} {result:?}");
            }
        }
    }
}

#[test]
fn smallest_and_largest_rings_and_chains() {
    let insecure = |log_n, q: &[u32], p: &[u32], log_scale| {
        CkksParameters::new(CkksLiteral::from_bits(log_n, q, p, log_scale).unwrap().insecure()).unwrap()
    };
    // One prime and no special one: a thin client's parameters. No switching key exists.
    let parameters = insecure(10, &[55], &[], 40.0);
    let secret = SecretKey::sample(parameters.rlwe(), &mut rng(1)).unwrap();
    let mut generator = KeyGenerator::new(&secret, rng(2));
    let spec = KeySpec::new(parameters.rlwe(), KeyElement::Relinearization, 0, 1, true);
    assert!(matches!(generator.switching_key(&spec), Err(RlweError::SpecialTooSmall { index: 0, .. })));
    let keys = EvaluationKeys::new(parameters.rlwe());
    let party = Party { parameters, secret, keys, encryptions: Cell::new(100) };
    let evaluator = Evaluator::new(&party.parameters, &party.keys).unwrap();
    let x = values(512, 21);
    let a = party.encrypt(&x, 9);
    party.check("one prime", &evaluator.add(&a, &a).unwrap(), &map2(&x, &x, |x, _| x * 2.0));

    for (parameters, levels) in [
        // The largest number of primes of either kind.
        (insecure(10, &[40; 64], &[50; 64], 38.0), 63),
        (insecure(17, &[55, 40], &[56], 40.0), 1),
    ] {
        let party = Party::new(parameters, &[1]);
        let evaluator = Evaluator::new(&party.parameters, &party.keys).unwrap();
        let log_slots = party.parameters.max_log_slots();
        let x = values(1 << log_slots, 22);
        let a = party.encrypt(&x, log_slots);
        assert_eq!(a.level(), levels);
        let product = evaluator.multiply(&a, &a).unwrap();
        party.check("product", &product, &map2(&x, &x, |x, _| x * x));
        let n = x.len();
        let expected: Vec<_> = (0..n).map(|i| x[(i + 1) % n] * x[(i + 1) % n]).collect();
        party.check("rotation", &evaluator.rotate(&product, 1).unwrap(), &expected);
    }
    let too_many = CkksLiteral::from_bits(10, &[40; 65], &[50], 40.0);
    assert!(matches!(too_many, Err(RlweError::Count { count: 65, max: 64, .. })));
}

#[test]
fn values_far_above_the_scale_are_decrypted_with_all_primes() {
    let party = Party::new(small(), &[]);
    let evaluator = Evaluator::new(&party.parameters, &party.keys).unwrap();
    let x = values(16, 13);
    let mut a = party.encrypt(&x, 4);
    let mut factor = 1.0;
    for _ in 0..3 {
        a = evaluator.mul_integer(&a, 1 << 30).unwrap();
        factor *= 2f64.powi(30);
    }
    party.check("large", &a, &map2(&x, &x, |x, _| x * factor));
}

#[test]
fn misuse_is_a_typed_error() {
    let party = Party::new(small(), &[1]);
    let evaluator = Evaluator::new(&party.parameters, &party.keys).unwrap();
    let x = values(16, 14);
    let a = party.encrypt(&x, 4);
    let bottom = evaluator.drop_to_level(&a, 0).unwrap();
    assert!(matches!(evaluator.multiply(&bottom, &bottom), Err(CkksError::LevelsExhausted { .. })));
    assert!(matches!(evaluator.multiply_lazy(&bottom, &bottom), Err(CkksError::Scale { level: 0, .. })));
    assert!(matches!(evaluator.rescale(&bottom), Err(CkksError::LevelsExhausted { .. })));
    assert!(matches!(evaluator.drop_to_level(&bottom, 1), Err(CkksError::Rlwe(RlweError::Level { .. }))));
    assert!(matches!(evaluator.rotate(&a, 5), Err(CkksError::Rlwe(RlweError::MissingKey { .. }))));
    let other = party.encrypt(&values(32, 15), 5);
    assert!(matches!(evaluator.add(&a, &other), Err(CkksError::PackingMismatch { .. })));
    let lazy = evaluator.multiply_lazy(&a, &a).unwrap();
    assert!(matches!(evaluator.multiply(&lazy, &a), Err(CkksError::Degree { .. })));
    assert!(matches!(evaluator.rotate(&lazy, 1), Err(CkksError::Degree { .. })));
    assert!(matches!(evaluator.mul_constant(&a, f64::NAN), Err(CkksError::NotFinite(_))));
    let too_large = |error| matches!(error, Err(CkksError::Encode(EncoderError::TooLarge { .. })));
    for c in [1e80, -1e300] {
        assert!(too_large(evaluator.add_constant(&a, c)));
        assert!(too_large(evaluator.mul_constant(&a, c)));
    }
    let mut cubic = lazy.clone();
    cubic.rlwe.polys.push(cubic.rlwe.polys[0].clone());
    assert!(matches!(evaluator.relinearize(&cubic), Err(CkksError::Degree { degree: 3, .. })));
    assert!(matches!(evaluator.relinearize_rescale(&cubic), Err(CkksError::Degree { degree: 3, .. })));
    assert!(matches!(CkksParameters::preset("N12"), Err(CkksError::UnknownPreset { .. })));
    let foreign = Party::new(CkksParameters::preset("N13_QP214_S38").unwrap(), &[]);
    let theirs = foreign.encrypt(&x, 4);
    let deeper = Party::new(CkksParameters::preset("N14_QP430_S40").unwrap(), &[]).encrypt(&x, 4);
    for result in [
        evaluator.mul_constant(&deeper, 0.5),
        evaluator.multiply(&deeper, &deeper),
        evaluator.rescale(&deeper),
    ] {
        assert!(matches!(result, Err(CkksError::Rlwe(RlweError::MixedParameters { .. }))));
    }
    assert!(matches!(evaluator.add(&a, &theirs), Err(CkksError::Rlwe(RlweError::MixedParameters { .. }))));
    assert!(Evaluator::new(&party.parameters, &foreign.keys).is_err());
    assert!(Decryptor::new(&party.parameters, &foreign.secret).is_err());
}

#[test]
fn every_preset_is_secure_and_works_at_full_size() {
    for preset in PRESETS {
        let parameters = CkksParameters::preset(preset.name).unwrap();
        assert_eq!(parameters.security(), Security::Classical128);
        let rlwe = parameters.rlwe();
        let widest = KeySpec {
            element: KeyElement::Relinearization,
            level: rlwe.max_level(),
            alpha: 1,
            special: rlwe.special_primes().collect(),
            seeded: true,
            subring: None,
        };
        widest.validate(rlwe).unwrap();
        if preset.log_n > 14 && cfg!(debug_assertions) {
            continue;
        }
        let party = Party::new(parameters, &[1]);
        let evaluator = Evaluator::new(&party.parameters, &party.keys).unwrap();
        let log_slots = party.parameters.max_log_slots();
        let x = values(1 << log_slots, 16);
        let a = party.encrypt(&x, log_slots);
        let squared = evaluator.square(&a).unwrap();
        party.check(preset.name, &squared, &map2(&x, &x, |x, _| x * x));
        let expected: Vec<_> = (0..x.len()).map(|i| x[(i + 1) % x.len()] * x[(i + 1) % x.len()]).collect();
        party.check(preset.name, &evaluator.rotate(&squared, 1).unwrap(), &expected);
    }
}
