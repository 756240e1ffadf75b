//! Objects of another owner, and values larger than a ciphertext allows, give an error instead of a result.

use keywright_ckks::{
    Ciphertext, CkksError, CkksLiteral, CkksParameters, Decryptor, Encryptor, Evaluator, Packing,
};
use keywright_ring_testing::rng;
use keywright_rlwe::{EvaluationKeys, KeyElement, KeyGenerator, KeyIdentity, KeySpec, RlweError, SecretKey};

use crate::largest;

const SLOTS: Packing = Packing::Slots { log_slots: 9 };

/// Two rings, `q_0` of 50 bits at a scale of 40. Not secure.
fn parameters() -> CkksParameters {
    let mut literal = CkksLiteral::from_bits(11, &[50, 40, 40], &[50], 40.0).unwrap().insecure();
    literal.rlwe = literal.rlwe.with_subrings(&[(10, 1, None)]);
    CkksParameters::new(literal).unwrap()
}

struct Owner {
    parameters: CkksParameters,
    secret: SecretKey,
    keys: EvaluationKeys,
    encryptions: u8,
}

impl Owner {
    fn new(byte: u8) -> Self {
        let parameters = parameters();
        let secret = SecretKey::sample(parameters.rlwe(), &mut rng(byte)).unwrap();
        let specs = [KeyElement::Relinearization, KeyElement::Galois(5)]
            .map(|element| KeySpec::new(parameters.rlwe(), element, 2, 1, true));
        let keys = KeyGenerator::new(&secret, rng(byte + 1)).evaluation_keys(&specs).unwrap();
        Self { parameters, secret, keys, encryptions: byte + 2 }
    }

    fn evaluator(&self) -> Evaluator<'_> {
        Evaluator::new(&self.parameters, &self.keys).unwrap()
    }

    fn decryptor(&self) -> Decryptor<'_> {
        Decryptor::new(&self.parameters, &self.secret).unwrap()
    }

    fn encrypt(&mut self, value: f64, level: usize) -> Ciphertext {
        self.encryptions += 1;
        let public = KeyGenerator::new(&self.secret, rng(200)).public_key();
        let encryptor = Encryptor::new(&self.parameters, &public, rng(self.encryptions)).unwrap();
        let mut encryptor = encryptor.declaring(largest([value]));
        encryptor.encrypt_real(&[value; 512], SLOTS, level).unwrap()
    }
}

fn mismatch<T: std::fmt::Debug>(result: Result<T, CkksError>, left: &Owner, right: &Owner) -> bool {
    match result.unwrap_err() {
        CkksError::Rlwe(RlweError::KeyMismatch { left_key, right_key, .. }) => {
            (left_key, right_key) == (left.secret.identity(), right.secret.identity())
        }
        _ => false,
    }
}

#[test]
fn nothing_of_two_owners_is_combined_or_decrypted() {
    let (mut alice, mut bob) = (Owner::new(1), Owner::new(11));
    let (a, b) = (alice.encrypt(0.5, 2), bob.encrypt(0.5, 2));
    assert_eq!(a.key(), alice.secret.identity());
    assert_ne!(a.key(), b.key());
    assert!(alice.decryptor().decrypt_real(&a).is_ok());
    assert!(mismatch(alice.decryptor().decrypt_real(&b), &alice, &bob));
    // With keys, without, in every operation on two operands.
    for evaluator in [&alice.evaluator(), &bob.evaluator()] {
        assert!(evaluator.add(&a, &b).is_err() && evaluator.multiply(&a, &b).is_err());
    }
    let none = EvaluationKeys::new(alice.parameters.rlwe());
    let evaluator = Evaluator::new(&alice.parameters, &none).unwrap();
    assert!(mismatch(evaluator.add(&a, &b), &alice, &bob));
    assert!(mismatch(evaluator.multiply_lazy(&a, &b), &alice, &bob));
    // The keys of one owner, the ciphertext of the other: in operations with and without keys.
    let evaluator = alice.evaluator();
    assert!(mismatch(evaluator.rotate(&b, 1), &alice, &bob));
    assert!(mismatch(evaluator.square(&b), &alice, &bob));
    assert!(mismatch(evaluator.neg(&b), &alice, &bob));
    assert!(mismatch(evaluator.rescale(&b), &alice, &bob));
    assert!(mismatch(evaluator.switch_ring(&b, 10), &alice, &bob));
    // One set refuses keys of both.
    let mut keys = alice.keys.clone();
    let spec = KeySpec::new(bob.parameters.rlwe(), KeyElement::Galois(25), 2, 1, true);
    let foreign = KeyGenerator::new(&bob.secret, rng(30)).switching_key(&spec).unwrap();
    let (left_key, right_key) = (alice.secret.identity(), bob.secret.identity());
    let error = RlweError::KeyMismatch { left: "the key set", right: "the key", left_key, right_key };
    assert_eq!(keys.insert(foreign).unwrap_err(), error);
    assert_eq!(keys.len(), alice.keys.len());
}

#[test]
fn results_keep_the_identity_that_is_known() {
    let mut owner = Owner::new(21);
    let known = owner.secret.identity();
    let a = owner.encrypt(0.5, 2);
    let unknown = |a: &Ciphertext| Ciphertext {
        rlwe: keywright_rlwe::RlweCiphertext { key: KeyIdentity::UNKNOWN, ..a.rlwe.clone() },
        ..a.clone()
    };
    let b = unknown(&a);
    let evaluator = owner.evaluator();
    let ciphertexts = [
        evaluator.add(&b, &a),
        evaluator.multiply(&b, &b),
        evaluator.rotate(&b, 1),
        evaluator.rescale(&evaluator.multiply_lazy(&a, &a).unwrap()),
        evaluator.multiply_values(&a, &[0.5; 512]),
    ];
    for ciphertext in ciphertexts {
        assert_eq!(ciphertext.unwrap().key(), known);
    }
    assert_eq!(evaluator.neg(&b).unwrap().key(), KeyIdentity::UNKNOWN);
    // All rings of a secret share its identity.
    assert_eq!(owner.secret.subrings()[0].identity(), known);
    let small = owner.decryptor().in_ring(10).unwrap();
    assert_eq!(
        small.encrypt_real(&[0.5; 8], Packing::Slots { log_slots: 3 }, 1, &mut rng(60)).unwrap().key(),
        known
    );
}

/// A garbled decryption: without an identity, as in files of version 1, and with overflowed values.
#[test]
fn what_a_ciphertext_does_not_allow_is_refused() {
    let (mut alice, bob) = (Owner::new(31), Owner::new(41));
    let mut a = alice.encrypt(0.5, 2);
    a.rlwe.key = KeyIdentity::UNKNOWN;
    assert!(alice.decryptor().decrypt_real(&a).is_ok());
    for decrypted in [bob.decryptor().decrypt_real(&a), bob.decryptor().decrypt(&a).map(|v| vec![v[0].re])] {
        assert!(matches!(decrypted, Err(CkksError::Overflow { .. })));
    }
    // A client that understates its values.
    let mut small = a.clone();
    small.estimate.magnitude = 0.125;
    assert!(matches!(alice.decryptor().decrypt_real(&small), Err(CkksError::Overflow { .. })));

    // At this scale q_0 holds 2^10, half of it on either side.
    let fits = alice.encrypt(400.0, 0);
    let bound = fits.error_bound();
    assert!(bound >= fits.estimate.bound() && bound < 1e-6);
    let value = alice.decryptor().decrypt_real(&fits).unwrap()[0];
    assert!((value - 400.0).abs() < bound);
    // Twice that has overflowed, with an error of 1024: the bound says so, and decryption refuses it.
    let wrapped = alice.evaluator().add(&fits, &fits).unwrap();
    assert_eq!(wrapped.error_bound(), f64::INFINITY);
    assert!(matches!(alice.decryptor().decrypt_real(&wrapped), Err(CkksError::MayOverflow { .. })));
    // Near half the modulus an overflow cannot be told from a large value, and larger values cannot be encrypted.
    let near = alice.encrypt(505.0, 0);
    let refused = alice.decryptor().decrypt_real(&near);
    assert!(
        matches!(refused, Err(CkksError::MayOverflow { log_limit, .. }) if (log_limit - 480_f64.log2()).abs() < 1e-3)
    );
    let public = KeyGenerator::new(&alice.secret, rng(200)).public_key();
    let mut encryptor = Encryptor::new(&alice.parameters, &public, rng(70)).unwrap();
    assert!(matches!(encryptor.encrypt_real(&[2000.0; 512], SLOTS, 0), Err(CkksError::Encode(_))));
}
