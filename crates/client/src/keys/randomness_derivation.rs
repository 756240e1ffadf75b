//! Derives the randomness of keys: a pseudo-random function of the session and of the key.
//!
//! With HMAC-SHA-256 (RFC 2104) keyed by the session, `k = HMAC(session, parameters, secret)`. The generator of a key
//! starts from `HMAC(k, key)`, that of an ephemeral secret from `HMAC(k, weight)`. `key` is everything that determines
//! the key's message and shape. So the same key has the same bytes in every list. Any other key, including one of
//! another secret or of other parameters, has independent errors and another seed. If two keys shared errors, their
//! difference would have none: linear equations for the secret.
//!
//! Every message is injective: numbers have 64 bits, and lists and bytes follow their length.

use core::ops::Range;

use keywright_ring::sampling::SecretRng;
use keywright_rlwe::{KeyElement, KeySpec, ParametersLiteral, SecretDistribution, Security};
use sha2::{Digest, Sha256};
use zeroize::{Zeroize, Zeroizing};

use crate::IdentityBytes;

/// The number also versions the samplers: raise it when their use of a generator changes.
const SESSION: &[u8] = b"keywright session 1";
const KEY: &[u8] = b"switching key";
const EPHEMERAL: &[u8] = b"ephemeral secret";

/// A session of one secret and its parameters.
pub(crate) struct RandomnessDerivation(Zeroizing<[u8; 32]>);

impl RandomnessDerivation {
    /// `secret` is packed.
    pub(crate) fn new(
        session: &Zeroizing<[u8; 32]>,
        identity: &IdentityBytes,
        literal: &ParametersLiteral,
        secret: &[u8],
    ) -> Self {
        let mut mac = Hmac::new(session);
        mac.bytes(SESSION).bytes(identity).word(literal.log_n.into());
        mac.word(match literal.security {
            Security::Classical128 => 0,
            Security::InsecureForExperiments => 1,
        });
        // No sparse secret has weight 0.
        mac.word(match literal.secret {
            SecretDistribution::Ternary => 0,
            SecretDistribution::Sparse { weight } => weight as u64,
        });
        mac.list(literal.q.iter().copied()).list(literal.p.iter().copied()).bytes(secret);
        Self(mac.finish())
    }

    /// The generator of a key: of its seed, then of its errors, row by row.
    pub(crate) fn key(&self, spec: &KeySpec, digits: &[Range<usize>]) -> SecretRng {
        let element = match spec.element {
            KeyElement::Galois(element) => [0, element, 0],
            KeyElement::Relinearization => [1, 0, 0],
            KeyElement::Secret(id) => [2, id, 0],
            KeyElement::DenseToSparse(weight) => [3, weight as u64, 0],
            KeyElement::SparseToDense(weight) => [4, weight as u64, 0],
            KeyElement::SparseToDenseGalois { weight, galois } => [5, weight as u64, galois],
            KeyElement::RingDown { from, part } => [6, u64::from(from), part as u64],
            KeyElement::RingUp { from } => [7, u64::from(from), 0],
            KeyElement::RingUpToSparse { from, weight } => [8, u64::from(from), weight as u64],
        };
        let mut mac = Hmac::new(&self.0);
        mac.bytes(KEY);
        for word in element.into_iter().chain([spec.level as u64, spec.alpha as u64, spec.seeded.into()]) {
            mac.word(word);
        }
        mac.list(spec.special.iter().map(|&index| index as u64));
        // These follow from the spec, unless a later version derives others.
        mac.list(digits.iter().flat_map(|digit| [digit.start as u64, digit.end as u64]));
        SecretRng::from_entropy(&mac.finish())
    }

    /// The generator of the ephemeral secret of a weight.
    pub(crate) fn ephemeral(&self, weight: usize) -> SecretRng {
        let mut mac = Hmac::new(&self.0);
        mac.bytes(EPHEMERAL).word(weight as u64);
        SecretRng::from_entropy(&mac.finish())
    }
}

/// A running HMAC-SHA-256. Its hashes are wiped when they are dropped.
struct Hmac {
    inner: Sha256,
    outer: Sha256,
}

impl Hmac {
    fn new(key: &Zeroizing<[u8; 32]>) -> Self {
        let keyed = |pad: u8| {
            let mut block = Zeroizing::new([pad; 64]);
            block.iter_mut().zip(key.iter()).for_each(|(byte, key)| *byte ^= key);
            Sha256::new_with_prefix(block.as_slice())
        };
        Self { inner: keyed(0x36), outer: keyed(0x5C) }
    }

    fn word(&mut self, word: u64) -> &mut Self {
        self.inner.update(word.to_le_bytes());
        self
    }

    fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.word(bytes.len() as u64);
        self.inner.update(bytes);
        self
    }

    fn list(&mut self, words: impl Iterator<Item = u64> + Clone) -> &mut Self {
        self.word(words.clone().count() as u64);
        words.fold(self, Self::word)
    }

    fn finish(self) -> Zeroizing<[u8; 32]> {
        let mut inner: [u8; 32] = self.inner.finalize().into();
        let out = self.outer.chain_update(inner).finalize().into();
        inner.zeroize();
        Zeroizing::new(out)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;

    /// RFC 4231 has keys of at most 32 bytes in its cases 1, 2 and 4; zeros pad a shorter key.
    #[test]
    fn the_code_is_that_of_rfc_4231() {
        let counting: Vec<u8> = (1..26).collect();
        let cases: [(&[u8], &[u8], &str); 3] = [
            (&[0x0B; 20], b"Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"),
            (
                b"Jefe",
                b"what do ya want for nothing?",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            ),
            (&counting, &[0xCD; 50], "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"),
        ];
        for (key, message, expected) in cases {
            let mut filled = Zeroizing::new([0; 32]);
            filled[..key.len()].copy_from_slice(key);
            let mut mac = Hmac::new(&filled);
            mac.inner.update(message);
            let digest: Vec<_> = mac.finish().iter().map(|byte| alloc::format!("{byte:02x}")).collect();
            assert_eq!(digest.concat(), expected);
        }
    }

    fn literal() -> ParametersLiteral {
        ParametersLiteral::from_bits(10, &[50, 40, 40], &[50, 50]).unwrap()
    }

    /// First words of the generators of one session.
    fn first(session: u8, identity: u8, literal: &ParametersLiteral, secret: &[u8]) -> [u64; 2] {
        let derivation =
            RandomnessDerivation::new(&Zeroizing::new([session; 32]), &[identity; 20], literal, secret);
        let spec = KeySpec {
            element: KeyElement::Galois(5),
            level: 1,
            alpha: 1,
            special: vec![3],
            seeded: true,
            subring: None,
        };
        let mut generators = [derivation.key(&spec, &[0..1, 1..2]), derivation.ephemeral(32)];
        generators.each_mut().map(SecretRng::next_word)
    }

    /// Any change in the inputs of a session changes every generator.
    #[test]
    fn everything_but_the_question_is_in_the_root() {
        let secret = [0x55; 256];
        let mut seen = vec![first(1, 1, &literal(), &secret)];
        assert_eq!(first(1, 1, &literal(), &secret), seen[0]);
        seen.push(first(2, 1, &literal(), &secret));
        seen.push(first(1, 2, &literal(), &secret));
        seen.push(first(1, 1, &literal(), &[&secret[..255], &[0x54]].concat()));
        seen.push(first(1, 1, &literal(), &secret[..255]));
        let changes: [fn(&mut ParametersLiteral); 8] = [
            |l| l.log_n = 11,
            |l| l.security = Security::InsecureForExperiments,
            |l| l.secret = SecretDistribution::Sparse { weight: 1 },
            |l| _ = l.q.pop(),
            |l| _ = l.p.pop(),
            |l| l.q.swap(1, 2),
            |l| l.p.swap(0, 1),
            // The same primes in the same order, with one of them moved to the other kind.
            |l| l.p.insert(0, l.q.pop().unwrap()),
        ];
        for change in changes {
            let mut other = literal();
            change(&mut other);
            seen.push(first(1, 1, &other, &secret));
        }
        let mut words: Vec<u64> = seen.concat();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), 2 * seen.len());
    }

    /// Different keys have different generators.
    #[test]
    fn everything_of_a_key_is_in_its_generator() {
        const WHOLE: Range<usize> = 0..2;
        let derivation = RandomnessDerivation::new(&Zeroizing::new([1; 32]), &[1; 20], &literal(), &[0; 256]);
        let spec = KeySpec {
            element: KeyElement::Galois(5),
            level: 1,
            alpha: 2,
            special: vec![3, 4],
            seeded: true,
            subring: None,
        };
        let mut generators: Vec<SecretRng> = [
            KeyElement::Galois(5),
            KeyElement::Galois(7),
            KeyElement::Relinearization,
            KeyElement::Secret(5),
            KeyElement::DenseToSparse(5),
            KeyElement::SparseToDense(5),
            KeyElement::SparseToDenseGalois { weight: 5, galois: 7 },
            KeyElement::SparseToDenseGalois { weight: 7, galois: 5 },
        ]
        .into_iter()
        .map(|element| derivation.key(&KeySpec { element, ..spec.clone() }, &[WHOLE]))
        .collect();
        let others = [
            KeySpec { level: 2, ..spec.clone() },
            KeySpec { alpha: 1, ..spec.clone() },
            KeySpec { special: vec![4, 3], ..spec.clone() },
            KeySpec { special: vec![3], ..spec.clone() },
            KeySpec { seeded: false, ..spec.clone() },
        ];
        generators.extend(others.iter().map(|spec| derivation.key(spec, &[WHOLE])));
        generators.push(derivation.key(&spec, &[0..1, 1..2]));
        generators.extend([5, 7].map(|weight| derivation.ephemeral(weight)));
        let count = generators.len();
        let mut words: Vec<u64> = generators.iter_mut().map(SecretRng::next_word).collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), count);
    }
}
