//! Parameters, and what of them stands elsewhere too.

use keywright_rlwe::{ParametersLiteral, SecretDistribution, Security};

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

/// The canonical encoding, of which the fingerprint is made.
impl Fields for ParametersLiteral {
    fn encode<B: FieldSink>(&self, out: &mut FieldWriter<B>) -> Result<(), FrameError> {
        out.small("log2 of the ring degree", self.log_n as usize)?;
        out.u8(security_code(self.security));
        self.secret.encode(out)?;
        out.small("number of ciphertext primes", self.q.len())?;
        out.small("number of special primes", self.p.len())?;
        self.q.iter().chain(&self.p).for_each(|&prime| out.u64(prime));
        Ok(())
    }

    fn decode(fields: &mut FieldReader<'_>) -> Result<Self, FrameError> {
        let log_n = fields.u8()?.into();
        let security = decode_security(fields)?;
        let secret = SecretDistribution::decode(fields)?;
        let (q_count, p_count) = (fields.small()?, fields.small()?);
        let q = (0..q_count).map(|_| fields.u64()).collect::<Result<_, _>>()?;
        let p = (0..p_count).map(|_| fields.u64()).collect::<Result<_, _>>()?;
        Ok(Self { log_n, q, p, secret, security })
    }
}
