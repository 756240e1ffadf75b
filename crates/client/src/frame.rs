//! The frame of `docs/format.md`: header, descriptor, packed residues, checksums. Written as it is made, to a sink; read from a slice.

use keywright_ring::Seed;
use zeroize::Zeroizing;

use crate::engine::{BLOCK, CHUNK};
use crate::{ClientError, SinkError, Word};

/// Where bytes go, as soon as they exist: a socket, a UART, a vector.
pub trait Sink {
    /// Takes all of the bytes.
    ///
    /// # Errors
    /// Whatever keeps it from taking them; encryption ends there.
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

/// Kinds of objects that a client writes and reads, by their code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub(crate) enum Kind {
    PublicKey = 0x0002,
    SwitchingKey = 0x0003,
    KeySet = 0x0004,
    Ciphertext = 0x0103,
    SeededCiphertext = 0x0104,
    Compact = 0x0105,
    Parameters = 0x0106,
    SecretKey = 0x8001,
}

const MAGIC: [u8; 8] = *b"\x89KWRT\r\n\x1a";
const VERSION: u16 = 1;
/// Bytes before the descriptor.
const FIXED: usize = 44;
/// Longest descriptor of these kinds.
pub(crate) const MAX_DESCRIPTOR: usize = 192;

/// Which parameters an object belongs to: bytes 12 to 31 of its header.
pub type Identity = [u8; 20];

/// Bytes of a checksum.
pub(crate) const CHECKSUM_BYTES: u64 = 4;

/// Length of an object.
pub(crate) const fn object_len(descriptor: usize, body: usize) -> usize {
    FIXED + descriptor + 4 + body + 4
}

/// Little-endian fields.
pub(crate) struct Fields {
    bytes: [u8; MAX_DESCRIPTOR],
    len: usize,
}

impl Fields {
    pub(crate) fn new() -> Self {
        Self { bytes: [0; MAX_DESCRIPTOR], len: 0 }
    }

    pub(crate) fn put(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
        self
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Takes fields off a descriptor.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl Reader<'_> {
    pub(crate) fn array<const L: usize>(&mut self, what: &'static str) -> Result<[u8; L], ClientError> {
        let (head, rest) = self
            .0
            .split_first_chunk::<L>()
            .ok_or(ClientError::Format { what, problem: "the descriptor is cut short" })?;
        self.0 = rest;
        Ok(*head)
    }

    pub(crate) fn u64(&mut self, what: &'static str) -> Result<u64, ClientError> {
        Ok(u64::from_le_bytes(self.array(what)?))
    }

    pub(crate) fn finish(self, what: &'static str) -> Result<(), ClientError> {
        if self.0.is_empty() {
            return Ok(());
        }
        Err(ClientError::Format { what, problem: "the descriptor has bytes left over" })
    }
}

/// An object on its way out.
pub(crate) struct ObjectWriter<'s> {
    sink: &'s mut dyn Sink,
    checksum: crc32fast::Hasher,
    left: usize,
}

impl<'s> ObjectWriter<'s> {
    /// Writes the header.
    pub(crate) fn start(
        sink: &'s mut dyn Sink,
        kind: Kind,
        identity: &Identity,
        descriptor: &[u8],
        body: usize,
    ) -> Result<Self, ClientError> {
        let mut head = [0; FIXED + MAX_DESCRIPTOR + 4];
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            head[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        put(&MAGIC);
        put(&VERSION.to_le_bytes());
        put(&(kind as u16).to_le_bytes());
        put(identity);
        put(&(descriptor.len() as u32).to_le_bytes());
        put(&(body as u64).to_le_bytes());
        put(descriptor);
        let end = FIXED + descriptor.len();
        let mut checksum = crc32fast::Hasher::new();
        checksum.update(&head[..end]);
        head[end..end + 4].copy_from_slice(&checksum.clone().finalize().to_le_bytes());
        sink.write(&head[..end + 4])?;
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
        Ok(self.sink.write(&self.checksum.finalize().to_le_bytes())?)
    }

    /// Lets go of the sink, to go on later.
    pub(crate) fn pause(self) -> Unfinished {
        Unfinished { checksum: self.checksum, left: self.left }
    }
}

/// An object of which the first bytes were written.
pub(crate) struct Unfinished {
    checksum: crc32fast::Hasher,
    left: usize,
}

impl Unfinished {
    /// Goes on where the object was.
    pub(crate) fn resume(self, sink: &mut dyn Sink) -> ObjectWriter<'_> {
        ObjectWriter { sink, checksum: self.checksum, left: self.left }
    }
}

/// The part of a header that every object has.
struct Fixed {
    kind: u16,
    identity: Identity,
    descriptor_len: usize,
    body_len: u64,
}

impl Fixed {
    /// Reads it, and gives what follows.
    fn read<'a>(what: &'static str, bytes: &'a [u8]) -> Result<(Self, &'a [u8]), ClientError> {
        let refuse = |problem| Err(ClientError::Format { what, problem });
        let Some((fixed, rest)) = bytes.split_first_chunk::<FIXED>() else {
            return refuse("too short for a header");
        };
        if fixed[..8] != MAGIC {
            return refuse("these bytes are no object of Keywright");
        }
        let word = |at: usize| u16::from_le_bytes([fixed[at], fixed[at + 1]]);
        if word(8) != VERSION {
            return refuse("written in another version of the format");
        }
        let mut identity = [0; 20];
        identity.copy_from_slice(&fixed[12..32]);
        let descriptor_len = Reader(&fixed[32..36]).array(what).map(u32::from_le_bytes)? as usize;
        let body_len = Reader(&fixed[36..44]).u64(what)?;
        Ok((Self { kind: word(10), identity, descriptor_len, body_len }, rest))
    }
}

/// An object that was checked: header, both checksums and its length.
pub(crate) struct Object<'a> {
    pub(crate) kind: u16,
    pub(crate) identity: Identity,
    pub(crate) descriptor: &'a [u8],
    pub(crate) body: &'a [u8],
}

impl<'a> Object<'a> {
    /// What the first bytes of an object say that it is.
    #[cfg(feature = "server")]
    pub(crate) fn kind_of(bytes: &[u8]) -> Option<u16> {
        let rest = bytes.strip_prefix(&MAGIC)?;
        Some(u16::from_le_bytes([*rest.get(2)?, *rest.get(3)?]))
    }

    /// The object that takes all of `bytes`.
    pub(crate) fn read(what: &'static str, bytes: &'a [u8]) -> Result<Self, ClientError> {
        let refuse = |problem| Err(ClientError::Format { what, problem });
        let (fixed, rest) = Fixed::read(what, bytes)?;
        if fixed.descriptor_len > MAX_DESCRIPTOR || rest.len() < fixed.descriptor_len + 8 {
            return refuse("the descriptor is cut short or too long");
        }
        let (descriptor, rest) = rest.split_at(fixed.descriptor_len);
        if (rest.len() - 8) as u64 != fixed.body_len {
            return refuse("the body is cut short, or bytes follow it");
        }
        let (stored, rest) = rest.split_at(4);
        let mut checksum = crc32fast::Hasher::new();
        checksum.update(&bytes[..FIXED + fixed.descriptor_len]);
        verify(&checksum, stored, "header")?;
        let (body, stored) = rest.split_at(rest.len() - 4);
        checksum.update(body);
        verify(&checksum, stored, "body")?;
        Ok(Self { kind: fixed.kind, identity: fixed.identity, descriptor, body })
    }

    /// Checks the header that is all of `bytes`, of a body that comes later: its kind, parameters, length and checksum. Gives the checksum that the body goes on
    /// with.
    pub(crate) fn read_head(
        what: &'static str,
        bytes: &[u8],
        kind: Kind,
        identity: &Identity,
        body: u64,
    ) -> Result<crc32fast::Hasher, ClientError> {
        let refuse = |problem| Err(ClientError::Format { what, problem });
        let (fixed, rest) = Fixed::read(what, bytes)?;
        if fixed.kind != kind as u16 {
            return refuse("an object of another kind");
        }
        if fixed.identity != *identity {
            return Err(ClientError::ForeignParameters(what));
        }
        if fixed.body_len != body {
            return refuse("the body has another length than its kind's");
        }
        if rest.len().checked_sub(4) != Some(fixed.descriptor_len) {
            return refuse("the descriptor is cut short, or bytes follow it");
        }
        let (head, stored) = bytes.split_at(bytes.len() - 4);
        let mut checksum = crc32fast::Hasher::new();
        checksum.update(head);
        verify(&checksum, stored, "header")?;
        Ok(checksum)
    }

    /// Refuses another kind, other parameters and another length of the body.
    pub(crate) fn require(
        &self,
        what: &'static str,
        kind: Kind,
        identity: &Identity,
        body: usize,
    ) -> Result<(), ClientError> {
        if self.kind != kind as u16 {
            return Err(ClientError::Format { what, problem: "an object of another kind" });
        }
        if self.identity != *identity {
            return Err(ClientError::ForeignParameters(what));
        }
        if self.body.len() != body {
            return Err(ClientError::Format { what, problem: "the body has another length than its kind's" });
        }
        Ok(())
    }
}

fn verify(checksum: &crc32fast::Hasher, stored: &[u8], what: &'static str) -> Result<(), ClientError> {
    let (stored, computed) =
        (Reader(stored).array(what).map(u32::from_le_bytes)?, checksum.clone().finalize());
    if stored == computed { Ok(()) } else { Err(ClientError::Checksum { what, stored, computed }) }
}

/// The seed field of a descriptor.
pub(crate) fn seed_of(reader: &mut Reader<'_>, what: &'static str) -> Result<Seed, ClientError> {
    reader.array(what).map(Seed)
}

/// Residues packed between two writes.
const STAGED: usize = if BLOCK < 8 * CHUNK { BLOCK } else { 8 * CHUNK };
/// Their bytes at the largest width.
const STAGING: usize = STAGED / 8 * 61;

/// Bytes of `count` residues, a multiple of eight.
pub(crate) const fn packed_len(count: usize, width: u32) -> usize {
    count / 8 * width as usize
}

/// Residue `i` takes bits `width i .. width (i + 1)` of the little-endian bit string.
pub(crate) fn pack<W: Word>(width: u32, residues: &[W], out: &mut [u8]) {
    // The widths of the shift-and-add primes and of the shipped sets as constants: their shifts are then constant too.
    match width {
        30 => pack_groups(30, residues, out),
        50 => pack_groups(50, residues, out),
        60 => pack_groups(60, residues, out),
        _ => pack_groups(width, residues, out),
    }
}

#[inline(always)]
fn pack_groups<W: Word>(width: u32, residues: &[W], out: &mut [u8]) {
    for (eight, bytes) in residues.as_chunks::<8>().0.iter().zip(out.chunks_exact_mut(width as usize)) {
        let (mut word, mut filled, mut at) = (0u64, 0, 0);
        for &residue in eight {
            let residue = residue.to_u64();
            word |= residue << filled;
            filled += width;
            if filled >= 64 {
                bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
                at += 8;
                filled -= 64;
                word = residue.checked_shr(width - filled).unwrap_or(0);
            }
        }
        let rest = bytes.len() - at;
        bytes[at..].copy_from_slice(&word.to_le_bytes()[..rest]);
    }
}

/// Residues `start..` of a packed limb; `start` is a multiple of eight.
pub(crate) fn unpack<W: Word>(width: u32, packed: &[u8], start: usize, out: &mut [W]) {
    let bytes = &packed[packed_len(start, width)..packed_len(start + out.len(), width)];
    match width {
        30 => unpack_exactly::<30, W>(bytes, out),
        50 => unpack_exactly::<50, W>(bytes, out),
        60 => unpack_exactly::<60, W>(bytes, out),
        _ => {
            for (bytes, eight) in bytes.chunks_exact(width as usize).zip(out.as_chunks_mut::<8>().0) {
                unpack_eight(width as usize, bytes, eight);
            }
        }
    }
}

/// Of a width that is a constant: so are all shifts and places.
fn unpack_exactly<const WIDTH: usize, W: Word>(bytes: &[u8], out: &mut [W]) {
    for (bytes, eight) in bytes.as_chunks::<WIDTH>().0.iter().zip(out.as_chunks_mut::<8>().0) {
        unpack_eight(WIDTH, bytes, eight);
    }
}

#[inline(always)]
fn unpack_eight<W: Word>(width: usize, bytes: &[u8], eight: &mut [W; 8]) {
    let mask = u64::MAX >> (64 - width);
    for (i, residue) in eight.iter_mut().enumerate() {
        // The last residues are loaded from the last word, so that nothing is read past the group.
        let first = (i * width / 8).min(width - 8);
        let shift = i * width - 8 * first;
        let mut low = [0; 8];
        low.copy_from_slice(&bytes[first..first + 8]);
        let mut value = u64::from_le_bytes(low) >> shift;
        if shift + width > 64 {
            // Bits of the ninth byte.
            value |= u64::from(bytes[first + 8]) << (64 - shift);
        }
        *residue = W::from_u64(value & mask);
    }
}

/// [`unpack`], refusing what is not below the modulus.
pub(crate) fn unpack_canonical<W: Word>(
    modulus: &keywright_ring::Modulus,
    packed: &[u8],
    out: &mut [W],
) -> Result<(), ClientError> {
    unpack(modulus.bits(), packed, 0, out);
    let q = modulus.value();
    // Above the modulus there is a borrow: residues have at most 61 bits.
    if out.iter().fold(0, |signs, residue| signs | (q - 1).wrapping_sub(residue.to_u64())) >> 63 == 0 {
        return Ok(());
    }
    let index = out.iter().position(|residue| residue.to_u64() >= q).unwrap_or(0);
    Err(ClientError::Residue { index, value: out[index].to_u64(), modulus: q })
}

/// Two bits a coefficient, the lowest first: `00` is 0, `01` is 1, `11` is -1; no branch on them.
pub(crate) fn pack_ternary(values: &[i64], out: &mut [u8]) {
    for (four, byte) in values.as_chunks::<4>().0.iter().zip(out) {
        *byte = four.iter().rev().fold(0, |byte, &c| byte << 2 | (c & 3) as u8);
    }
}

/// The inverse of [`pack_ternary`]; returns how many codes are `10`.
pub(crate) fn unpack_ternary(packed: &[u8], out: &mut [i64]) -> usize {
    let mut invalid = 0;
    for (four, &byte) in out.as_chunks_mut::<4>().0.iter_mut().zip(packed) {
        for (i, value) in four.iter_mut().enumerate() {
            let code = u64::from(byte >> (2 * i)) & 3;
            invalid += (code >> 1 & !code & 1) as usize;
            // Sign-extends two bits.
            *value = (code << 62) as i64 >> 62;
        }
    }
    invalid
}

/// A block of signed values on the stack, wiped when dropped.
pub(crate) fn values() -> Zeroizing<[i64; BLOCK]> {
    Zeroizing::new([0; BLOCK])
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    #[test]
    fn packing_is_the_definition_at_every_width() {
        for width in 12..=61 {
            let mask = u64::MAX >> (64 - width);
            let mut state = u64::from(width);
            let residues: Vec<u64> = (0..64)
                .map(|i| {
                    state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
                    [mask, 0, (state ^ state >> 32) & mask][(i % 5).min(2)]
                })
                .collect();
            let mut wanted = vec![0u8; packed_len(64, width)];
            for (i, residue) in residues.iter().enumerate() {
                for bit in 0..width as usize {
                    let place = i * width as usize + bit;
                    wanted[place / 8] |= ((residue >> bit & 1) as u8) << (place % 8);
                }
            }
            let mut packed = vec![0xAA; wanted.len()];
            pack(width, &residues, &mut packed);
            assert_eq!(packed, wanted, "width {width}");
            let mut back = vec![u64::MAX; 48];
            unpack(width, &packed, 16, &mut back);
            assert_eq!(back, residues[16..], "width {width}");
        }
    }

    #[test]
    fn ternary_values_come_back() {
        let values = [0, 1, -1, 1, -1, -1, 0, 0];
        let mut packed = [0; 2];
        pack_ternary(&values, &mut packed);
        let mut back = [7; 8];
        assert_eq!(unpack_ternary(&packed, &mut back), 0);
        assert_eq!(back, values);
        assert_eq!(unpack_ternary(&[0b10_00_10_01], &mut back[..4]), 2);
    }
}
