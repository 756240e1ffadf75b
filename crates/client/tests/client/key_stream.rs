//! Streamed keys are those of the full library, byte by byte; a stream goes on where it was cut.

use keywright_circuits::bootstrapping::Values as Kind;
use keywright_client::{Client, ClientError, SinkError, server};
use keywright_ring::sampling::SecretRng;
use keywright_rlwe::{KeyElement, KeyGenerator, KeySpec, RlweError, SwitchingKey};
use keywright_wire::Wire;
use zeroize::Zeroizing;

use crate::fixture::{entropy, full_secret, toy};

fn session() -> Zeroizing<[u8; 32]> {
    Zeroizing::new([5; 32])
}

fn all(stream: &mut keywright_client::KeyStream<'_>) -> Vec<Vec<u8>> {
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
    let (mut generators, mut done) = (SecretRng::from_entropy(&session()), 0);
    let _ephemerals = generators.split();
    for (spec, size) in specs.iter().zip(sizes) {
        let mut bytes = Vec::new();
        let mut last = done;
        assert!(
            stream
                .write_next(&mut bytes, &mut |progress| {
                    assert!(progress.bytes > last && progress.bytes < progress.total);
                    last = progress.bytes;
                })
                .unwrap()
        );
        done += size;
        // All but the checksum that ends the key.
        assert_eq!(last + 4, done);
        let full = KeyGenerator::new(&secret, generators.split()).switching_key(spec).unwrap();
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
    for cut in [1, specs.len() / 2, specs.len() - 1, specs.len()] {
        let mut stream = client.keys(rlwe, &specs, &session()).unwrap();
        stream.skip_to(cut).unwrap();
        assert_eq!(stream.next(), cut);
        assert!(all(&mut stream) == whole[cut..], "from key {cut} on");
    }
    // A line that breaks in the middle of a key.
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
