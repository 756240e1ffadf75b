//! A whole key set as one stream of bytes, in parts, from any byte on: one upload of a server.
//!
//! The set's own checksum covers all keys. The stream therefore keeps the hash state, a few words, of every key that it
//! reached: seeking back to a byte makes only its key again. A new stream of the same session that resumes at a byte
//! makes, and drops, everything before it.

use alloc::vec;
use alloc::vec::Vec;

use keywright_frame::{CHECKSUM_BYTES, Checksum, Kind};

use crate::error::in_range;
use crate::object::Object;
use crate::{ClientError, KeyStream};

/// The keys of a [`KeyStream`] after the head from a server's manifest, with the checksum of the whole.
pub struct KeySetStream {
    head: Vec<u8>,
    keys: KeyStream,
    /// The offset of each key, and the end of the last one.
    starts: Vec<u64>,
    /// The checksum of all bytes before each key that was reached.
    checksums: Vec<Checksum>,
    checksum: Checksum,
    /// Bytes made so far.
    written: u64,
    /// Those of them that were not returned yet.
    pending: Vec<u8>,
}

impl KeySetStream {
    /// A set from its first byte on. `head` is the header of the set, whose directory names the keys of the stream.
    ///
    /// # Errors
    /// [`ClientError::Format`], [`ClientError::Checksum`], [`ClientError::ForeignParameters`] for a head of other
    /// parameters or for another number of bytes.
    pub fn new(keys: KeyStream, head: &[u8]) -> Result<Self, ClientError> {
        let (what, total) = ("the head of the key set", keys.total_bytes());
        let checksum = Object::read_head(what, head, Kind::KeySet, keys.identity(), total)?;
        let mut starts = vec![head.len() as u64];
        for index in 0..keys.count() {
            starts.push(starts[index] + keys.key_bytes(index));
        }
        let (head, written) = (head.to_vec(), head.len() as u64);
        Ok(Self {
            pending: head.clone(),
            checksums: vec![checksum.clone()],
            head,
            keys,
            starts,
            checksum,
            written,
        })
    }

    /// As [`KeyStream::keep`].
    pub fn keep(&mut self, bytes: usize) {
        self.keys.keep(bytes);
    }

    /// Bytes of the whole set.
    pub fn bytes(&self) -> u64 {
        self.starts[self.keys.count()] + CHECKSUM_BYTES as u64
    }

    /// Number of keys.
    pub fn count(&self) -> usize {
        self.keys.count()
    }

    /// Bytes returned or skipped so far.
    pub fn place(&self) -> u64 {
        self.written - self.pending.len() as u64
    }

    /// The next part of the set: its head, a limb with its framing, or the checksum. Empty after the last.
    ///
    /// # Errors
    /// [`ClientError::Ring`] for an ephemeral secret of a weight above `N`.
    pub fn next_part(&mut self) -> Result<Vec<u8>, ClientError> {
        if self.pending.is_empty() { self.make() } else { Ok(core::mem::take(&mut self.pending)) }
    }

    /// Resumes at byte `place` of the set.
    ///
    /// # Errors
    /// [`ClientError::Range`] for a place beyond the end; as [`Self::next_part`].
    pub fn seek(&mut self, place: u64) -> Result<(), ClientError> {
        in_range("byte at which to resume the key set", place, 0, self.bytes())?;
        let before = self.starts.partition_point(|&start| start <= place);
        let key = before.saturating_sub(1).min(self.checksums.len() - 1);
        self.keys.rewind();
        self.keys.skip_to(key)?;
        self.checksum = self.checksums[key].clone();
        self.written = self.starts[key];
        let in_head = usize::try_from(place).ok().and_then(|place| self.head.get(place..));
        self.pending = in_head.unwrap_or_default().to_vec();
        while self.written < place {
            let part = self.make()?;
            // The rest of the part that contains the place.
            let rest = part.len().min(self.written.saturating_sub(place) as usize);
            self.pending = part[part.len() - rest..].to_vec();
        }
        Ok(())
    }

    fn make(&mut self) -> Result<Vec<u8>, ClientError> {
        let mut part = Vec::new();
        if self.keys.write_part(&mut part)?.is_some() {
            self.checksum.update(&part);
        } else if self.written < self.bytes() {
            part.extend(self.checksum.to_bytes());
        }
        self.written += part.len() as u64;
        let reached = self.keys.next();
        if self.written == self.starts[reached] && self.checksums.len() == reached {
            self.checksums.push(self.checksum.clone());
        }
        Ok(part)
    }
}

impl core::fmt::Debug for KeySetStream {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "KeySetStream({} of {} bytes, {:?})", self.place(), self.bytes(), self.keys)
    }
}
