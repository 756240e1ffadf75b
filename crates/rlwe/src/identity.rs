//! Identifies the secret of an object without revealing it.

use core::fmt;

use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::ternary::pack_ternary;
use crate::{RlweError, SecretDistribution};

/// Domain separator of identities.
const DOMAIN: &[u8] = b"keywright key identity";
/// Coefficients that are packed at once.
const BLOCK: usize = 256;

/// The identity of a secret: the first 16 bytes of the SHA-256 of `"keywright key identity"` and the packed secret.
///
/// Keys and ciphertexts carry it with their parameters, so that those of different owners can be distinguished. It
/// reveals whether two objects belong to one secret, and whether a guess of a whole secret is right. So does a public
/// key. A secret of few nonzero coefficients could be guessed, so one of less than 128 bits has no identity
/// ([`SecretDistribution::resists_guessing`]).
///
/// One identity covers a secret and everything made with it: the secrets of its subrings, the same coefficients modulo
/// other primes (master keys), and keys to and from ephemeral secrets. Zero means no identity: joint keys, and objects
/// from before identities existed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct KeyIdentity(pub [u8; Self::BYTES]);

impl KeyIdentity {
    /// Bytes of an identity.
    pub const BYTES: usize = 16;
    /// The identity of a joint key, or an unknown one.
    pub const UNKNOWN: Self = Self([0; Self::BYTES]);

    /// The identity of a secret of this distribution, packed in two bits per coefficient ([`pack_ternary`]). Every byte
    /// is hashed in the same time, and the hash function's copy of the secret is wiped.
    pub fn of_packed(packed: &[u8], distribution: SecretDistribution) -> Self {
        if !distribution.resists_guessing(4 * packed.len()) {
            return Self::UNKNOWN;
        }
        Self::finish(Sha256::new().chain_update(DOMAIN).chain_update(packed))
    }

    /// The identity of ternary coefficients of this distribution.
    pub(crate) fn of_coefficients(coefficients: &[i64], distribution: SecretDistribution) -> Self {
        if !distribution.resists_guessing(coefficients.len()) {
            return Self::UNKNOWN;
        }
        let mut hash = Sha256::new().chain_update(DOMAIN);
        let mut packed = Zeroizing::new([0; BLOCK / 4]);
        for part in coefficients.chunks(BLOCK) {
            let packed = &mut packed[..part.len() / 4];
            pack_ternary(part, packed);
            hash.update(&*packed);
        }
        Self::finish(hash)
    }

    fn finish(hash: Sha256) -> Self {
        let mut identity = Self::UNKNOWN;
        identity.0.copy_from_slice(&hash.finalize()[..Self::BYTES]);
        identity
    }

    /// Whether it is known.
    pub fn is_known(&self) -> bool {
        *self != Self::UNKNOWN
    }

    /// This identity, or the other one if this is unknown.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        if self.is_known() { self } else { other }
    }

    /// The identity of a result of two objects: the known one.
    ///
    /// # Errors
    /// [`RlweError::KeyMismatch`] if both are known and differ; `left` and `right` name the objects.
    pub fn join(self, other: Self, left: &'static str, right: &'static str) -> Result<Self, RlweError> {
        if self.is_known() && other.is_known() && self != other {
            return Err(RlweError::KeyMismatch { left, right, left_key: self, right_key: other });
        }
        Ok(self.or(other))
    }
}

impl fmt::Display for KeyIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_known() {
            return f.write_str("unknown");
        }
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for KeyIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyIdentity({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ternary::packed_ternary_len;
    use alloc::string::ToString;
    use alloc::vec;

    /// SHA-256 of the text and 256 bytes `0x7c` (coefficients 0, -1, -1, 1), by Python's hashlib.
    #[test]
    fn an_identity_is_the_digest_of_the_packed_secret() {
        let coefficients: vec::Vec<i64> = [0, -1, -1, 1].into_iter().cycle().take(1024).collect();
        let mut packed = vec![0; packed_ternary_len(1024)];
        pack_ternary(&coefficients, &mut packed);
        assert_eq!(packed, [0x7c; 256]);
        let identity = KeyIdentity::of_packed(&packed, SecretDistribution::Ternary);
        assert_eq!(identity.to_string(), "c4a49bb247dc342a9b1da38365f66973");
        assert_eq!(KeyIdentity::of_coefficients(&coefficients, SecretDistribution::Ternary), identity);
    }

    /// A server that knows the identity of a secret of weight 1 could try all `2 N` secrets.
    #[test]
    fn a_secret_that_can_be_guessed_has_no_identity() {
        let mut coefficients = vec![0; 2048];
        coefficients[77] = -1;
        let mut packed = vec![0; packed_ternary_len(2048)];
        pack_ternary(&coefficients, &mut packed);
        for weight in [1, 2, 8, 15] {
            let sparse = SecretDistribution::Sparse { weight };
            assert!(!sparse.resists_guessing(2048), "{weight}");
            assert_eq!(KeyIdentity::of_packed(&packed, sparse), KeyIdentity::UNKNOWN);
            assert_eq!(KeyIdentity::of_coefficients(&coefficients, sparse), KeyIdentity::UNKNOWN);
        }
        for (weight, n) in [(16, 2048), (32, 1 << 15), (192, 1 << 15), (1024, 1024)] {
            assert!(SecretDistribution::Sparse { weight }.resists_guessing(n), "{weight} of {n}");
        }
    }

    #[test]
    fn only_known_identities_differ() {
        let [a, b] = [1, 2].map(|byte| KeyIdentity([byte; 16]));
        let unknown = KeyIdentity::UNKNOWN;
        assert_eq!(a.join(a, "a", "a"), Ok(a));
        assert_eq!(a.join(unknown, "a", "b"), Ok(a));
        assert_eq!(unknown.join(b, "a", "b"), Ok(b));
        assert_eq!(unknown.join(unknown, "a", "b"), Ok(unknown));
        let error = RlweError::KeyMismatch { left: "a", right: "b", left_key: a, right_key: b };
        assert_eq!(a.join(b, "a", "b"), Err(error));
    }
}
