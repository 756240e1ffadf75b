//! The header of every object: a fixed part, a descriptor, a checksum of both.

use crate::fields::{FieldReader, FieldSink, FieldWriter};
use keywright_rlwe::KeyIdentity;

use crate::{CHECKSUM_BYTES, Checksum, FrameError, IDENTITY_BYTES, IdentityBytes, Kind, MAGIC};

/// Format version, the only one that is written and read.
pub const FORMAT_VERSION: u16 = 2;
/// Longest descriptor of an object other than a key set.
pub const MAX_DESCRIPTOR_BYTES: u64 = 4096;
/// Most keys in one key set.
pub const MAX_KEYS: usize = 1 << 16;
/// Most extra primes of master keys.
pub const MAX_EXTRA_PRIMES: usize = keywright_rlwe::derive::MAX_EXTRA_PRIMES;
/// Longest entry of a key set's directory: a spec of a subring with 255 special primes, and a length.
pub const MAX_KEY_ENTRY_BYTES: u64 = 280;

/// Bytes of the fixed part of a header.
pub const FIXED_BYTES: usize = MAGIC.len() + 2 + 2 + IDENTITY_BYTES + 4 + 8;
/// Bytes of an object in addition to its descriptor and its body.
pub const FRAME_BYTES: usize = FIXED_BYTES + 2 * CHECKSUM_BYTES;

/// Length of an object with a descriptor and a body of given lengths, `None` if it does not fit 64 bits.
pub fn object_len(descriptor_len: u64, body_len: u64) -> Option<u64> {
    (FRAME_BYTES as u64).checked_add(descriptor_len)?.checked_add(body_len)
}

/// Bytes of the identity at the start of an object's descriptor; none if the object belongs to no key.
pub fn key_identity_len(kind: Kind) -> usize {
    if kind.has_key() { KeyIdentity::BYTES } else { 0 }
}

/// The part of a header that every object has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FixedHeader {
    /// Code of the [`Kind`], which may be unknown.
    pub kind: u16,
    /// The parameters of the object.
    pub identity: IdentityBytes,
    /// Bytes of the descriptor, including the identity of the key at its start.
    pub descriptor_len: u32,
    /// Bytes of the body.
    pub body_len: u64,
}

impl FixedHeader {
    /// The header of an object with this many bytes of fields in its descriptor.
    pub fn new(kind: Kind, identity: IdentityBytes, fields_len: u32, body_len: u64) -> Self {
        let descriptor_len = key_identity_len(kind) as u32 + fields_len;
        Self { kind: kind.code(), identity, descriptor_len, body_len }
    }

    /// Writes the whole header, with its descriptor and its checksum: the identity of the key, if objects of the kind
    /// have one, and the fields. Returns the checksum that the body continues.
    pub fn write<B: FieldSink>(
        &self,
        out: &mut FieldWriter<B>,
        key: &KeyIdentity,
        fields: &[u8],
    ) -> Checksum {
        let key = &key.0[..self.key_identity_len()];
        debug_assert!(out.as_slice().is_empty() && key.len() + fields.len() == self.descriptor_len as usize);
        out.put(&MAGIC);
        out.put(&FORMAT_VERSION.to_le_bytes());
        out.put(&self.kind.to_le_bytes());
        out.put(&self.identity);
        out.u32(self.descriptor_len);
        out.u64(self.body_len);
        out.put(key);
        out.put(fields);
        let mut checksum = Checksum::default();
        checksum.update(out.as_slice());
        out.put(&checksum.to_bytes());
        checksum
    }

    fn key_identity_len(&self) -> usize {
        Kind::from_code(self.kind).map_or(0, key_identity_len)
    }

    /// The identity of the key and the fields of a descriptor. For a kind without identities, the identity is
    /// unknown.
    ///
    /// # Errors
    /// [`FrameError::Truncated`].
    pub fn split<'d>(&self, descriptor: &'d [u8]) -> Result<(KeyIdentity, &'d [u8]), FrameError> {
        if self.key_identity_len() == 0 {
            return Ok((KeyIdentity::UNKNOWN, descriptor));
        }
        let identity = KeyIdentity(FieldReader::new(descriptor).array()?);
        Ok((identity, &descriptor[KeyIdentity::BYTES..]))
    }

    /// Reads the fixed part.
    ///
    /// # Errors
    /// [`FrameError::Magic`], [`FrameError::Version`].
    pub fn read(bytes: &[u8; FIXED_BYTES]) -> Result<Self, FrameError> {
        let mut fields = FieldReader::new(bytes);
        let found = fields.array()?;
        if found != MAGIC {
            return Err(FrameError::Magic { found });
        }
        let version = u16::from_le_bytes(fields.array()?);
        if version != FORMAT_VERSION {
            return Err(FrameError::Version { found: version });
        }
        let kind = u16::from_le_bytes(fields.array()?);
        Ok(Self { kind, identity: fields.array()?, descriptor_len: fields.u32()?, body_len: fields.u64()? })
    }
}
