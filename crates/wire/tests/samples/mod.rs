//! Objects with contents that anybody can compute: see `vectors/wire/README.md`.

use keywright_ring::{Coefficient, Domain, Evaluation, Poly, Seed, StreamId};
use keywright_rlwe::{
    EvaluationKeys, KeyElement, KeySpec, Parameters, ParametersLiteral, PublicKey, RlweCiphertext,
    SecretDistribution, SecretKey, Security, SeededCiphertext, SwitchingKey, UniformPart,
};
use keywright_wire::{Wire, WireError, WireSecret};
use zeroize::Zeroizing;

/// Seed of all residues that stand for stored halves.
const FILLER: Seed = Seed([0x5A; 32]);
/// Seed of all halves that are expanded from a seed.
pub const HALF: Seed = Seed([0xA5; 32]);

/// Stream objects of the fillers.
pub mod object {
    pub const PUBLIC_KEY: u64 = 1;
    pub const SEEDED_KEY: u64 = 2;
    pub const STORED_KEY_B: u64 = 3;
    pub const STORED_KEY_A: u64 = 4;
    pub const KEY_SET: u64 = 5;
    pub const CIPHERTEXT: u64 = 7;
    pub const SEEDED_CIPHERTEXT: u64 = 8;
    pub const POLYNOMIAL: u64 = 9;
}

/// The smallest ring, primes of 50, 40 and 61 bits, one special prime of 61 bits. Insecure by design.
pub fn literal() -> ParametersLiteral {
    let bits = ParametersLiteral::from_bits(10, &[50, 40, 61], &[61]).unwrap();
    ParametersLiteral { security: Security::InsecureForExperiments, ..bits }
}

/// A literal that uses every field.
pub fn sparse_literal() -> ParametersLiteral {
    let bits = ParametersLiteral::from_bits(15, &[60, 50, 50], &[60, 60]).unwrap();
    ParametersLiteral { secret: SecretDistribution::Sparse { weight: 192 }, ..bits }
}

pub fn parameters() -> Parameters {
    Parameters::new(literal()).unwrap()
}

/// Uniform residues modulo the given primes, from a stream.
pub fn filler<D: Domain>(
    parameters: &Parameters,
    object: u64,
    digit: usize,
    primes: impl Iterator<Item = usize>,
) -> Poly<D> {
    let primes: Vec<usize> = primes.collect();
    let mut poly = Poly::unspecified(parameters.n(), primes.len());
    for (limb, prime) in poly.limbs_mut().zip(primes) {
        let id = StreamId { object, digit: digit as u8, limb: prime as u16 };
        let ring = parameters.ring();
        ring.backend().expand_uniform(&FILLER, id, ring.modulus(prime), limb);
    }
    poly
}

pub fn secret_key(p: &Parameters) -> SecretKey {
    let coefficients = (0..p.n() as i64).map(|i| (i * i + i / 7) % 3 - 1).collect();
    SecretKey::from_ternary(p, Zeroizing::new(coefficients)).unwrap()
}

pub fn public_key(p: &Parameters) -> PublicKey {
    PublicKey::expand(p, HALF, filler(p, object::PUBLIC_KEY, 0, 0..=p.max_level()))
}

/// A key whose row `j` of `b` is the filler `(object_b, j)`, and of `a`, if stored, the filler `(STORED_KEY_A, j)`.
pub fn switching_key(
    p: &Parameters,
    element: KeyElement,
    level: usize,
    seeded: bool,
    object_b: u64,
) -> SwitchingKey {
    let spec = KeySpec::new(p, element, level, 1, seeded);
    let digits = spec.validate(p).unwrap().len();
    let rows = |object| (0..digits).map(|j| filler(p, object, j, spec.primes())).collect();
    let uniform =
        if seeded { UniformPart::Seeded(HALF) } else { UniformPart::Stored(rows(object::STORED_KEY_A)) };
    SwitchingKey::from_parts(p, spec.clone(), rows(object_b), uniform).unwrap()
}

pub fn seeded_key(p: &Parameters) -> SwitchingKey {
    switching_key(p, KeyElement::Galois(5), 1, true, object::SEEDED_KEY)
}

pub fn stored_key(p: &Parameters) -> SwitchingKey {
    switching_key(p, KeyElement::Relinearization, 0, false, object::STORED_KEY_B)
}

pub fn key_set(p: &Parameters) -> EvaluationKeys {
    let mut keys = EvaluationKeys::new(p);
    for (k, element) in [KeyElement::Galois(2047), KeyElement::Secret(9)].into_iter().enumerate() {
        keys.insert(switching_key(p, element, 0, true, object::KEY_SET + k as u64)).unwrap();
    }
    keys
}

pub fn ciphertext(p: &Parameters) -> RlweCiphertext {
    RlweCiphertext { polys: (0..2).map(|j| filler(p, object::CIPHERTEXT, j, 0..2)).collect() }
}

pub fn seeded_ciphertext(p: &Parameters) -> SeededCiphertext {
    SeededCiphertext { seed: HALF, c0: filler(p, object::SEEDED_CIPHERTEXT, 0, 0..2) }
}

pub fn coefficients(p: &Parameters) -> Poly<Coefficient> {
    filler(p, object::POLYNOMIAL, 0, 0..p.prime_count())
}

pub fn evaluations(p: &Parameters) -> Poly<Evaluation> {
    filler(p, object::POLYNOMIAL, 1, 0..1)
}

/// One object as bytes, and a function that loads such bytes and writes them again.
pub struct Sample {
    pub name: &'static str,
    pub bytes: Vec<u8>,
    pub reload: fn(&[u8], &Parameters) -> Result<Vec<u8>, WireError>,
}

fn reload<T: Wire<Context = Parameters>>(bytes: &[u8], p: &Parameters) -> Result<Vec<u8>, WireError> {
    T::from_bytes(bytes, p)?.to_bytes(p)
}

fn reload_literal(bytes: &[u8], _: &Parameters) -> Result<Vec<u8>, WireError> {
    ParametersLiteral::from_bytes(bytes, &())?.to_bytes(&())
}

fn reload_secret(bytes: &[u8], p: &Parameters) -> Result<Vec<u8>, WireError> {
    Ok(SecretKey::from_secret_bytes(bytes, p)?.to_secret_bytes(p)?.to_vec())
}

fn sample<T: Wire<Context = Parameters>>(name: &'static str, object: &T, p: &Parameters) -> Sample {
    Sample { name, bytes: object.to_bytes(p).unwrap(), reload: reload::<T> }
}

/// Every kind of object.
pub fn all(p: &Parameters) -> Vec<Sample> {
    let literal = |name, literal: ParametersLiteral| Sample {
        name,
        bytes: literal.to_bytes(&()).unwrap(),
        reload: reload_literal,
    };
    vec![
        literal("parameters", self::literal()),
        literal("parameters_sparse", sparse_literal()),
        Sample {
            name: "secret_key",
            bytes: secret_key(p).to_secret_bytes(p).unwrap().to_vec(),
            reload: reload_secret,
        },
        sample("public_key", &public_key(p), p),
        sample("switching_key_seeded", &seeded_key(p), p),
        sample("switching_key_stored", &stored_key(p), p),
        sample("key_set", &key_set(p), p),
        sample("rlwe_ciphertext", &ciphertext(p), p),
        sample("rlwe_ciphertext_seeded", &seeded_ciphertext(p), p),
        sample("polynomial_coefficients", &coefficients(p), p),
        sample("polynomial_evaluations", &evaluations(p), p),
    ]
}
