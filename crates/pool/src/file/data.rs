//! The data file: a header and a ring of slots.

use std::fs::File;
use std::path::{Path, PathBuf};

use keywright_ring::sampling::SecretRng;
use keywright_wire::{Fingerprint, Identity, WireError};
use zeroize::Zeroizing;

use super::disk::{self, LOCK_WAIT, Lock};
use super::options::{MAX_CAPACITY, PoolFileOptions};
use super::register::too_long;
use super::seal::{NONCE, Sealer, TAG, derive};
use crate::{FileProblem, PoolError, Zero, ZeroKey};

/// The last byte is the version.
const MAGIC: [u8; 8] = *b"kwpool\0\x01";
/// Magic, identifier, two fingerprints, level, bytes of an entry, capacity.
const FIELDS: usize = 8 + 16 + 16 + 16 + 4 + 8 + 8;
/// The offset of the slots.
const SLOTS: u64 = 4096;
/// Bytes of a slot in addition to the entry's.
const SEAL: usize = NONCE + TAG;

/// The identity of a data file.
#[derive(Clone)]
pub(super) struct Header {
    /// A random identifier of this file.
    pub(super) id: [u8; 16],
    parameters: Fingerprint,
    /// Identifies the key for holders of the file key; reveals nothing to others.
    key: [u8; 16],
    level: u32,
    entry_bytes: u64,
    pub(super) capacity: u64,
}

impl Header {
    /// The header of a new file.
    pub(super) fn of<K: ZeroKey>(
        options: &PoolFileOptions,
        key: &K,
        level: usize,
        rng: &mut SecretRng,
    ) -> Result<Self, PoolError> {
        if !(1..=MAX_CAPACITY).contains(&options.capacity) {
            let what = "the number of slots of a pool file";
            return Err(PoolError::Range { what, value: options.capacity, min: 1, max: MAX_CAPACITY });
        }
        let mut id = [0; 16];
        rng.fill_bytes(&mut id);
        let digest = derive(b"keywright pool key", &[&options.key[..], &key.identity()?]);
        let mut fingerprint = [0; 16];
        fingerprint.copy_from_slice(&digest[..16]);
        Ok(Self {
            id,
            parameters: Identity::of(key.parameters().literal()).map_err(WireError::from)?.fingerprint,
            key: fingerprint,
            level: level as u32,
            entry_bytes: K::Zero::encoded_len(level, key.parameters())?,
            capacity: options.capacity,
        })
    }

    fn fields(&self) -> Vec<u8> {
        let (level, entry, capacity) = (self.level, self.entry_bytes, self.capacity);
        let numbers = [&level.to_le_bytes()[..], &entry.to_le_bytes(), &capacity.to_le_bytes()].concat();
        [&MAGIC[..], &self.id, &self.parameters.0, &self.key, &numbers].concat()
    }

    fn parse(fields: &[u8; FIELDS]) -> Option<Self> {
        let mut rest = fields.strip_prefix(&MAGIC)?;
        let mut take = |count: usize| {
            let (first, others) = rest.split_at_checked(count)?;
            rest = others;
            Some(first)
        };
        let header = Self {
            id: take(16)?.try_into().ok()?,
            parameters: Fingerprint(take(16)?.try_into().ok()?),
            key: take(16)?.try_into().ok()?,
            level: u32::from_le_bytes(take(4)?.try_into().ok()?),
            entry_bytes: u64::from_le_bytes(take(8)?.try_into().ok()?),
            capacity: u64::from_le_bytes(take(8)?.try_into().ok()?),
        };
        (1..=MAX_CAPACITY).contains(&header.capacity).then_some(header)
    }

    fn slot_bytes(&self) -> u64 {
        self.entry_bytes + SEAL as u64
    }

    fn file_bytes(&self) -> Option<u64> {
        self.slot_bytes().checked_mul(self.capacity)?.checked_add(SLOTS)
    }

    fn offset(&self, serial: u64) -> u64 {
        SLOTS + serial % self.capacity * self.slot_bytes()
    }

    fn require_suits(&self, expected: &Self) -> Result<(), FileProblem> {
        if self.parameters != expected.parameters {
            let (found, expected) = (self.parameters, expected.parameters);
            return Err(FileProblem::ForeignParameters { found, expected });
        }
        if (self.level, self.entry_bytes) != (expected.level, expected.entry_bytes) {
            return Err(FileProblem::ForeignEntries {
                found: self.level,
                found_bytes: self.entry_bytes,
                expected: expected.level,
                expected_bytes: expected.entry_bytes,
            });
        }
        if self.key != expected.key {
            return Err(FileProblem::ForeignKey);
        }
        Ok(())
    }
}

/// An open data file.
pub(super) struct Data {
    pub(super) path: PathBuf,
    file: File,
    pub(super) header: Header,
    pub(super) inode: u64,
}

impl Data {
    /// Writes the header of a new `file`, which will have the name `path`.
    pub(super) fn create(
        path: &Path,
        file: File,
        header: Header,
        sealer: &Sealer,
        rng: &mut SecretRng,
    ) -> Result<Self, PoolError> {
        let fields = header.fields();
        let length = header.file_bytes().ok_or_else(|| too_long(path))?;
        let seal = sealer.seal(&fields, &mut [], rng).ok_or_else(|| too_long(path))?;
        let written = disk::write_all_at(&file, &[&fields[..], &seal].concat(), 0)
            .and_then(|()| file.set_len(length))
            .and_then(|()| file.sync_all());
        written.map_err(PoolError::io(path))?;
        let inode = disk::number(&file.metadata().map_err(PoolError::io(path))?);
        Ok(Self { path: path.to_path_buf(), file, header, inode })
    }

    /// Checks everything that can be checked without reading an entry.
    pub(super) fn open(
        path: &Path,
        file: File,
        key: &Zeroizing<[u8; 32]>,
        expected: &Header,
    ) -> Result<(Self, Sealer), PoolError> {
        let problem = |problem| PoolError::file(path, problem);
        let metadata = file.metadata().map_err(PoolError::io(path))?;
        let mut bytes = [0; FIELDS + SEAL];
        disk::read_exact_at(&file, &mut bytes, 0)
            .map_err(|_| problem(FileProblem::Length { found: metadata.len(), expected: SLOTS }))?;
        let (fields, seal) = bytes.split_first_chunk::<FIELDS>().ok_or(problem(FileProblem::Foreign))?;
        let header = Header::parse(fields).ok_or(problem(FileProblem::Foreign))?;
        let sealer = Sealer::new(key, &header.id);
        let seal = seal.try_into().map_err(|_| problem(FileProblem::Foreign))?;
        sealer.open(fields, seal, &mut []).ok_or(problem(FileProblem::Key))?;
        header.require_suits(expected).map_err(problem)?;
        let length = header.file_bytes().ok_or(problem(FileProblem::Foreign))?;
        if metadata.len() != length {
            return Err(problem(FileProblem::Length { found: metadata.len(), expected: length }));
        }
        Ok((Self { path: path.to_path_buf(), file, header, inode: disk::number(&metadata) }, sealer))
    }

    /// Waits for the lock, which is held until the result is dropped. It is taken after the register's lock.
    pub(super) fn lock(&self) -> Result<Lock, PoolError> {
        Lock::of(&self.file, &self.path, LOCK_WAIT)
    }

    /// Gives up the lock of a new file. If that fails, it stays, and others wait for it.
    pub(super) fn unlock(&self) {
        let _ = self.file.unlock();
    }

    fn context(&self, serial: u64) -> [u8; 24] {
        let mut context = [0; 24];
        context[..16].copy_from_slice(&self.header.id);
        context[16..].copy_from_slice(&serial.to_le_bytes());
        context
    }

    pub(super) fn write_slot(
        &self,
        serial: u64,
        entry: &[u8],
        sealer: &Sealer,
        rng: &mut SecretRng,
    ) -> Result<(), PoolError> {
        let mut slot = Zeroizing::new(vec![0; SEAL + entry.len()]);
        let (seal, body) = slot.split_at_mut(SEAL);
        body.copy_from_slice(entry);
        let sealed = sealer.seal(&self.context(serial), body, rng).ok_or_else(|| too_long(&self.path))?;
        seal.copy_from_slice(&sealed);
        disk::write_all_at(&self.file, &slot, self.header.offset(serial)).map_err(PoolError::io(&self.path))
    }

    pub(super) fn read_slot(&self, serial: u64) -> Result<Vec<u8>, PoolError> {
        let mut slot = vec![0; self.header.slot_bytes() as usize];
        disk::read_exact_at(&self.file, &mut slot, self.header.offset(serial))
            .map_err(PoolError::io(&self.path))?;
        Ok(slot)
    }

    pub(super) fn erase_slot(&self, serial: u64) -> Result<(), PoolError> {
        let zeros = vec![0; self.header.slot_bytes() as usize];
        disk::write_all_at(&self.file, &zeros, self.header.offset(serial)).map_err(PoolError::io(&self.path))
    }

    pub(super) fn sync(&self) -> Result<(), PoolError> {
        self.file.sync_data().map_err(PoolError::io(&self.path))
    }

    /// The entry, if the slot authenticates under its serial number.
    pub(super) fn open_slot(
        &self,
        serial: u64,
        slot: Vec<u8>,
        sealer: &Sealer,
    ) -> Option<Zeroizing<Vec<u8>>> {
        let mut slot = Zeroizing::new(slot);
        let (seal, body) = slot.split_first_chunk_mut::<SEAL>()?;
        sealer.open(&self.context(serial), seal, body)?;
        slot.drain(..SEAL);
        Some(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_come_back_and_no_number_of_slots_is_out_of_range() {
        let header = |capacity| Header {
            id: [1; 16],
            parameters: Fingerprint([2; 16]),
            key: [3; 16],
            level: 4,
            entry_bytes: 5,
            capacity,
        };
        let parse = |capacity| {
            let fields = header(capacity).fields();
            Header::parse(fields.first_chunk().unwrap()).map(|header| header.fields() == fields)
        };
        assert_eq!([1, MAX_CAPACITY].map(parse), [Some(true); 2]);
        assert_eq!([0, MAX_CAPACITY + 1, u64::MAX].map(parse), [None; 3]);
    }
}
