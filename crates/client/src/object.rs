//! Objects of `docs/reference/format.md`: written to a sink while they are made, read from slices.

use keywright_frame::packing::{find_not_canonical, pack, packed_len, unpack};
use keywright_frame::{
    CHECKSUM_BYTES, Checksum, FIXED_BYTES, FRAME_BYTES, FieldReader, FieldWriter, Fields, FixedBuffer,
    FixedHeader, FrameError, IdentityBytes, Kind, MessageFields, Mismatch,
};
use keywright_rlwe::KeyIdentity;

use crate::engine::{BLOCK, CHUNK};
use crate::error::frame_error;
use crate::{ClientError, SinkError, Word};

/// The receiver of bytes, as soon as they exist: a socket, a UART, a vector.
pub trait Sink {
    /// Takes all of the bytes.
    ///
    /// # Errors
    /// Any reason for refusing them; encryption ends there.
    fn write(&mut self, bytes: &[u8]) -> Result<(), SinkError>;
}

impl Sink for alloc::vec::Vec<u8> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), SinkError> {
        self.extend_from_slice(bytes);
        Ok(())
    }
}

/// A function that takes bytes.
impl<F: FnMut(&[u8]) -> Result<(), SinkError>> Sink for F {
    fn write(&mut self, bytes: &[u8]) -> Result<(), SinkError> {
        self(bytes)
    }
}

/// Most bytes of fields of an object that a client writes.
const MAX_FIELDS: usize = 192;
/// Longest descriptor of an object that a client writes or reads.
const MAX_DESCRIPTOR: usize = KeyIdentity::BYTES + MAX_FIELDS;

/// A descriptor while it is written.
pub(crate) type ShortFields = FieldWriter<FixedBuffer<MAX_FIELDS>>;

/// Length of an object that belongs to a key, with this many bytes of fields.
pub(crate) const fn keyed_len(fields: usize, body: usize) -> usize {
    object_len(KeyIdentity::BYTES + fields, body)
}

/// Length of an object.
pub(crate) const fn object_len(descriptor: usize, body: usize) -> usize {
    FRAME_BYTES + descriptor + body
}

/// Reads fields from the descriptor of an object, which errors name.
pub(crate) struct Reader<'a> {
    what: &'static str,
    fields: FieldReader<'a>,
}

impl<'a> Reader<'a> {
    /// One field, or several of a type.
    pub(crate) fn take<T>(
        &mut self,
        decode: impl FnOnce(&mut FieldReader<'a>) -> Result<T, FrameError>,
    ) -> Result<T, ClientError> {
        decode(&mut self.fields).map_err(frame_error(self.what))
    }

    pub(crate) fn array<const LEN: usize>(&mut self) -> Result<[u8; LEN], ClientError> {
        self.take(FieldReader::array)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, ClientError> {
        self.take(FieldReader::u64)
    }

    /// The numbers of a message whose values are in coefficients.
    pub(crate) fn message(&mut self) -> Result<[u64; 3], ClientError> {
        match MessageFields::decode(&mut self.fields) {
            Ok(MessageFields { log_slots: None, numbers, .. }) => Ok(numbers),
            Ok(_) | Err(FrameError::Field { .. }) => Err(ClientError::Format {
                what: self.what,
                problem: "its values are in slots, not in coefficients",
            }),
            Err(error) => Err(frame_error(self.what)(error)),
        }
    }

    pub(crate) fn finish(self) -> Result<(), ClientError> {
        self.fields.finish().map_err(frame_error(self.what))
    }
}

/// An object while it is written.
pub(crate) struct ObjectWriter<'s> {
    sink: &'s mut dyn Sink,
    checksum: Checksum,
    left: usize,
}

impl<'s> ObjectWriter<'s> {
    /// Writes the header. `key` is ignored for a kind that belongs to none.
    pub(crate) fn start(
        sink: &'s mut dyn Sink,
        kind: Kind,
        identity: &IdentityBytes,
        key: &KeyIdentity,
        fields: &[u8],
        body: usize,
    ) -> Result<Self, ClientError> {
        let mut head: FieldWriter<FixedBuffer<{ FIXED_BYTES + MAX_DESCRIPTOR + CHECKSUM_BYTES }>> =
            FieldWriter::default();
        let header = FixedHeader::new(kind, *identity, fields.len() as u32, body as u64);
        let checksum = header.write(&mut head, key, fields);
        sink.write(head.as_slice())?;
        Ok(Self { sink, checksum, left: body })
    }

    /// Bytes of the body.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<(), ClientError> {
        debug_assert!(bytes.len() <= self.left);
        self.checksum.update(bytes);
        self.left -= bytes.len();
        Ok(self.sink.write(bytes)?)
    }

    /// Canonical residues of `width` bits; a multiple of eight.
    pub(crate) fn residues<W: Word>(&mut self, width: u32, residues: &[W]) -> Result<(), ClientError> {
        let mut staging = [0; STAGING];
        for part in residues.chunks(STAGED) {
            let bytes = &mut staging[..packed_len(part.len(), width)];
            pack(width, part, bytes);
            self.bytes(bytes)?;
        }
        Ok(())
    }

    /// Writes the checksum.
    pub(crate) fn finish(self) -> Result<(), ClientError> {
        debug_assert_eq!(self.left, 0);
        Ok(self.sink.write(&self.checksum.to_bytes())?)
    }

    /// Releases the sink, to resume later.
    pub(crate) fn pause(self) -> Unfinished {
        Unfinished { checksum: self.checksum, left: self.left }
    }
}

/// An object whose first bytes were written.
pub(crate) struct Unfinished {
    checksum: Checksum,
    left: usize,
}

impl Unfinished {
    /// Resumes the object.
    pub(crate) fn resume(self, sink: &mut dyn Sink) -> ObjectWriter<'_> {
        ObjectWriter { sink, checksum: self.checksum, left: self.left }
    }
}

/// Reads the fixed part of a header, and returns the rest.
fn split_fixed<'a>(what: &'static str, bytes: &'a [u8]) -> Result<(FixedHeader, &'a [u8]), ClientError> {
    let Some((fixed, rest)) = bytes.split_first_chunk::<FIXED_BYTES>() else {
        return Err(ClientError::Format { what, problem: "too short for a header" });
    };
    Ok((FixedHeader::read(fixed).map_err(frame_error(what))?, rest))
}

/// A checked object: header, both checksums and its length.
pub(crate) struct Object<'a> {
    what: &'static str,
    kind: u16,
    pub(crate) identity: IdentityBytes,
    /// The identity of its secret.
    pub(crate) key: KeyIdentity,
    descriptor: &'a [u8],
    pub(crate) body: &'a [u8],
}

impl<'a> Object<'a> {
    /// The object that takes all of `bytes`.
    pub(crate) fn read(what: &'static str, bytes: &'a [u8]) -> Result<Self, ClientError> {
        let refuse = |problem| Err(ClientError::Format { what, problem });
        let (fixed, rest) = split_fixed(what, bytes)?;
        let descriptor_len = fixed.descriptor_len as usize;
        if descriptor_len > MAX_DESCRIPTOR || rest.len() < descriptor_len + 2 * CHECKSUM_BYTES {
            return refuse("the descriptor is cut short or too long");
        }
        let (descriptor, rest) = rest.split_at(descriptor_len);
        if (rest.len() - 2 * CHECKSUM_BYTES) as u64 != fixed.body_len {
            return refuse("the body is cut short, or bytes follow it");
        }
        let (stored, rest) = rest.split_at(CHECKSUM_BYTES);
        let mut checksum = Checksum::default();
        checksum.update(&bytes[..FIXED_BYTES + descriptor_len]);
        verify(&checksum, stored, "header")?;
        let (body, stored) = rest.split_at(rest.len() - CHECKSUM_BYTES);
        checksum.update(body);
        verify(&checksum, stored, "body")?;
        let (key, descriptor) = fixed.split(descriptor).map_err(frame_error(what))?;
        let FixedHeader { kind, identity, .. } = fixed;
        Ok(Self { what, kind, identity, key, descriptor, body })
    }

    /// Checks the header in `bytes` of a body that comes later: its kind, parameters, length and checksum. Returns the
    /// checksum that the body continues.
    pub(crate) fn read_head(
        what: &'static str,
        bytes: &[u8],
        kind: Kind,
        identity: &IdentityBytes,
        body: u64,
    ) -> Result<Checksum, ClientError> {
        let refuse = |problem| Err(ClientError::Format { what, problem });
        let (fixed, rest) = split_fixed(what, bytes)?;
        if fixed.kind != kind.code() {
            return refuse("it is an object of another kind");
        }
        if fixed.identity != *identity {
            return Err(ClientError::ForeignParameters(what));
        }
        if fixed.body_len != body {
            return refuse("the body has another length than its kind's");
        }
        if rest.len().checked_sub(CHECKSUM_BYTES) != Some(fixed.descriptor_len as usize) {
            return refuse("the descriptor is cut short, or bytes follow it");
        }
        let (head, stored) = bytes.split_at(bytes.len() - CHECKSUM_BYTES);
        let mut checksum = Checksum::default();
        checksum.update(head);
        verify(&checksum, stored, "header")?;
        Ok(checksum)
    }

    /// Whether it is of this kind.
    pub(crate) fn is(&self, kind: Kind) -> bool {
        self.kind == kind.code()
    }

    /// The fields of the descriptor, whose meaning depends on the kind: refuses another kind and other parameters.
    pub(crate) fn fields(&self, kind: Kind, identity: &IdentityBytes) -> Result<Reader<'a>, ClientError> {
        let what = self.what;
        if !self.is(kind) {
            return Err(ClientError::Format { what, problem: "it is an object of another kind" });
        }
        if self.identity != *identity {
            return Err(ClientError::ForeignParameters(what));
        }
        Ok(Reader { what, fields: FieldReader::new(self.descriptor) })
    }

    /// Refuses another length of the body.
    pub(crate) fn require_body(&self, len: usize) -> Result<(), ClientError> {
        if self.body.len() == len {
            return Ok(());
        }
        Err(ClientError::Format { what: self.what, problem: "the body has another length than its kind's" })
    }
}

/// `stored` has the bytes of a checksum.
fn verify(checksum: &Checksum, stored: &[u8], what: &'static str) -> Result<(), ClientError> {
    let stored = FieldReader::new(stored).array().map_err(frame_error(what))?;
    checksum.verify(stored).map_err(|Mismatch { stored, computed }| ClientError::Checksum {
        what,
        stored,
        computed,
    })
}

/// Residues packed between two writes.
const STAGED: usize = if BLOCK < 8 * CHUNK { BLOCK } else { 8 * CHUNK };
/// Their bytes at the largest width.
const STAGING: usize = STAGED / 8 * 61;

/// [`unpack`] that refuses residues not below the modulus.
pub(crate) fn unpack_canonical<W: Word>(
    modulus: &keywright_ring::Modulus,
    packed: &[u8],
    out: &mut [W],
) -> Result<(), ClientError> {
    unpack(modulus.bits(), packed, 0, out);
    let modulus = modulus.value();
    match find_not_canonical(modulus, out) {
        None => Ok(()),
        Some(index) => Err(ClientError::Residue { index, value: out[index].to_u64(), modulus }),
    }
}
