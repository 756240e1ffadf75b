//! Reads and writes the header of an object on a stream, with the errors of a server: `std` around the header of
//! [`keywright_frame`], which defines its bytes.

use std::io::{self, Read, Write};

use keywright_frame::{
    CHECKSUM_BYTES, Checksum, FIXED_BYTES, FieldWriter, FixedHeader, Identity, Kind, MAGIC,
    MAX_DESCRIPTOR_BYTES, MAX_EXTRA_PRIMES, MAX_KEY_ENTRY_BYTES, MAX_KEYS, Mismatch, key_identity_len,
    object_len,
};
use keywright_rlwe::KeyIdentity;

use crate::{WireError, error::in_range};

/// The part of an object before its body.
#[derive(Debug, Clone)]
pub(crate) struct Header {
    pub(crate) kind: Kind,
    pub(crate) identity: Identity,
    /// The identity of its secret.
    pub(crate) key: KeyIdentity,
    pub(crate) body_len: u64,
    /// Kind-specific fields that decide the shape of the body.
    pub(crate) descriptor: Vec<u8>,
    /// State of the checksum after the header, which the checksum of the body continues.
    pub(crate) checksum: Checksum,
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
        key: KeyIdentity,
        descriptor: FieldWriter,
        body_len: u64,
    ) -> Result<Self, WireError> {
        let descriptor = descriptor.into_inner();
        in_range("length of the descriptor", descriptor.len() as u64, 0, max_descriptor(kind))?;
        Ok(Self { kind, identity, key, body_len, descriptor, checksum: Checksum::default() })
    }

    /// Length of the whole object.
    pub(crate) fn object_len(&self) -> Result<u64, WireError> {
        let descriptor_len = key_identity_len(self.kind) + self.descriptor.len();
        object_len(descriptor_len as u64, self.body_len).ok_or(WireError::Field {
            what: "length of the body",
            value: self.body_len,
            min: 0,
            max: u64::MAX >> 1,
        })
    }

    /// Writes the header and its checksum.
    pub(crate) fn write(&mut self, writer: &mut impl Write) -> Result<(), WireError> {
        let (identity, descriptor_len) = (self.identity.to_bytes(), self.descriptor.len() as u32);
        let mut out: FieldWriter = FieldWriter::default();
        self.checksum = FixedHeader::new(self.kind, identity, descriptor_len, self.body_len).write(
            &mut out,
            &self.key,
            &self.descriptor,
        );
        Ok(writer.write_all(out.as_slice())?)
    }

    /// Reads a header, and checks everything that does not need the parameters. Memory grows only with the bytes that
    /// arrive.
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
        let fixed_header = FixedHeader::read(&fixed)?;
        let FixedHeader { kind, identity, descriptor_len, body_len } = fixed_header;
        let kind = Kind::from_code(kind).ok_or(WireError::UnknownKind(kind))?;
        let identity = Identity::from_bytes(&identity)?;
        let descriptor_len = u64::from(descriptor_len);
        in_range("length of the descriptor", descriptor_len, 0, max_descriptor(kind))?;

        let mut descriptor = Vec::new();
        reader.by_ref().take(descriptor_len).read_to_end(&mut descriptor)?;
        let missing = descriptor_len - descriptor.len() as u64;
        if missing > 0 {
            return Err(WireError::Truncated { what: "the descriptor", needed: descriptor_len, missing });
        }
        let mut checksum = Checksum::default();
        checksum.update(&fixed);
        checksum.update(&descriptor);
        verify(reader, &checksum, "header")?;
        let (key, fields) = fixed_header.split(&descriptor)?;
        Ok(Self { kind, identity, key, body_len, descriptor: fields.to_vec(), checksum })
    }
}

/// Reads a stored checksum and compares it.
pub(crate) fn verify(
    reader: &mut impl Read,
    checksum: &Checksum,
    what: &'static str,
) -> Result<(), WireError> {
    let mut stored = [0; CHECKSUM_BYTES];
    read_exact(reader, &mut stored, "the checksum")?;
    checksum.verify(stored).map_err(|Mismatch { stored, computed }| WireError::Checksum {
        what,
        stored,
        computed,
    })
}

/// [`Read::read_exact`] that reports which part ended early and how many bytes are missing.
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
