//! Streamed keys equal those of the full library byte for byte; a stream resumes where it was cut.

use keywright_circuits::bootstrapping::Values as Kind;
use keywright_client::{Client, ClientError, KeySetStream, SinkError};
use keywright_rlwe::{KeyElement, KeyGenerator, KeySpec, RlweError, SwitchingKey};
use keywright_thin_server as server;
use keywright_wire::{KeySetReader, KeySetWriter, Wire};
use zeroize::Zeroizing;

use crate::fixture::{entropy, full_secret, toy};
use crate::sessions::Session;

fn session() -> Zeroizing<[u8; 32]> {
    Zeroizing::new([5; 32])
}

fn all(stream: &mut keywright_client::KeyStream) -> Vec<Vec<u8>> {
    let mut keys = Vec::new();
    loop {
        let mut bytes = Vec::new();
        if !stream.write_next(&mut bytes, &mut |_| ()).unwrap() {
            return keys;
        }
        keys.push(bytes);
    }
}

#[test]
fn keys_are_the_full_librarys() {
    let (parameters, plan) = toy(10, 5, Kind::Complex);
    let rlwe = parameters.rlwe();
    let thin = server::client_parameters(&parameters, &plan, 20).unwrap();
    let client = Client::generate(&thin, &mut entropy(1)).unwrap();
    let secret = full_secret(&client, &parameters);
    let two_n = 2 * rlwe.n() as u64;
    let specs: Vec<KeySpec> =
        [KeyElement::Galois(5), KeyElement::Relinearization, KeyElement::Galois(two_n - 1)]
            .into_iter()
            .flat_map(|element| {
                [(0, 1), (5, 2), (rlwe.max_level(), 3)]
                    .map(|(level, alpha)| KeySpec::new(rlwe, element, level, alpha, true))
            })
            .collect();
    let mut stream = client.keys(rlwe, &specs, &session()).unwrap();
    assert_eq!(stream.count(), 9);
    let sizes: Vec<u64> = (0..9).map(|i| stream.key_bytes(i)).collect();
    assert_eq!(stream.total_bytes(), sizes.iter().sum());
    let (generators, mut done) = (Session::of(&session(), &client, rlwe), 0);
    for (spec, size) in specs.iter().zip(sizes) {
        let mut bytes = Vec::new();
        let mut last = done;
        assert!(
            stream
                .write_next(&mut bytes, &mut |progress| {
                    assert!(progress.bytes > last && progress.bytes <= progress.total);
                    last = progress.bytes;
                })
                .unwrap()
        );
        done += size;
        assert_eq!(last, done);
        let full = KeyGenerator::new(&secret, generators.key(rlwe, spec)).switching_key(spec).unwrap();
        assert!(bytes == full.to_bytes(rlwe).unwrap(), "{spec:?}");
        assert_eq!(bytes.len() as u64, size);
    }
    assert!(!stream.write_next(&mut Vec::new(), &mut |_| ()).unwrap());
}

#[test]
fn a_stream_goes_on_where_it_was_cut() {
    let (parameters, plan) = toy(10, 9, Kind::Complex);
    let rlwe = parameters.rlwe();
    let thin = server::client_parameters(&parameters, &plan, 20).unwrap();
    let client = Client::generate(&thin, &mut entropy(1)).unwrap();
    let specs = plan.required_keys();
    assert!(specs.iter().filter(|spec| spec.element.ephemeral_weight().is_some()).count() > 2);
    let whole = all(&mut client.keys(rlwe, &specs, &session()).unwrap());
    for bytes in &whole {
        SwitchingKey::from_bytes(bytes, rlwe).unwrap();
    }
    // For every amount of the secret that is kept: nothing, a few primes, all.
    for primes in [0, 3, 100] {
        let mut stream = client.keys(rlwe, &specs, &session()).unwrap();
        stream.keep(8 * rlwe.n() * primes + 7);
        assert!(all(&mut stream) == whole, "{primes} transforms kept");
    }
    for cut in [1, specs.len() / 2, specs.len() - 1, specs.len()] {
        let mut stream = client.keys(rlwe, &specs, &session()).unwrap();
        stream.skip_to(cut).unwrap();
        assert_eq!(stream.next(), cut);
        assert!(all(&mut stream) == whole[cut..], "from key {cut} on");
    }
    // A connection that breaks in the middle of a key.
    let mut stream = client.keys(rlwe, &specs, &session()).unwrap();
    let mut room = whole[0].len() + whole[1].len() / 2;
    let mut line = |part: &[u8]| {
        room = room.checked_sub(part.len()).ok_or(SinkError("the line is cut"))?;
        Ok(())
    };
    assert_eq!(stream.write_next(&mut line, &mut |_| ()), Ok(true));
    assert_eq!(
        stream.write_next(&mut line, &mut |_| ()),
        Err(ClientError::Sink(SinkError("the line is cut")))
    );
    let mut again = client.keys(rlwe, &specs, &session()).unwrap();
    again.skip_to(1).unwrap();
    assert!(all(&mut again) == whole[1..]);
    assert!(again.skip_to(0).is_err() && again.skip_to(specs.len() + 1).is_err());
}

/// The bytes of a set, part by part; no part is larger than a head or a limb with its framing.
fn parts(stream: &mut KeySetStream, largest: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let part = stream.next_part().unwrap();
        if part.is_empty() {
            assert_eq!(stream.place(), stream.bytes());
            return bytes;
        }
        assert!(part.len() <= largest);
        bytes.extend(part);
    }
}

#[test]
fn a_set_is_what_its_reader_takes_from_any_byte_on() {
    let (parameters, plan) = toy(10, 3, Kind::Real);
    let rlwe = parameters.rlwe();
    let thin = server::client_parameters(&parameters, &plan, 20).unwrap();
    let client = Client::generate(&thin, &mut entropy(1)).unwrap();
    let specs = plan.required_keys();
    let mut head = Vec::new();
    KeySetWriter::new(&mut head, &specs, rlwe).unwrap();
    let start = || KeySetStream::new(client.keys(rlwe, &specs, &session()).unwrap(), &head).unwrap();
    let mut stream = start();
    let largest = head.len().max(rlwe.n() * 61 / 8 + 160);
    let whole = parts(&mut stream, largest);
    assert_eq!(whole.len() as u64, stream.bytes());
    assert!(whole.starts_with(&head));
    let keys: Vec<_> = KeySetReader::new(&whole[..], rlwe).unwrap().collect::<Result<_, _>>().unwrap();
    assert_eq!(keys.len(), stream.count());

    let (first, end) = (head.len(), whole.len());
    let limb = rlwe.n() * rlwe.modulus(0).bits() as usize / 8;
    let mut places =
        vec![0, 1, first - 1, first, first + 1, first + limb, end / 2, end - 5, end - 4, end - 1, end];
    let mut random = keywright_ring_testing::samples::SplitMix64(9);
    places.extend((0..2).map(|_| random.next_word() as usize % end));
    for place in places {
        // The same stream moves back, and another one of the session starts there.
        let mut another = start();
        for stream in [&mut stream, &mut another] {
            stream.seek(place as u64).unwrap();
            assert_eq!(stream.place(), place as u64);
            assert!(parts(stream, largest) == whole[place..], "from byte {place} on");
        }
    }
    assert!(stream.seek(end as u64 + 1).is_err());

    // Heads of other objects.
    let refused =
        |head: &[u8]| KeySetStream::new(client.keys(rlwe, &specs, &session()).unwrap(), head).unwrap_err();
    let mut damaged = head.clone();
    damaged[60] ^= 1;
    assert!(matches!(refused(&damaged), ClientError::Checksum { .. }));
    assert!(matches!(refused(&head[..first - 1]), ClientError::Format { .. }));
    assert!(matches!(refused(&whole), ClientError::Format { .. }));
    let mut fewer = Vec::new();
    KeySetWriter::new(&mut fewer, &specs[1..], rlwe).unwrap();
    assert!(matches!(refused(&fewer), ClientError::Format { .. }));
    assert!(matches!(refused(&client.secret_bytes().unwrap()), ClientError::Format { .. }));
    let (foreign, _) = toy(11, 5, Kind::Complex);
    let mut other = Vec::new();
    KeySetWriter::new(&mut other, &[], foreign.rlwe()).unwrap();
    assert!(matches!(refused(&other), ClientError::ForeignParameters(_)));
}

#[test]
fn keys_that_no_client_makes_are_refused() {
    let (parameters, plan) = toy(10, 5, Kind::Complex);
    let (rlwe, other) = (parameters.rlwe(), toy(11, 5, Kind::Complex).0);
    let thin = server::client_parameters(&parameters, &plan, 20).unwrap();
    let client = Client::generate(&thin, &mut entropy(1)).unwrap();
    let spec = KeySpec::new(rlwe, KeyElement::Relinearization, 3, 1, true);
    let refused = |spec: KeySpec| client.keys(rlwe, &[spec], &session()).unwrap_err();
    let with = |element| KeySpec { element, ..spec.clone() };
    assert_eq!(refused(with(KeyElement::Secret(3))), RlweError::SourceSecret(3).into());
    assert!(matches!(refused(with(KeyElement::Galois(4))), ClientError::Rlwe(RlweError::Ring(_))));
    assert!(matches!(refused(KeySpec { level: 99, ..spec.clone() }), ClientError::Rlwe(_)));
    assert!(matches!(refused(KeySpec { seeded: false, ..spec.clone() }), ClientError::Range { .. }));
    assert!(matches!(
        client.keys(other.rlwe(), &[], &session()).unwrap_err(),
        ClientError::ForeignParameters(_)
    ));
}
