//! The header that every object starts with.

use std::io::{self, Read, Write};

use crate::fields::{FieldReader, FieldWriter};
use crate::{Identity, Kind, WireError, error::in_range};

/// First bytes of every object. The first is not ASCII and the last three change when a transfer rewrites line ends.
pub const MAGIC: [u8; 8] = *b"\x89KWRT\r\n\x1a";
/// Format version that is written.
pub const FORMAT_VERSION: u16 = 1;
/// Longest descriptor of an object other than a key set.
pub const MAX_DESCRIPTOR_BYTES: u64 = 4096;
/// Most keys in one key set.
pub const MAX_KEYS: usize = 1 << 16;
/// Most extra primes of master keys.
pub const MAX_EXTRA_PRIMES: usize = keywright_rlwe::derive::MAX_EXTRA;
/// Longest entry of a key set's directory: a spec with 255 special primes, and a length.
pub const MAX_KEY_ENTRY_BYTES: u64 = 280;

/// Bytes of the fixed part of a header.
pub(crate) const FIXED_BYTES: usize = 44;
/// Bytes of a checksum.
pub(crate) const CHECKSUM_BYTES: u64 = 4;

/// What precedes the body of an object.
#[derive(Debug, Clone)]
pub(crate) struct Header {
    pub(crate) version: u16,
    pub(crate) kind: Kind,
    pub(crate) identity: Identity,
    pub(crate) body_len: u64,
    /// Kind-specific fields that decide the shape of the body.
    pub(crate) descriptor: Vec<u8>,
    /// State of the checksum after the header, from which that of the body goes on.
    pub(crate) checksum: crc32fast::Hasher,
}

/// Length of an object with a descriptor and a body of given lengths, `None` if it does not fit 64 bits.
pub(crate) fn object_len(descriptor_len: u64, body_len: u64) -> Option<u64> {
    (FIXED_BYTES as u64 + 2 * CHECKSUM_BYTES).checked_add(descriptor_len)?.checked_add(body_len)
}

fn max_descriptor(kind: Kind) -> u64 {
    match kind {
        Kind::KeySet => 4 + MAX_KEYS as u64 * MAX_KEY_ENTRY_BYTES,
        Kind::MasterKeys => 1 + 8 * MAX_EXTRA_PRIMES as u64 + max_descriptor(Kind::KeySet),
        _ => MAX_DESCRIPTOR_BYTES,
    }
}

impl Header {
    pub(crate) fn new(
        kind: Kind,
        identity: Identity,
        descriptor: FieldWriter,
        body_len: u64,
    ) -> Result<Self, WireError> {
        in_range("length of the descriptor", descriptor.0.len() as u64, 0, max_descriptor(kind))?;
        let checksum = crc32fast::Hasher::new();
        Ok(Self { version: FORMAT_VERSION, kind, identity, body_len, descriptor: descriptor.0, checksum })
    }

    /// Length of the whole object.
    pub(crate) fn object_len(&self) -> Result<u64, WireError> {
        object_len(self.descriptor.len() as u64, self.body_len).ok_or(WireError::Field {
            what: "length of the body",
            value: self.body_len,
            min: 0,
            max: u64::MAX >> 1,
        })
    }

    /// Writes the header and its checksum.
    pub(crate) fn write(&mut self, writer: &mut impl Write) -> Result<(), WireError> {
        let mut out = FieldWriter(MAGIC.to_vec());
        out.0.extend(self.version.to_le_bytes());
        out.0.extend(self.kind.code().to_le_bytes());
        self.identity.encode(&mut out);
        out.u32(self.descriptor.len() as u32);
        out.u64(self.body_len);
        out.0.extend(&self.descriptor);
        self.checksum.update(&out.0);
        let checksum = self.checksum.clone().finalize();
        out.u32(checksum);
        Ok(writer.write_all(&out.0)?)
    }

    /// Reads a header and checks it, short of what needs the parameters. Memory grows only with the bytes that arrive.
    pub(crate) fn read(reader: &mut impl Read) -> Result<Self, WireError> {
        let mut fixed = [0; FIXED_BYTES];
        let (magic, rest) = fixed.split_at_mut(MAGIC.len());
        read_exact(reader, magic, "the header")?;
        if *magic != MAGIC {
            let mut found = [0; 8];
            found.copy_from_slice(magic);
            return Err(WireError::Magic { found });
        }
        read_exact(reader, rest, "the header")?;
        let mut fields = FieldReader::new(rest);
        let version = u16::from_le_bytes(fields.array()?);
        if version == 0 || version > FORMAT_VERSION {
            return Err(WireError::Version { found: version, supported: FORMAT_VERSION });
        }
        let kind = Kind::from_code(u16::from_le_bytes(fields.array()?))?;
        let identity = Identity::decode(&mut fields)?;
        let descriptor_len = u64::from(fields.u32()?);
        let body_len = fields.u64()?;
        in_range("length of the descriptor", descriptor_len, 0, max_descriptor(kind))?;

        let mut descriptor = Vec::new();
        reader.by_ref().take(descriptor_len).read_to_end(&mut descriptor)?;
        let missing = descriptor_len - descriptor.len() as u64;
        if missing > 0 {
            return Err(WireError::Truncated { what: "the descriptor", needed: descriptor_len, missing });
        }
        let mut checksum = crc32fast::Hasher::new();
        checksum.update(&fixed);
        checksum.update(&descriptor);
        verify(reader, &checksum, "header")?;
        Ok(Self { version, kind, identity, body_len, descriptor, checksum })
    }
}

/// Reads a stored checksum and compares it.
pub(crate) fn verify(
    reader: &mut impl Read,
    checksum: &crc32fast::Hasher,
    what: &'static str,
) -> Result<(), WireError> {
    let mut stored = [0; CHECKSUM_BYTES as usize];
    read_exact(reader, &mut stored, "the checksum")?;
    let (stored, computed) = (u32::from_le_bytes(stored), checksum.clone().finalize());
    if stored == computed { Ok(()) } else { Err(WireError::Checksum { what, stored, computed }) }
}

/// [`Read::read_exact`] that says what ended early and by how much.
pub(crate) fn read_exact(
    reader: &mut impl Read,
    out: &mut [u8],
    what: &'static str,
) -> Result<(), WireError> {
    let mut filled = 0;
    while filled < out.len() {
        match reader.read(&mut out[filled..]) {
            Ok(0) => {
                let (needed, missing) = (out.len() as u64, (out.len() - filled) as u64);
                return Err(WireError::Truncated { what, needed, missing });
            }
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
