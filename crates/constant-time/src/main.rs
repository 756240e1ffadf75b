//! `make ct-test`: runs every way in which secrets are made and used on memory that valgrind's memcheck treats as
//! undefined.
//!
//! The entropy of generators is secret, and so is everything drawn with it: secret keys, errors, masks, flooding.
//! `public.supp` names the functions whose values become public during the work, each with its reason. A final result
//! that is public, a ciphertext or a key, is declared so here before it is used.
//!
//! Not covered: encoding and decoding, which compute with floating-point numbers (SECURITY.md), and AVX-512, which
//! valgrind does not support. `KEYWRIGHT_BACKEND` selects the back end.

mod memory;

use std::error::Error;
use std::process::ExitCode;

use keywright_bfv::{BfvLiteral, BfvParameters};
use keywright_ckks::encoder::Embedding;
use keywright_ckks::{CkksLiteral, CkksParameters, Decryptor, Encryptor, Flooding, Packing};
use keywright_client::{Client, ClientError, EngineChoice, Entropy, Form, Layout};
use keywright_ring::sampling::{SecretRng, gaussian, sparse_ternary, ternary};
use keywright_ring::{backend, rotation_element};
use keywright_rlwe::{
    KeyElement, KeyGenerator, KeySpec, PublicKey, RlweCiphertext, SecretKey, Security, decrypt, encrypt_zero,
    encrypt_zero_symmetric,
};
use keywright_thin_server as server;
use zeroize::Zeroizing;

use memory::{is_watched, make_public, make_secret};

const LOG_N: u32 = 10;
/// Bits of a message's coefficients.
const MESSAGE: f64 = (1u64 << 40) as f64;

/// A generator whose output is secret.
fn secret_rng(byte: u8) -> SecretRng {
    let entropy = Zeroizing::new([byte; 32]);
    make_secret(&*entropy);
    SecretRng::from_entropy(&entropy)
}

fn publish(ciphertext: &RlweCiphertext) {
    ciphertext.polys.iter().for_each(|poly| make_public(poly.words()));
}

fn parameters() -> Result<CkksParameters, Box<dyn Error>> {
    // Primes of every kind that back ends distinguish: below 2^50, and up to 2^60.
    let mut literal = CkksLiteral::from_bits(LOG_N, &[60, 45, 45], &[50, 50], 40.0)?;
    literal.rlwe.security = Security::InsecureForExperiments;
    Ok(CkksParameters::new(literal)?)
}

fn sampling() -> Result<(), Box<dyn Error>> {
    let (mut rng, mut out) = (secret_rng(1), vec![0; 1000]);
    gaussian(&mut rng, &mut out);
    ternary(&mut rng, &mut out);
    sparse_ternary(&mut rng, 100, &mut out)?;
    Ok(())
}

/// The secret, a public key, and keys of every kind.
fn key_generation(parameters: &CkksParameters, secret: &SecretKey) -> Result<PublicKey, Box<dyn Error>> {
    let rlwe = parameters.rlwe();
    let mut generator = KeyGenerator::new(secret, secret_rng(3));
    for element in [KeyElement::Relinearization, KeyElement::Galois(rotation_element(LOG_N, 3))] {
        generator.switching_key(&KeySpec::new(rlwe, element, rlwe.max_level(), 2, true))?;
    }
    let key = generator.public_key();
    make_public(key.a().words());
    make_public(key.b().words());
    Ok(key)
}

/// Encrypts a secret message with the public key and with the secret, then decrypts to coefficients.
fn encryption(
    parameters: &CkksParameters,
    secret: &SecretKey,
    key: &PublicKey,
) -> Result<(), Box<dyn Error>> {
    let (rlwe, embedding) = (parameters.rlwe(), parameters.embedding());
    let message: Vec<i64> = (0..rlwe.n() as i64).map(|i| i * 0x1234_5678 - (1 << 38)).collect();
    make_secret(&message);
    let add = |embedding: &Embedding, i: usize, limb: &mut [u64]| {
        let mut residues = vec![0; limb.len()];
        embedding.residues_of_words(&message, MESSAGE, rlwe.modulus(i), &mut residues);
        rlwe.ring().backend().add_assign(rlwe.modulus(i), limb, &residues);
    };
    let add_message = |i: usize, limb: &mut [u64]| add(embedding, i, limb);
    let mut rng = secret_rng(4);
    let ciphertext = encrypt_zero(key, rlwe.max_level(), &mut rng, Some(&add_message))?;
    publish(&ciphertext);
    drop(decrypt(secret, &ciphertext, 2));
    let seeded = encrypt_zero_symmetric(secret, rlwe.max_level(), &mut rng, Some(&add_message))?;
    let ciphertext = seeded.expand(rlwe);
    publish(&ciphertext);
    drop(decrypt(secret, &ciphertext, 2));
    Ok(())
}

/// Up to the floating-point numbers, and including them for flooding, which draws integers.
fn flooding(parameters: &CkksParameters, secret: &SecretKey, key: &PublicKey) -> Result<(), Box<dyn Error>> {
    let ciphertext = Encryptor::new(parameters, key, SecretRng::from_entropy(&[5; 32].into()))?
        .encrypt_real(&[1.0, -0.5], Packing::Slots { log_slots: 2 }, 1)?;
    publish(&ciphertext.rlwe);
    let flooding = Flooding::new(10, 10)?;
    Decryptor::new(parameters, secret)?.decrypt_flooded(&ciphertext, &flooding, &mut secret_rng(6))?;
    Ok(())
}

/// The client without an operating system, on its own integer arithmetic.
fn thin_client() -> Result<(), Box<dyn Error>> {
    struct Secret;
    impl Entropy for Secret {
        fn fill(&mut self, out: &mut [u8]) -> Result<(), ClientError> {
            secret_rng(7).fill_bytes(out);
            Ok(())
        }

        fn generator(&mut self) -> Result<SecretRng, ClientError> {
            Ok(secret_rng(8))
        }
    }
    // All engines support the first prime.
    let mut literal = CkksLiteral::from_bits(LOG_N, &[30, 45], &[50], 20.0)?;
    literal.rlwe.q[0] = (1 << 30) - (1 << 18) + 1;
    literal.rlwe.security = Security::InsecureForExperiments;
    let full = CkksParameters::new(literal)?;
    for layout in [Layout::Coefficients, Layout::Slots { log_slots: LOG_N - 1, complex: false }] {
        let parameters = server::parameters_at(&full, 1 << 20, 8, layout)?;
        for choice in [EngineChoice::Ring, EngineChoice::ShiftAdd, EngineChoice::Montgomery] {
            let mut client = Client::generate(&parameters, &mut Secret)?.with_engine(choice)?;
            let (numbers, mut key, mut sent) = ([100i16, -200, 256], Vec::new(), Vec::new());
            make_secret(&numbers);
            client.public_key(&mut key)?;
            client.encrypt(&numbers[..], Form::default(), &mut sent)?;
            make_public(&sent);
            let ciphertext = server::read_upload(&sent, &full, &parameters)?;
            let mut answer = Vec::new();
            server::write_answer(&ciphertext, layout, [4, 2], &mut answer)?;
            let mut read = [0; 3];
            client.decrypt(&answer, &mut read)?;
            make_public(&read);
            if read.iter().zip([100, -200, 256]).any(|(read, sent)| (read - sent).abs() > 1) {
                return Err(format!("{choice:?} read {read:?}").into());
            }
        }
    }
    Ok(())
}

/// Exact arithmetic: encoding, encryption with both keys, decryption.
fn bfv() -> Result<(), Box<dyn Error>> {
    let mut literal = BfvLiteral::from_bits(LOG_N, &[50, 45], &[50], 12289)?;
    literal.rlwe.security = Security::InsecureForExperiments;
    let parameters = BfvParameters::new(literal)?;
    let secret = SecretKey::sample(parameters.rlwe(), &mut secret_rng(10))?;
    let public = KeyGenerator::new(&secret, secret_rng(11)).public_key();
    make_public(public.a().words());
    make_public(public.b().words());
    let values: Vec<i64> = (0..1 << LOG_N).map(|i| i * 11 - 6000).collect();
    make_secret(&values);
    let plaintext = parameters.encode(&values, parameters.default_packing())?;
    let decryptor = keywright_bfv::Decryptor::new(&parameters, &secret)?;
    let level = parameters.max_level();
    let with_public =
        keywright_bfv::Encryptor::new(&parameters, &public, secret_rng(12))?.encrypt(&plaintext, level)?;
    let seeded = decryptor.encrypt(&plaintext, level, &mut secret_rng(13))?.expand();
    for ciphertext in [with_public, seeded] {
        publish(&ciphertext.rlwe);
        decryptor.decrypt(&ciphertext)?;
    }
    Ok(())
}

/// Branches on a secret bit. If valgrind misses this, the test is worthless.
fn leak() -> u32 {
    let mut rng = secret_rng(9);
    if rng.next_word() & 1 == 0 { 1 } else { std::hint::black_box(rng.next_word() as u32) | 2 }
}

fn run() -> Result<(), Box<dyn Error>> {
    let parameters = parameters()?;
    println!("{}: sampling", backend::default()?.kind().name());
    sampling()?;
    println!("keys");
    let secret = SecretKey::sample(parameters.rlwe(), &mut secret_rng(2))?;
    let key = key_generation(&parameters, &secret)?;
    println!("encryption and decryption");
    encryption(&parameters, &secret, &key)?;
    println!("flooding");
    flooding(&parameters, &secret, &key)?;
    println!("the thin client");
    thin_client()?;
    println!("exact integers");
    bfv()
}

fn main() -> ExitCode {
    if !is_watched() {
        eprintln!("keywright-constant-time tests nothing outside of valgrind; run make ct-test");
        return ExitCode::FAILURE;
    }
    if std::env::args().nth(1).as_deref() == Some("leak") {
        std::hint::black_box(leak());
        return ExitCode::SUCCESS;
    }
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
