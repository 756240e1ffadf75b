use std::io::{Read, Seek, SeekFrom};

use keywright_rlwe::{EvaluationKeys, KeyIdentity, Parameters, SwitchingKey};

use super::{Directory, KeyEntry, read_key};
use crate::WireError;
use crate::object::open;
use crate::stream::header::Header;

/// A stored key set from which single keys are read, at one seek each.
pub struct KeySetFile<R: Read + Seek> {
    parameters: Parameters,
    directory: Directory,
    /// The identity of the first key.
    identity: KeyIdentity,
    reader: R,
    /// The offset of the keys.
    start: u64,
}

impl<R: Read + Seek> KeySetFile<R> {
    /// Reads the directory of the set that starts at the reader's position and ends with the reader, and the header of
    /// the first key.
    ///
    /// # Errors
    /// Any [`WireError`] of the header and the directory; [`WireError::Truncated`] or [`WireError::Trailing`] if the
    /// length is not that of the set.
    pub fn new(mut reader: R, parameters: &Parameters) -> Result<Self, WireError> {
        let begin = reader.stream_position()?;
        let header = Header::read(&mut reader)?;
        let directory = open::<EvaluationKeys>(&header, parameters)?;
        let start = reader.stream_position()?;
        let available = reader.seek(SeekFrom::End(0))?.saturating_sub(begin);
        let needed = header.object_len()?;
        if available < needed {
            return Err(WireError::Truncated { what: "the key set", needed, missing: needed - available });
        }
        if available > needed {
            return Err(WireError::Trailing { what: "the key set", extra: available - needed });
        }
        let identity = if directory.entries.is_empty() {
            KeyIdentity::UNKNOWN
        } else {
            reader.seek(SeekFrom::Start(start))?;
            Header::read(&mut reader)?.key
        };
        Ok(Self { parameters: parameters.clone(), directory, identity, reader, start })
    }

    /// The identity of the secret of the first key, and so of every key that is read.
    pub fn identity(&self) -> KeyIdentity {
        self.identity
    }

    /// The keys of the set, in stored order.
    pub fn entries(&self) -> &[KeyEntry] {
        &self.directory.entries
    }

    /// Where the bytes of a key of the set begin and end.
    pub(super) fn place(&self, index: usize) -> (u64, u64) {
        let begin = self.start + self.directory.entries[..index].iter().map(|entry| entry.bytes).sum::<u64>();
        (begin, begin + self.directory.entries[index].bytes)
    }

    /// Reads one key, verified by its own checksum. Reads no other key.
    ///
    /// # Errors
    /// [`WireError::KeyCount`] if there is no such place; [`keywright_rlwe::RlweError::KeyMismatch`] for a key of
    /// another secret than the first one's; otherwise as [`crate::Wire::read_from`].
    pub fn read(&mut self, index: usize) -> Result<SwitchingKey, WireError> {
        let entries = &self.directory.entries;
        let Some(entry) = entries.get(index) else {
            return Err(WireError::KeyCount { found: index.saturating_add(1), expected: entries.len() });
        };
        let (begin, _) = self.place(index);
        self.reader.seek(SeekFrom::Start(begin))?;
        let key = read_key(&mut self.reader, (index, entry), &self.parameters)?;
        self.identity.join(key.identity(), "the key set", "the key")?;
        Ok(key)
    }
}
