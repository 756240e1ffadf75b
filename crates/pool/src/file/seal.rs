//! Seals all written data: XChaCha20-Poly1305 with random nonces of 192 bits, which do not repeat.

use chacha20poly1305::aead::AeadInOut;
use chacha20poly1305::{KeyInit, Tag, XChaCha20Poly1305, XNonce};
use keywright_ring::sampling::SecretRng;
use sha2::{Digest, Sha256};
use zeroize::{Zeroize, Zeroizing};

/// Bytes of a nonce.
pub(super) const NONCE: usize = 24;
/// Bytes of a tag.
pub(super) const TAG: usize = 16;

/// SHA-256 of a domain and parts of fixed lengths; the first part is a key.
pub(super) fn derive(domain: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mut digest = Sha256::new().chain_update(domain);
    parts.iter().for_each(|part| digest.update(part));
    digest.finalize().into()
}

/// Seals with the key of one file.
pub(super) struct Sealer(XChaCha20Poly1305);

impl Sealer {
    /// Every file has its own key, even if its owner uses one key for several.
    pub(super) fn new(key: &Zeroizing<[u8; 32]>, id: &[u8; 16]) -> Self {
        let mut own = derive(b"keywright pool file", &[&key[..], id]);
        let cipher = XChaCha20Poly1305::new(&own.into());
        own.zeroize();
        Self(cipher)
    }

    /// Encrypts in place; the result is the nonce and the tag.
    pub(super) fn seal(
        &self,
        context: &[u8],
        bytes: &mut [u8],
        rng: &mut SecretRng,
    ) -> Option<[u8; NONCE + TAG]> {
        let mut out = [0; NONCE + TAG];
        let (nonce, tag) = out.split_at_mut(NONCE);
        rng.fill_bytes(nonce);
        let nonce: XNonce = (&*nonce).try_into().ok()?;
        tag.copy_from_slice(&self.0.encrypt_inout_detached(&nonce, context, bytes.into()).ok()?);
        Some(out)
    }

    /// Decrypts in place, if it authenticates.
    pub(super) fn open(&self, context: &[u8], seal: &[u8; NONCE + TAG], bytes: &mut [u8]) -> Option<()> {
        let (nonce, tag) = seal.split_at(NONCE);
        let (nonce, tag): (XNonce, Tag) = (nonce.try_into().ok()?, tag.try_into().ok()?);
        self.0.decrypt_inout_detached(&nonce, context, bytes.into(), &tag).ok()
    }
}
