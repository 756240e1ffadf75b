//! Objects with contents that anyone can compute: see `vectors/wire/README.md`.

use std::cell::RefCell;
use std::sync::OnceLock;

use keywright_aggregation::{Binding, Contributor, EncryptedSum, EncryptedUpdate, Residues, SumParameters};
use keywright_bfv::{self as bfv_scheme, BfvLiteral, BfvParameters, NoiseEstimate};
use keywright_ckks::{
    Ciphertext, CkksLiteral, CkksParameters, ErrorEstimate, Packing, Plaintext, SeededCiphertext,
};
use keywright_ring::{Coefficient, Domain, Evaluation, Poly, Seed, StreamId};
use keywright_rlwe::derive::{MasterKeys, MasterParameters};
use keywright_rlwe::{
    EvaluationKeys, KeyElement, KeyIdentity, KeyRow, KeySpec, Parameters, ParametersLiteral, PublicKey,
    RlweCiphertext, SecretDistribution, SecretKey, Security, SeededRlweCiphertext, SwitchingKey, UniformPart,
};
use keywright_search::{Answer, AnswerShape};
use keywright_wire::{Wire, WireError, WireSecret};
use zeroize::Zeroizing;

/// Seed of all residues in place of stored halves.
const FILLER: Seed = Seed([0x5A; 32]);
/// Seed of all halves that are expanded from a seed.
pub(crate) const HALF: Seed = Seed([0xA5; 32]);

/// The identity that keys and ciphertexts claim; no secret made them.
const KEY: KeyIdentity = KeyIdentity([0xC3; 16]);

/// Stream objects of the fillers.
pub(crate) mod object {
    pub(crate) const PUBLIC_KEY: u64 = 1;
    pub(crate) const SEEDED_KEY: u64 = 2;
    pub(crate) const STORED_KEY_B: u64 = 3;
    pub(crate) const STORED_KEY_A: u64 = 4;
    pub(crate) const KEY_SET: u64 = 5;
    pub(crate) const CIPHERTEXT: u64 = 7;
    pub(crate) const SEEDED_CIPHERTEXT: u64 = 8;
    pub(crate) const POLYNOMIAL: u64 = 9;
    pub(crate) const PLAINTEXT: u64 = 10;
    pub(crate) const CKKS_CIPHERTEXT: u64 = 11;
    pub(crate) const CKKS_SEEDED: u64 = 12;
    pub(crate) const BFV_CIPHERTEXT: u64 = 13;
    pub(crate) const BFV_SEEDED: u64 = 14;
    pub(crate) const MASTER_KEYS: u64 = 15;
}

/// The smallest ring, primes of 50, 40 and 61 bits, one special prime of 61 bits. Insecure by design.
pub(crate) fn literal() -> ParametersLiteral {
    let bits = ParametersLiteral::from_bits(10, &[50, 40, 61], &[61]).unwrap();
    ParametersLiteral { security: Security::InsecureForExperiments, ..bits }
}

/// A literal that uses every field.
pub(crate) fn sparse_literal() -> ParametersLiteral {
    let bits = ParametersLiteral::from_bits(15, &[60, 50, 50], &[60, 60]).unwrap();
    ParametersLiteral { secret: SecretDistribution::Sparse { weight: 192 }, ..bits }
}

pub(crate) fn parameters() -> Parameters {
    Parameters::new(literal()).unwrap()
}

/// Uniform residues modulo the given primes, from a stream.
pub(crate) fn filler<D: Domain>(
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

pub(crate) fn secret_key(p: &Parameters) -> SecretKey {
    let coefficients = (0..p.n() as i64).map(|i| (i * i + i / 7) % 3 - 1).collect();
    SecretKey::from_ternary(p, vec![Zeroizing::new(coefficients)]).unwrap()
}

pub(crate) fn public_key(p: &Parameters) -> PublicKey {
    PublicKey::expand(p, KEY, HALF, filler(p, object::PUBLIC_KEY, 0, 0..=p.max_level()))
}

/// A key whose row `j` of `b` is the filler `(object_b, j)`, and of `a`, if stored, the filler `(STORED_KEY_A, j)`.
pub(crate) fn switching_key(
    p: &Parameters,
    element: KeyElement,
    level: usize,
    seeded: bool,
    object_b: u64,
) -> SwitchingKey {
    let spec = KeySpec::new(p, element, level, 1, seeded);
    let digits = spec.validate(p).unwrap().len();
    let rows =
        |object| -> Vec<KeyRow> { (0..digits).map(|j| filler(p, object, j, spec.primes()).into()).collect() };
    let uniform =
        if seeded { UniformPart::Seeded(HALF) } else { UniformPart::Stored(rows(object::STORED_KEY_A)) };
    SwitchingKey::from_parts(p, KEY, spec.clone(), rows(object_b), uniform).unwrap()
}

pub(crate) fn seeded_key(p: &Parameters) -> SwitchingKey {
    switching_key(p, KeyElement::Galois(5), 1, true, object::SEEDED_KEY)
}

pub(crate) fn stored_key(p: &Parameters) -> SwitchingKey {
    switching_key(p, KeyElement::Relinearization, 0, false, object::STORED_KEY_B)
}

pub(crate) fn key_set(p: &Parameters) -> EvaluationKeys {
    let mut keys = EvaluationKeys::new(p);
    for (k, element) in [KeyElement::Galois(2047), KeyElement::Secret(9)].into_iter().enumerate() {
        keys.insert(switching_key(p, element, 0, true, object::KEY_SET + k as u64)).unwrap();
    }
    keys
}

/// One seeded master key for Galois element 5 at level 0, over special prime, `q_0` and an extra prime of 61 bits.
pub(crate) fn master_keys(p: &Parameters) -> MasterKeys {
    let parameters = MasterParameters::from_bits(p, &[61]).unwrap();
    let chain = parameters.chain();
    let element = KeyElement::Galois(5);
    let spec = KeySpec { element, level: 1, alpha: 1, special: vec![4], seeded: true, subring: None };
    let b = (0..2).map(|j| filler(chain, object::MASTER_KEYS, j, spec.primes())).collect();
    let mut keys = MasterKeys::new(&parameters);
    keys.insert(SwitchingKey::from_parts(chain, KEY, spec, b, UniformPart::Seeded(HALF)).unwrap()).unwrap();
    keys
}

pub(crate) fn ciphertext(p: &Parameters) -> RlweCiphertext {
    RlweCiphertext { polys: (0..2).map(|j| filler(p, object::CIPHERTEXT, j, 0..2)).collect(), key: KEY }
}

pub(crate) fn seeded_ciphertext(p: &Parameters) -> SeededRlweCiphertext {
    SeededRlweCiphertext { seed: HALF, c0: filler(p, object::SEEDED_CIPHERTEXT, 0, 0..2), key: KEY }
}

pub(crate) fn coefficients(p: &Parameters) -> Poly<Coefficient> {
    filler(p, object::POLYNOMIAL, 0, 0..p.prime_count())
}

pub(crate) fn evaluations(p: &Parameters) -> Poly<Evaluation> {
    filler(p, object::POLYNOMIAL, 1, 0..1)
}

pub(crate) fn ckks_literal() -> CkksLiteral {
    CkksLiteral { rlwe: literal(), log_scale: 37.5 }
}

pub(crate) fn ckks_parameters() -> CkksParameters {
    CkksParameters::new(ckks_literal()).unwrap()
}

/// Numbers that no computation produced, all exact in binary.
const SCALE: f64 = 184_717_954_048.5;
const ESTIMATE: ErrorEstimate = ErrorEstimate { deviation: 1.0 / 1024.0, magnitude: 3.25, real: false };

pub(crate) fn plaintext(c: &CkksParameters) -> Plaintext {
    let poly = filler(c.rlwe(), object::PLAINTEXT, 0, 0..1);
    let packing = Packing::Slots { log_slots: 3 };
    Plaintext {
        parameters: c.clone(),
        poly,
        scale: SCALE,
        packing,
        magnitude: ESTIMATE.magnitude,
        real: ESTIMATE.real,
    }
}

pub(crate) fn ckks_ciphertext(c: &CkksParameters) -> Ciphertext {
    let polys = (0..3).map(|j| filler(c.rlwe(), object::CKKS_CIPHERTEXT, j, 0..1)).collect();
    let (rlwe, packing) = (RlweCiphertext { polys, key: KEY }, Packing::Slots { log_slots: 9 });
    Ciphertext { parameters: c.clone(), rlwe, scale: SCALE, packing, estimate: ESTIMATE }
}

pub(crate) fn ckks_seeded(c: &CkksParameters) -> SeededCiphertext {
    let seeded =
        SeededRlweCiphertext { seed: HALF, c0: filler(c.rlwe(), object::CKKS_SEEDED, 0, 0..1), key: KEY };
    let (packing, estimate) = (Packing::Coefficients, ErrorEstimate { real: true, ..ESTIMATE });
    SeededCiphertext { parameters: c.clone(), seeded, scale: SCALE, packing, estimate }
}

/// A prime that is 1 modulo `2^11`, so that there are slots.
pub(crate) const PLAINTEXT_MODULUS: u64 = 65537;

pub(crate) fn bfv_literal() -> BfvLiteral {
    BfvLiteral { rlwe: literal(), plaintext_modulus: PLAINTEXT_MODULUS }
}

/// BFV parameters with the primes of others; keeps those of the last request.
pub(crate) fn bfv_parameters(rlwe: &ParametersLiteral) -> BfvParameters {
    thread_local! {
        static LAST: RefCell<Option<BfvParameters>> = const { RefCell::new(None) };
    }
    LAST.with_borrow_mut(|last| match last {
        Some(parameters) if parameters.rlwe().literal() == rlwe => parameters.clone(),
        _ => {
            let literal = BfvLiteral { rlwe: rlwe.clone(), plaintext_modulus: PLAINTEXT_MODULUS };
            last.insert(BfvParameters::new(literal).unwrap()).clone()
        }
    })
}

/// Numbers that no computation produced.
const NOISE: NoiseEstimate = NoiseEstimate { log_deviation: -40.25, log_peak: -38.5, order: 2 };

pub(crate) fn bfv_ciphertext(b: &BfvParameters) -> bfv_scheme::Ciphertext {
    let polys = (0..3).map(|j| filler(b.rlwe(), object::BFV_CIPHERTEXT, j, 0..1)).collect();
    let (rlwe, packing) = (RlweCiphertext { polys, key: KEY }, bfv_scheme::Packing::Slots);
    bfv_scheme::Ciphertext { parameters: b.clone(), rlwe, packing, estimate: NOISE }
}

pub(crate) fn bfv_seeded(b: &BfvParameters) -> bfv_scheme::SeededCiphertext {
    let seeded =
        SeededRlweCiphertext { seed: HALF, c0: filler(b.rlwe(), object::BFV_SEEDED, 0, 0..1), key: KEY };
    let packing = bfv_scheme::Packing::Coefficients;
    bfv_scheme::SeededCiphertext { parameters: b.clone(), seeded, packing }
}

/// Sums of five vectors of integers of 20 bits: residues of 40 bits, `N = 2^11`.
pub(crate) fn sum_parameters() -> &'static SumParameters {
    static PARAMETERS: OnceLock<SumParameters> = OnceLock::new();
    PARAMETERS.get_or_init(|| SumParameters::new(5, (1 << 20) - 1).unwrap())
}

/// Planes whose byte `i` is `7 i + 3`.
fn planes(values: usize) -> Residues {
    Residues::from_planes(5, (0..5 * values).map(|i| (7 * i + 3) as u8).collect()).unwrap()
}

const SESSION: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

pub(crate) fn encrypted_update() -> EncryptedUpdate {
    let binding = Binding { session: SESSION, round: 3, client: 9, weight: 60 };
    EncryptedUpdate::new(sum_parameters(), binding, HALF, planes(6)).unwrap()
}

pub(crate) fn encrypted_sum() -> EncryptedSum {
    let contributor = |client| Contributor { client, weight: 51 + client as u32, seed: HALF };
    let contributors = vec![contributor(9), contributor(10)];
    EncryptedSum::new(sum_parameters(), SESSION, 3, contributors, planes(7)).unwrap()
}

/// A block of `2^10` places and one of 3, of which eight coefficients of the first half are stored: byte `i` is
/// `11 i + 5`.
pub(crate) fn search_answer(b: &BfvParameters) -> Answer {
    let shape = AnswerShape { rows: 1027, width_0: 19, width_1: 27 };
    let body = (0..shape.body_len(b.rlwe().n())).map(|i| (11 * i + 5) as u8).collect();
    Answer { shape, key: KEY, body }
}

/// One object as bytes, and a function that loads such bytes and writes them again.
pub(crate) struct Sample {
    pub(crate) name: &'static str,
    pub(crate) bytes: Vec<u8>,
    pub(crate) reload: fn(&[u8], &CkksParameters) -> Result<Vec<u8>, WireError>,
}

fn rlwe<T: Wire<Context = Parameters>>(name: &'static str, object: &T, c: &CkksParameters) -> Sample {
    let reload = |bytes: &[u8], c: &CkksParameters| T::from_bytes(bytes, c.rlwe())?.to_bytes(c.rlwe());
    Sample { name, bytes: object.to_bytes(c.rlwe()).unwrap(), reload }
}

fn ckks<T: Wire<Context = CkksParameters>>(name: &'static str, object: &T, c: &CkksParameters) -> Sample {
    let reload = |bytes: &[u8], c: &CkksParameters| T::from_bytes(bytes, c)?.to_bytes(c);
    Sample { name, bytes: object.to_bytes(c).unwrap(), reload }
}

fn bfv<T: Wire<Context = BfvParameters>>(name: &'static str, object: &T, b: &BfvParameters) -> Sample {
    let reload = |bytes: &[u8], c: &CkksParameters| {
        let b = bfv_parameters(c.rlwe().literal());
        T::from_bytes(bytes, &b)?.to_bytes(&b)
    };
    Sample { name, bytes: object.to_bytes(b).unwrap(), reload }
}

fn literals<T: Wire<Context = ()>>(name: &'static str, object: &T) -> Sample {
    let reload = |bytes: &[u8], _: &CkksParameters| T::from_bytes(bytes, &())?.to_bytes(&());
    Sample { name, bytes: object.to_bytes(&()).unwrap(), reload }
}

fn sums<T: Wire<Context = SumParameters>>(name: &'static str, object: &T) -> Sample {
    let reload =
        |bytes: &[u8], _: &CkksParameters| T::from_bytes(bytes, sum_parameters())?.to_bytes(sum_parameters());
    Sample { name, bytes: object.to_bytes(sum_parameters()).unwrap(), reload }
}

fn secret<T: WireSecret<Context = Parameters>>(name: &'static str, object: &T, c: &CkksParameters) -> Sample {
    let reload = |bytes: &[u8], c: &CkksParameters| {
        Ok(T::from_secret_bytes(bytes, c.rlwe())?.to_secret_bytes(c.rlwe())?.to_vec())
    };
    Sample { name, bytes: object.to_secret_bytes(c.rlwe()).unwrap().to_vec(), reload }
}

/// Every kind of object.
pub(crate) fn all(c: &CkksParameters) -> Vec<Sample> {
    let p = c.rlwe();
    let b = &bfv_parameters(p.literal());
    vec![
        literals("parameters", &literal()),
        literals("parameters_sparse", &sparse_literal()),
        secret("secret_key", &secret_key(p), c),
        rlwe("public_key", &public_key(p), c),
        rlwe("switching_key_seeded", &seeded_key(p), c),
        rlwe("switching_key_stored", &stored_key(p), c),
        rlwe("key_set", &key_set(p), c),
        rlwe("master_keys", &master_keys(p), c),
        rlwe("rlwe_ciphertext", &ciphertext(p), c),
        rlwe("rlwe_ciphertext_seeded", &seeded_ciphertext(p), c),
        rlwe("polynomial_coefficients", &coefficients(p), c),
        rlwe("polynomial_evaluations", &evaluations(p), c),
        literals("ckks_parameters", &ckks_literal()),
        ckks("ckks_plaintext", &plaintext(c), c),
        ckks("ckks_ciphertext", &ckks_ciphertext(c), c),
        ckks("ckks_ciphertext_seeded", &ckks_seeded(c), c),
        literals("bfv_parameters", &bfv_literal()),
        bfv("bfv_ciphertext", &bfv_ciphertext(b), b),
        bfv("bfv_ciphertext_seeded", &bfv_seeded(b), b),
        bfv("search_answer", &search_answer(b), b),
        sums("encrypted_update", &encrypted_update()),
        sums("encrypted_sum", &encrypted_sum()),
    ]
}
