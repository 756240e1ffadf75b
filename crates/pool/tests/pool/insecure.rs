//! Chem's sums are right, and the attack decides every challenge. The same attack on the pool decides none.

use keywright_bfv::{BfvLiteral, BfvParameters};
use keywright_ckks::{Ciphertext, CkksParameters, Decryptor, Magnitude};
use keywright_pool::ckks::CkksPool;
use keywright_pool::insecure::attack::Distinguisher;
use keywright_pool::insecure::{ChemBfv, ChemCkks, ChemEncryptor, InsecureAcknowledged};
use keywright_pool::{PoolError, WhenEmpty};
use keywright_ring::sampling::SecretRng;
use keywright_rlwe::{PublicKey, RlweCiphertext};

use crate::fixture::{keys, options, parameters, pool, rlwe_keys, rng};

fn chem(
    parameters: &CkksParameters,
    key: &PublicKey,
    bits: u32,
    radix: u64,
    unit: f64,
    rng: SecretRng,
) -> Result<ChemEncryptor<ChemCkks>, PoolError> {
    let scheme = ChemCkks::new(parameters, 1, bits, unit)?;
    ChemEncryptor::new(InsecureAcknowledged::ChemIsBroken, scheme, key, 1, bits, radix, rng)
}

#[test]
fn every_radix_decrypts_within_the_bound() {
    let parameters = parameters();
    let (secret, public) = keys(&parameters);
    let decryptor = Decryptor::new(&parameters, &secret).unwrap();
    for (radix, powers) in [(2, 8), (3, 6), (7, 3), (10, 3), (16, 2), (255, 2), (256, 1), (1 << 32, 1)] {
        let mut chem = chem(&parameters, &public, 8, radix, 1.0 / 256.0, rng(9)).unwrap();
        assert_eq!(chem.cached(), powers + 8, "radix {radix}");
        for message in [0, 1, 2, 100, 127, 128, 254, 255] {
            let ciphertext = chem.encrypt(message).unwrap();
            let bound = ciphertext.error_bound();
            for value in decryptor.decrypt_real(&ciphertext).unwrap() {
                assert!((value - message as f64 / 256.0).abs() <= bound, "radix {radix}, {message}");
            }
        }
        assert!(matches!(chem.encrypt(256), Err(PoolError::ChemMessage { value: 256, bits: 8 })));
    }
}

#[test]
fn bfv_sums_are_exact_modulo_t() {
    let rlwe = parameters().rlwe().literal().clone();
    let parameters = BfvParameters::new(BfvLiteral { rlwe, plaintext_modulus: 12289 }).unwrap();
    let (secret, public) = rlwe_keys(parameters.rlwe());
    let decryptor = keywright_bfv::Decryptor::new(&parameters, &secret).unwrap();
    for (bits, radix) in [(14, 2), (14, 10), (128, 2), (64, 3)] {
        let scheme = ChemBfv::new(&parameters, 1);
        let acknowledged = InsecureAcknowledged::ChemIsBroken;
        let mut chem = ChemEncryptor::new(acknowledged, scheme, &public, 1, bits, radix, rng(9)).unwrap();
        for message in [0, 1, 12288, u128::MAX >> (128 - bits)] {
            let ciphertext = chem.encrypt(message).unwrap().unwrap();
            let residue = (message % 12289) as i64;
            let expected = if residue > 6144 { residue - 12289 } else { residue };
            assert_eq!(
                decryptor.decrypt(&ciphertext).unwrap().decode(),
                vec![expected; 1024],
                "{bits}, {radix}"
            );
        }
    }
}

#[test]
fn what_the_modulus_cannot_hold_is_refused() {
    let parameters = parameters();
    let (_, public) = keys(&parameters);
    let new = |bits, radix, unit| chem(&parameters, &public, bits, radix, unit, rng(9)).unwrap_err();
    // 90 bits of modulus, 36 of scale, one of sign.
    assert!(chem(&parameters, &public, 52, 2, 1.0, rng(9)).is_ok());
    assert!(matches!(new(53, 2, 1.0), PoolError::Ckks(_)));
    for unit in [1e-12, 0.0, -1.0, f64::NAN, f64::NEG_INFINITY] {
        assert!(matches!(new(8, 2, unit), PoolError::ChemUnit { .. }), "{unit}");
    }
    assert!(matches!(new(8, 2, f64::INFINITY), PoolError::Ckks(_)));
    assert!(matches!(new(8, 1, 1.0), PoolError::Range { value: 1, .. }));
    assert!(matches!(new(0, 2, 1.0), PoolError::Range { value: 0, .. }));
}

/// Plays the game: known ciphertexts of one message, and challenges of that message or of another. Returns how often
/// the attacker was right.
fn right_answers(
    parameters: &CkksParameters,
    bits: usize,
    challenges: usize,
    coins: &mut SecretRng,
    mut encrypt: impl FnMut(bool) -> Ciphertext,
) -> usize {
    let known: Vec<RlweCiphertext> = (0..bits + 32).map(|_| encrypt(false).rlwe).collect();
    let attacker = Distinguisher::learn(&known, parameters.rlwe().modulus(0)).unwrap();
    (0..challenges)
        .filter(|_| {
            let other = coins.next_word() & 1 == 1;
            attacker.recognises(&encrypt(other).rlwe) != other
        })
        .count()
}

#[test]
fn the_attack_on_chem_is_always_right() {
    let parameters = parameters();
    for bits in [16, 32, 64, 128] {
        let (mut coins, mut right) = (rng(bits), 0);
        // Ten keys and caches, five challenges each.
        for _ in 0..10 {
            let secret =
                keywright_rlwe::SecretKey::sample(parameters.rlwe(), &mut coins.split().unwrap()).unwrap();
            let public = keywright_rlwe::KeyGenerator::new(&secret, coins.split().unwrap()).public_key();
            // 128-bit messages do not fit. The attacked cache of zeros has n entries anyway.
            let scheme = ChemCkks::new(&parameters, 1, 52.min(bits.into()), 1.0).unwrap();
            let mut chem = ChemEncryptor::new(
                InsecureAcknowledged::ChemIsBroken,
                scheme,
                &public,
                1,
                bits.into(),
                2,
                coins.split().unwrap(),
            )
            .unwrap();
            let encrypt = |other| chem.encrypt(if other { 1000 } else { 1001 }).unwrap();
            right += right_answers(&parameters, bits.into(), 5, &mut coins, encrypt);
        }
        assert_eq!(right, 50, "{bits} bits");
    }
}

#[test]
fn the_attack_on_the_pool_is_a_guess() {
    let parameters = parameters();
    let (_, public) = keys(&parameters);
    let pool = pool(&public, options(1, 0, WhenEmpty::Encrypt));
    let messages = CkksPool::new(&parameters, &pool).unwrap().declaring(Magnitude::new(1001.0).unwrap());
    let encrypt = |other| {
        let message = messages.encode_scalar(if other { 1000.0 } else { 1001.0 }, 9).unwrap();
        messages.encrypt(&message).unwrap()
    };
    let right = right_answers(&parameters, 64, 200, &mut rng(11), encrypt);
    // It recognises nothing, and is right by chance. 200 fair coins are outside 50..=150 with a probability below
    // 2^-37.
    assert!((50..=150).contains(&right), "{right} of 200");
}
