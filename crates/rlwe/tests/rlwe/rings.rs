//! Switches between rings against their definition, and against decryption over the integers.

use keywright_ring::{Coefficient, Evaluation, Poly};
use keywright_ring_testing::rng;
use keywright_rlwe::{
    AddMessage, EvaluationKeys, KeyElement, KeyGenerator, KeyIdentity, KeySequence, KeySpec, Parameters,
    ParametersLiteral, RlweCiphertext, RlweError, SecretDistribution, SecretKey, decrypt,
    encrypt_zero_symmetric, noise, ring_down, ring_up,
};
use num_bigint::BigInt;
use proptest::prelude::*;

use crate::fixture::{error, uniform};

/// A chain of rings of degrees `2^13`, `2^12`, `2^11`, `2^10`. Not secure.
fn parameters() -> Parameters {
    let literal = ParametersLiteral::from_bits(13, &[58, 45, 45, 45, 45], &[50, 50]).unwrap().insecure();
    let subrings = [(12, 3, None), (10, 1, Some(vec![5, 6])), (11, 2, Some(vec![5, 4]))];
    Parameters::new(literal.with_subrings(&subrings)).unwrap()
}

/// The keys for switching from one ring to another, for each of `alphas`.
fn down(parameters: &Parameters, from: u32, to: u32, level: usize, alphas: &[usize]) -> Vec<KeySpec> {
    let ring = parameters.ring_of_degree(to).unwrap();
    let spec = |element, alpha| KeySpec::new(ring, element, level, alpha, true);
    alphas.iter().flat_map(|&alpha| KeyElement::ring_down(from, to).map(move |e| spec(e, alpha))).collect()
}

fn keys(secret: &SecretKey, specs: &[KeySpec]) -> EvaluationKeys {
    KeyGenerator::new(secret, rng(2)).evaluation_keys(specs).unwrap()
}

/// `c_0 + c_1 s` modulo `X^n + 1` and `Q`, centred, by schoolbook multiplication of integers.
fn decrypted_naively(secret: &SecretKey, ciphertext: &RlweCiphertext) -> Vec<BigInt> {
    let parameters = secret.parameters();
    let (n, level) = (parameters.n(), ciphertext.level());
    let moduli: Vec<BigInt> = (0..=level).map(|i| parameters.modulus(i).value().into()).collect();
    let q: BigInt = moduli.iter().product();
    let integers: Vec<Vec<BigInt>> = ciphertext
        .polys
        .iter()
        .map(|poly| {
            let poly: Poly<Coefficient> = parameters.ring().inverse(poly.clone());
            (0..n)
                .map(|c| {
                    let crt = |i: usize| {
                        let cofactor = &q / &moduli[i];
                        let m = parameters.modulus(i);
                        let inverse = m.inv(u64::try_from(&cofactor % &moduli[i]).unwrap());
                        cofactor * m.mul(poly.limb(i)[c], inverse)
                    };
                    (0..=level).map(crt).sum::<BigInt>() % &q
                })
                .collect()
        })
        .collect();
    let mut out = integers[0].clone();
    for (i, c1) in integers[1].iter().enumerate() {
        for (j, &s) in secret.coefficients().iter().enumerate().filter(|(_, s)| **s != 0) {
            match i + j {
                k if k < n => out[k] += c1 * s,
                k => out[k - n] -= c1 * s,
            }
        }
    }
    let half = &q / 2;
    let centred = |x: BigInt| {
        let x = ((x % &q) + &q) % &q;
        if x > half { x - &q } else { x }
    };
    out.into_iter().map(centred).collect()
}

/// A fresh encryption of integers at a level.
fn encrypt(secret: &SecretKey, level: usize, message: &[i64]) -> RlweCiphertext {
    let parameters = secret.parameters();
    let add: AddMessage<'_> = &|i, limb: &mut [u64]| {
        let q = parameters.modulus(i).value() as i128;
        for (word, &m) in limb.iter_mut().zip(message) {
            *word = (i128::from(*word) + i128::from(m)).rem_euclid(q) as u64;
        }
    };
    encrypt_zero_symmetric(secret, level, &mut rng(9), Some(add)).unwrap().expand(parameters)
}

fn largest(values: impl Iterator<Item = BigInt>) -> f64 {
    values.map(|v| i64::try_from(v).unwrap().unsigned_abs()).max().unwrap() as f64
}

/// The result of switching down is component 0 of the input, within the derived error, by schoolbook decryption.
#[test]
fn down_is_component_0_over_the_integers() {
    let parameters = parameters();
    let secret = SecretKey::sample(&parameters, &mut rng(1)).unwrap();
    for (from, to) in [(11, 10), (12, 10)] {
        let [large, small] = [from, to].map(|log_n| secret.ring_of_degree(log_n).unwrap());
        let k = large.parameters().n() / small.parameters().n();
        let message: Vec<i64> = (0..large.parameters().n() as i64).map(|i| (i * i - 5000) << 20).collect();
        let input = encrypt(large, 1, &message);
        let keys = keys(&secret, &down(&parameters, from, to, 1, &[1]));
        let ring = small.parameters();
        let uses = keys.ring_like(ring).unwrap().ring_down(from, 1).unwrap();
        let output = ring_down(large.parameters(), ring, &input, &uses).unwrap();
        let expected = decrypted_naively(large, &input).into_iter().step_by(k);
        let seen = largest(decrypted_naively(small, &output).into_iter().zip(expected).map(|(a, b)| a - b));
        let bound = noise::bound(noise::ring_down(ring, &uses));
        assert!(seen <= bound && seen >= bound / 6.0, "2^{from} to 2^{to}: {seen} of {bound}");
    }
}

/// The decryption of a ciphertext modulo every prime, in coefficient form.
fn phase(secret: &SecretKey, ciphertext: &RlweCiphertext) -> Poly<Coefficient> {
    decrypt(secret, ciphertext, ciphertext.level() + 1)
}

/// Coefficients of one ring as evaluations of another: those at multiples of `k`, or with zeros in between.
fn moved(from: &Poly<Coefficient>, to: &Parameters) -> Poly<Evaluation> {
    let mut out = Poly::zero(to.n(), from.limb_count());
    for (i, limb) in from.limbs().enumerate() {
        if from.n() > to.n() {
            let k = from.n() / to.n();
            out.limb_mut(i).iter_mut().zip(limb.iter().step_by(k)).for_each(|(out, &c)| *out = c);
        } else {
            let k = to.n() / from.n();
            out.limb_mut(i).iter_mut().step_by(k).zip(limb).for_each(|(out, &c)| *out = c);
        }
    }
    to.ring().forward(out)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Uniform ciphertexts, the worst case for the error, of every pair of rings, at every level, with keys of every
    /// number of digits, also above the ciphertext's level, where rows are summed.
    #[test]
    fn down_and_up_again(from in 11u32..=13, shrink in 1u32..=3, level in 0usize..=3, above in 0usize..=2, alpha in 1usize..=2, byte: u8) {
        let to = from.saturating_sub(shrink).max(10);
        let parameters = parameters();
        let (large, ring) = (parameters.ring_of_degree(from)?, parameters.ring_of_degree(to)?);
        let level = level.min(ring.max_level());
        let key_level = (level + above).min(ring.max_level());
        let up = KeySpec::new(large, KeyElement::RingUp { from: to }, key_level, alpha, byte & 1 == 0);
        let mut specs = down(&parameters, from, to, key_level, &[alpha]);
        specs.push(up);
        let secret = SecretKey::sample(&parameters, &mut rng(byte))?;
        let keys = keys(&secret, &specs);
        let input = RlweCiphertext { polys: vec![uniform(large, level, byte), uniform(large, level, byte ^ 1)], key: KeyIdentity::UNKNOWN };

        let uses = keys.ring_like(ring)?.ring_down(from, level)?;
        let small = ring_down(large, ring, &input, &uses)?;
        let expected = moved(&phase(secret.ring_like(large)?, &input), ring);
        let seen = error(secret.ring_like(ring)?, &small, &expected);
        let bound = noise::bound(noise::ring_down(ring, &uses));
        prop_assert!(seen <= bound && seen >= bound / 8.0, "down: {seen} of {bound}");

        let key_use = keys.ring_like(large)?.best(KeyElement::RingUp { from: to }, level, false)?;
        let back = ring_up(large, &small, &key_use)?;
        let expected = moved(&phase(secret.ring_like(ring)?, &small), large);
        let seen = error(secret.ring_like(large)?, &back, &expected);
        let bound = noise::bound(noise::key_switch(large, &key_use.plan, &key_use.key));
        prop_assert!(seen <= bound && seen >= bound / 8.0, "up: {seen} of {bound}");
    }
}

/// Parts whose keys decompose differently cannot be summed; the set names the missing one.
#[test]
fn parts_need_keys_of_one_shape() {
    let parameters = parameters();
    let secret = SecretKey::sample(&parameters, &mut rng(1)).unwrap();
    let ring = parameters.ring_of_degree(10).unwrap();
    let mut specs = down(&parameters, 12, 10, 1, &[1]);
    let other = KeySpec { special: vec![3, 2], ..specs[2].clone() };
    let complete = keys(&secret, &specs);
    assert_eq!(complete.ring_like(ring).unwrap().ring_down(12, 1).unwrap().len(), 4);
    specs[2] = other;
    let uneven = keys(&secret, &specs);
    let refused = |keys: &EvaluationKeys, from| keys.ring_like(ring).unwrap().ring_down(from, 1).unwrap_err();
    assert!(matches!(
        refused(&uneven, 12),
        RlweError::MissingKey { element: KeyElement::RingDown { from: 12, part: 2 }, level: 1, .. }
    ));
    assert!(matches!(refused(&complete, 11), RlweError::MissingKey { .. }));
    assert!(matches!(refused(&complete, 10), RlweError::NoRing { log_n: 10, .. }));
    // The keys of one ring do not serve another.
    assert!(complete.best(KeyElement::RingDown { from: 12, part: 0 }, 1, false).is_err());
}

/// Keys to one ephemeral secret, from the ring itself and from a smaller one, with the key back.
#[test]
fn an_ephemeral_secret_is_reached_from_every_ring() {
    let parameters = parameters();
    let secret = SecretKey::sample(&parameters, &mut rng(1)).unwrap();
    let spec = |element, level| KeySpec::new(&parameters, element, level, 1, true);
    let up = KeyElement::RingUpToSparse { from: 11, weight: 32 };
    let specs = [spec(up, 0), spec(KeyElement::SparseToDense(32), 4), spec(KeyElement::DenseToSparse(32), 0)];
    let keys = keys(&secret, &specs);
    assert_eq!(keys.len(), 3);
    assert!(KeySequence::new(&specs[..2]).is_ok());
    assert!(matches!(KeySequence::new(&specs[..1]), Err(RlweError::EphemeralSecret(e)) if e == up));
    assert!(matches!(
        KeySequence::new(&[specs[0].clone(), specs[2].clone()]),
        Err(RlweError::EphemeralSecret(_))
    ));

    // Up to the ephemeral secret, and back to the ring's own: together an ordinary switch up.
    let small = parameters.ring_of_degree(11).unwrap();
    let input =
        RlweCiphertext { polys: vec![uniform(small, 0, 3), uniform(small, 0, 4)], key: KeyIdentity::UNKNOWN };
    let key_use = keys.best(up, 0, false).unwrap();
    let sparse = ring_up(&parameters, &input, &key_use).unwrap();
    let back = keys.best(KeyElement::SparseToDense(32), 0, false).unwrap();
    let decomposed =
        keywright_rlwe::Decomposed::new(&parameters, back.plan.clone(), &sparse.polys[1]).unwrap();
    let key = back.key.load().unwrap();
    let rows = decomposed.rows_of(&key, 1).unwrap();
    let finish = [keywright_rlwe::Finish { addend: [Some(&sparse.polys[0]), None], automorphism: None }];
    let dense = decomposed.switch(&[(&key, rows)], &finish).remove(0);
    let expected = moved(&phase(secret.ring_of_degree(11).unwrap(), &input), &parameters);
    let variance = [&key_use, &back].map(|f| noise::key_switch(&parameters, &f.plan, &f.key)).iter().sum();
    let (seen, bound) = (error(&secret, &dense, &expected), noise::bound(variance));
    assert!(seen <= bound && seen >= bound / 8.0, "{seen} of {bound}");
}

#[test]
fn secrets_of_the_rings_are_ternary_and_independent() {
    let mut literal = parameters().literal().clone();
    literal.secret = SecretDistribution::Sparse { weight: 64 };
    let parameters = Parameters::new(literal).unwrap();
    let secret = SecretKey::sample(&parameters, &mut rng(1)).unwrap();
    let weight = |s: &SecretKey| s.coefficients().iter().filter(|c| **c != 0).count();
    assert_eq!(weight(&secret), 64);
    assert_eq!(secret.subrings().len(), 3);
    for (ring, own) in parameters.subrings().iter().zip(secret.subrings()) {
        assert_eq!(ring.secret(), SecretDistribution::Ternary);
        assert!(SecretDistribution::Ternary.weights(ring.n()).contains(&weight(own)));
        assert!(own.parameters().same(ring));
    }
    let [a, b] = [0, 1].map(|i| secret.subrings()[i].coefficients());
    let agreeing = a.iter().zip(b).filter(|(a, b)| a == b).count();
    assert!(agreeing < b.len() / 2, "{agreeing} of {} coefficients agree", b.len());
}

#[test]
fn what_is_no_subring_is_refused() {
    let literal = ParametersLiteral::from_bits(13, &[50, 38, 38, 38], &[50]).unwrap();
    let with = |list: &[(u32, usize, Option<Vec<usize>>)]| {
        Parameters::new(literal.clone().with_subrings(list)).map(drop)
    };
    assert_eq!(with(&[(12, 1, None)]), Ok(()));
    // 88 bits at 2^12: one more prime exceeds 106.
    assert!(matches!(with(&[(12, 2, None)]), Err(RlweError::Insecure { log_n: 12, bound: 106, .. })));
    assert!(matches!(with(&[(9, 0, None)]), Err(RlweError::NoBound { log_n: 9, .. })));
    for (list, reason) in [
        (vec![(13, 1, None)], "smaller"),
        (vec![(12, 0, None), (12, 1, None)], "smaller"),
        (vec![(12, 4, None)], "no such level"),
        (vec![(12, 1, Some(vec![1]))], "among its ciphertext primes"),
        (vec![(12, 1, Some(vec![5]))], "no such special prime"),
    ] {
        let error = with(&list).unwrap_err();
        assert!(matches!(error, RlweError::Subring { .. }) && error.to_string().contains(reason), "{error}");
    }
    assert!(matches!(with(&[(12, 0, Some(vec![3, 3]))]), Err(RlweError::Ring(_))));
    let many: Vec<_> = (0..8).map(|_| (12, 0, None)).collect();
    assert!(matches!(with(&many), Err(RlweError::Count { what: "subrings", count: 8, max: 7, .. })));
}

/// Unnamed special primes default to those of the ring; each key takes what its own bound allows.
#[test]
fn special_primes_are_those_of_the_ring() {
    let literal = ParametersLiteral::from_bits(14, &[50, 40, 40, 40, 40], &[50, 50, 50]).unwrap();
    let parameters = Parameters::new(literal.with_subrings(&[(13, 3, None)])).unwrap();
    assert_eq!(parameters.literal().subrings[0].special, [5, 6, 7]);
    let ring = parameters.ring_of_degree(13).unwrap();
    let legal = |level, special| {
        let spec = KeySpec::new(ring, KeyElement::Relinearization, level, 1, true);
        KeySpec { special, ..spec }.validate(&parameters).is_ok()
    };
    assert_eq!(
        [legal(3, vec![4]), legal(2, vec![4]), legal(2, vec![4, 5]), legal(1, vec![4, 5])],
        [false, true, false, true]
    );
}

/// The bound of the key's own ring applies.
#[test]
fn keys_are_checked_by_the_degree_of_their_ring() {
    let literal = ParametersLiteral::from_bits(14, &[50, 40, 40, 40, 40], &[50, 50, 50]).unwrap();
    let subrings = [(13, 2, Some(vec![5, 6, 7]))];
    let parameters = Parameters::new(literal.with_subrings(&subrings)).unwrap();
    let ring = parameters.ring_of_degree(13).unwrap();
    let spec = |count: usize, element, level| KeySpec {
        element,
        level,
        alpha: 1,
        special: (3..3 + count).collect(),
        seeded: true,
        subring: Some(13),
    };
    let down = KeyElement::RingDown { from: 14, part: 1 };
    // 130 bits at level 2 and 50 for each special prime: 214 is the bound at 2^13, 430 at 2^14.
    assert!(spec(1, down, 2).validate(&parameters).is_ok());
    for element in [down, KeyElement::Galois(5)] {
        let error = spec(2, element, 2).validate(&parameters).unwrap_err();
        assert!(matches!(error, RlweError::Insecure { log_n: 13, bound: 214, .. }), "{error}");
    }
    assert!(spec(2, down, 1).validate(ring).is_ok());
    assert!(spec(3, down, 1).validate(ring).is_err());

    let refused =
        |element, subring| KeySpec { subring, ..spec(1, element, 0) }.validate(&parameters).unwrap_err();
    let switch = |error| matches!(error, RlweError::RingSwitch { .. });
    assert!(switch(refused(KeyElement::RingDown { from: 13, part: 0 }, Some(13))));
    assert!(switch(refused(KeyElement::RingDown { from: 60, part: 0 }, Some(13))));
    assert!(switch(refused(KeyElement::RingDown { from: 14, part: 2 }, Some(13))));
    assert!(switch(refused(KeyElement::RingUp { from: 14 }, Some(13))));
    assert!(matches!(refused(down, Some(12)), RlweError::NoRing { log_n: 12, .. }));
    assert!(spec(1, down, 0).validate(ring).is_ok());
    assert!(KeySpec { subring: None, ..spec(1, down, 0) }.validate(ring).is_err());
    // Above the bound nothing is made.
    let secret = SecretKey::sample(&parameters, &mut rng(1)).unwrap();
    assert!(KeyGenerator::new(&secret, rng(2)).switching_key(&spec(2, down, 2)).is_err());
    // Rings that the parameters lack: the key is legal by itself, but there is no secret to make it from.
    let from_elsewhere = KeySpec { element: KeyElement::RingDown { from: 15, part: 0 }, ..spec(1, down, 0) };
    assert!(matches!(
        KeyGenerator::new(&secret, rng(2)).switching_key(&from_elsewhere),
        Err(RlweError::NoRing { log_n: 15, .. })
    ));
}
