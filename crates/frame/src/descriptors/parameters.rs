//! Parameters, and the parts of them that other objects also have.

use alloc::vec::Vec;

use keywright_rlwe::{MAX_SUBRINGS, ParametersLiteral, SecretDistribution, Security, SubringLiteral};

use crate::FrameError;
use crate::error::in_range;
use crate::fields::{FieldReader, FieldSink, FieldWriter, Fields};

pub(crate) fn security_code(security: Security) -> u8 {
    match security {
        Security::Classical128 => 0,
        Security::InsecureForExperiments => 1,
    }
}

pub(crate) fn decode_security(fields: &mut FieldReader<'_>) -> Result<Security, FrameError> {
    Ok(if fields.flag("security code")? { Security::InsecureForExperiments } else { Security::Classical128 })
}

/// The Hamming weight. A uniform ternary secret is weight 0, which no sparse secret has.
impl Fields for SecretDistribution {
    fn encode<B: FieldSink>(&self, out: &mut FieldWriter<B>) -> Result<(), FrameError> {
        let weight = match *self {
            Self::Ternary => 0,
            Self::Sparse { weight } => {
                in_range("Hamming weight of the secret", weight as u64, 1, u32::MAX.into())?;
                weight as u32
            }
        };
        out.u32(weight);
        Ok(())
    }

    fn decode(fields: &mut FieldReader<'_>) -> Result<Self, FrameError> {
        Ok(match fields.u32()? {
            0 => Self::Ternary,
            weight => Self::Sparse { weight: weight as usize },
        })
    }
}

/// Bit of the byte of the security code that marks subrings after the primes.
const HAS_SUBRINGS: u8 = 2;

impl Fields for SubringLiteral {
    fn encode<B: FieldSink>(&self, out: &mut FieldWriter<B>) -> Result<(), FrameError> {
        out.small("log2 of the degree of a subring", self.log_n as usize)?;
        out.small("level of a subring", self.level)?;
        out.small("number of special primes of a subring", self.special.len())?;
        self.special.iter().try_for_each(|&index| out.small("index of a special prime", index))
    }

    fn decode(fields: &mut FieldReader<'_>) -> Result<Self, FrameError> {
        let (log_n, level, count) = (fields.u8()?.into(), fields.small()?, fields.small()?);
        let special = (0..count).map(|_| fields.small()).collect::<Result<_, _>>()?;
        Ok(Self { log_n, level, special })
    }
}

/// The canonical encoding, from which the fingerprint is computed. Parameters without subrings keep the encoding from
/// before subrings existed.
impl Fields for ParametersLiteral {
    fn encode<B: FieldSink>(&self, out: &mut FieldWriter<B>) -> Result<(), FrameError> {
        out.small("log2 of the ring degree", self.log_n as usize)?;
        let subrings = if self.subrings.is_empty() { 0 } else { HAS_SUBRINGS };
        out.u8(security_code(self.security) | subrings);
        self.secret.encode(out)?;
        out.small("number of ciphertext primes", self.q.len())?;
        out.small("number of special primes", self.p.len())?;
        self.q.iter().chain(&self.p).for_each(|&prime| out.u64(prime));
        if !self.subrings.is_empty() {
            let count = self.subrings.len();
            in_range("number of subrings", count as u64, 1, MAX_SUBRINGS as u64)?;
            out.small("number of subrings", count)?;
        }
        self.subrings.iter().try_for_each(|subring| subring.encode(out))
    }

    fn decode(fields: &mut FieldReader<'_>) -> Result<Self, FrameError> {
        let log_n = fields.u8()?.into();
        let code = fields.u8()?;
        let security = decode_security(&mut FieldReader::new(&[code & !HAS_SUBRINGS]))?;
        let secret = SecretDistribution::decode(fields)?;
        let (q_count, p_count) = (fields.small()?, fields.small()?);
        let q = (0..q_count).map(|_| fields.u64()).collect::<Result<_, _>>()?;
        let p = (0..p_count).map(|_| fields.u64()).collect::<Result<_, _>>()?;
        let mut subrings = Vec::new();
        if code & HAS_SUBRINGS != 0 {
            let count = fields.u8()?;
            // Without subrings the encoding is another one.
            in_range("number of subrings", count.into(), 1, MAX_SUBRINGS as u64)?;
            for _ in 0..count {
                subrings.push(SubringLiteral::decode(fields)?);
            }
        }
        Ok(Self { log_n, q, p, secret, security, subrings })
    }
}
