//! The bytes of a client equal those of the full library.

use keywright_ckks::{Ciphertext, Decryptor, Packing, SeededCiphertext};
use keywright_client::{Client, Encryptor, EngineChoice, Form};
use keywright_rlwe::{PublicKey, SecretKey, encrypt_zero, encrypt_zero_symmetric, noise};
use keywright_wire::{Wire, WireSecret};

use crate::fixture::{SHIFT_ADD_30, SHIFT_ADD_60, entropy, entry, full_secret, generic_primes, numbers, rng};

const ALL: [EngineChoice; 3] = [EngineChoice::Ring, EngineChoice::ShiftAdd, EngineChoice::Montgomery];

fn choices(q: u64) -> &'static [EngineChoice] {
    if [SHIFT_ADD_30, SHIFT_ADD_60].contains(&q) {
        &ALL
    } else {
        &[EngineChoice::Ring, EngineChoice::Montgomery]
    }
}

fn primes() -> impl Iterator<Item = u64> {
    [SHIFT_ADD_30, SHIFT_ADD_60].into_iter().chain(generic_primes())
}

#[test]
fn secrets_and_public_keys_are_the_full_librarys() {
    for q in primes() {
        let (parameters, thin) = entry(12, q, 20.min(q.ilog2() - 8));
        let rlwe = parameters.rlwe();
        let mut generator = rng(3);
        let secret = SecretKey::sample(rlwe, &mut generator).unwrap();
        let public = PublicKey::from_seed(&secret, generator.public_seed(), &mut generator);
        for &choice in choices(q) {
            let mut client = Client::generate(&thin, &mut entropy(3)).unwrap().with_engine(choice).unwrap();
            assert_eq!(*client.secret_bytes().unwrap(), *secret.to_secret_bytes(rlwe).unwrap());
            let mut bytes = Vec::new();
            client.public_key(&mut bytes).unwrap();
            assert!(bytes == public.to_bytes(rlwe).unwrap(), "{choice:?}, {q}");
        }
    }
}

#[test]
fn ciphertexts_are_the_full_librarys() {
    for q in primes() {
        let (parameters, thin) = entry(12, q, 20.min(q.ilog2() - 8));
        let rlwe = parameters.rlwe();
        let numbers = numbers(q, thin.capacity(), thin.fixed_point().max());
        let mut message = vec![0i64; rlwe.n()];
        for (index, &number) in numbers.iter().enumerate() {
            message[thin.layout().position(12, index)] = thin.fixed_point().coefficient(number);
        }
        let add = |i: usize, limb: &mut [u64]| {
            let m = rlwe.modulus(i);
            limb.iter_mut().zip(&message).for_each(|(x, &c)| *x = m.add(*x, m.reduce_i64(c)));
        };
        let mut owner = Client::generate(&thin, &mut entropy(1)).unwrap();
        let secret = full_secret(&owner, &parameters);
        let secret_bytes = owner.secret_bytes().unwrap();
        let mut public_key = Vec::new();
        owner.public_key(&mut public_key).unwrap();
        let public = PublicKey::from_bytes(&public_key, rlwe).unwrap();
        for &choice in choices(q) {
            let mut sender = Encryptor::with_engine(&thin, &public_key, &mut entropy(5), choice).unwrap();
            let mut bytes = Vec::new();
            sender.encrypt(&numbers[..], Form::Evaluations, &mut bytes).unwrap();
            assert_eq!(bytes.len(), thin.ciphertext_bytes());
            let full = encrypt_zero(&public, 0, &mut rng(5), Some(&add)).unwrap();
            let read = Ciphertext::from_bytes(&bytes, &parameters).unwrap();
            assert!(read.rlwe == full, "{choice:?}, {q}");
            assert_eq!((read.scale, read.packing), (parameters.scale(), Packing::Coefficients));
            assert_eq!(read.to_bytes(&parameters).unwrap(), bytes, "the encoding is the only one");

            let mut client = Client::from_secret_bytes(&thin, &secret_bytes, &mut entropy(6))
                .unwrap()
                .with_engine(choice)
                .unwrap();
            let mut bytes = Vec::new();
            client.encrypt(&numbers[..], Form::Evaluations, &mut bytes).unwrap();
            assert_eq!(bytes.len(), thin.seeded_ciphertext_bytes());
            let full = encrypt_zero_symmetric(&secret, 0, &mut rng(6), Some(&add)).unwrap();
            let read = SeededCiphertext::from_bytes(&bytes, &parameters).unwrap();
            assert!(read.seeded.c0 == full.c0 && read.seeded.seed == full.seed, "{choice:?}, {q}");

            // The full library decrypts the encrypted numbers, within the bound on fresh errors.
            let coefficients =
                Decryptor::new(&parameters, &secret).unwrap().decrypt_real(&read.expand()).unwrap();
            let bound = noise::TAIL * noise::fresh_symmetric().sqrt();
            for (seen, &expected) in coefficients.iter().zip(&message) {
                assert!((seen * read.scale - expected as f64).abs() <= bound);
            }
        }
    }
}
