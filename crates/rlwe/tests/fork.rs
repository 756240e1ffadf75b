//! Processes draw independently for every object: a parent, two children and a grandchild share no seed and no error.
//! The parent has used rayon's threads, which its children do not have.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;

use keywright_ring::RingError;
use keywright_ring::sampling::SecretRng;
use keywright_ring_testing::children::in_child;
use keywright_rlwe::{
    KeyElement, KeyGenerator, KeySpec, Parameters, ParametersLiteral, PublicKey, RlweError, SecretKey,
    SwitchingKey, UniformPart, encrypt_zero, encrypt_zero_symmetric,
};
use zeroize::Zeroizing;

const WEIGHT: usize = 32;

fn parameters() -> Parameters {
    Parameters::new(ParametersLiteral::from_bits(10, &[40, 30], &[45]).unwrap().insecure()).unwrap()
}

fn given(byte: u8) -> SecretRng {
    SecretRng::from_entropy(&Zeroizing::new([byte; 32]))
}

fn bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Seed, then the errors of the rows at the special prime, where a row is `-a t + e`: `t` is the secret or its
/// automorphic image, in evaluation form.
fn drawn(key: &SwitchingKey, target: &[u64]) -> Vec<Vec<u8>> {
    let parameters = key.parameters();
    let (special, ring) = (parameters.prime_count() - 1, parameters.ring());
    let (m, UniformPart::Seeded(seed)) = (parameters.modulus(special), key.uniform()) else { unreachable!() };
    let mut out = vec![seed.0.to_vec()];
    for (digit, row) in key.b_rows().iter().enumerate() {
        let mut limb = row.limb(row.limb_count() - 1).to_vec();
        let mut a = vec![0; limb.len()];
        let id = keywright_rlwe::stream_id(key.spec().element, digit, special);
        ring.backend().expand_uniform(seed, id, m, &mut a);
        limb.iter_mut().zip(a).zip(target).for_each(|((b, a), &t)| *b = m.add(*b, m.mul(a, t)));
        ring.inverse_limb(special, &mut limb);
        assert!(limb.iter().all(|&error| m.centered(error).abs() < 64), "no error");
        out.push(bytes(&limb));
    }
    out
}

/// The objects of a process when it forks.
struct Fixture {
    secret: SecretKey,
    public: PublicKey,
}

impl Fixture {
    fn new() -> Self {
        let secret = SecretKey::sample(&parameters(), &mut given(1)).unwrap();
        let public = KeyGenerator::new(&secret, given(2)).public_key();
        Self { secret, public }
    }

    fn spec(&self, element: KeyElement, level: usize) -> KeySpec {
        KeySpec::new(self.secret.parameters(), element, level, 1, true)
    }

    /// The secret at the special prime.
    fn target(&self) -> &[u64] {
        self.secret.limb(self.secret.parameters().prime_count() - 1)
    }
}

/// The randomness of an object: no part of it may occur twice.
type Draw = fn(&Fixture, &mut KeyGenerator<'_>, &mut SecretRng) -> Result<Vec<Vec<u8>>, RlweError>;

const DRAWS: [(&str, Draw); 6] = [
    ("a secret", |all, _, rng| {
        let secret = SecretKey::sample(all.secret.parameters(), rng)?;
        Ok(vec![secret.coefficients().iter().map(|&c| c as u8).collect()])
    }),
    ("a relinearization key", |all, generator, _| {
        let key = generator.switching_key(&all.spec(KeyElement::Relinearization, 1))?;
        Ok(drawn(&key, all.target()))
    }),
    ("a Galois key", |all, generator, _| {
        let parameters = all.secret.parameters();
        let conjugation = 2 * parameters.n() as u64 - 1; // its own inverse
        let key = generator.switching_key(&all.spec(KeyElement::Galois(conjugation), 1))?;
        let automorphism = parameters.automorphism(conjugation)?;
        let image: Vec<u64> = (0..parameters.n()).map(|i| all.target()[automorphism.source(i)]).collect();
        Ok(drawn(&key, &image))
    }),
    ("keys of an ephemeral secret", |all, generator, _| {
        let specs = [KeyElement::DenseToSparse(WEIGHT), KeyElement::SparseToDense(WEIGHT)];
        let mut keys = generator.switching_keys(&specs.map(|element| all.spec(element, 0)))?;
        let [to, from] = [keys.next().unwrap()?, keys.next().unwrap()?];
        let UniformPart::Seeded(seed) = to.uniform() else { unreachable!() };
        Ok([vec![seed.0.to_vec()], drawn(&from, all.target())].concat())
    }),
    ("a ciphertext", |all, _, rng| {
        let zero = encrypt_zero(&all.public, 1, rng, None)?;
        Ok(zero.polys.iter().map(|poly| bytes(poly.words())).collect())
    }),
    ("a ciphertext made with the secret", |all, _, rng| {
        let zero = encrypt_zero_symmetric(&all.secret, 1, rng, None)?;
        Ok(vec![zero.seed.0.to_vec(), bytes(zero.c0.words())])
    }),
];

/// The draws as one answer of a child, and back.
fn pieces(drawn: Vec<Vec<u8>>) -> Vec<u8> {
    drawn.iter().flat_map(|one| [(one.len() as u32).to_le_bytes().to_vec(), one.clone()].concat()).collect()
}

fn split(mut data: &[u8]) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    while let Some((length, rest)) = data.split_first_chunk() {
        let (one, rest) = rest.split_at(u32::from_le_bytes(*length) as usize);
        out.push(one.to_vec());
        data = rest;
    }
    out
}

#[test]
fn processes_draw_apart() {
    let all = Fixture::new();
    for (what, draw) in DRAWS {
        let mut generator = KeyGenerator::new(&all.secret, SecretRng::system().unwrap());
        let mut rng = SecretRng::system().unwrap();
        let mut seen = vec![draw(&all, &mut generator, &mut rng).unwrap()];
        for _ in 0..2 {
            seen.push(split(&in_child(|| pieces(draw(&all, &mut generator, &mut rng).unwrap()))));
            seen.push(split(&in_child(|| {
                in_child(|| pieces(draw(&all, &mut generator, &mut rng).unwrap()))
            })));
        }
        seen.push(draw(&all, &mut generator, &mut rng).unwrap());
        let all_drawn = seen.concat();
        assert_eq!(all_drawn.len(), 6 * seen[0].len());
        assert_eq!(all_drawn.iter().collect::<BTreeSet<_>>().len(), all_drawn.len(), "{what}");
    }
}

/// Functions that cannot fail repeat nothing either.
#[test]
fn public_keys_of_copies_differ() {
    let all = Fixture::new();
    for rng in [SecretRng::system().unwrap(), given(4)] {
        let mut generator = KeyGenerator::new(&all.secret, rng);
        let mut draw = || {
            let key = generator.public_key();
            [key.seed().0.to_vec(), bytes(key.b().words())].concat()
        };
        let seen = BTreeSet::from([in_child(&mut draw), in_child(&mut draw), draw()]);
        assert_eq!(seen.len(), 3);
        assert_eq!(seen.iter().map(|key| &key[..32]).collect::<BTreeSet<_>>().len(), 3);
    }
}

#[test]
fn a_copy_of_given_entropy_makes_nothing() {
    let all = Fixture::new();
    for (what, draw) in DRAWS {
        let sources = || (KeyGenerator::new(&all.secret, given(3)), given(3));
        let (mut generator, mut rng) = sources();
        let refused = in_child(|| {
            let answer = draw(&all, &mut generator, &mut rng);
            vec![matches!(answer, Err(RlweError::Ring(RingError::Forked { .. }))).into()]
        });
        assert_eq!(refused, [1], "{what}");
        let (mut own_generator, mut own) = sources();
        let expected = draw(&all, &mut own_generator, &mut own).unwrap();
        assert_eq!(draw(&all, &mut generator, &mut rng).unwrap(), expected, "{what}");
    }
}
