//! The fuzz targets: every reader, as a function of bytes.
//!
//! A target panics if an accepted input is not written back unchanged: every object has one encoding.

use std::io::Cursor;
use std::sync::OnceLock;

use keywright_aggregation::{EncryptedSum, EncryptedUpdate, SumParameters};
use keywright_bfv::{self as bfv_scheme, BfvLiteral, BfvParameters};
use keywright_ckks::{Ciphertext, CkksLiteral, CkksParameters, Plaintext, SeededCiphertext};
use keywright_ring::{Coefficient, Evaluation, Poly};
use keywright_rlwe::derive::MasterKeys;
use keywright_rlwe::{
    EvaluationKeys, Parameters, ParametersLiteral, PublicKey, RlweCiphertext, SecretKey, Security,
    SeededRlweCiphertext, SwitchingKey,
};
use keywright_wire::{
    Content, KeySetFile, KeySetReader, KeySetWriter, Wire, WireSecret, inspect, sequence_from_bytes,
    sequence_to_bytes,
};

use crate::Target;

/// Readers of `keywright-wire`.
pub(crate) const TARGETS: [(&str, Target); 24] = [
    ("inspect", inspect_object),
    ("parameters", parameters),
    ("public_key", rlwe::<PublicKey>),
    ("switching_key", rlwe::<SwitchingKey>),
    ("key_set", key_set),
    ("key_set_stream", key_set_stream),
    ("key_set_file", key_set_file),
    ("master_keys", master_keys),
    ("rlwe_ciphertext", rlwe::<RlweCiphertext>),
    ("rlwe_ciphertext_seeded", rlwe::<SeededRlweCiphertext>),
    ("sequence", sequence),
    ("polynomial_coefficients", rlwe::<Poly<Coefficient>>),
    ("polynomial_evaluations", rlwe::<Poly<Evaluation>>),
    ("secret_key", secret_key),
    ("ckks_parameters", ckks_parameters),
    ("ckks_plaintext", ckks::<Plaintext>),
    ("ckks_ciphertext", ckks::<Ciphertext>),
    ("ckks_ciphertext_seeded", ckks::<SeededCiphertext>),
    ("bfv_parameters", bfv_parameters),
    ("bfv_ciphertext", bfv::<bfv_scheme::Ciphertext>),
    ("bfv_ciphertext_seeded", bfv::<bfv_scheme::SeededCiphertext>),
    ("search_answer", bfv::<keywright_search::Answer>),
    ("encrypted_update", sums::<EncryptedUpdate>),
    ("encrypted_sum", sums::<EncryptedSum>),
];

/// The parameters of `vectors/wire`.
pub(crate) fn context() -> &'static CkksParameters {
    static CONTEXT: OnceLock<CkksParameters> = OnceLock::new();
    CONTEXT.get_or_init(|| {
        let bits = ParametersLiteral::from_bits(10, &[50, 40, 61], &[61]).expect("the primes exist");
        let rlwe = ParametersLiteral { security: Security::InsecureForExperiments, ..bits };
        CkksParameters::new(CkksLiteral { rlwe, log_scale: 37.5 })
            .expect("the parameters are those of the vectors")
    })
}

/// The same for BFV.
pub(crate) fn bfv_context() -> &'static BfvParameters {
    static CONTEXT: OnceLock<BfvParameters> = OnceLock::new();
    CONTEXT.get_or_init(|| {
        let rlwe = context().rlwe().literal().clone();
        BfvParameters::new(BfvLiteral { rlwe, plaintext_modulus: 65537 })
            .expect("the parameters are those of the vectors")
    })
}

/// Reads from a slice and from a stream. Both must agree, and an accepted object must be written back unchanged.
fn round_trip<T: Wire>(bytes: &[u8], context: &T::Context) -> bool {
    let mut stream = bytes;
    let streamed = T::read_from(&mut stream, context);
    if let Ok(object) = &streamed {
        let consumed = &bytes[..bytes.len() - stream.len()];
        let written = object.to_bytes(context).expect("what loads can be written");
        assert!(written == consumed, "another encoding loads");
    }
    let whole = T::from_bytes(bytes, context);
    assert_eq!(whole.is_ok(), streamed.is_ok() && stream.is_empty(), "slice and stream disagree");
    whole.is_ok()
}

fn rlwe<T: Wire<Context = Parameters>>(bytes: &[u8]) -> bool {
    round_trip::<T>(bytes, context().rlwe())
}

/// Like the vectors of threshold sums: at most three objects, one after another.
fn sequence(bytes: &[u8]) -> bool {
    let parameters = context().rlwe();
    let Ok(objects) = sequence_from_bytes::<RlweCiphertext>(bytes, parameters, 3) else { return false };
    assert!((1..=3).contains(&objects.len()), "{} objects", objects.len());
    let written = sequence_to_bytes(&objects, parameters).expect("what loads can be written");
    assert_eq!(written, bytes, "another encoding loads");
    true
}

fn ckks<T: Wire<Context = CkksParameters>>(bytes: &[u8]) -> bool {
    round_trip::<T>(bytes, context())
}

fn bfv<T: Wire<Context = BfvParameters>>(bytes: &[u8]) -> bool {
    round_trip::<T>(bytes, bfv_context())
}

/// The parameters of the encrypted updates of `vectors/wire`.
fn sums<T: Wire<Context = SumParameters>>(bytes: &[u8]) -> bool {
    static CONTEXT: OnceLock<SumParameters> = OnceLock::new();
    let context = CONTEXT.get_or_init(|| SumParameters::new(5, (1 << 20) - 1).expect("the sums fit"));
    round_trip::<T>(bytes, context)
}

/// `Parameters::new` checks literals that load; it must refuse or accept, not panic. Large ones are left out: their
/// tables are slow to make, but not different.
fn parameters(bytes: &[u8]) -> bool {
    let accepted = round_trip::<ParametersLiteral>(bytes, &());
    if let Ok(literal) = ParametersLiteral::from_bytes(bytes, &())
        && literal.log_n <= 11
    {
        let _ = Parameters::new(literal);
    }
    accepted
}

fn ckks_parameters(bytes: &[u8]) -> bool {
    let accepted = round_trip::<CkksLiteral>(bytes, &());
    if let Ok(literal) = CkksLiteral::from_bytes(bytes, &())
        && literal.rlwe.log_n <= 11
    {
        let _ = CkksParameters::new(literal);
    }
    accepted
}

fn bfv_parameters(bytes: &[u8]) -> bool {
    let accepted = round_trip::<BfvLiteral>(bytes, &());
    if let Ok(literal) = BfvLiteral::from_bytes(bytes, &())
        && literal.rlwe.log_n <= 11
    {
        let _ = BfvParameters::new(literal);
    }
    accepted
}

fn secret_key(bytes: &[u8]) -> bool {
    let Ok(secret) = SecretKey::from_secret_bytes(bytes, context().rlwe()) else { return false };
    let written = secret.to_secret_bytes(context().rlwe()).expect("what loads can be written");
    assert!(written[..] == *bytes, "another encoding loads");
    true
}

fn inspect_object(bytes: &[u8]) -> bool {
    let Ok(info) = inspect(&mut &bytes[..]) else { return false };
    if let Content::KeySet(entries) | Content::MasterKeys(_, entries) = info.content {
        for entry in entries {
            std::hint::black_box(entry.spec.element.rotation_steps(info.identity.log_n.into()));
        }
    }
    true
}

/// The set as a whole. It may order its keys differently than the file, so only the length is compared.
fn key_set(bytes: &[u8]) -> bool {
    let Ok(keys) = EvaluationKeys::from_bytes(bytes, context().rlwe()) else { return false };
    let written = keys.encoded_len(context().rlwe()).expect("what loads can be written");
    assert!(written == bytes.len() as u64, "another encoding loads");
    true
}

/// Master keys, like a key set.
fn master_keys(bytes: &[u8]) -> bool {
    let Ok(keys) = MasterKeys::from_bytes(bytes, context().rlwe()) else { return false };
    let written = keys.encoded_len(context().rlwe()).expect("what loads can be written");
    assert!(written == bytes.len() as u64, "another encoding loads");
    true
}

/// Key by key: written again in the same order, with the same bytes.
fn key_set_stream(bytes: &[u8]) -> bool {
    let parameters = context().rlwe();
    let Ok(reader) = KeySetReader::new(bytes, parameters) else { return false };
    let specs: Vec<_> = reader.entries().iter().map(|entry| entry.spec.clone()).collect();
    let mut writer = KeySetWriter::new(Vec::new(), &specs, parameters).expect("the directory was accepted");
    for key in reader {
        let Ok(key) = key else { return false };
        writer.write(&key).expect("the key is the one of the directory");
    }
    let written = writer.finish().expect("all keys were written");
    assert!(bytes.starts_with(&written), "another encoding loads");
    true
}

/// One key at a time, the last first.
fn key_set_file(bytes: &[u8]) -> bool {
    let Ok(mut file) = KeySetFile::new(Cursor::new(bytes), context().rlwe()) else { return false };
    let count = file.entries().len();
    (0..count).rev().filter(|&index| file.read(index).is_ok()).count() == count
}
