use keywright_bfv::{BfvError, PRODUCT_TAIL};
use keywright_rlwe::decrypt;
use num_bigint::{BigInt, Sign};

use super::*;

/// `(t x mod Q) / Q`, centred, over the integers: the noise, and the message that decryption should return.
fn reference(party: &Party, ciphertext: &Ciphertext) -> (Vec<BigInt>, BigInt, Vec<u64>) {
    let rlwe = party.parameters.rlwe();
    let t = BigInt::from(party.parameters.plaintext_modulus());
    let level = ciphertext.level();
    let moduli: Vec<BigInt> = (0..=level).map(|i| rlwe.modulus(i).value().into()).collect();
    let q: BigInt = moduli.iter().product();
    let poly = decrypt(&party.secret, &ciphertext.rlwe, level + 1);
    let bases: Vec<BigInt> = moduli
        .iter()
        .map(|m| {
            let others = &q / m;
            let inverse = others.modinv(m).unwrap();
            others * inverse
        })
        .collect();
    let mut noise = Vec::new();
    let mut message = Vec::new();
    for j in 0..rlwe.n() {
        let x: BigInt = bases.iter().enumerate().map(|(i, base)| base * poly.limb(i)[j]).sum::<BigInt>() % &q;
        let scaled: BigInt = x * &t;
        // round(t x / Q), halves up.
        let rounded: BigInt = (&scaled * 2 + &q) / (&q * 2);
        noise.push(scaled - &rounded * &q);
        message.push(u64::try_from(&rounded % &t).unwrap());
    }
    (noise, q, message)
}

fn log2(x: &BigInt) -> f64 {
    let bits = x.bits().saturating_sub(60);
    (u64::try_from(&(BigInt::from_biguint(Sign::Plus, x.magnitude().clone()) >> bits)).unwrap() as f64).log2()
        + bits as f64
}

/// Deviation of the noise, `log2`.
fn deviation(noise: &[BigInt], q: &BigInt) -> f64 {
    let log_q = log2(q);
    let squares: f64 =
        noise.iter().filter(|v| v.sign() != Sign::NoSign).map(|v| (2.0 * (log2(v) - log_q)).exp2()).sum();
    (squares / noise.len() as f64).log2() / 2.0
}

#[test]
fn decryption_and_budget_are_those_over_the_integers() {
    for (t, q) in [(2, &[40, 40][..]), (65537, &[45, 61, 50]), (1 << 30, &[60, 60, 60]), (65537, &[50; 7])] {
        let party = Party::new(parameters(10, q, &[61], t), &[]);
        let evaluator = party.evaluator();
        let packing = Packing::Coefficients;
        let (x, y) = (random(1024, t, 30), random(1024, t, 31));
        let (a, b) = (party.encrypt(&x, packing), party.encrypt(&y, packing));
        let product = evaluator.multiply_lazy(&a, &b).unwrap();
        for c in [&a, &evaluator.add(&a, &b).unwrap(), &product, &evaluator.mod_switch(&a).unwrap()] {
            let (noise, modulus, message) = reference(&party, c);
            assert_eq!(party.decryptor().decrypt(c).unwrap().residues(), message);
            let largest = noise.iter().map(|v| v.magnitude().clone()).max().unwrap();
            let expected = log2(&modulus) - 1.0 - log2(&largest.into());
            let budget = party.decryptor().noise_budget(c).unwrap();
            assert!((budget - expected).abs() < 1e-6, "{budget} {expected}");
        }
    }
}

#[test]
fn estimates_are_above_the_noise_and_not_far_above() {
    let t = 65537;
    let party = Party::new(parameters(11, &[50; 8], &[50, 50], t), &[1]);
    let evaluator = party.evaluator();
    let (x, y) = (random(2048, t, 32), random(2048, t, 33));
    let (a, b) = (party.encrypt(&x, Packing::Slots), party.encrypt(&y, Packing::Slots));
    let p = party.parameters.encode(&signed(&y), Packing::Slots).unwrap();
    let product = evaluator.multiply(&a, &b).unwrap();
    let fourth = evaluator.square(&product).unwrap();
    // The same factor again and again: the case for which the order counts.
    let mut repeated = a.clone();
    for _ in 0..4 {
        repeated = evaluator.multiply(&repeated, &a).unwrap();
    }
    let cases = [
        ("fresh", a.clone(), 0.5),
        ("sum", evaluator.add(&a, &b).unwrap(), 1.0),
        ("switched to one prime", evaluator.mod_switch_to(&a, 0).unwrap(), 0.5),
        (
            "rotated at level 0",
            evaluator.rotate_rows(&evaluator.mod_switch_to(&a, 0).unwrap(), 1).unwrap(),
            0.5,
        ),
        ("times plain", evaluator.multiply_plain(&a, &p).unwrap(), 0.5),
        ("product", product.clone(), 1.5),
        ("fourth power", fourth.clone(), 3.5),
        ("fifth power, factor by factor", repeated, 3.5),
        ("eighth power", evaluator.square(&fourth).unwrap(), 5.5),
    ];
    for (what, c, slack) in cases {
        let (noise, q, _) = reference(&party, &c);
        let seen = deviation(&noise, &q);
        // The estimate without its tail, with the factor of the order; it adds deviations that may depend on each
        // other.
        let estimated = c.estimate.log_bound() - PRODUCT_TAIL.log2();
        assert!(seen <= estimated + 0.3, "{what}: {seen} above {estimated}");
        assert!(seen >= estimated - slack, "{what}: {seen} far below {estimated}");
        assert!(party.decryptor().noise_budget(&c).unwrap() >= c.estimate.budget_bits(), "{what}");
    }
}

#[test]
fn products_with_structured_plaintexts_stay_below_the_estimate() {
    let t = 65537;
    let party = Party::new(parameters(10, &[55; 6], &[55], t), &[]);
    let evaluator = party.evaluator();
    // All weight of these factors is at few roots of unity.
    let factors: [Vec<i64>; 3] =
        [vec![1; 1024], (0..1024).map(|i| [1, 1, -1, -1][i % 4]).collect(), vec![32768; 1024]];
    for factor in factors {
        let p = party.parameters.encode(&factor, Packing::Coefficients).unwrap();
        let mut x = random(1024, t, 34);
        let mut a = party.encrypt(&x, Packing::Coefficients);
        let residues = p.residues();
        for _ in 0..3 {
            a = evaluator.multiply_plain(&a, &p).unwrap();
            x = negacyclic(&x, &residues, t);
            party.check("structured", &a, &x);
        }
    }
}

#[test]
fn depth_ends_with_an_error_and_not_with_a_wrong_result() {
    let t = 65537;
    let party = Party::new(parameters(10, &[50; 4], &[50], t), &[]);
    let evaluator = party.evaluator();
    let mut x = random(1024, t, 35);
    let mut a = party.encrypt(&x, Packing::Slots);
    let mut depth = 0;
    let mut refused = loop {
        match evaluator.square(&a) {
            Ok(next) => {
                x = map2(&x, &x, |x, _| x * x % 65537);
                party.check("power", &next, &x);
                (a, depth) = (next, depth + 1);
            }
            Err(BfvError::NoiseExhausted { operation: "multiply", budget }) => {
                assert!(budget < 1.0);
                break a;
            }
            Err(other) => panic!("{other}"),
        }
    };
    assert!(depth >= 4, "{depth}");
    // A forger of the estimate gets right results while the budget lasts, and then an error.
    let mut overflowed = false;
    for _ in 0..4 {
        refused.estimate.log_deviation = -190.0;
        refused.estimate.log_peak = -190.0;
        refused = evaluator.square(&refused).unwrap();
        x = map2(&x, &x, |x, _| x * x % 65537);
        match party.decryptor().decrypt(&refused) {
            Ok(plaintext) => {
                assert!(!overflowed);
                assert_eq!(plaintext.residues(), x);
                assert!(party.decryptor().noise_budget(&refused).unwrap() >= 1.0);
            }
            Err(error) => {
                assert_eq!(error, BfvError::NoiseOverflow);
                assert!(party.decryptor().noise_budget(&refused).unwrap() < 1.0);
                overflowed = true;
            }
        }
    }
    assert!(overflowed);
}
