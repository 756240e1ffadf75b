//! Damaged, truncated, foreign and malicious bytes: each gives an error, never another object.

use crate::samples::{self, all, ckks_parameters, literal, parameters};
use keywright_bfv::{self as bfv, BfvLiteral, BfvParameters};
use keywright_ckks::{Ciphertext, CkksLiteral, CkksParameters, Packing};
use keywright_ring::{Coefficient, Evaluation, Poly, RingError};
use keywright_rlwe::{
    EvaluationKeys, KeyElement, Parameters, ParametersLiteral, PublicKey, RlweCiphertext, RlweError,
    SecretDistribution, SecretKey, Security, SwitchingKey,
};
use keywright_wire::{FORMAT_VERSION, Kind, Wire, WireError, WireSecret, inspect};

/// Offsets of the header's fields, as in `docs/reference/format.md`.
const VERSION: usize = 8;
const KIND: usize = 10;
const LOG_N: usize = 12;
const DESCRIPTOR_LEN: usize = 32;
const BODY_LEN: usize = 36;
const DESCRIPTOR: usize = 44;
/// The fields after the identity of a key.
const FIELDS: usize = DESCRIPTOR + 16;

/// Updates both checksums, so that the test reaches the checks behind them.
fn reseal(bytes: &mut [u8]) {
    let descriptor_len = u32::from_le_bytes(bytes[DESCRIPTOR_LEN..][..4].try_into().unwrap()) as usize;
    let end = (DESCRIPTOR + descriptor_len).min(bytes.len() - 8);
    let mut checksum = crc32fast::Hasher::new();
    checksum.update(&bytes[..end]);
    bytes[end..end + 4].copy_from_slice(&checksum.clone().finalize().to_le_bytes());
    let last = bytes.len() - 4;
    checksum.update(&bytes[end + 4..last]);
    bytes[last..].copy_from_slice(&checksum.finalize().to_le_bytes());
}

#[test]
fn a_flipped_bit_at_any_offset_is_an_error() {
    let p = ckks_parameters();
    for sample in all(&p) {
        let mut bytes = sample.bytes.clone();
        for offset in 0..bytes.len() {
            let bit = 1 << (offset % 8);
            bytes[offset] ^= bit;
            assert!((sample.reload)(&bytes, &p).is_err(), "{} at {offset}", sample.name);
            bytes[offset] ^= bit;
        }
        assert!((sample.reload)(&bytes, &p).unwrap() == sample.bytes);
    }
}

#[test]
fn every_truncation_is_named() {
    let p = ckks_parameters();
    for sample in all(&p) {
        for len in 0..sample.bytes.len() {
            let error = (sample.reload)(&sample.bytes[..len], &p).unwrap_err();
            assert!(matches!(error, WireError::Truncated { .. }), "{} at {len}: {error}", sample.name);
        }
    }
}

/// A stream does not know its length beforehand: it detects truncation at the end of the bytes.
#[test]
fn truncated_streams_are_named() {
    let p = parameters();
    let bytes = samples::seeded_key(&p).to_bytes(&p).unwrap();
    for len in (0..bytes.len()).step_by(97).chain([bytes.len() - 1]) {
        let error = SwitchingKey::read_from(&mut &bytes[..len], &p).unwrap_err();
        assert!(matches!(error, WireError::Truncated { .. }), "at {len}: {error}");
    }
    let mut reader = &[bytes.clone(), b"next".to_vec()].concat()[..];
    SwitchingKey::read_from(&mut reader, &p).unwrap();
    assert_eq!(reader, b"next");
}

#[test]
fn bytes_after_the_end_are_refused() {
    let p = ckks_parameters();
    for sample in all(&p) {
        let longer = [&sample.bytes[..], &[0]].concat();
        assert!(
            matches!((sample.reload)(&longer, &p), Err(WireError::Trailing { extra: 1, .. })),
            "{}",
            sample.name
        );
    }
}

#[test]
fn foreign_parameters_are_named() {
    let (c, p) = (ckks_parameters(), parameters());
    let others = [
        ParametersLiteral::from_bits(12, &[50], &[50]).unwrap(),
        ParametersLiteral { q: literal().q[..2].to_vec(), ..literal() },
        ParametersLiteral { p: vec![], ..literal() },
        ParametersLiteral { secret: SecretDistribution::Sparse { weight: 64 }, ..literal() },
    ];
    for rlwe in others {
        let other = CkksParameters::new(CkksLiteral { rlwe, log_scale: 37.5 }).unwrap();
        // Encrypted sums have their own parameters, which `reload` does not take from here.
        let bound = |name: &str| !name.contains("parameters") && !name.starts_with("encrypted_");
        for sample in all(&c).into_iter().filter(|sample| bound(sample.name)) {
            let error = (sample.reload)(&sample.bytes, &other).unwrap_err();
            let WireError::ForeignParameters { found, expected } = error else {
                panic!("{}: {error}", sample.name)
            };
            assert_ne!(found, expected);
        }
        // Writing for other parameters than the object's fails too.
        assert!(samples::ckks_ciphertext(&c).to_bytes(&other).is_err());
        let other = other.rlwe();
        assert!(samples::public_key(&p).to_bytes(other).is_err());
        assert!(samples::seeded_key(&p).to_bytes(other).is_err());
        assert!(samples::key_set(&p).to_bytes(other).is_err());
        assert!(samples::secret_key(&p).to_secret_bytes(other).is_err());
    }
}

/// Keys and ciphertexts serve every default scale.
#[test]
fn the_default_scale_is_not_part_of_the_identity() {
    let c = ckks_parameters();
    let other = CkksParameters::new(CkksLiteral { log_scale: 20.0, ..samples::ckks_literal() }).unwrap();
    for sample in all(&c) {
        assert!((sample.reload)(&sample.bytes, &other).unwrap() == sample.bytes, "{}", sample.name);
    }
}

#[test]
fn every_other_kind_is_refused_by_name() {
    let p = ckks_parameters();
    let samples = all(&p);
    for (i, sample) in samples.iter().enumerate() {
        for (k, other) in samples.iter().enumerate() {
            let same =
                inspect(&mut &sample.bytes[..]).unwrap().kind == inspect(&mut &other.bytes[..]).unwrap().kind;
            if i != k && !same {
                let error = (sample.reload)(&other.bytes, &p).unwrap_err();
                assert!(
                    matches!(error, WireError::WrongKind { .. }),
                    "{} as {}: {error}",
                    other.name,
                    sample.name
                );
            }
        }
    }
}

/// A server that loads clients' objects refuses a secret, no matter which kind it expects.
#[test]
fn a_secret_is_not_loaded_by_accident() {
    let p = parameters();
    let secret = samples::secret_key(&p).to_secret_bytes(&p).unwrap();
    let refused = |error: Option<WireError>| matches!(error, Some(WireError::WrongKind { found, expected }) if found.is_secret() && !expected.is_secret());
    assert!(refused(PublicKey::from_bytes(&secret, &p).err()));
    assert!(refused(SwitchingKey::from_bytes(&secret, &p).err()));
    assert!(refused(EvaluationKeys::from_bytes(&secret, &p).err()));
    assert!(refused(RlweCiphertext::from_bytes(&secret, &p).err()));
    assert_eq!(inspect(&mut &secret[..]).unwrap().kind, Kind::SecretKey);
}

#[test]
fn a_secret_has_its_own_identity() {
    let p = parameters();
    let secret = samples::secret_key(&p);
    let good = secret.to_secret_bytes(&p).unwrap();
    for forged in [0, 0x5A] {
        let mut bytes = good.to_vec();
        bytes[DESCRIPTOR..DESCRIPTOR + 16].fill(forged);
        reseal(&mut bytes);
        let error = SecretKey::from_secret_bytes(&bytes, &p).err();
        assert!(matches!(
            error,
            Some(WireError::Rlwe(RlweError::KeyMismatch { right_key, .. })) if right_key == secret.identity()
        ));
    }
    assert_eq!(inspect(&mut &good[..]).unwrap().key, secret.identity());
}

#[test]
fn the_form_of_a_polynomial_is_checked() {
    let p = parameters();
    let coefficients = samples::coefficients(&p).to_bytes(&p).unwrap();
    assert!(matches!(
        Poly::<Evaluation>::from_bytes(&coefficients, &p),
        Err(WireError::Field { value: 0, .. })
    ));
    let evaluations = samples::evaluations(&p).to_bytes(&p).unwrap();
    assert!(matches!(
        Poly::<Coefficient>::from_bytes(&evaluations, &p),
        Err(WireError::Field { value: 1, .. })
    ));
}

#[test]
fn headers_name_what_they_refuse() {
    let p = parameters();
    let good = samples::ciphertext(&p).to_bytes(&p).unwrap();
    let load = |edit: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        edit(&mut bytes);
        reseal(&mut bytes);
        RlweCiphertext::from_bytes(&bytes, &p).unwrap_err()
    };
    assert!(matches!(load(&|b| b[0] = b'P'), WireError::Magic { found } if found[0] == b'P'));
    for version in [0, 1, 3] {
        let error = load(&|b| b[VERSION] = version);
        assert!(
            matches!(error, WireError::Version { found, supported: FORMAT_VERSION } if found == version.into())
        );
    }
    assert!(matches!(load(&|b| b[KIND] = 99), WireError::UnknownKind(99)));
    assert!(matches!(load(&|b| b[KIND] = 2), WireError::WrongKind { found: Kind::PublicKey, .. }));
    assert!(matches!(load(&|b| b[LOG_N] = 11), WireError::ForeignParameters { .. }));
    // Level 2 and degree 2 exist, but with another length; level 3 and 8 polynomials do not exist.
    assert!(matches!(load(&|b| b[FIELDS] = 2), WireError::Length { .. }));
    assert!(matches!(load(&|b| b[FIELDS] = 3), WireError::Rlwe(RlweError::Level { level: 3, max: 2, .. })));
    assert!(matches!(load(&|b| b[FIELDS + 1] = 3), WireError::Length { .. }));
    assert!(matches!(load(&|b| b[FIELDS + 1] = 8), WireError::Field { value: 8, min: 2, max: 7, .. }));
    assert!(matches!(load(&|b| b[FIELDS + 1] = 1), WireError::Field { value: 1, .. }));
}

#[test]
fn hostile_lengths_are_refused_before_anything_is_read() {
    let p = parameters();
    let good = samples::ciphertext(&p).to_bytes(&p).unwrap();
    for body_len in [0, 1, u64::from(u32::MAX), 1 << 40, u64::MAX - 60, u64::MAX] {
        let mut bytes = good.clone();
        bytes[BODY_LEN..][..8].copy_from_slice(&body_len.to_le_bytes());
        reseal(&mut bytes);
        assert!(
            matches!(RlweCiphertext::read_from(&mut &bytes[..], &p), Err(WireError::Length { found, .. }) if found == body_len)
        );
        assert!(RlweCiphertext::from_bytes(&bytes, &p).is_err());
    }
    for descriptor_len in [4097, u32::MAX] {
        let mut bytes = good.clone();
        bytes[DESCRIPTOR_LEN..][..4].copy_from_slice(&descriptor_len.to_le_bytes());
        let error = RlweCiphertext::from_bytes(&bytes, &p).unwrap_err();
        assert!(
            matches!(error, WireError::Field { value, max: 4096, .. } if value == u64::from(descriptor_len))
        );
    }
}

#[test]
fn residues_must_be_canonical() {
    let p = parameters();
    let mut bytes = samples::evaluations(&p).to_bytes(&p).unwrap();
    let body = bytes.len() - 4 - 1024 * 50 / 8;
    // Residue 1 has bits 50..100: set them to q_0, the smallest value that is not canonical.
    let q = p.modulus(0).value();
    let mut group = u128::from_le_bytes(bytes[body..][..16].try_into().unwrap());
    group = group & !((u128::from(u64::MAX) >> 14) << 50) | u128::from(q) << 50;
    bytes[body..][..16].copy_from_slice(&group.to_le_bytes());
    reseal(&mut bytes);
    let error = Poly::<Evaluation>::from_bytes(&bytes, &p).unwrap_err();
    assert!(
        matches!(error, WireError::Residue { value, modulus, index: 1 } if value == q && modulus == q),
        "{error}"
    );
    // One less is legal.
    group -= 1 << 50;
    bytes[body..][..16].copy_from_slice(&group.to_le_bytes());
    reseal(&mut bytes);
    assert_eq!(Poly::<Evaluation>::from_bytes(&bytes, &p).unwrap().limb(0)[1], q - 1);
    // Writing them fails too.
    let mut poly = samples::evaluations(&p);
    poly.limb_mut(0)[1000] = q;
    assert!(matches!(poly.to_bytes(&p), Err(WireError::Residue { index: 1000, .. })));
}

#[test]
fn secrets_must_be_ternary_and_of_their_weight() {
    let p = parameters();
    let good = samples::secret_key(&p).to_secret_bytes(&p).unwrap();
    let mut bytes = good.to_vec();
    bytes[FIELDS + 4] = 0b10_00_10_01;
    reseal(&mut bytes);
    let error = SecretKey::from_secret_bytes(&bytes, &p).unwrap_err();
    assert!(matches!(error, WireError::SecretCoefficient { count: 2 }));

    let sparse = ParametersLiteral { secret: SecretDistribution::Sparse { weight: 64 }, ..literal() };
    let sparse = Parameters::new(sparse).unwrap();
    let mut weighted = vec![0; sparse.n()];
    weighted[..64].fill(1);
    let good =
        SecretKey::from_ternary(&sparse, vec![weighted.into()]).unwrap().to_secret_bytes(&sparse).unwrap();
    assert_eq!(SecretKey::from_secret_bytes(&good, &sparse).unwrap().coefficients()[..65], {
        let mut expected = [1; 65];
        expected[64] = 0;
        expected
    });
    let mut bytes = good.to_vec();
    bytes[FIELDS + 4] = 0b01_01_01_00;
    reseal(&mut bytes);
    let error = SecretKey::from_secret_bytes(&bytes, &sparse).unwrap_err();
    assert!(
        matches!(error, WireError::Rlwe(RlweError::Count { count: 63, min: 64, max: 64, .. })),
        "{error}"
    );

    // No uniform ternary secret is zero.
    let n = p.n();
    let mut bytes = samples::secret_key(&p).to_secret_bytes(&p).unwrap().to_vec();
    bytes[FIELDS + 4..FIELDS + 4 + n / 4].fill(0);
    reseal(&mut bytes);
    let error = SecretKey::from_secret_bytes(&bytes, &p).unwrap_err();
    assert!(matches!(error, WireError::Rlwe(RlweError::Count { count: 0, .. })), "{error}");
}

#[test]
fn keys_are_checked_as_key_generation_checks_them() {
    let p = parameters();
    let good = samples::seeded_key(&p).to_bytes(&p).unwrap();
    let load = |edit: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        edit(&mut bytes);
        reseal(&mut bytes);
        SwitchingKey::from_bytes(&bytes, &p).unwrap_err()
    };
    // Type, element (8 bytes), level, alpha, seeded, number of special primes, their indices, digits.
    assert!(matches!(load(&|b| b[FIELDS] = 9), WireError::Field { value: 9, max: 8, .. }));
    // An ephemeral secret's weight is at least 1 and at most the largest ring's degree, then the ring's.
    for kind in [3, 4] {
        let weight = |b: &mut Vec<u8>, value: u64| {
            b[FIELDS] = kind;
            b[FIELDS + 1..FIELDS + 9].copy_from_slice(&value.to_le_bytes());
        };
        assert!(matches!(load(&|b| weight(b, 0)), WireError::Field { value: 0, min: 1, .. }));
        assert!(matches!(load(&|b| weight(b, 1 << 18)), WireError::Field { max: 0x20000, .. }));
        assert!(matches!(load(&|b| weight(b, 1 << 17)), WireError::Rlwe(RlweError::Count { .. })));
    }
    // With a Galois element in the upper half, which is checked like that of a rotation.
    for (galois, weight) in [(5u64, 0u64), (4, 32), (1 << 20 | 1, 32), (0, 32)] {
        let error = load(&|b| {
            b[FIELDS] = 5;
            b[FIELDS + 1..FIELDS + 9].copy_from_slice(&(galois << 32 | weight).to_le_bytes());
        });
        match weight {
            0 => assert!(matches!(error, WireError::Field { value: 0, min: 1, .. }), "{error}"),
            _ => assert!(matches!(error, WireError::Rlwe(RlweError::Ring(_))), "{galois}: {error}"),
        }
    }
    assert!(matches!(load(&|b| b[FIELDS] = 1), WireError::Field { value: 5, max: 0, .. }));
    assert!(matches!(load(&|b| b[FIELDS + 1] = 4), WireError::Rlwe(RlweError::Ring(_))));
    assert!(matches!(load(&|b| b[FIELDS + 3] = 8), WireError::Rlwe(RlweError::Ring(_))));
    assert!(matches!(load(&|b| b[FIELDS + 9] = 9), WireError::Rlwe(RlweError::Level { level: 9, .. })));
    assert!(matches!(load(&|b| b[FIELDS + 10] = 0), WireError::Rlwe(RlweError::Count { count: 0, .. })));
    assert!(matches!(load(&|b| b[FIELDS + 11] = 2), WireError::Field { value: 2, .. }));
    assert!(matches!(
        load(&|b| b[FIELDS + 13] = 0),
        WireError::Rlwe(RlweError::SpecialPrime { index: 0, .. })
    ));
    assert!(matches!(
        load(&|b| b[FIELDS + 13] = 4),
        WireError::Rlwe(RlweError::SpecialPrime { index: 4, .. })
    ));
    assert!(matches!(load(&|b| b[FIELDS + 14] = 3), WireError::Field { value: 3, min: 2, max: 2, .. }));

    // A key above the security bound: 101 bits for ciphertexts are legal at N = 2^12, 151 for a key are not.
    let secure = ParametersLiteral::from_bits(12, &[50], &[50]).unwrap();
    let wide = ParametersLiteral::from_bits(12, &[50], &[60]).unwrap();
    let key = |literal: &ParametersLiteral| {
        let open = ParametersLiteral { security: Security::InsecureForExperiments, ..literal.clone() };
        let open = Parameters::new(open).unwrap();
        samples::switching_key(&open, KeyElement::Galois(5), 0, true, 1).to_bytes(&open).unwrap()
    };
    for (literal, legal) in [(secure, true), (wide, false)] {
        let strict = Parameters::new(literal.clone()).unwrap();
        let mut bytes = key(&literal);
        // Claim the strict parameters: their summary and fingerprint.
        let public = samples::public_key(&strict).to_bytes(&strict).unwrap();
        bytes[LOG_N..DESCRIPTOR_LEN].copy_from_slice(&public[LOG_N..DESCRIPTOR_LEN]);
        reseal(&mut bytes);
        match SwitchingKey::from_bytes(&bytes, &strict) {
            Ok(_) => assert!(legal),
            Err(WireError::Rlwe(RlweError::Insecure { bound: 106, .. })) => assert!(!legal),
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn messages_must_have_a_meaning() {
    let c = ckks_parameters();
    let refused = |edit: &dyn Fn(&mut Ciphertext)| {
        let mut ciphertext = samples::ckks_ciphertext(&c);
        edit(&mut ciphertext);
        ciphertext.to_bytes(&c).unwrap_err()
    };
    for value in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(refused(&|ct| ct.scale = value), WireError::Number { what: "scale", .. }));
    }
    for value in [-0.0, -1.0, f64::NAN] {
        assert!(matches!(refused(&|ct| ct.estimate.deviation = value), WireError::Number { .. }));
        assert!(matches!(refused(&|ct| ct.estimate.magnitude = value), WireError::Number { .. }));
    }
    // Bounds beyond the finite numbers are written as the largest.
    let mut unbounded = samples::ckks_ciphertext(&c);
    unbounded.estimate.deviation = f64::INFINITY;
    unbounded.estimate.magnitude = f64::INFINITY;
    let read = Ciphertext::from_bytes(&unbounded.to_bytes(&c).unwrap(), &c).unwrap();
    assert_eq!((read.estimate.deviation, read.estimate.magnitude), (f64::MAX, f64::MAX));
    let packing = Packing::Slots { log_slots: 10 };
    assert!(matches!(refused(&|ct| ct.packing = packing), WireError::Field { value: 10, max: 9, .. }));

    // The same in bytes: level, polynomials, form, log_slots, scale, deviation, magnitude.
    let good = samples::ckks_ciphertext(&c).to_bytes(&c).unwrap();
    let load = |edit: &dyn Fn(&mut [u8])| {
        let mut bytes = good.clone();
        edit(&mut bytes[FIELDS..]);
        reseal(&mut bytes);
        Ciphertext::from_bytes(&bytes, &c).unwrap_err()
    };
    assert!(matches!(load(&|d| d[2] = 3), WireError::Field { value: 3, max: 2, .. }));
    assert!(matches!(load(&|d| d[2] = 1), WireError::Field { value: 9, max: 0, .. }));
    assert!(matches!(load(&|d| d[3] = 10), WireError::Field { value: 10, max: 9, .. }));
    for (offset, allowed_zero) in [(4, false), (12, true), (20, true)] {
        for value in [f64::NAN, -1.0, f64::INFINITY, -0.0] {
            let error = load(&|d| d[offset..][..8].copy_from_slice(&value.to_le_bytes()));
            assert!(matches!(error, WireError::Number { .. }), "{error}");
        }
        if !allowed_zero {
            let error = load(&|d| d[offset..][..8].fill(0));
            assert!(matches!(error, WireError::Number { value: 0.0, .. }));
        }
    }
}

#[test]
fn bfv_values_and_noise_must_have_a_meaning() {
    let b = samples::bfv_parameters(&samples::literal());
    for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        for edit in [0, 1] {
            let mut ciphertext = samples::bfv_ciphertext(&b);
            let estimate = &mut ciphertext.estimate;
            *[&mut estimate.log_deviation, &mut estimate.log_peak][edit] = value;
            assert!(matches!(ciphertext.to_bytes(&b), Err(WireError::Number { .. })));
        }
    }
    let mut ciphertext = samples::bfv_ciphertext(&b);
    ciphertext.estimate.order = 256;
    assert!(matches!(ciphertext.to_bytes(&b), Err(WireError::Field { value: 256, max: 255, .. })));

    // The same in bytes: level, polynomials, modulus, form, deviation, peak, order.
    let good = samples::bfv_ciphertext(&b).to_bytes(&b).unwrap();
    let load = |edit: &dyn Fn(&mut [u8]), b: &BfvParameters| {
        let mut bytes = good.clone();
        edit(&mut bytes[FIELDS..]);
        reseal(&mut bytes);
        bfv::Ciphertext::from_bytes(&bytes, b).unwrap_err()
    };
    assert!(matches!(load(&|d| d[2] = 3, &b), WireError::Field { value: 65539, min: 65537, .. }));
    assert!(matches!(load(&|d| d[10] = 2, &b), WireError::Field { value: 2, max: 1, .. }));
    for offset in [11, 19] {
        for value in [f64::NAN, f64::INFINITY] {
            let error = load(&|d| d[offset..][..8].copy_from_slice(&value.to_le_bytes()), &b);
            assert!(matches!(error, WireError::Number { .. }), "{error}");
        }
    }
    // Another plaintext modulus, and one without slots for values that claim to be in slots.
    let other =
        |t| BfvParameters::new(BfvLiteral { plaintext_modulus: t, ..samples::bfv_literal() }).unwrap();
    assert!(matches!(load(&|_| (), &other(12289)), WireError::Field { value: 65537, max: 12289, .. }));
    let relabel = |d: &mut [u8]| d[2..10].copy_from_slice(&256u64.to_le_bytes());
    assert!(matches!(load(&relabel, &other(256)), WireError::Field { value: 0, min: 1, .. }));
}

/// Reading returns a literal unchanged; its use checks it.
#[test]
fn parameters_that_cannot_be_are_refused_by_name() {
    for q in [0, 1, 2, 1 << 61, u64::MAX] {
        let bytes = ParametersLiteral { q: vec![q], ..literal() }.to_bytes(&()).unwrap();
        let loaded = ParametersLiteral::from_bytes(&bytes, &()).unwrap();
        let error = Parameters::new(loaded).unwrap_err();
        assert_eq!(error, RlweError::Ring(RingError::ModulusRange(q)));
    }
}
