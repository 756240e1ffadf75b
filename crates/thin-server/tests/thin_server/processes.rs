//! Forked children of a process that has a client.

use std::collections::BTreeSet;

use keywright_client::{Client, ClientError, Encryptor, Entropy, Form, SystemEntropy};
use keywright_ring::RingError;
use keywright_ring_testing::children::in_child;
use keywright_rlwe::{KeyElement, KeySpec};

use crate::fixture::{entropy, entry, generic_primes, toy};

/// The objects of a process when it forks: everything is drawn from these or from the system's randomness.
struct Party {
    client: Client,
    encryptor: Encryptor,
}

impl Party {
    fn new(platform: &mut dyn Entropy) -> Self {
        let (_, parameters) = entry(12, generic_primes()[1], 20);
        let mut client = Client::generate(&parameters, platform).unwrap();
        let mut key = Vec::new();
        client.public_key(&mut key).unwrap();
        Self { client, encryptor: Encryptor::new(&parameters, &key, platform).unwrap() }
    }
}

type Draw = fn(&mut Party) -> Result<Vec<u8>, ClientError>;

const DRAWS: [(&str, Draw); 6] = [
    ("public key", |party| {
        let mut out = Vec::new();
        party.client.public_key(&mut out).map(|()| out)
    }),
    ("session", |party| Ok(party.client.session()?.to_vec())),
    ("whole, with the secret", |party| {
        let mut out = Vec::new();
        party.client.encrypt(&[0i64][..], Form::Evaluations, &mut out).map(|()| out)
    }),
    ("compact, with the secret", |party| {
        let mut out = Vec::new();
        party.client.encrypt(&[0i64][..], Form::Compact([3, 0]), &mut out).map(|()| out)
    }),
    ("whole, with the public key", |party| {
        let mut out = Vec::new();
        party.encryptor.encrypt(&[0i64][..], Form::Evaluations, &mut out).map(|()| out)
    }),
    ("compact, with the public key", |party| {
        let mut out = Vec::new();
        party.encryptor.encrypt(&[0i64][..], Form::Compact([3, 3]), &mut out).map(|()| out)
    }),
];

/// Whole ciphertexts have a seed or uniform residues everywhere: two of them share hardly any byte.
fn assert_apart(what: &str, seen: &[Vec<u8>]) {
    assert_eq!(seen.iter().collect::<BTreeSet<_>>().len(), seen.len(), "{what}");
    for (i, one) in seen.iter().enumerate().filter(|(_, one)| one.len() > 1000) {
        for other in &seen[..i] {
            let equal = one.iter().zip(other).skip(300).filter(|(a, b)| a == b).count();
            assert!(equal < one.len() / 64, "{what}: {equal} of {} bytes", one.len());
        }
    }
}

#[test]
fn processes_draw_apart() {
    let mut party = Party::new(&mut SystemEntropy);
    for (what, draw) in DRAWS {
        let mut seen = vec![draw(&mut party).unwrap()];
        for _ in 0..2 {
            seen.push(in_child(|| draw(&mut party).unwrap()));
            seen.push(in_child(|| in_child(|| draw(&mut party).unwrap())));
        }
        seen.push(draw(&mut party).unwrap());
        assert_apart(what, &seen);
    }
}

#[test]
fn a_copy_of_a_platforms_entropy_draws_nothing() {
    for (what, draw) in DRAWS {
        let mut party = Party::new(&mut entropy(7));
        let refused = in_child(|| {
            let answer = draw(&mut party);
            vec![matches!(answer, Err(ClientError::Ring(RingError::Forked { .. }))).into()]
        });
        assert_eq!(refused, [1], "{what}");
        let expected = draw(&mut Party::new(&mut entropy(7))).unwrap();
        assert!(draw(&mut party).unwrap() == expected, "{what}: the parent is disturbed");
        // A child whose platform supplies the same randomness makes the same object.
        assert!(in_child(|| draw(&mut Party::new(&mut entropy(7))).unwrap()) == expected, "{what}");
    }
}

/// A key belongs to its session: children that continue a stream send what their parent would.
#[test]
fn keys_of_a_session_are_the_same_in_every_process() {
    let (parameters, plan) = toy(10, 3, keywright_circuits::bootstrapping::Values::Real);
    let rlwe = parameters.rlwe();
    let thin = keywright_thin_server::client_parameters(&parameters, &plan, 20).unwrap();
    let mut client = Client::generate(&thin, &mut SystemEntropy).unwrap();
    let session = client.session().unwrap();
    let specs = [1, 5].map(|g| KeySpec::new(rlwe, KeyElement::Galois(g), 1, 1, true));
    let mut stream = client.keys(rlwe, &specs, &session).unwrap();
    let mut all = || {
        let mut out = Vec::new();
        while stream.write_next(&mut out, &mut |_| ()).unwrap() {}
        out
    };
    let (first, second) = (in_child(&mut all), in_child(&mut all));
    assert!(first == second && first == all());
}
