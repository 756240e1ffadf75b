//! Little-endian numbers of a descriptor.

use alloc::vec::Vec;

use keywright_ring::Seed;

use crate::FrameError;
use crate::error::in_range;

/// A buffer for fields: a vector, or an array where memory is scarce.
pub trait FieldSink {
    /// Appends bytes.
    fn extend(&mut self, bytes: &[u8]);
    /// All bytes so far.
    fn as_slice(&self) -> &[u8];
}

impl FieldSink for Vec<u8> {
    fn extend(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    fn as_slice(&self) -> &[u8] {
        self
    }
}

/// At most `LEN` bytes, on the stack.
#[derive(Debug, Clone)]
pub struct FixedBuffer<const LEN: usize> {
    bytes: [u8; LEN],
    len: usize,
}

impl<const LEN: usize> Default for FixedBuffer<LEN> {
    fn default() -> Self {
        Self { bytes: [0; LEN], len: 0 }
    }
}

impl<const LEN: usize> FieldSink for FixedBuffer<LEN> {
    /// # Panics
    /// If there are more than `LEN` bytes in all.
    fn extend(&mut self, bytes: &[u8]) {
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Appends numbers to a descriptor.
#[derive(Debug, Clone, Default)]
pub struct FieldWriter<B = Vec<u8>>(B);

impl<B: FieldSink> FieldWriter<B> {
    /// Appends bytes.
    pub fn put(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
    }

    /// Appends a byte.
    pub fn u8(&mut self, value: u8) {
        self.put(&[value]);
    }

    /// Appends a number that must fit a byte, such as a level or a count of primes.
    ///
    /// # Errors
    /// [`FrameError::Field`].
    pub fn small(&mut self, what: &'static str, value: usize) -> Result<(), FrameError> {
        in_range(what, value as u64, 0, u64::from(u8::MAX))?;
        self.u8(value as u8);
        Ok(())
    }

    /// Appends 4 bytes.
    pub fn u32(&mut self, value: u32) {
        self.put(&value.to_le_bytes());
    }

    /// Appends 8 bytes.
    pub fn u64(&mut self, value: u64) {
        self.put(&value.to_le_bytes());
    }

    /// Appends a seed.
    pub fn seed(&mut self, seed: &Seed) {
        self.put(&seed.0);
    }

    /// All bytes so far.
    pub fn as_slice(&self) -> &[u8] {
        self.0.as_slice()
    }

    /// The bytes in what holds them.
    pub fn into_inner(self) -> B {
        self.0
    }
}

/// Reads numbers from a descriptor. Every method fails with [`FrameError::Truncated`] at its end.
#[derive(Debug, Clone)]
pub struct FieldReader<'a> {
    rest: &'a [u8],
}

impl<'a> FieldReader<'a> {
    /// Starts at the first byte.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Reads `LEN` bytes.
    pub fn array<const LEN: usize>(&mut self) -> Result<[u8; LEN], FrameError> {
        let Some((head, rest)) = self.rest.split_first_chunk::<LEN>() else {
            let missing = (LEN - self.rest.len()) as u64;
            return Err(FrameError::Truncated { needed: LEN as u64, missing });
        };
        self.rest = rest;
        Ok(*head)
    }

    /// Reads a byte.
    pub fn u8(&mut self) -> Result<u8, FrameError> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    /// Reads a byte that is a level, a count or an index.
    pub fn small(&mut self) -> Result<usize, FrameError> {
        Ok(self.u8()?.into())
    }

    /// Reads a byte that is 0 or 1; [`FrameError::Field`] for any other.
    pub fn flag(&mut self, what: &'static str) -> Result<bool, FrameError> {
        let value = self.u8()?;
        in_range(what, value.into(), 0, 1)?;
        Ok(value == 1)
    }

    /// Reads 4 bytes.
    pub fn u32(&mut self) -> Result<u32, FrameError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// Reads 8 bytes.
    pub fn u64(&mut self) -> Result<u64, FrameError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// Reads a seed.
    pub fn seed(&mut self) -> Result<Seed, FrameError> {
        Ok(Seed(self.array()?))
    }

    /// Skips the rest: fields of another crate.
    pub fn skip(&mut self) {
        self.rest = &[];
    }

    /// Refuses unread bytes: [`FrameError::Trailing`].
    pub fn finish(self) -> Result<(), FrameError> {
        if self.rest.is_empty() {
            return Ok(());
        }
        Err(FrameError::Trailing { extra: self.rest.len() as u64 })
    }
}

/// A value that is written as fields of a descriptor. Every value has one encoding.
pub trait Fields: Sized {
    /// Appends the fields.
    ///
    /// # Errors
    /// [`FrameError::Field`] for a number that its field cannot hold.
    fn encode<B: FieldSink>(&self, out: &mut FieldWriter<B>) -> Result<(), FrameError>;

    /// Reads the fields.
    ///
    /// # Errors
    /// [`FrameError::Truncated`]; [`FrameError::Field`] for a number without a meaning.
    fn decode(fields: &mut FieldReader<'_>) -> Result<Self, FrameError>;
}

impl Fields for Seed {
    fn encode<B: FieldSink>(&self, out: &mut FieldWriter<B>) -> Result<(), FrameError> {
        out.seed(self);
        Ok(())
    }

    fn decode(fields: &mut FieldReader<'_>) -> Result<Self, FrameError> {
        fields.seed()
    }
}
