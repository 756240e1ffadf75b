use keywright_ring::Modulus;
use keywright_ring::sampling::SecretRng;
use keywright_rlwe::RlweCiphertext;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::RunId;

/// A secret of 32 bytes, shared by two parties or known to one.
pub type MaskKey = Zeroizing<[u8; 32]>;

const QUESTION_DOMAIN: &[u8] = b"keywright threshold question";
const MASK_DOMAIN: &[u8] = b"keywright threshold mask";
const SMUDGING_DOMAIN: &[u8] = b"keywright threshold smudging";

/// The question to a party: its part of the decryption of one sum, in one round of one run, by one set of parties.
#[derive(Clone, Copy, Debug)]
pub struct Question<'q> {
    /// The run and its keys.
    pub session: RunId,
    /// The round.
    pub round: u32,
    /// The decrypting parties: as many distinct ones as the threshold, in any order.
    pub active: &'q [u32],
}

impl Question<'_> {
    /// SHA-256 of the question and its sum. All masks and smudging of an answer depend on it, so the same question has
    /// the same answer, and two questions have independent answers.
    pub(super) fn digest(&self, sum: &[RlweCiphertext]) -> [u8; 32] {
        let mut active = self.active.to_vec();
        active.sort_unstable();
        // Lengths precede what they count, so no two questions are the same bytes.
        let mut hash = Sha256::new()
            .chain_update(QUESTION_DOMAIN)
            .chain_update(self.session)
            .chain_update(self.round.to_le_bytes())
            .chain_update((active.len() as u32).to_le_bytes());
        active.iter().for_each(|party| hash.update(party.to_le_bytes()));
        hash.update((sum.len() as u32).to_le_bytes());
        let mut bytes = Vec::new();
        for poly in sum.iter().flat_map(|ciphertext| &ciphertext.polys) {
            bytes.clear();
            bytes.extend(poly.words().iter().flat_map(|word| word.to_le_bytes()));
            hash.update(&bytes);
        }
        hash.finalize().into()
    }
}

/// The generator of the mask that two parties add and subtract for a question with this digest, ciphertext `chunk`.
pub(super) fn mask_generator(key: &MaskKey, digest: &[u8; 32], chunk: u32) -> SecretRng {
    keyed_generator(MASK_DOMAIN, key, digest, chunk)
}

/// The generator of a party's smudging for a question with this digest, ciphertext `chunk`.
pub(super) fn smudging_generator(key: &MaskKey, digest: &[u8; 32], chunk: u32) -> SecretRng {
    keyed_generator(SMUDGING_DOMAIN, key, digest, chunk)
}

/// The generator for a key, a purpose and the digest of a question. All inputs have one length and the digest stays
/// secret, so extending an input is impossible.
fn keyed_generator(domain: &[u8], key: &MaskKey, digest: &[u8; 32], chunk: u32) -> SecretRng {
    let hash = Sha256::new().chain_update(domain).chain_update(&key[..]).chain_update(digest);
    let entropy = Zeroizing::new(hash.chain_update(chunk.to_le_bytes()).finalize().into());
    SecretRng::from_entropy(&entropy)
}

/// Uniform residues: words with as many bits as the modulus, skipping those that are not residues. Which words are
/// skipped is independent of the others.
pub(super) fn fill_uniform(modulus: &Modulus, rng: &mut SecretRng, limb: &mut [u64]) {
    let (shift, q) = (u64::BITS - modulus.bits(), modulus.value());
    rng.fill_words(limb);
    for word in limb {
        *word >>= shift;
        while *word >= q {
            *word = rng.next_word() >> shift;
        }
    }
}
