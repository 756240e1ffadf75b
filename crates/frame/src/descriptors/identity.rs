//! Identifies the parameters of an object.

use core::fmt;

use keywright_ring::{MAX_LOG_N, MIN_LOG_N};
use keywright_rlwe::{ParametersLiteral, Security};
use sha2::{Digest, Sha256};

use super::parameters::{decode_security, security_code};
use crate::FrameError;
use crate::error::in_range;
use crate::fields::{FieldReader, FieldWriter, Fields};

/// First 16 bytes of the SHA-256 of `"keywright parameters"` and the canonical encoding of a [`ParametersLiteral`].
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint(pub [u8; 16]);

/// Domain separator of fingerprints.
const DOMAIN: &[u8] = b"keywright parameters";

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

/// Bytes of an [`Identity`] in a header.
pub const IDENTITY_BYTES: usize = 20;
/// An [`Identity`] in its form in headers: bytes 12 to 31.
pub type IdentityBytes = [u8; IDENTITY_BYTES];

/// The parameters of an object in its header: a summary for people and a fingerprint for machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// `log2(N)`.
    pub log_n: u8,
    /// Number of ciphertext primes.
    pub q_count: u8,
    /// Number of special primes.
    pub p_count: u8,
    /// Whether the 128-bit bound is enforced.
    pub security: Security,
    /// The fingerprint of all parameters.
    pub fingerprint: Fingerprint,
}

impl Identity {
    /// The identity of parameters.
    ///
    /// # Errors
    /// [`FrameError::Field`] if `log_n` or a count of primes does not fit a byte.
    pub fn of(literal: &ParametersLiteral) -> Result<Self, FrameError> {
        let mut encoding: FieldWriter = FieldWriter::default();
        literal.encode(&mut encoding)?;
        let mut fingerprint = Fingerprint([0; 16]);
        let digest = Sha256::new().chain_update(DOMAIN).chain_update(encoding.as_slice()).finalize();
        fingerprint.0.copy_from_slice(&digest[..16]);
        Ok(Self {
            log_n: literal.log_n as u8,
            q_count: literal.q.len() as u8,
            p_count: literal.p.len() as u8,
            security: literal.security,
            fingerprint,
        })
    }

    /// Its form in headers.
    pub fn to_bytes(&self) -> IdentityBytes {
        let mut out = [0; IDENTITY_BYTES];
        let (summary, fingerprint) = out.split_at_mut(4);
        summary.copy_from_slice(&[self.log_n, self.q_count, self.p_count, security_code(self.security)]);
        fingerprint.copy_from_slice(&self.fingerprint.0);
        out
    }

    /// The identity in a header.
    ///
    /// # Errors
    /// [`FrameError::Field`] for an unknown security code, or a ring degree that no ring has.
    pub fn from_bytes(bytes: &IdentityBytes) -> Result<Self, FrameError> {
        let mut fields = FieldReader::new(bytes);
        let log_n = fields.u8()?;
        in_range("log2 of the ring degree", log_n.into(), MIN_LOG_N.into(), MAX_LOG_N.into())?;
        Ok(Self {
            log_n,
            q_count: fields.u8()?,
            p_count: fields.u8()?,
            security: decode_security(&mut fields)?,
            fingerprint: Fingerprint(fields.array()?),
        })
    }
}
