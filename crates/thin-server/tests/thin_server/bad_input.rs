use keywright_ckks::{CkksLiteral, CkksParameters};
use keywright_client::{
    Answer, Client, ClientError, ClientLiteral, ClientParameters, Encryptor, Form, Layout, SinkError,
};
use keywright_ring::sampling::SecretRng;
use keywright_rlwe::{ParametersLiteral, RlweError, SecretDistribution, SecretKey, Security};
use keywright_thin_server::{self as server, ServerError};
use keywright_wire::WireSecret;

use crate::fixture::{SHIFT_ADD_30, SHIFT_ADD_60, entropy, entry, entry_of};

#[test]
fn nothing_starts_without_randomness() {
    let (_, thin) = entry(12, SHIFT_ADD_60, 20);
    let mut none = |_: &mut [u8]| Err(ClientError::Randomness("switched off"));
    assert_eq!(Client::generate(&thin, &mut none).unwrap_err(), ClientError::Randomness("switched off"));
    let mut missing = |_: &mut [u8]| Ok(());
    assert!(matches!(Client::generate(&thin, &mut missing), Err(ClientError::Randomness(_))));
    let mut client = Client::generate(&thin, &mut entropy(0)).unwrap();
    let mut key = Vec::new();
    client.public_key(&mut key).unwrap();
    assert!(matches!(Encryptor::new(&thin, &key, &mut missing), Err(ClientError::Randomness(_))));
    let secret = client.secret_bytes().unwrap();
    assert!(matches!(
        Client::from_secret_bytes(&thin, &secret, &mut missing),
        Err(ClientError::Randomness(_))
    ));
}

fn is_of_another_kind<T>(result: Result<T, ClientError>) -> bool {
    matches!(result, Err(ClientError::Format { problem: "it is an object of another kind", .. }))
}

#[test]
fn every_damaged_or_foreign_byte_is_an_error() {
    let (parameters, thin) = entry(12, SHIFT_ADD_30, 16);
    let mut client = Client::generate(&thin, &mut entropy(1)).unwrap();
    let mut key = Vec::new();
    client.public_key(&mut key).unwrap();
    let mut sender = Encryptor::new(&thin, &key, &mut entropy(2)).unwrap();
    let (mut public, mut compact, mut manifest) = (Vec::new(), Vec::new(), Vec::new());
    sender.encrypt(&[1u8, 2, 3][..], Form::Evaluations, &mut public).unwrap();
    sender.encrypt(&[1u8, 2, 3][..], Form::Compact([3, 1]), &mut compact).unwrap();
    thin.write_to(&mut manifest).unwrap();
    let secret = client.secret_bytes().unwrap().to_vec();
    assert_eq!(ClientParameters::from_bytes(&manifest).unwrap(), thin);
    assert_eq!(manifest.len(), ClientParameters::BYTES);

    let mut out = [0; 3];
    type Reader<'a> = Box<dyn FnMut(&[u8]) -> bool + 'a>;
    let readers: [(&[u8], Reader<'_>); 5] = [
        (&public, Box::new(|bytes| Answer::read(&thin, bytes).is_ok())),
        (&compact, Box::new(|bytes| Answer::read(&thin, bytes).is_ok())),
        (&manifest, Box::new(|bytes| ClientParameters::from_bytes(bytes).is_ok())),
        (&key, Box::new(|bytes| Encryptor::new(&thin, bytes, &mut entropy(2)).is_ok())),
        (&secret, Box::new(|bytes| Client::from_secret_bytes(&thin, bytes, &mut entropy(2)).is_ok())),
    ];
    for (bytes, mut reads) in readers {
        assert!(reads(bytes));
        let step = (bytes.len() / 61).max(1);
        for at in (0..bytes.len()).step_by(step).chain(0..bytes.len().min(120)) {
            let mut damaged = bytes.to_vec();
            damaged[at] ^= 1 << (at % 8);
            assert!(!reads(&damaged), "byte {at} of {}", bytes.len());
            assert!(!reads(&bytes[..at]), "cut at {at}");
        }
        assert!(!reads(&[bytes, &[0]].concat()));
    }
    client.decrypt(&public, &mut out).unwrap();
    assert_eq!(out.map(|x| (x as f64 / 16.0).round() * 16.0), [0.0; 3], "small numbers are near zero");

    // Of another owner.
    let mut stranger = Client::generate(&thin, &mut entropy(3)).unwrap();
    let before = out;
    let (left_key, right_key) = (stranger.key(), client.key());
    assert_ne!(left_key, right_key);
    assert_eq!(Answer::read(&thin, &public).unwrap().key(), right_key);
    for answer in [&public, &compact] {
        let Err(ClientError::Rlwe(RlweError::KeyMismatch { left_key: left, right_key: right, .. })) =
            stranger.decrypt(answer, &mut out)
        else {
            panic!("another secret decrypts");
        };
        assert_eq!((left, right), (left_key, right_key));
    }
    assert_eq!(out, before);
    // The server's library computes the same identity.
    let full = SecretKey::from_secret_bytes(&secret, parameters.rlwe()).unwrap();
    assert_eq!(full.identity(), right_key);
    assert_eq!(server::read_upload(&public, &parameters, &thin).unwrap().key(), right_key);
    assert_eq!(server::read_upload(&compact, &parameters, &thin).unwrap().key(), right_key);

    // Of other parameters: the same ring, another prime.
    let (foreign, other) = entry(12, crate::fixture::generic_primes()[0], 16);
    for answer in [&public, &compact] {
        assert!(matches!(Answer::read(&other, answer), Err(ClientError::ForeignParameters(_))));
    }
    assert!(matches!(Encryptor::new(&other, &key, &mut entropy(1)), Err(ClientError::ForeignParameters(_))));
    for upload in [&public, &compact] {
        let refused = server::read_upload(upload, &foreign, &thin);
        assert!(matches!(refused, Err(ServerError::Rlwe(RlweError::MixedParameters { .. }))));
    }
    // One object in place of another: the kind is checked before anything that depends on it.
    for bytes in [&key, &secret, &manifest] {
        assert!(is_of_another_kind(Answer::read(&thin, bytes)));
    }
    for bytes in [&public, &compact, &key, &secret] {
        assert!(is_of_another_kind(ClientParameters::from_bytes(bytes)));
    }
    for bytes in [&public, &compact, &manifest, &secret] {
        assert!(is_of_another_kind(Encryptor::new(&thin, bytes, &mut entropy(2))));
    }
    for bytes in [&public, &compact, &manifest, &key] {
        assert!(is_of_another_kind(Client::from_secret_bytes(&thin, bytes, &mut entropy(2))));
    }
    // A server refuses a secret, and names it as such.
    assert!(server::is_secret(&secret) && !server::is_secret(&public) && !server::is_secret(b"PK"));
    assert!(matches!(server::read_upload(&secret, &parameters, &thin), Err(ServerError::Wire(_))));
    assert!(server::read_upload(&[], &parameters, &thin).is_err());
    assert!(server::read_upload(&key, &parameters, &thin).is_err());
}

#[test]
fn numbers_and_buffers_that_do_not_fit_are_named() {
    let (_, thin) = entry(12, SHIFT_ADD_60, 20);
    let mut client = Client::generate(&thin, &mut entropy(1)).unwrap();
    let mut bytes = Vec::new();
    let max = thin.fixed_point().max();
    assert_eq!(
        client.encrypt(&[0, max, max + 1][..], Form::Evaluations, &mut bytes),
        Err(ClientError::NumberRange { index: 2, max, fraction_bits: 20 })
    );
    assert!(matches!(
        client.encrypt(&vec![0u8; 4097][..], Form::Evaluations, &mut bytes),
        Err(ClientError::Length { .. })
    ));
    let refused = client.encrypt(&[0u8][..], Form::Compact([49, 0]), &mut bytes);
    assert!(matches!(refused, Err(ClientError::Range { what: "dropped bits", value: 49, max: 48, .. })));
    let refused = client.encrypt(&[0u8][..], Form::Compact([0, 1]), &mut bytes);
    assert!(
        matches!(refused, Err(ClientError::Range { value: 1, max: 0, .. })),
        "nothing can be dropped from a seed"
    );
    assert!(bytes.is_empty(), "nothing was written");
    client.encrypt(&[0u8][..], Form::Evaluations, &mut bytes).unwrap();
    // A seeded ciphertext is for the server, which expands the seed.
    assert!(is_of_another_kind(client.decrypt(&bytes, &mut [0])));
    let mut full = 0;
    let mut sink = |part: &[u8]| {
        full += part.len();
        if full > 5000 { Err(SinkError("the line is cut")) } else { Ok(()) }
    };
    assert_eq!(
        client.encrypt(&[0u8][..], Form::Evaluations, &mut sink),
        Err(ClientError::Sink(SinkError("the line is cut")))
    );
}

#[test]
fn parameters_that_protect_nobody_are_refused() {
    let (parameters, thin) = entry(12, SHIFT_ADD_60, 20);
    let refused = |change: &dyn Fn(&mut ClientLiteral)| {
        let mut literal = *thin.literal();
        change(&mut literal);
        ClientParameters::new(literal).unwrap_err()
    };
    assert_eq!(
        refused(&|l| {
            l.log_n = 11;
            l.identity[0] = 11;
            l.layout = Layout::Coefficients;
        }),
        ClientError::Insecure { bits: 60, log_n: 11, bound: 53 }
    );
    assert_eq!(
        refused(&|l| l.secret = SecretDistribution::Sparse { weight: 8 }),
        ClientError::Insecure { bits: 60, log_n: 12, bound: 0 }
    );
    for change in [
        |l: &mut ClientLiteral| l.log_n = 9,
        |l: &mut ClientLiteral| l.identity[0] = 13,
        |l: &mut ClientLiteral| l.identity[3] = 2,
        |l: &mut ClientLiteral| l.modulus = 4,
        |l: &mut ClientLiteral| l.scale = (1 << 53) | 1,
        |l: &mut ClientLiteral| l.max = 0,
        |l: &mut ClientLiteral| l.layout = Layout::Slots { log_slots: 12, complex: false },
    ] {
        assert!(matches!(refused(&change), ClientError::Range { .. } | ClientError::Ring(_)));
    }
    let _ = entry_of(&parameters, 8);
}

#[test]
fn secrets_of_smaller_rings_are_read_to_the_end() {
    let bits = ParametersLiteral::from_bits(11, &[50, 40], &[61]).unwrap();
    let rlwe = ParametersLiteral { security: Security::InsecureForExperiments, ..bits };
    let rlwe = rlwe.with_subrings(&[(10, 0, None)]);
    let parameters = CkksParameters::new(CkksLiteral { rlwe, log_scale: 37.5 }).unwrap();
    let layout = Layout::Slots { log_slots: 5, complex: true };
    let thin = server::parameters_at(&parameters, 1 << 40, 20, layout).unwrap();
    let both = SecretKey::sample(parameters.rlwe(), &mut SecretRng::from_entropy(&[4; 32].into())).unwrap();
    let bytes = both.to_secret_bytes(parameters.rlwe()).unwrap().to_vec();
    let read = |bytes: &[u8]| Client::from_secret_bytes(&thin, bytes, &mut entropy(2));
    assert_eq!(read(&bytes).unwrap().key(), both.identity());

    // The body has 512 bytes of the ring of the parameters and 256 of the smaller one; checksums match the present
    // bytes.
    let (start, own) = (44 + 16 + 4, 512);
    assert_eq!(bytes.len(), start + own + 256 + 4);
    let with = |smaller: &[u8]| {
        let mut object = bytes[..start + own].to_vec();
        object.extend_from_slice(smaller);
        let body = (own + smaller.len()) as u64;
        object[36..44].copy_from_slice(&body.to_le_bytes());
        let sum = crc32fast::hash(&object[..start - 4]);
        object[start - 4..start].copy_from_slice(&sum.to_le_bytes());
        let sum = crc32fast::hash(&[&object[..start - 4], &object[start..]].concat());
        object.extend_from_slice(&sum.to_le_bytes());
        object
    };
    let smaller = &bytes[start + own..start + own + 256];
    assert_eq!(with(smaller), bytes);
    assert!(read(&with(&[])).is_ok(), "a client of a server without smaller rings has no more");
    let mut foreign = smaller.to_vec();
    foreign[255] = 0b10 << 6;
    for hostile in [&foreign[..], &smaller[..128], &smaller[..255], &[smaller, &[0]].concat()] {
        assert!(matches!(read(&with(hostile)), Err(ClientError::Format { .. })), "{} bytes", hostile.len());
    }
    assert!(matches!(read(&with(&[0; 256])), Err(ClientError::Range { .. })), "no sampled secret is zero");
}
