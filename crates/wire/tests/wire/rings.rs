//! Objects of parameters with subrings.

use crate::round_trip::round_trip;
use crate::samples;
use keywright_frame::{FieldReader, FieldWriter, Fields, FrameError};
use keywright_ring_testing::rng;
use keywright_rlwe::{
    EvaluationKeys, KeyElement, KeyGenerator, KeySpec, MAX_SUBRINGS, Parameters, ParametersLiteral,
    RlweError, SecretKey, SubringLiteral, encrypt_zero_symmetric,
};
use keywright_wire::{
    Identity, KeySetFile, KeySetReader, KeySetWriter, Wire, WireError, WireSecret, inspect, ring_of,
};
use std::io::Cursor;

fn literal() -> ParametersLiteral {
    let bits = ParametersLiteral::from_bits(12, &[50, 40, 61], &[61]).unwrap();
    let open = ParametersLiteral { security: samples::literal().security, ..bits };
    open.with_subrings(&[(11, 1, None), (10, 0, Some(vec![3, 1]))])
}

fn encoding(literal: &ParametersLiteral) -> Vec<u8> {
    let mut fields: FieldWriter = FieldWriter::default();
    literal.encode(&mut fields).unwrap();
    fields.into_inner()
}

fn decoded(bytes: &[u8]) -> Result<ParametersLiteral, FrameError> {
    let mut fields = FieldReader::new(bytes);
    let literal = ParametersLiteral::decode(&mut fields)?;
    fields.finish()?;
    Ok(literal)
}

/// The bytes without subrings are a prefix except for one bit, and every field changes the fingerprint.
#[test]
fn parameters_round_trip_and_have_fingerprints_of_their_own() {
    let with = literal();
    assert_eq!(round_trip(&with, &()), with);
    let without = ParametersLiteral { subrings: Vec::new(), ..with.clone() };
    let (long, mut short) = (encoding(&with), encoding(&without));
    short[1] |= 2;
    assert_eq!(long[..short.len()], short);
    assert_eq!(long[short.len()..], [2, 11, 1, 1, 3, 10, 0, 2, 3, 1]);
    let mut others = vec![without];
    for change in [
        (|l| l.log_n = 10) as fn(&mut SubringLiteral),
        |l| l.level = 0,
        |l| l.special.clear(),
        |l| l.special = vec![2],
    ] {
        let mut other = with.clone();
        change(&mut other.subrings[0]);
        others.push(other);
    }
    others.push(ParametersLiteral { subrings: with.subrings[..1].to_vec(), ..with.clone() });
    let own = Identity::of(&with).unwrap();
    others.iter().for_each(|other| assert_ne!(Identity::of(other).unwrap(), own, "{other:?}"));
}

#[test]
fn hostile_lists_of_subrings_are_refused() {
    let good = encoding(&literal());
    let start = good.len() - 10;
    assert_eq!(decoded(&good).unwrap(), literal());
    for length in 0..good.len() {
        assert!(matches!(decoded(&good[..length]), Err(FrameError::Truncated { .. })), "{length} bytes");
    }
    let with = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        decoded(&bytes)
    };
    // An empty list has another encoding, and too many subrings are refused before they are read.
    for count in [0, MAX_SUBRINGS as u8 + 1, 255] {
        let refused = with(start, count).unwrap_err();
        assert!(
            matches!(refused, FrameError::Field { what: "number of subrings", min: 1, max: 7, .. }),
            "{refused:?}"
        );
    }
    assert!(matches!(with(start, 1), Err(FrameError::Trailing { extra: 5 })));
    assert!(matches!(with(1, 7), Err(FrameError::Field { what: "security code", .. })));
    assert!(matches!(with(1, 1), Err(FrameError::Trailing { extra: 10 })));
    // The parameters refuse readable entries that are not subrings.
    for (at, byte) in [(1, 200), (1, 12), (2, 3), (2, 255), (4, 0), (4, 9), (5, 11)] {
        let literal = with(start + at, byte).unwrap();
        assert!(Parameters::new(literal).is_err(), "byte {at} is {byte}");
    }
}

/// Keys of three rings in one set.
fn keys(parameters: &Parameters) -> (SecretKey, EvaluationKeys, Vec<KeySpec>) {
    let secret = SecretKey::sample(parameters, &mut rng(1)).unwrap();
    let [middle, small] = [11, 10].map(|log_n| parameters.ring_of_degree(log_n).unwrap());
    let spec = |ring: &Parameters, element, seeded| KeySpec::new(ring, element, 0, 1, seeded);
    let mut specs = vec![
        spec(parameters, KeyElement::Galois(5), true),
        spec(parameters, KeyElement::RingUp { from: 11 }, false),
        spec(parameters, KeyElement::RingUpToSparse { from: 10, weight: 32 }, true),
        spec(parameters, KeyElement::SparseToDense(32), true),
        spec(middle, KeyElement::Galois(5), true),
    ];
    specs.extend(KeyElement::ring_down(12, 10).map(|element| spec(small, element, true)));
    let keys = KeyGenerator::new(&secret, rng(2)).evaluation_keys(&specs).unwrap();
    (secret, keys, specs)
}

#[test]
fn secrets_and_sets_hold_all_rings() {
    let parameters = Parameters::new(literal()).unwrap();
    let (secret, keys, specs) = keys(&parameters);
    let bytes = secret.to_secret_bytes(&parameters).unwrap();
    let back = SecretKey::from_secret_bytes(&bytes, &parameters).unwrap();
    for log_n in [12, 11, 10] {
        let [a, b] = [&secret, &back].map(|s| s.ring_of_degree(log_n).unwrap().coefficients().to_vec());
        assert_eq!(a, b);
    }
    let set = keys.to_bytes(&parameters).unwrap();
    let loaded = EvaluationKeys::from_bytes(&set, &parameters).unwrap();
    assert_eq!(loaded.len(), specs.len());
    let mut sorted: Vec<_> = keys.iter().map(|key| key.spec().clone()).collect();
    assert_eq!(loaded.iter().map(|key| key.spec().clone()).collect::<Vec<_>>(), sorted);
    assert!(specs.iter().all(|spec| sorted.contains(spec)));
    for ring in [&parameters, &parameters.subrings()[0], &parameters.subrings()[1]] {
        let [a, b] = [&keys, &loaded].map(|keys| {
            let of_ring = keys.iter().filter(|key| key.spec().subring == ring.as_subring());
            of_ring.map(|key| key.load().unwrap().b_rows().to_vec()).collect::<Vec<_>>()
        });
        assert!(a == b && !a.is_empty());
    }

    // Key by key, from a stream and from a file.
    let mut writer = KeySetWriter::new(Vec::new(), &sorted, &parameters).unwrap();
    keys.iter().for_each(|key| writer.write(&key.load().unwrap()).unwrap());
    assert!(writer.finish().unwrap() == set);
    let read = KeySetReader::new(&set[..], &parameters).unwrap().map(|key| key.unwrap().spec().clone());
    assert_eq!(read.collect::<Vec<_>>(), sorted);
    let mut file = KeySetFile::new(Cursor::new(&set), &parameters).unwrap();
    assert_eq!(file.read(sorted.len() - 1).unwrap().spec(), &sorted.pop().unwrap());

    // With parameters without these rings, they are other keys.
    let alone = Parameters::new(ParametersLiteral { subrings: Vec::new(), ..literal() }).unwrap();
    assert!(matches!(EvaluationKeys::from_bytes(&set, &alone), Err(WireError::ForeignParameters { .. })));
    assert!(SecretKey::from_secret_bytes(&bytes, &alone).is_err());
}

#[test]
fn single_keys_and_ciphertexts_say_their_ring() {
    let parameters = Parameters::new(literal()).unwrap();
    let (secret, keys, _) = keys(&parameters);
    for key in keys.iter() {
        let key = key.load().unwrap();
        assert_eq!(round_trip(&*key, &parameters).spec(), key.spec());
    }
    for ring in [&parameters, &parameters.subrings()[0], &parameters.subrings()[1]] {
        let own = secret.ring_like(ring).unwrap();
        let ciphertext = encrypt_zero_symmetric(own, 0, &mut rng(3), None).unwrap();
        let bytes = ciphertext.to_bytes(ring).unwrap();
        assert!(ring_of(&mut &bytes[..], &parameters).unwrap().same(ring));
        assert_eq!(u32::from(inspect(&mut &bytes[..]).unwrap().identity.log_n), ring.log_n());
        assert_eq!(round_trip(&ciphertext, ring).seed, ciphertext.seed);
        for other in parameters.subrings().iter().filter(|other| !other.same(ring)) {
            assert!(ciphertext.to_bytes(other).is_err());
        }
    }
    // An object of no ring is read as one of the parameters, which then refuse it.
    let foreign = samples::literal().to_bytes(&()).unwrap();
    assert!(ring_of(&mut &foreign[..], &parameters).unwrap().same(&parameters));
}

/// Every spec has one encoding; specs of no ring and of impossible switches are refused before anything is read.
#[test]
fn specs_of_other_rings_are_refused() {
    let parameters = Parameters::new(literal()).unwrap();
    let small = parameters.ring_of_degree(10).unwrap();
    let good = KeySpec::new(small, KeyElement::RingDown { from: 12, part: 3 }, 0, 1, true);
    let mut fields: FieldWriter = FieldWriter::default();
    good.encode(&mut fields).unwrap();
    let bytes = fields.into_inner();
    assert_eq!(bytes[..10], [0x80 | 6, 10, 3, 0, 0, 0, 12, 0, 0, 0]);
    assert_eq!(KeySpec::decode(&mut FieldReader::new(&bytes)).unwrap(), good);
    for (at, byte) in [(6, 9), (6, 18), (6, 255), (0, 0x80 | 9)] {
        let mut bad = bytes.clone();
        bad[at] = byte;
        let refused = KeySpec::decode(&mut FieldReader::new(&bad)).unwrap_err();
        assert!(matches!(refused, FrameError::Field { .. }), "byte {at} is {byte}");
    }
    let write = |spec: KeySpec| KeySetWriter::new(Vec::new(), &[spec], &parameters).map(drop).unwrap_err();
    for (spec, switch) in [
        (KeySpec { subring: Some(13), ..good.clone() }, false),
        (KeySpec { subring: None, ..good.clone() }, true),
        (KeySpec { element: KeyElement::RingDown { from: 12, part: 4 }, ..good.clone() }, true),
        (KeySpec { element: KeyElement::RingUp { from: 12 }, ..good.clone() }, true),
    ] {
        let refused = write(spec);
        let as_said = match &refused {
            WireError::Rlwe(RlweError::RingSwitch { .. }) => switch,
            WireError::Rlwe(RlweError::NoRing { .. }) => !switch,
            _ => false,
        };
        assert!(as_said, "{refused}");
    }
}
