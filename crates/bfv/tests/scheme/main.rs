//! The scheme end to end: every operation against arithmetic modulo `t`, with the noise below the derived estimate.
#![expect(clippy::unwrap_used, reason = "tests")]

mod errors;
mod noise;
mod operations;
mod sizes;

use std::cell::Cell;

use keywright_bfv::{
    BfvLiteral, BfvParameters, Ciphertext, Decryptor, Encryptor, Evaluator, Packing, Plaintext,
};
use keywright_ring::{rotation_element, sampling::SecretRng};
use keywright_ring_testing::rng;
use keywright_rlwe::{EvaluationKeys, KeyElement, KeyGenerator, KeySpec, SecretKey, Security};

fn parameters(log_n: u32, q: &[u32], p: &[u32], t: u64) -> BfvParameters {
    BfvParameters::new(BfvLiteral::from_bits(log_n, q, p, t).unwrap().insecure()).unwrap()
}

struct Party {
    parameters: BfvParameters,
    secret: SecretKey,
    keys: EvaluationKeys,
    encryptions: Cell<u8>,
}

impl Party {
    fn new(parameters: BfvParameters, rotations: &[i64]) -> Self {
        let rlwe = parameters.rlwe();
        let secret = SecretKey::sample(rlwe, &mut rng(1)).unwrap();
        let log_n = rlwe.log_n();
        let elements = rotations
            .iter()
            .map(|&k| KeyElement::Galois(rotation_element(log_n, k)))
            .chain([KeyElement::Relinearization, KeyElement::Galois((2 << log_n) - 1)]);
        let specs: Vec<_> =
            elements.map(|element| KeySpec::new(rlwe, element, rlwe.max_level(), 2, true)).collect();
        let keys = KeyGenerator::new(&secret, rng(2)).evaluation_keys(&specs).unwrap();
        Self { parameters, secret, keys, encryptions: Cell::new(100) }
    }

    fn evaluator(&self) -> Evaluator<'_> {
        Evaluator::new(&self.parameters, &self.keys).unwrap()
    }

    fn decryptor(&self) -> Decryptor<'_> {
        Decryptor::new(&self.parameters, &self.secret).unwrap()
    }

    fn randomness(&self) -> SecretRng {
        // Two messages have independent errors.
        rng(self.encryptions.replace(self.encryptions.get().wrapping_add(1)))
    }

    fn encrypt_at(&self, plaintext: &Plaintext, level: usize) -> Ciphertext {
        let public = KeyGenerator::new(&self.secret, rng(3)).public_key();
        let mut encryptor = Encryptor::new(&self.parameters, &public, self.randomness()).unwrap();
        encryptor.encrypt(plaintext, level).unwrap()
    }

    fn encrypt(&self, values: &[u64], packing: Packing) -> Ciphertext {
        let plaintext = self.parameters.encode(&signed(values), packing).unwrap();
        self.encrypt_at(&plaintext, self.parameters.max_level())
    }

    /// Decrypts, and compares the values with the expected ones and the noise with its estimate.
    fn check(&self, what: &str, ciphertext: &Ciphertext, expected: &[u64]) {
        let decryptor = self.decryptor();
        let seen = decryptor.decrypt(ciphertext).unwrap().residues();
        let wrong = seen.iter().zip(expected).position(|(a, b)| a != b);
        assert!(wrong.is_none() && seen.len() == expected.len(), "{what}: index {wrong:?} of {ciphertext:?}");
        let (budget, estimate) =
            (decryptor.noise_budget(ciphertext).unwrap(), ciphertext.estimate.budget_bits());
        assert!(budget >= estimate, "{what}: budget {budget} below the estimate {estimate}");
    }
}

fn signed(values: &[u64]) -> Vec<i64> {
    values.iter().map(|&v| v as i64).collect()
}

fn random(count: usize, t: u64, byte: u8) -> Vec<u64> {
    let mut rng = rng(byte);
    (0..count).map(|_| rng.next_word() % t).collect()
}

fn map2(a: &[u64], b: &[u64], f: impl Fn(u128, u128) -> u128) -> Vec<u64> {
    a.iter().zip(b).map(|(&x, &y)| f(u128::from(x), u128::from(y)) as u64).collect()
}

/// The product modulo `X^N + 1` and `t`.
fn negacyclic(a: &[u64], b: &[u64], t: u64) -> Vec<u64> {
    let (n, t) = (a.len(), u128::from(t));
    let mut out = vec![0u128; n];
    for (i, &x) in a.iter().enumerate().filter(|&(_, &x)| x != 0) {
        for (j, &y) in b.iter().enumerate() {
            let product = u128::from(x) * u128::from(y) % t;
            let k = (i + j) % n;
            out[k] = (out[k] + if i + j < n { product } else { t - product }) % t;
        }
    }
    out.into_iter().map(|x| x as u64).collect()
}

/// The product in a packing.
fn product(packing: Packing, a: &[u64], b: &[u64], t: u64) -> Vec<u64> {
    match packing {
        Packing::Slots => map2(a, b, |x, y| x * y % u128::from(t)),
        Packing::Coefficients => negacyclic(a, b, t),
    }
}
