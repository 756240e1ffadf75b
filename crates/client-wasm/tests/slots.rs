//! A client of slots: the full library reads and decrypts what it sends, and headers are the same for all messages.
#![expect(clippy::unwrap_used, reason = "a test")]

use keywright_ckks::{CkksLiteral, CkksParameters, SeededCiphertext};
use keywright_client_wasm::{SlotsClient, SlotsParameters};
use keywright_rlwe::{KeyElement, KeySpec, ParametersLiteral, Security};
use keywright_wire::{KeySetReader, KeySetWriter, Wire};

const LEVEL: usize = 2;
/// Bytes before the residues of a seeded ciphertext of these parameters, at least: kind, level, seed, magnitude.
const HEADER: usize = 100;

fn literal() -> CkksLiteral {
    let mut rlwe = ParametersLiteral::from_bits(10, &[50, 40, 40], &[50]).unwrap();
    rlwe.security = Security::InsecureForExperiments;
    CkksLiteral { rlwe, log_scale: 40.0 }
}

/// 32 bytes that count up from a number.
fn client(from: u8) -> SlotsClient {
    let entropy: Vec<u8> = (from..from + 32).collect();
    SlotsClient::new(&literal().to_bytes(&()).unwrap(), &entropy).unwrap()
}

fn values() -> Vec<f64> {
    (0..256).map(|i| f64::from(i % 17) / 16.0).collect()
}

#[test]
fn what_it_encrypts_is_decrypted() {
    let parameters = CkksParameters::new(literal()).unwrap();
    let mut client = client(1);
    let sent = client.encrypt(&values(), LEVEL, 0, 2.0).unwrap();
    let read = SeededCiphertext::from_bytes(&sent, &parameters).unwrap().expand();
    assert_eq!(read.level(), LEVEL);
    let back = client.decrypt(&read.to_bytes(&parameters).unwrap()).unwrap();
    assert_eq!(back.len(), values().len());
    for (back, value) in back.iter().zip(values()) {
        assert!((back - value).abs() < 1e-6, "{back} for {value}");
    }
}

#[test]
fn messages_of_equal_randomness_have_equal_headers() {
    let [one, other] =
        [values(), vec![-0.5; 256]].map(|values| client(1).encrypt(&values, LEVEL, 0, 2.0).unwrap());
    assert_eq!(one.len(), other.len());
    assert_ne!(one, other);
    assert_eq!(one[..HEADER], other[..HEADER]);
    assert_ne!(one, client(2).encrypt(&values(), LEVEL, 0, 2.0).unwrap());
}

#[test]
fn a_second_encryption_has_other_randomness() {
    let mut client = client(1);
    let [one, other] = [0, 1].map(|_| client.encrypt(&values(), LEVEL, 0, 2.0).unwrap());
    assert_ne!(one, other);
}

#[test]
fn the_keys_of_its_secret_are_read_and_a_stream_goes_back() {
    let parameters = CkksParameters::new(literal()).unwrap();
    let rlwe = parameters.rlwe();
    let specs = vec![
        KeySpec::new(rlwe, KeyElement::Relinearization, 2, 1, true),
        KeySpec::new(rlwe, KeyElement::Galois(5), 1, 1, true),
    ];
    let mut head = Vec::new();
    KeySetWriter::new(&mut head, &specs, rlwe).unwrap();
    let mut stream = client(1).key_stream(&head).unwrap();
    let mut rest = || std::iter::from_fn(|| stream.next_part().unwrap()).flatten().collect::<Vec<u8>>();
    let keys = rest();
    let read: Vec<_> = KeySetReader::new(&keys[..], rlwe).unwrap().collect::<Result<_, _>>().unwrap();
    assert_eq!(read.len(), 2);
    stream.seek(5000.0).unwrap();
    let mut again = Vec::new();
    while let Some(part) = stream.next_part().unwrap() {
        again.extend(part);
    }
    assert_eq!(again, keys[5000..]);
}

#[test]
fn parameters_are_summarised() {
    let read = SlotsParameters::new(&literal().to_bytes(&()).unwrap()).unwrap();
    assert_eq!((read.log_n(), read.capacity(), read.insecure()), (10, 512, true));
    assert_eq!(read.bits(0), 50);
    assert_eq!(read.bits(LEVEL), 130);
}
