//! The register of unused serial numbers.
//!
//! Two records, a page apart, written alternately: if a crash tears one, the other is intact. The newest record that
//! authenticates is used; nothing relies on an unfinished write.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use keywright_ring::sampling::SecretRng;

use super::disk::{self, LOCK_WAIT, Lock};
use super::seal::{NONCE, Sealer, TAG};
use crate::{FileProblem, PoolError};

/// Distance of the two records.
const PAGE: u64 = 4096;
/// Four words and the seal.
const LEN: usize = 32 + NONCE + TAG;

/// The content of the register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Record {
    /// Grows with every write.
    pub(super) sequence: u64,
    /// File number of the data file.
    pub(super) inode: u64,
    /// First unused entry.
    pub(super) head: u64,
    /// First entry that is not stored yet.
    pub(super) tail: u64,
}

/// Far above all serial numbers and sequence numbers.
const MAX_NUMBER: u64 = 1 << 63;

impl Record {
    /// Whether it can belong to a file of this many slots.
    fn suits(&self, capacity: u64) -> bool {
        let unused = self.tail.checked_sub(self.head);
        unused.is_some_and(|unused| unused <= capacity) && self.tail.max(self.sequence) < MAX_NUMBER
    }

    /// The same with the next sequence number.
    pub(super) fn next(self) -> Self {
        Self { sequence: self.sequence + 1, ..self }
    }

    fn words(&self) -> [u8; 32] {
        let mut out = [0; 32];
        let words = [self.sequence, self.inode, self.head, self.tail];
        for (bytes, word) in out.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *bytes = word.to_le_bytes();
        }
        out
    }
}

/// An open register.
pub(super) struct Register {
    path: PathBuf,
    file: File,
}

impl Register {
    /// The path of a pool's register.
    pub(super) fn path(folder: &Path, id: &[u8; 16]) -> PathBuf {
        folder.join(disk::hexadecimal(id))
    }

    pub(super) fn create(
        folder: &Path,
        id: &[u8; 16],
        record: &Record,
        sealer: &Sealer,
        rng: &mut SecretRng,
    ) -> Result<Self, PoolError> {
        let path = Self::path(folder, id);
        let file = disk::private(&path).map_err(PoolError::io(&path))?;
        let mut register = Self { path, file };
        // The name must survive a power failure too.
        let written = register
            .write(id, record, sealer, rng)
            .and_then(|()| disk::sync_folder(folder).map_err(PoolError::io(folder)));
        if written.is_err() {
            let _ = fs::remove_file(&register.path);
        }
        written.map(|()| register)
    }

    /// The register of a pool, if there is one.
    pub(super) fn open(folder: &Path, id: &[u8; 16]) -> Result<Option<Self>, PoolError> {
        let path = Self::path(folder, id);
        match File::options().read(true).write(true).open(&path) {
            Ok(file) => Ok(Some(Self { path, file })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(PoolError::io(&path)(error)),
        }
    }

    /// Waits for the lock, which is held until the result is dropped.
    pub(super) fn lock(&self) -> Result<Lock, PoolError> {
        Lock::of(&self.file, &self.path, LOCK_WAIT)
    }

    /// The newest record, for a file of this many slots.
    pub(super) fn read(
        &mut self,
        id: &[u8; 16],
        capacity: u64,
        sealer: &Sealer,
    ) -> Result<Record, PoolError> {
        let records = [0, PAGE].map(|offset| self.read_at(offset, id, sealer));
        let newest = records.into_iter().flatten().max_by_key(|record| record.sequence);
        newest
            .filter(|record| record.suits(capacity))
            .ok_or_else(|| PoolError::file(&self.path, FileProblem::Register { register: self.path.clone() }))
    }

    /// `None` for a record that does not authenticate or is missing.
    fn read_at(&self, offset: u64, id: &[u8; 16], sealer: &Sealer) -> Option<Record> {
        let mut bytes = [0; LEN];
        disk::read_exact_at(&self.file, &mut bytes, offset).ok()?;
        let (words, seal) = bytes.split_at(32);
        sealer.open(&context(id, words), seal.try_into().ok()?, &mut [])?;
        let mut words = words.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
        Some(Record {
            sequence: words.next()?,
            inode: words.next()?,
            head: words.next()?,
            tail: words.next()?,
        })
    }

    /// Replaces the older record, and syncs it to the disk.
    pub(super) fn write(
        &mut self,
        id: &[u8; 16],
        record: &Record,
        sealer: &Sealer,
        rng: &mut SecretRng,
    ) -> Result<(), PoolError> {
        let words = record.words();
        let seal = sealer.seal(&context(id, &words), &mut [], rng).ok_or_else(|| too_long(&self.path))?;
        let offset = record.sequence % 2 * PAGE;
        disk::write_all_at(&self.file, &[&words[..], &seal].concat(), offset)
            .and_then(|()| self.file.sync_data())
            .map_err(PoolError::io(&self.path))
    }
}

fn context(id: &[u8; 16], words: &[u8]) -> Vec<u8> {
    [b"register", &id[..], words].concat()
}

/// The cipher refuses more than 256 GiB, which no header, record or entry reaches.
pub(super) fn too_long(path: &Path) -> PoolError {
    PoolError::Io { path: path.to_path_buf(), source: io::ErrorKind::InvalidInput.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_no_file_can_have_are_told() {
        let good = Record { sequence: 9, inode: 1, head: 5, tail: 7 };
        assert!(good.suits(2) && good.suits(u64::MAX));
        assert!(Record { head: 7, ..good }.suits(1));
        for bad in [
            Record { tail: 4, ..good },
            Record { tail: 8, ..good },
            Record { head: 0, tail: u64::MAX, ..good },
            Record { head: MAX_NUMBER, tail: MAX_NUMBER, ..good },
            Record { sequence: u64::MAX, ..good },
        ] {
            assert!(!bad.suits(2), "{bad:?}");
        }
    }
}
