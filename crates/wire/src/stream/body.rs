//! The body of an object: packed limbs and its checksum.

use std::io::{self, Read, Write};

use keywright_frame::Checksum;
use keywright_frame::packing::{find_not_canonical, pack_every_width, packed_len, unpack_every_width};
use keywright_ring::{Domain, Modulus, Poly};
use keywright_rlwe::KeyIdentity;

use super::header::{Header, read_exact, verify};
use crate::WireError;

/// Residues that are packed and checked at once: their bytes stay in the first-level cache.
const CHUNK: usize = 2048;

/// Writes a body, keeping its checksum and length.
pub struct BodyWriter<W> {
    writer: W,
    checksum: Checksum,
    left: u64,
    staging: Vec<u8>,
}

impl<W: Write> BodyWriter<W> {
    /// Writes the header; the body follows.
    pub(crate) fn start(mut writer: W, mut header: Header) -> Result<Self, WireError> {
        header.write(&mut writer)?;
        Ok(Self { writer, checksum: header.checksum, left: header.body_len, staging: Vec::new() })
    }

    /// Packs the residues of one limb.
    ///
    /// # Errors
    /// [`WireError::Residue`] if one is not canonical.
    pub(crate) fn limb(&mut self, modulus: &Modulus, residues: &[u64]) -> Result<(), WireError> {
        let mut staging = core::mem::take(&mut self.staging);
        for (number, part) in residues.chunks(CHUNK).enumerate() {
            require_canonical(modulus, part, number * CHUNK)?;
            staging.resize(packed_len(part.len(), modulus.bits()), 0);
            pack_every_width(modulus.bits(), part, &mut staging);
            self.write_all(&staging)?;
        }
        self.staging = staging;
        Ok(())
    }

    /// Packs a polynomial whose limbs belong to the given primes.
    pub(crate) fn poly<'m, D: Domain>(
        &mut self,
        poly: &Poly<D>,
        moduli: impl Iterator<Item = &'m Modulus>,
    ) -> Result<(), WireError> {
        self.limbs(poly.limbs(), moduli)
    }

    /// Packs the limbs of a polynomial, which belong to the given primes.
    pub(crate) fn limbs<'l, 'm>(
        &mut self,
        limbs: impl Iterator<Item = &'l [u64]>,
        moduli: impl Iterator<Item = &'m Modulus>,
    ) -> Result<(), WireError> {
        limbs.zip(moduli).try_for_each(|(limb, modulus)| self.limb(modulus, limb))
    }

    /// Writes the checksum.
    ///
    /// # Errors
    /// [`WireError::Length`] if less was written than the header announces.
    pub(crate) fn finish(mut self) -> Result<W, WireError> {
        if self.left > 0 {
            return Err(WireError::Length {
                what: "what is left of the body",
                found: self.left,
                expected: 0,
            });
        }
        self.writer.write_all(&self.checksum.to_bytes())?;
        Ok(self.writer)
    }
}

impl<W: Write> Write for BodyWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() as u64 > self.left {
            let message = format!("{} bytes for a body that has {} left", bytes.len(), self.left);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let written = self.writer.write(bytes)?;
        self.checksum.update(&bytes[..written]);
        self.left -= written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// Reads a body, never past its end, keeping its checksum.
pub struct BodyReader<R> {
    reader: R,
    key: KeyIdentity,
    checksum: Checksum,
    left: u64,
    staging: Vec<u8>,
}

impl<R: Read> BodyReader<R> {
    /// The body that follows a header.
    pub(crate) fn new(reader: R, header: &Header) -> Self {
        Self {
            reader,
            key: header.key,
            checksum: header.checksum.clone(),
            left: header.body_len,
            staging: Vec::new(),
        }
    }

    /// The identity of the secret that the object claims.
    pub(crate) fn key(&self) -> KeyIdentity {
        self.key
    }

    /// Unpacks one limb and checks that every residue is canonical.
    pub(crate) fn limb(&mut self, modulus: &Modulus, residues: &mut [u64]) -> Result<(), WireError> {
        let mut staging = core::mem::take(&mut self.staging);
        for (number, part) in residues.chunks_mut(CHUNK).enumerate() {
            staging.resize(packed_len(part.len(), modulus.bits()), 0);
            self.bytes(&mut staging)?;
            unpack_every_width(modulus.bits(), &staging, 0, part);
            require_canonical(modulus, part, number * CHUNK)?;
        }
        self.staging = staging;
        Ok(())
    }

    /// Reads a polynomial over the given primes. Only this function allocates residues, one polynomial at a time, after
    /// the length was checked.
    pub(crate) fn poly<'m, D: Domain>(
        &mut self,
        n: usize,
        moduli: impl ExactSizeIterator<Item = &'m Modulus>,
    ) -> Result<Poly<D>, WireError> {
        let mut poly = Poly::unspecified(n, moduli.len());
        poly.limbs_mut().zip(moduli).try_for_each(|(limb, modulus)| self.limb(modulus, limb))?;
        Ok(poly)
    }

    /// Fills a slice from the body.
    pub(crate) fn bytes(&mut self, out: &mut [u8]) -> Result<(), WireError> {
        read_exact(self, out, "the body")
    }

    /// Verifies the checksum that ends the object.
    pub(crate) fn finish(mut self) -> Result<R, WireError> {
        if self.left > 0 {
            return Err(WireError::Trailing { what: "the body's contents", extra: self.left });
        }
        verify(&mut self.reader, &self.checksum, "body")?;
        Ok(self.reader)
    }
}

impl<R: Read> Read for BodyReader<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let length = usize::try_from(self.left).map_or(out.len(), |left| out.len().min(left));
        let count = self.reader.read(&mut out[..length])?;
        self.checksum.update(&out[..count]);
        self.left -= count as u64;
        Ok(count)
    }
}

fn require_canonical(modulus: &Modulus, residues: &[u64], first: usize) -> Result<(), WireError> {
    let q = modulus.value();
    let Some(index) = find_not_canonical(q, residues) else { return Ok(()) };
    Err(WireError::Residue { value: residues[index], modulus: q, index: first + index })
}
