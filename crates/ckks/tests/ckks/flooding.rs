//! The key recovery of Li and Micciancio (EUROCRYPT 2021). It finds the secret from exact decryptions, and from the
//! mean of decryptions with too little noise, but not from flooded ones.

use keywright_ckks::encoder::Integers;
use keywright_ckks::{
    Ciphertext, CkksError, CkksLiteral, CkksParameters, Decryptor, Encryptor, Evaluator, Flooding, Packing,
};
use keywright_ring::sampling::ternary;
use keywright_ring_testing::rng;
use keywright_rlwe::{EvaluationKeys, KeyGenerator, SecretKey};

use crate::values;

const LOG_N: u32 = 10;
const SLOTS: Packing = Packing::Slots { log_slots: LOG_N - 1 };

fn parameters() -> CkksParameters {
    CkksParameters::new(CkksLiteral::from_bits(LOG_N, &[60, 50], &[60], 50.0).unwrap().insecure()).unwrap()
}

/// An encryption of values between -1 and 1, both public.
fn encrypted(parameters: &CkksParameters, secret: &SecretKey, packing: Packing, level: usize) -> Ciphertext {
    let key = KeyGenerator::new(secret, rng(2)).public_key();
    let mut encryptor = Encryptor::new(parameters, &key, rng(3)).unwrap();
    let count = match packing {
        Packing::Slots { log_slots } => 1 << log_slots,
        Packing::Coefficients => parameters.rlwe().n(),
    };
    encryptor.encrypt_real(&values(count, 4), packing, level).unwrap()
}

/// The solution of `c_0 + c_1 s = m` modulo the first prime, where `m` are decrypted coefficients: the attacker's
/// computation. `None` if it is not a ternary polynomial.
fn recover(ciphertext: &Ciphertext, decrypted: &[f64]) -> Option<Vec<i64>> {
    let rlwe = ciphertext.parameters.rlwe();
    let (ring, modulus) = (rlwe.ring(), rlwe.modulus(0));
    let integers =
        Integers::coefficients(ciphertext.parameters.embedding(), decrypted, ciphertext.scale).unwrap();
    let mut limb = vec![0; rlwe.n()];
    integers.residues(modulus, &mut limb);
    ring.forward_limb(0, &mut limb);
    for (x, (c0, c1)) in
        limb.iter_mut().zip(ciphertext.rlwe.polys[0].limb(0).iter().zip(ciphertext.rlwe.polys[1].limb(0)))
    {
        assert_ne!(*c1, 0, "another ciphertext would do");
        *x = modulus.mul(modulus.sub(*x, *c0), modulus.inv(*c1));
    }
    ring.inverse_limb(0, &mut limb);
    let candidate: Vec<i64> = limb.iter().map(|&x| modulus.centered(x)).collect();
    candidate.iter().all(|x| x.abs() <= 1).then_some(candidate)
}

#[test]
fn plain_decryptions_give_the_secret_away_and_flooded_ones_do_not() {
    let parameters = parameters();
    let secret = SecretKey::sample(parameters.rlwe(), &mut rng(1)).unwrap();
    let decryptor = Decryptor::new(&parameters, &secret).unwrap();
    let ciphertext = encrypted(&parameters, &secret, Packing::Coefficients, 0);
    // At the scale of 2^50 one unit is 2^-50, and doubles below 1 are exact to 2^-53.
    let plain = decryptor.decrypt_real(&ciphertext).unwrap();
    assert_eq!(recover(&ciphertext, &plain).unwrap(), secret.coefficients());

    // The mean of enough queries removes little noise: count the queries of an attacker who may ask again.
    let queries = 64;
    let mean = |query: &mut dyn FnMut() -> Vec<f64>| {
        // Differences from the first answer, so that the sum is exact enough.
        let (first, mut sum) = (query(), vec![0.0; plain.len()]);
        for _ in 1..queries {
            for ((sum, x), first) in sum.iter_mut().zip(query()).zip(&first) {
                *sum += x - first;
            }
        }
        sum.iter().zip(&first).map(|(sum, first)| first + sum / queries as f64).collect::<Vec<_>>()
    };
    let (mut noise, mut generator) = (vec![0; plain.len()], rng(5));
    let weak = mean(&mut || {
        ternary(&mut generator, &mut noise);
        plain.iter().zip(&noise).map(|(x, &e)| x + e as f64 / ciphertext.scale).collect()
    });
    assert_eq!(recover(&ciphertext, &weak).unwrap(), secret.coefficients());

    let (flooding, mut generator) = (Flooding::new(10, queries).unwrap(), rng(6));
    let bound = flooding.error_bound(&ciphertext).unwrap();
    let flooded = mean(&mut || {
        let seen = decryptor.decrypt_real_flooded(&ciphertext, &flooding, &mut generator).unwrap();
        let error = seen.iter().zip(&plain).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        // The noise is present, and the bound is valid and useful: among this many samples, one exceeds two deviations.
        assert!(error < bound && error > bound / 9.0, "{error:e} of {bound:e}");
        seen
    });
    assert_eq!(recover(&ciphertext, &flooded), None);
    // The attacker would have to guess the secret from this noise, which is still larger than that of the ciphertext.
    let left = flooded.iter().zip(&plain).map(|(a, b)| (a - b).powi(2)).sum::<f64>() / plain.len() as f64;
    assert!(left.sqrt() > 100.0 * ciphertext.estimate.deviation, "{:e}", left.sqrt());

    assert_eq!(flooding.remaining(), 0);
    let refused = decryptor.decrypt_real_flooded(&ciphertext, &flooding, &mut generator);
    assert_eq!(refused.unwrap_err(), CkksError::FloodingSpent { queries });
}

/// The measured deviation of decryptions against its definition, for every packing.
#[test]
fn noise_has_the_derived_deviation() {
    let parameters = parameters();
    let secret = SecretKey::sample(parameters.rlwe(), &mut rng(1)).unwrap();
    let decryptor = Decryptor::new(&parameters, &secret).unwrap();
    let (bits, queries) = (12, 5);
    for packing in [SLOTS, Packing::Slots { log_slots: 4 }, Packing::Coefficients] {
        let ciphertext = encrypted(&parameters, &secret, packing, 1);
        let plain = decryptor.decrypt_real(&ciphertext).unwrap();
        let flooding = Flooding::new(bits, queries).unwrap();
        let (mut sum, mut generator) = (0.0, rng(7));
        for _ in 0..queries {
            let seen = decryptor.decrypt_real_flooded(&ciphertext, &flooding, &mut generator).unwrap();
            sum += seen.iter().zip(&plain).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
        }
        let samples = (queries as usize * plain.len()) as f64;
        // Decoded coefficients, and how many of them add up in a real value: half of them in the real part of a slot.
        let (decoded, met) = match packing {
            Packing::Slots { log_slots } => {
                (2.0 * f64::from(1u32 << log_slots), f64::from(1u32 << log_slots))
            }
            Packing::Coefficients => (f64::from(1u32 << LOG_N), 1.0),
        };
        // 21 deviations in the worst of all directions: of the slots, or of all coefficients.
        let error = match packing {
            Packing::Slots { .. } => 21.0 * ciphertext.estimate.deviation,
            Packing::Coefficients => 21.0 * decoded.sqrt() * ciphertext.estimate.deviation,
        };
        let norm = error + decoded.sqrt() / 2.0 / ciphertext.scale;
        let least = (12.0 * queries as f64).sqrt() * 2f64.powi(bits as i32 / 2) * norm * met.sqrt();
        let seen = (sum / samples).sqrt();
        // The measured deviation of this many normal variables has an error of 1 / sqrt(2 samples); allow six of these.
        // It is at most 1.6 times the required one.
        let off = 6.0 / (2.0 * samples).sqrt();
        assert!(
            seen > least * (1.0 - off) && seen < 1.6 * least * (1.0 + off),
            "{packing}: {seen:e}, {least:e}"
        );
    }
}

#[test]
fn what_leaves_nothing_is_refused() {
    let parameters = parameters();
    let secret = SecretKey::sample(parameters.rlwe(), &mut rng(1)).unwrap();
    let decryptor = Decryptor::new(&parameters, &secret).unwrap();
    let ciphertext = encrypted(&parameters, &secret, SLOTS, 1);
    let flooding = Flooding::new(60, 1).unwrap();
    let Err(CkksError::FloodingTooLarge { lost, error, limit, .. }) = flooding.error_bound(&ciphertext)
    else {
        panic!("no such error");
    };
    assert!(error >= limit && limit == ciphertext.estimate.magnitude);
    assert!((lost - (error / ciphertext.error_bound()).log2()).abs() < 1e-9);
    assert!(decryptor.decrypt_flooded(&ciphertext, &flooding, &mut rng(8)).is_err());
    assert_eq!(flooding.remaining(), 1, "nothing was decrypted");

    // With an estimate without information on the values, the modulus remains as the limit.
    let keys = EvaluationKeys::new(parameters.rlwe());
    let mut large = Evaluator::new(&parameters, &keys).unwrap().drop_to_level(&ciphertext, 0).unwrap();
    large.estimate.magnitude = f64::MAX;
    let refused = Flooding::new(64, 1 << 16).unwrap().error_bound(&large);
    assert!(
        matches!(refused, Err(CkksError::FloodingTooLarge { what: "the modulus has room for", .. })),
        "{refused:?}"
    );

    for (bits, queries, what) in
        [(0, 1, "bits"), (65, 1, "bits"), (1, 0, "queries"), (1, (1 << 32) + 1, "queries")]
    {
        let refused = Flooding::new(bits, queries).unwrap_err();
        assert!(
            matches!(refused, CkksError::FloodingRange { what: named, .. } if named == what),
            "{refused}"
        );
    }
}
