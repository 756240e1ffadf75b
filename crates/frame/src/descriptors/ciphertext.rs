//! Shapes of ciphertexts.

use keywright_ring::Seed;

use crate::FrameError;
use crate::fields::{FieldReader, FieldSink, FieldWriter, Fields};

/// Shape of a ciphertext.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CiphertextDescriptor {
    /// Number of limbs less one.
    pub level: usize,
    /// Its degree plus one.
    pub polynomials: usize,
}

impl CiphertextDescriptor {
    /// Bytes of the fields.
    pub const BYTES: usize = 2;
}

impl Fields for CiphertextDescriptor {
    fn encode<B: FieldSink>(&self, out: &mut FieldWriter<B>) -> Result<(), FrameError> {
        out.small("level of a ciphertext", self.level)?;
        out.small("number of polynomials of a ciphertext", self.polynomials)
    }

    fn decode(fields: &mut FieldReader<'_>) -> Result<Self, FrameError> {
        Ok(Self { level: fields.small()?, polynomials: fields.small()? })
    }
}

/// Shape and seed of a seeded ciphertext.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeededDescriptor {
    /// Number of limbs less one.
    pub level: usize,
    /// Seed of `c_1`.
    pub seed: Seed,
}

impl SeededDescriptor {
    /// Bytes of the fields.
    pub const BYTES: usize = 1 + 32;
}

impl Fields for SeededDescriptor {
    fn encode<B: FieldSink>(&self, out: &mut FieldWriter<B>) -> Result<(), FrameError> {
        out.small("level of a ciphertext", self.level)?;
        out.seed(&self.seed);
        Ok(())
    }

    fn decode(fields: &mut FieldReader<'_>) -> Result<Self, FrameError> {
        Ok(Self { level: fields.small()?, seed: fields.seed()? })
    }
}
