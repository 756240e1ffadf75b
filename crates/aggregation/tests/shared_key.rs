//! Sums under one shared secret: exact, and refused if they would not be.
#![expect(clippy::unwrap_used, reason = "tests")]

use keywright_aggregation::{
    AggregationError, Binding, Contributor, EncryptedSum, EncryptedUpdate, MAX_INPUTS, Residues, SumKey,
    SumParameters,
};
use keywright_ring::{Modulus, Seed};
use keywright_ring_testing::rng;
use proptest::prelude::*;

fn binding(client: u64) -> Binding {
    Binding { session: [7; 16], round: 3, client, weight: 10 + client as u32 }
}

fn key(max_inputs: u32, magnitude: u64) -> SumKey {
    SumKey::sample(&SumParameters::new(max_inputs, magnitude).unwrap(), &mut rng(1)).unwrap()
}

fn sum_of(key: &SumKey, updates: &[EncryptedUpdate]) -> Result<EncryptedSum, AggregationError> {
    EncryptedSum::of(key.parameters(), &updates.iter().collect::<Vec<_>>())
}

/// The same sum with parts replaced, as an attacker in between could.
fn altered(key: &SumKey, sum: &EncryptedSum, change: impl FnOnce(&mut Vec<Contributor>)) -> EncryptedSum {
    let mut contributors = sum.contributors().to_vec();
    change(&mut contributors);
    EncryptedSum::new(key.parameters(), *sum.session(), sum.round(), contributors, sum.residues().clone())
        .unwrap()
}

/// `m` with the largest and smallest values as likely as those between.
fn spread(state: &mut u64, magnitude: i64) -> i64 {
    *state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
    match *state >> 61 {
        0 => magnitude,
        1 => -magnitude,
        2 => 0,
        _ => (*state >> 8) as i64 % (magnitude + 1) * if *state & 128 == 0 { 1 } else { -1 },
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn sums_are_exact(
        (inputs, bits) in prop_oneof![Just((15u32, 8u32)), Just((15, 24)), Just((30, 30)), Just((3, 40))],
        count in prop_oneof![Just(1usize), 2045usize..2052, 4090usize..4100],
        seed in any::<u64>(),
    ) {
        let key = key(inputs, (1 << bits) - 1);
        let mut state = seed | 1;
        let mut expected = vec![0i64; count];
        let updates: Vec<_> = (0..inputs).map(|client| {
            let values: Vec<i64> = (0..count).map(|_| spread(&mut state, (1 << bits) - 1)).collect();
            expected.iter_mut().zip(&values).for_each(|(sum, value)| *sum += value);
            key.encrypt(&values, binding(client.into()), &mut rng(client as u8)).unwrap()
        }).collect();
        let sum = sum_of(&key, &updates).unwrap();
        prop_assert_eq!(&**key.decrypt(&sum).unwrap(), &expected[..]);
        prop_assert_eq!(sum.residues().planes().len(), count * key.parameters().value_bytes());
        prop_assert_eq!(sum.total_weight(), (0..u64::from(inputs)).map(|client| 10 + client).sum::<u64>());
    }
}

/// Everything at its largest, up to the last update that the modulus can hold.
#[test]
fn extreme_values_fill_the_modulus_without_overflow() {
    let key = key(20, 100_000);
    let capacity = key.parameters().capacity();
    assert!((20..500).contains(&capacity), "{capacity}: the test would be slow");
    for sign in [1, -1] {
        let values = [sign * 100_000; 5];
        let encrypt = |client: u32| key.encrypt(&values, binding(client.into()), &mut rng(4)).unwrap();
        let mut updates: Vec<_> = (0..capacity).map(encrypt).collect();
        let sum = sum_of(&key, &updates).unwrap();
        assert_eq!(**key.decrypt(&sum).unwrap(), [i64::from(capacity) * values[0]; 5]);
        updates.push(encrypt(capacity));
        let refused = sum_of(&key, &updates);
        assert!(
            matches!(refused, Err(AggregationError::Range { value, max, .. }) if value == max + 1 && max == u64::from(capacity))
        );
    }
}

/// The decryption equation by schoolbook multiplication, with the expander of `docs/reference/format.md`.
#[test]
fn a_ciphertext_is_what_the_documentation_says() {
    use sha2::{Digest, Sha256};

    let key = key(4, 1 << 20);
    let parameters = key.parameters();
    let (n, q) = (parameters.rlwe().n(), i128::from(parameters.modulus().value()));
    let values = [5, -(1 << 20), 77];
    let update = key.encrypt(&values, binding(9), &mut rng(2)).unwrap();
    let mut hash = Sha256::new();
    hash.update(b"keywright encrypted update");
    hash.update([7; 16]);
    hash.update(3u32.to_le_bytes());
    hash.update(9u64.to_le_bytes());
    hash.update(19u32.to_le_bytes());
    hash.update(3u32.to_le_bytes());
    hash.update(update.seed().0);
    let seed = Seed(hash.finalize().into());
    let mut a = vec![0; n];
    let ring = parameters.rlwe().ring();
    let id = keywright_ring::StreamId { object: 7 << 40, digit: 0, limb: 0 };
    ring.backend().expand_uniform(&seed, id, parameters.modulus(), &mut a);
    ring.inverse_limb(0, &mut a);
    let secret = key.secret().coefficients();
    let planes = update.residues().planes();
    for (i, &value) in values.iter().enumerate() {
        let low = u32::from_le_bytes(planes[4 * i..4 * i + 4].try_into().unwrap());
        let high = (4..parameters.value_bytes()).map(|j| i128::from(planes[3 * j + i]) << (8 * j));
        let b = i128::from(low) + high.sum::<i128>();
        let product: i128 = (0..n)
            .map(|j| {
                let (k, sign) = if j <= i { (i - j, 1) } else { (n + i - j, -1) };
                sign * i128::from(a[j]) * i128::from(secret[k])
            })
            .sum();
        let error = (b + product - (i128::from(value) << parameters.noise_bits())).rem_euclid(q);
        assert!(error <= 29 || error >= q - 29, "error {error} modulo {q}");
    }
}

#[test]
fn altered_claims_and_foreign_keys_do_not_decrypt() {
    let key = key(5, 1000);
    let updates: Vec<_> =
        (0..3).map(|client| key.encrypt(&[1; 40], binding(client), &mut rng(3)).unwrap()).collect();
    let sum = sum_of(&key, &updates).unwrap();
    assert_eq!(**key.decrypt(&sum).unwrap(), [3; 40]);
    let undecodable = |key: &SumKey, sum: &EncryptedSum| {
        assert_eq!(
            key.decrypt(sum).err(),
            Some(AggregationError::Undecodable { inputs: sum.contributors().len() })
        );
    };
    undecodable(&key, &altered(&key, &sum, |contributors| contributors[1].weight += 1));
    undecodable(&key, &altered(&key, &sum, |contributors| contributors[1].client = 99));
    undecodable(&key, &altered(&key, &sum, |contributors| contributors[0].seed.0[31] ^= 1));
    undecodable(&key, &altered(&key, &sum, |contributors| contributors.truncate(2)));
    let moved = EncryptedSum::new(
        key.parameters(),
        *sum.session(),
        4,
        sum.contributors().to_vec(),
        sum.residues().clone(),
    );
    undecodable(&key, &moved.unwrap());
    let other = SumKey::sample(key.parameters(), &mut rng(9)).unwrap();
    undecodable(&other, &sum);
    let garbage = Residues::from_planes(key.parameters().value_bytes(), vec![0xA5; 40 * 4]).unwrap();
    let garbage = EncryptedUpdate::new(key.parameters(), binding(8), *updates[0].seed(), garbage).unwrap();
    undecodable(&key, &sum_of(&key, &[updates[0].clone(), garbage]).unwrap());
}

#[test]
fn what_cannot_be_added_is_refused() {
    let key = key(5, 1000);
    let encrypt = |values: &[i64], binding| key.encrypt(values, binding, &mut rng(3));
    let one = encrypt(&[1, 2], binding(1)).unwrap();
    let refusal = |other| match sum_of(&key, &[one.clone(), other]) {
        Err(AggregationError::Mismatch { what, client: 2, .. }) => what,
        other => panic!("{other:?}"),
    };
    assert_eq!(refusal(encrypt(&[1], binding(2)).unwrap()), "number of values");
    assert_eq!(refusal(encrypt(&[1, 2], Binding { round: 4, ..binding(2) }).unwrap()), "round");
    assert_eq!(refusal(encrypt(&[1, 2], Binding { session: [8; 16], ..binding(2) }).unwrap()), "session");
    assert_eq!(sum_of(&key, &[one.clone(), one.clone()]).err(), Some(AggregationError::Duplicate(1)));
    assert!(matches!(sum_of(&key, &[]), Err(AggregationError::Range { value: 0, min: 1, .. })));
    for value in [1001, -1001, i64::MIN, i64::MAX] {
        let refused = encrypt(&[0, value], binding(1)).err();
        assert_eq!(refused, Some(AggregationError::Magnitude { index: 1, value, magnitude: 1000 }));
    }
    assert!(matches!(encrypt(&[], binding(1)), Err(AggregationError::Range { .. })));
    assert!(matches!(
        encrypt(&[1], Binding { weight: 0, ..binding(1) }),
        Err(AggregationError::Range { what: "weight", .. })
    ));
    let foreign = SumParameters::new(5, 1 << 30).unwrap();
    assert!(matches!(EncryptedSum::of(&foreign, &[&one]), Err(AggregationError::Range { .. })));
    assert!(MAX_INPUTS >= key.parameters().capacity());
}

/// Residues of equal messages look uniform: each of 16 classes of the modulus occurs equally often.
#[test]
fn updates_do_not_repeat_and_are_spread() {
    let key = key(5, 1000);
    let q = Modulus::value(key.parameters().modulus());
    let update = |byte| key.encrypt(&[0; 1 << 14], binding(1), &mut rng(byte)).unwrap();
    let (first, second) = (update(1), update(2));
    assert_ne!(first.seed(), second.seed());
    assert_eq!(key.parameters().value_bytes(), 4);
    let words = |update: &EncryptedUpdate| -> Vec<u32> {
        update.residues().planes().as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
    };
    let mut classes = [0f64; 16];
    words(&first).iter().for_each(|&word| classes[(u64::from(word) * 16 / q) as usize] += 1.0);
    // Binomial: mean 1024, deviation 31.
    assert!(classes.iter().all(|&class| (class - 1024.0).abs() < 6.0 * 31.0), "{classes:?}");
    let equal = words(&first).iter().zip(words(&second)).filter(|(x, y)| **x == *y).count();
    assert!(equal < 5, "{equal} equal residues");
}
