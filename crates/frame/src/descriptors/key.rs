//! Specs and descriptors of switching keys.

use keywright_ring::{MAX_LOG_N, MIN_LOG_N, Seed};
use keywright_rlwe::{KeyElement, KeySpec};

use crate::FrameError;
use crate::error::in_range;
use crate::fields::{FieldReader, FieldSink, FieldWriter, Fields};

/// Bit of the type that marks a following degree of a subring. Keys of the parameters' own ring are written as before
/// subrings existed.
const OF_SUBRING: u8 = 0x80;

impl Fields for KeySpec {
    fn encode<B: FieldSink>(&self, out: &mut FieldWriter<B>) -> Result<(), FrameError> {
        let (tag, value) = match self.element {
            KeyElement::Galois(element) => (0, element),
            KeyElement::Relinearization => (1, 0),
            KeyElement::Secret(id) => (2, id),
            KeyElement::DenseToSparse(weight) => (3, weight as u64),
            KeyElement::SparseToDense(weight) => (4, weight as u64),
            KeyElement::SparseToDenseGalois { weight, galois } => (5, galois << 32 | weight as u64),
            KeyElement::RingDown { from, part } => (6, u64::from(from) << 32 | part as u64),
            KeyElement::RingUp { from } => (7, u64::from(from) << 32),
            KeyElement::RingUpToSparse { from, weight } => (8, u64::from(from) << 32 | weight as u64),
        };
        out.u8(tag | if self.subring.is_some() { OF_SUBRING } else { 0 });
        if let Some(log_n) = self.subring {
            out.small("log2 of the degree of a key's subring", log_n as usize)?;
        }
        out.u64(value);
        out.small("level of a key", self.level)?;
        out.small("alpha of a key", self.alpha)?;
        out.u8(self.seeded.into());
        out.small("number of special primes of a key", self.special.len())?;
        self.special.iter().try_for_each(|&index| out.small("index of a special prime", index))
    }

    fn decode(fields: &mut FieldReader<'_>) -> Result<Self, FrameError> {
        let tag = fields.u8()?;
        let subring = if tag & OF_SUBRING == 0 { None } else { Some(fields.u8()?.into()) };
        let value = fields.u64()?;
        let element = match tag & !OF_SUBRING {
            0 => KeyElement::Galois(value),
            1 => {
                in_range("element of a relinearization key", value, 0, 0)?;
                KeyElement::Relinearization
            }
            2 => KeyElement::Secret(value),
            3 => KeyElement::DenseToSparse(weight(value)?),
            4 => KeyElement::SparseToDense(weight(value)?),
            5 => {
                KeyElement::SparseToDenseGalois { weight: weight(value & 0xFFFF_FFFF)?, galois: value >> 32 }
            }
            6 => KeyElement::RingDown { from: ring(value)?, part: (value & 0xFFFF_FFFF) as usize },
            7 => {
                in_range("parts of a key between rings", value & 0xFFFF_FFFF, 0, 0)?;
                KeyElement::RingUp { from: ring(value)? }
            }
            8 => KeyElement::RingUpToSparse { from: ring(value)?, weight: weight(value & 0xFFFF_FFFF)? },
            other => {
                return Err(FrameError::Field { what: "type of a key", value: other.into(), min: 0, max: 8 });
            }
        };
        let (level, alpha) = (fields.small()?, fields.small()?);
        let seeded = fields.flag("seeded flag of a key")?;
        let count = fields.small()?;
        let special = (0..count).map(|_| fields.small()).collect::<Result<_, _>>()?;
        Ok(Self { element, level, alpha, special, seeded, subring })
    }
}

/// `log2` of the degree of the other ring of a key between rings.
fn ring(value: u64) -> Result<u32, FrameError> {
    in_range("log2 of the degree of a ring", value >> 32, MIN_LOG_N.into(), MAX_LOG_N.into())?;
    Ok((value >> 32) as u32)
}

/// Hamming weight of an ephemeral secret.
fn weight(value: u64) -> Result<usize, FrameError> {
    in_range("weight of an ephemeral secret", value, 1, 1 << MAX_LOG_N)?;
    Ok(value as usize)
}

/// The description of a stored switching key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyDescriptor {
    /// Its specification.
    pub spec: KeySpec,
    /// Number of digits, so of rows.
    pub digits: usize,
    /// Seed of the uniform half if it is seeded.
    pub seed: Option<Seed>,
}

impl KeyDescriptor {
    /// Bytes of the fields of a key with this spec.
    pub fn bytes(spec: &KeySpec) -> usize {
        1 + usize::from(spec.subring.is_some())
            + 8
            + 4
            + spec.special.len()
            + 1
            + if spec.seeded { 32 } else { 0 }
    }
}

impl Fields for KeyDescriptor {
    fn encode<B: FieldSink>(&self, out: &mut FieldWriter<B>) -> Result<(), FrameError> {
        self.spec.encode(out)?;
        out.small("number of digits of a key", self.digits)?;
        if let Some(seed) = &self.seed {
            out.seed(seed);
        }
        Ok(())
    }

    fn decode(fields: &mut FieldReader<'_>) -> Result<Self, FrameError> {
        let spec = KeySpec::decode(fields)?;
        let digits = fields.small()?;
        let seed = if spec.seeded { Some(fields.seed()?) } else { None };
        Ok(Self { spec, digits, seed })
    }
}
