//! Which parameters an object belongs to.

use core::fmt;

use keywright_rlwe::{ParametersLiteral, SecretDistribution, Security};
use sha2::{Digest, Sha256};

use crate::fields::{FieldReader, FieldWriter};
use crate::{WireError, error::in_range};

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

/// The parameters of an object as its header shows them: a summary for people and a fingerprint for machines.
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
    /// Of all parameters.
    pub fingerprint: Fingerprint,
}

impl Identity {
    /// The identity of parameters.
    ///
    /// # Errors
    /// [`WireError::Field`] if `log_n` or a count of primes does not fit a byte.
    pub fn of(literal: &ParametersLiteral) -> Result<Self, WireError> {
        let mut encoding = FieldWriter::default();
        encode_literal(literal, &mut encoding)?;
        let mut fingerprint = Fingerprint([0; 16]);
        let digest = Sha256::new().chain_update(DOMAIN).chain_update(&encoding.0).finalize();
        fingerprint.0.copy_from_slice(&digest[..16]);
        Ok(Self {
            log_n: literal.log_n as u8,
            q_count: literal.q.len() as u8,
            p_count: literal.p.len() as u8,
            security: literal.security,
            fingerprint,
        })
    }

    pub(crate) fn encode(&self, out: &mut FieldWriter) {
        for byte in [self.log_n, self.q_count, self.p_count, security_code(self.security)] {
            out.u8(byte);
        }
        out.0.extend(self.fingerprint.0);
    }

    pub(crate) fn decode(fields: &mut FieldReader<'_>) -> Result<Self, WireError> {
        Ok(Self {
            log_n: fields.u8()?,
            q_count: fields.u8()?,
            p_count: fields.u8()?,
            security: decode_security(fields)?,
            fingerprint: Fingerprint(fields.array()?),
        })
    }
}

fn security_code(security: Security) -> u8 {
    match security {
        Security::Classical128 => 0,
        Security::InsecureForExperiments => 1,
    }
}

fn decode_security(fields: &mut FieldReader<'_>) -> Result<Security, WireError> {
    Ok(if fields.flag("security code")? { Security::InsecureForExperiments } else { Security::Classical128 })
}

/// The canonical encoding: every literal has exactly one.
pub(crate) fn encode_literal(literal: &ParametersLiteral, out: &mut FieldWriter) -> Result<(), WireError> {
    out.small("log2 of the ring degree", literal.log_n as usize)?;
    out.u8(security_code(literal.security));
    // A uniform ternary secret is weight 0, which no sparse secret has.
    let weight = match literal.secret {
        SecretDistribution::Ternary => 0,
        SecretDistribution::Sparse { weight } => {
            in_range("Hamming weight of the secret", weight as u64, 1, u32::MAX.into())?;
            weight as u32
        }
    };
    out.u32(weight);
    out.small("number of ciphertext primes", literal.q.len())?;
    out.small("number of special primes", literal.p.len())?;
    literal.q.iter().chain(&literal.p).for_each(|&prime| out.u64(prime));
    Ok(())
}

pub(crate) fn decode_literal(fields: &mut FieldReader<'_>) -> Result<ParametersLiteral, WireError> {
    let log_n = fields.u8()?.into();
    let security = decode_security(fields)?;
    let secret = match fields.u32()? {
        0 => SecretDistribution::Ternary,
        weight => SecretDistribution::Sparse { weight: weight as usize },
    };
    let (q_count, p_count) = (fields.small()?, fields.small()?);
    let q = (0..q_count).map(|_| fields.u64()).collect::<Result<_, _>>()?;
    let p = (0..p_count).map(|_| fields.u64()).collect::<Result<_, _>>()?;
    Ok(ParametersLiteral { log_n, q, p, secret, security })
}
