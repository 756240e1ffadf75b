//! Results of the module's native build for known randomness. `web/tests/vectors.test.mjs` requires the same digests
//! from the module itself.
//!
//! `KEYWRIGHT_WRITE_VECTORS=1 cargo test -p keywright-client-wasm` rewrites `vectors/browser.txt`.
#![expect(clippy::unwrap_used, reason = "a test")]

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use keywright_ckks::CkksLiteral;
use keywright_client::{ClientLiteral, ClientParameters, Layout};
use keywright_client_wasm::Client;
use keywright_rlwe::{KeyElement, KeySpec, Parameters, ParametersLiteral, SecretKey, Security};
use keywright_wire::{KeySetReader, KeySetWriter, Wire, WireSecret};
use sha2::{Digest, Sha256};

/// 32 bytes that count up.
fn entropy() -> Vec<u8> {
    (1..33).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, byte| {
        write!(out, "{byte:02x}").unwrap();
        out
    })
}

fn literal() -> CkksLiteral {
    let mut rlwe = ParametersLiteral::from_bits(10, &[50, 40, 40], &[50]).unwrap();
    rlwe.security = Security::InsecureForExperiments;
    CkksLiteral { rlwe, log_scale: 40.0 }
}

/// The objects that a server supplies to its clients.
fn thin(literal: &ParametersLiteral) -> Vec<u8> {
    let identity = |literal: &ParametersLiteral| literal.to_bytes(&()).unwrap()[12..32].try_into().unwrap();
    let entry = ParametersLiteral { q: literal.q[..1].to_vec(), p: Vec::new(), ..literal.clone() };
    let parameters = ClientParameters::new(ClientLiteral {
        log_n: literal.log_n,
        modulus: literal.q[0],
        secret: literal.secret,
        scale: 1 << 40,
        fraction_bits: 24,
        max: 1 << 24,
        layout: Layout::Coefficients,
        identity: identity(literal),
        entry_identity: identity(&entry),
        estimate: [1f64, 2.0, 3.0].map(f64::to_bits),
    })
    .unwrap();
    let mut bytes = Vec::new();
    parameters.write_to(&mut bytes).unwrap();
    bytes
}

fn head(parameters: &Parameters) -> Vec<u8> {
    let mut specs = vec![
        KeySpec::new(parameters, KeyElement::Relinearization, 2, 1, true),
        KeySpec::new(parameters, KeyElement::Galois(5), 1, 1, true),
    ];
    let mut sparse = |element| {
        let level = if matches!(element, KeyElement::DenseToSparse(_)) { 0 } else { 2 };
        specs.push(KeySpec::new(parameters, element, level, 1, true));
    };
    sparse(KeyElement::DenseToSparse(32));
    sparse(KeyElement::SparseToDense(32));
    let mut head = Vec::new();
    KeySetWriter::new(&mut head, &specs, parameters).unwrap();
    head
}

#[test]
fn a_browser_gives_these_bytes() {
    let literal = literal();
    let parameters = Parameters::new(literal.rlwe.clone()).unwrap();
    let head = head(&parameters);
    let bytes = literal.to_bytes(&()).unwrap();
    let thin = thin(&literal.rlwe);
    let mut client = Client::new(&thin, &entropy()).unwrap();
    let secret = client.secret_bytes().unwrap();

    let mut stream = client.key_stream(&bytes, &head).unwrap();
    let mut keys = Vec::new();
    while let Some(part) = stream.next_part().unwrap() {
        keys.extend(part);
    }
    assert_eq!(keys.len() as f64, stream.bytes());
    assert!(keys.starts_with(&head));
    let read: Vec<_> = KeySetReader::new(&keys[..], &parameters).unwrap().collect::<Result<_, _>>().unwrap();
    assert_eq!(read.len(), stream.keys());
    assert!(SecretKey::from_secret_bytes(&secret, &parameters).is_ok());

    let numbers: Vec<i32> = (0..1024).map(|i| (i * 7919 % 20_001 - 10_000) << 10).collect();
    let ciphertext = client.encrypt(&numbers).unwrap();
    let digests = [
        ("parameters", hex(&bytes)),
        ("client", hex(&thin)),
        ("head", hex(&head)),
        ("secret", hex(&Sha256::digest(&secret))),
        ("keys", hex(&Sha256::digest(&keys))),
        ("ciphertext", hex(&Sha256::digest(&ciphertext))),
    ]
    .iter()
    .fold(String::new(), |text, (name, value)| format!("{text}{name} {value}\n"));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/browser.txt");
    if std::env::var_os("KEYWRIGHT_WRITE_VECTORS").is_some() {
        std::fs::write(&path, &digests).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), digests);
}

/// `vectors/browser.py --check`: the same by definition, without any of this code.
#[test]
fn an_independent_program_agrees() {
    let python = std::env::var_os("PYO3_PYTHON").unwrap_or_else(|| "python3".into());
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/browser.py");
    let output = Command::new(&python).arg(program).arg("--check").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
