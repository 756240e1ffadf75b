/// Bytes of a checksum.
pub const CHECKSUM_BYTES: usize = 4;

/// A running CRC-32 (as in gzip and PNG). It starts as that of no bytes; the checksum of a body continues that of its
/// header.
#[derive(Debug, Clone, Default)]
pub struct Checksum(crc32fast::Hasher);

/// A stored checksum that differs from that of the bytes before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mismatch {
    /// Checksum found in the bytes.
    pub stored: u32,
    /// Checksum of the bytes that were read.
    pub computed: u32,
}

impl Checksum {
    /// Continues with more bytes.
    #[inline]
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The checksum of all bytes so far, as it is stored.
    pub fn to_bytes(&self) -> [u8; CHECKSUM_BYTES] {
        self.value().to_le_bytes()
    }

    /// Compares the checksum of all bytes so far with a stored one.
    ///
    /// # Errors
    /// [`Mismatch`].
    pub fn verify(&self, stored: [u8; CHECKSUM_BYTES]) -> Result<(), Mismatch> {
        let (stored, computed) = (u32::from_le_bytes(stored), self.value());
        if stored == computed { Ok(()) } else { Err(Mismatch { stored, computed }) }
    }

    fn value(&self) -> u32 {
        self.0.clone().finalize()
    }
}
