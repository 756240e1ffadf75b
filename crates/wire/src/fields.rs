//! Little-endian numbers of a descriptor.

use keywright_ring::Seed;

use crate::WireError;
use crate::error::in_range;

/// Appends numbers to a descriptor.
#[derive(Default)]
pub struct FieldWriter(pub(crate) Vec<u8>);

impl FieldWriter {
    pub(crate) fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    /// A number that must fit a byte, such as a level or a count of primes.
    pub(crate) fn small(&mut self, what: &'static str, value: usize) -> Result<(), WireError> {
        in_range(what, value as u64, 0, u64::from(u8::MAX))?;
        self.u8(value as u8);
        Ok(())
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.0.extend(value.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.0.extend(value.to_le_bytes());
    }

    pub(crate) fn seed(&mut self, seed: &Seed) {
        self.0.extend(seed.0);
    }
}

/// Takes numbers off a descriptor.
pub struct FieldReader<'a> {
    rest: &'a [u8],
}

impl<'a> FieldReader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let Some((head, rest)) = self.rest.split_first_chunk::<N>() else {
            let missing = (N - self.rest.len()) as u64;
            return Err(WireError::Truncated { what: "the descriptor", needed: N as u64, missing });
        };
        self.rest = rest;
        Ok(*head)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, WireError> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    pub(crate) fn small(&mut self) -> Result<usize, WireError> {
        Ok(self.u8()?.into())
    }

    pub(crate) fn flag(&mut self, what: &'static str) -> Result<bool, WireError> {
        let value = self.u8()?;
        in_range(what, value.into(), 0, 1)?;
        Ok(value == 1)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, WireError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, WireError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub(crate) fn seed(&mut self) -> Result<Seed, WireError> {
        Ok(Seed(self.array()?))
    }

    /// Passes over the fields of another crate.
    pub(crate) fn skip(&mut self) {
        self.rest = &[];
    }

    /// Refuses bytes that no field took.
    pub(crate) fn finish(self) -> Result<(), WireError> {
        if self.rest.is_empty() {
            return Ok(());
        }
        Err(WireError::Trailing { what: "the descriptor", extra: self.rest.len() as u64 })
    }
}
