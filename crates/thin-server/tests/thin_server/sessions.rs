//! A session can be used repeatedly, but its randomness never serves two keys.

use std::collections::{HashMap, HashSet};

use keywright_ckks::{CkksLiteral, CkksParameters};
use keywright_client::{Client, ClientParameters, KeyStream};
use keywright_ring::sampling::{SecretRng, sparse_ternary};
use keywright_ring::{Automorphism, Seed, galois_inverse};
use keywright_rlwe::{
    KeyElement, KeyGenerator, KeySpec, Parameters, ParametersLiteral, SecretDistribution, SecretKey,
    Security, SwitchingKey, UniformPart, stream_id,
};
use keywright_wire::Wire;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::fixture::{entropy, entry_of, full_secret};

/// HMAC-SHA-256 of RFC 2104, of whole messages.
fn hmac(key: &[u8; 32], message: &[u8]) -> [u8; 32] {
    let pad = |byte: u8| -> Vec<u8> { (0..64).map(|i| byte ^ key.get(i).copied().unwrap_or(0)).collect() };
    let inner = Sha256::digest([pad(0x36), message.to_vec()].concat());
    Sha256::digest([pad(0x5C), inner.to_vec()].concat()).into()
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn sized(bytes: &[u8]) -> Vec<u8> {
    [&words(&[bytes.len() as u64])[..], bytes].concat()
}

/// The generators of a session, by the definition of docs/reference/format.md.
pub(crate) struct Session([u8; 32]);

impl Session {
    pub(crate) fn of(session: &[u8; 32], client: &Client, parameters: &Parameters) -> Self {
        let object = client.secret_bytes().unwrap();
        let packed = &object[object.len() - 4 - parameters.n() / 4..object.len() - 4];
        Self::new(session, client.parameters(), parameters.literal(), packed)
    }

    fn new(
        session: &[u8; 32],
        client: &ClientParameters,
        literal: &ParametersLiteral,
        packed: &[u8],
    ) -> Self {
        let security = u64::from(literal.security == Security::InsecureForExperiments);
        let weight = match literal.secret {
            SecretDistribution::Ternary => 0,
            SecretDistribution::Sparse { weight } => weight as u64,
        };
        let message = [
            sized(b"keywright session 1"),
            sized(&client.literal().identity),
            words(&[literal.log_n.into(), security, weight]),
            sized_words(&literal.q),
            sized_words(&literal.p),
            sized(packed),
        ];
        Self(hmac(session, &message.concat()))
    }

    pub(crate) fn key(&self, parameters: &Parameters, spec: &KeySpec) -> SecretRng {
        let element = match spec.element {
            KeyElement::Galois(g) => [0, g, 0],
            KeyElement::Relinearization => [1, 0, 0],
            KeyElement::DenseToSparse(weight) => [3, weight as u64, 0],
            KeyElement::SparseToDense(weight) => [4, weight as u64, 0],
            KeyElement::SparseToDenseGalois { weight, galois } => [5, weight as u64, galois],
            _ => unreachable!("no client makes these"),
        };
        let special: Vec<u64> = spec.special.iter().map(|&index| index as u64).collect();
        let digits = spec.validate(parameters).unwrap();
        let digits: Vec<u64> = digits.iter().flat_map(|d| [d.start as u64, d.end as u64]).collect();
        let message = [
            sized(b"switching key"),
            words(&element),
            words(&[spec.level as u64, spec.alpha as u64, 1]),
            sized_words(&special),
            sized_words(&digits),
        ];
        SecretRng::from_entropy(&Zeroizing::new(hmac(&self.0, &message.concat())))
    }

    fn ephemeral(&self, weight: usize) -> SecretRng {
        let message = [sized(b"ephemeral secret"), words(&[weight as u64])];
        SecretRng::from_entropy(&Zeroizing::new(hmac(&self.0, &message.concat())))
    }
}

fn sized_words(list: &[u64]) -> Vec<u8> {
    [words(&[list.len() as u64]), words(list)].concat()
}

fn parameters(q: &[u32], p: &[u32]) -> CkksParameters {
    CkksParameters::new(CkksLiteral::from_bits(10, q, p, 40.0).unwrap().insecure()).unwrap()
}

/// A ternary secret in the client's stored form, and in that of the full library.
fn secret(parameters: &Parameters, byte: u8) -> (Vec<u8>, Vec<i64>) {
    let mut rng = SecretRng::from_entropy(&[byte; 32].into());
    let secret = SecretKey::sample(parameters, &mut rng).unwrap();
    let codes = |part: &[i64]| part.iter().rev().fold(0, |byte, &c| byte << 2 | (c & 3) as u8);
    (secret.coefficients().chunks(4).map(codes).collect(), secret.coefficients().to_vec())
}

fn seed(key: &SwitchingKey) -> Seed {
    let UniformPart::Seeded(seed) = key.uniform() else { unreachable!("a client's keys are seeded") };
    *seed
}

/// `a` of a row modulo `q_0`.
fn uniform(key: &SwitchingKey, row: usize) -> Vec<u64> {
    let (ring, mut a) = (key.parameters().ring(), vec![0; key.parameters().n()]);
    ring.backend().expand_uniform(&seed(key), stream_id(key.spec().element, row, 0), ring.modulus(0), &mut a);
    a
}

fn evaluations(parameters: &Parameters, coefficients: &[i64]) -> Vec<u64> {
    let mut out = vec![0; coefficients.len()];
    parameters.ring().forward_small_limb(0, coefficients, &mut out, &[]);
    out
}

/// The places in the target secret's evaluations from which a Galois key takes values.
fn places(parameters: &Parameters, element: KeyElement) -> Vec<usize> {
    let KeyElement::Galois(g) = element else { return (0..parameters.n()).collect() };
    let log_n = parameters.log_n();
    let automorphism = Automorphism::new(log_n, galois_inverse(log_n, g)).unwrap();
    (0..parameters.n()).map(|i| automorphism.source(i)).collect()
}

fn times(a: u64, b: u64, q: u64) -> u64 {
    (u128::from(a) * u128::from(b) % u128::from(q)) as u64
}

fn inverse(a: u64, q: u64) -> u64 {
    let bits = (0..64).rev().map(|bit| (q - 2) >> bit & 1);
    bits.fold(1, |power, bit| {
        let square = times(power, power, q);
        if bit == 1 { times(square, a, q) } else { square }
    })
}

/// The errors of a key's rows, from its source and target secrets.
fn errors(key: &SwitchingKey, source: &[i64], target: &[i64]) -> Vec<Vec<i64>> {
    let (parameters, spec) = (key.parameters(), key.spec());
    let m = parameters.modulus(0);
    let q = m.value();
    let mut s = evaluations(parameters, source);
    if spec.element == KeyElement::Relinearization {
        s.iter_mut().for_each(|s| *s = times(*s, *s, q));
    }
    let (t, from) = (evaluations(parameters, target), places(parameters, spec.element));
    let product = parameters.product(&spec.special, m);
    let row = |j: usize| {
        let message = |i: usize| if key.digits()[j].contains(&0) { times(product, s[i], q) } else { 0 };
        let a = uniform(key, j);
        let mut e: Vec<u64> = (key.b_rows()[j].limb(0).iter().enumerate())
            .map(|(i, &b)| (b + times(a[i], t[from[i]], q) + (q - message(i))) % q)
            .collect();
        parameters.ring().inverse_limb(0, &mut e);
        e.iter().map(|&e| if e > q / 2 { e as i64 - q as i64 } else { e as i64 }).collect()
    };
    (0..key.digits().len()).map(row).collect()
}

/// The secret of two Galois keys *if their first rows have one error*: the difference of these rows then has none, and
/// modulo `q_0` it relates two evaluations of the secret at each place. They form cycles.
fn solve(keys: [&SwitchingKey; 2]) -> Option<Vec<i64>> {
    let parameters = keys[0].parameters();
    let (n, q) = (parameters.n(), parameters.modulus(0).value());
    let minus = |a: u64, b: u64| (a + q - b) % q;
    let [a, b] = keys.map(|key| uniform(key, 0));
    let [here, there] = keys.map(|key| places(parameters, key.spec().element));
    let [d, e] = keys.map(|key| key.b_rows()[0].limb(0));
    // d_i - e_i = b_i s(there_i) - a_i s(here_i).
    let mut equation = vec![0; n];
    here.iter().enumerate().for_each(|(i, &place)| equation[place] = i);
    let mut s: Vec<Option<u64>> = vec![None; n];
    for first in 0..n {
        // s(place) is `slope s(first) + offset`.
        let step = |(place, slope, offset): (usize, u64, u64)| {
            let i = equation[place];
            let scale = inverse(b[i], q);
            let next = (minus(d[i], e[i]) + times(a[i], offset, q)) % q;
            (there[i], times(times(a[i], slope, q), scale, q), times(next, scale, q))
        };
        let mut at = step((first, 1, 0));
        let mut cycle = vec![(first, 1, 0)];
        while at.0 != first && s[first].is_none() {
            cycle.push(at);
            at = step(at);
        }
        let value = times(at.2, inverse(minus(1, at.1), q), q);
        for (place, slope, offset) in cycle {
            s[place].get_or_insert((times(slope, value, q) + offset) % q);
        }
    }
    let mut s = s.into_iter().collect::<Option<Vec<u64>>>()?;
    parameters.ring().inverse_limb(0, &mut s);
    let ternary = |&c: &u64| if c == q - 1 { Some(-1) } else { i64::try_from(c).ok().filter(|&c| c <= 1) };
    s.iter().map(ternary).collect()
}

/// The purpose of the derivation: errors that two keys share reveal the secret.
#[test]
fn two_keys_with_one_generator_are_the_secret() {
    let ckks = parameters(&[50, 40], &[50]);
    let rlwe = ckks.rlwe();
    let client = Client::generate(&entry_of(&ckks, 20), &mut entropy(1)).unwrap();
    let secret = full_secret(&client, &ckks);
    let specs = [5, 25].map(|g| KeySpec::new(rlwe, KeyElement::Galois(g), 1, 1, true));
    // The generator depends on the place in the list: two lists, one place.
    let by_place = || SecretRng::from_entropy(&[9; 32].into());
    let old =
        specs.each_ref().map(|spec| KeyGenerator::new(&secret, by_place()).switching_key(spec).unwrap());
    assert_eq!(solve(old.each_ref()), Some(secret.coefficients().to_vec()));

    let session = [9; 32].into();
    let new = specs.each_ref().map(|spec| {
        let mut bytes = Vec::new();
        let mut stream = client.keys(rlwe, core::slice::from_ref(spec), &session).unwrap();
        stream.write_next(&mut bytes, &mut |_| ()).unwrap();
        SwitchingKey::from_bytes(&bytes, rlwe).unwrap()
    });
    assert_eq!(solve(new.each_ref()), None);
}

/// For any requests to a session: one key always has the same bytes, and two keys share neither a seed nor an error.
#[test]
fn no_two_keys_of_a_session_share_randomness() {
    let session: Zeroizing<[u8; 32]> = [5; 32].into();
    let (first, second) = (parameters(&[50, 40, 40], &[50]), parameters(&[50, 40, 41], &[50]));
    // A lying server gives both parameters the same name.
    let thin = entry_of(&first, 20);
    let mut keys: HashMap<_, Vec<u8>> = HashMap::new();
    let (mut seeds, mut seen) = (HashSet::new(), HashSet::new());
    for (which, ckks) in [&first, &second].into_iter().enumerate() {
        let rlwe = ckks.rlwe();
        let spec = |element, level, alpha| KeySpec::new(rlwe, element, level, alpha, true);
        let to_sparse = KeyElement::DenseToSparse(32);
        let [a, b] = [spec(KeyElement::Galois(5), 2, 1), spec(KeyElement::Relinearization, 2, 1)];
        let lower = [spec(KeyElement::Galois(5), 1, 1), spec(KeyElement::Galois(5), 2, 2)];
        let dropped = KeySpec { special: vec![3, 2], ..lower[0].clone() };
        let ephemeral = [spec(to_sparse, 0, 1), spec(KeyElement::SparseToDense(32), 2, 1)];
        let [there, back] = ephemeral.clone();
        let lists = [
            vec![a.clone()],
            vec![b.clone()],
            vec![a.clone(), b.clone()],
            vec![b.clone(), a],
            vec![lower[0].clone(), dropped, lower[1].clone()],
            vec![there.clone()],
            vec![back.clone(), b, there],
        ];
        for byte in [1, 2] {
            let (packed, dense) = secret(rlwe, byte);
            let mut sparse = vec![0; rlwe.n()];
            let oracle = Session::new(&session, &thin, rlwe.literal(), &packed);
            sparse_ternary(&mut oracle.ephemeral(32), 32, &mut sparse).unwrap();
            for specs in &lists {
                let mut stream = KeyStream::new(&thin, rlwe, &packed, specs, &session).unwrap();
                for spec in specs {
                    let mut bytes = Vec::new();
                    assert!(stream.write_next(&mut bytes, &mut |_| ()).unwrap());
                    let name = (which, byte, format!("{spec:?}"));
                    if let Some(before) = keys.get(&name) {
                        assert!(*before == bytes, "{name:?} was made with other bytes before");
                        continue;
                    }
                    let key = SwitchingKey::from_bytes(&renamed(&bytes, ckks), rlwe).unwrap();
                    let (source, target) = match spec.element {
                        KeyElement::DenseToSparse(_) => (&dense, &sparse),
                        KeyElement::SparseToDense(_) => (&sparse, &dense),
                        _ => (&dense, &dense),
                    };
                    assert!(seeds.insert(seed(&key)), "{name:?} has the seed of another key");
                    for error in errors(&key, source, target) {
                        assert!(error.iter().all(|e| e.abs() <= 29), "{name:?}: no error");
                        assert!(seen.insert(error), "{name:?} has an error of another key");
                    }
                    keys.insert(name, bytes);
                }
            }
        }
    }
    assert_eq!(keys.len(), 2 * 2 * 7);
}

/// An object relabelled with these parameters, as a server with false names would write it.
fn renamed(bytes: &[u8], parameters: &CkksParameters) -> Vec<u8> {
    let mut out = bytes.to_vec();
    out[12..32].copy_from_slice(&entry_of(parameters, 20).literal().identity);
    let body = 44 + 4 + u32::from_le_bytes(out[32..36].try_into().unwrap()) as usize;
    let mut checksum = crc32fast::Hasher::new();
    for part in [0..body - 4, body..bytes.len() - 4] {
        checksum.update(&out[part.clone()]);
        out[part.end..part.end + 4].copy_from_slice(&checksum.clone().finalize().to_le_bytes());
    }
    out
}
