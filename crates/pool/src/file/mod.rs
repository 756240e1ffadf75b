//! Entries on the disk, encrypted, each returned once.
//!
//! A pool is two files. The *data file* holds entries in a ring of slots, each sealed by XChaCha20-Poly1305 with its
//! serial number. The *register*, in another folder, lists the unused serial numbers: `head..tail`. The register is
//! authoritative. Serial numbers only grow.
//!
//! # Taking
//! Under exclusive locks of both files, the register's first, `head` grows by the requested number, and the register is
//! synced to the disk. Then the slots are read and overwritten with zeros, and the data file is synced. Only then is an
//! entry decrypted. A crash between any steps loses at most the entries being taken, and no entry is returned twice.
//!
//! The lock of the data file protects its entries from a *copy* of the register, which has another lock and lists the
//! same unused entries. A reader of a slot holds the data file alone until the slot is zero on the disk. A zero slot
//! does not authenticate, so only one of several registers gets the entry, and the others get an error.
//!
//! # Nonces
//! Each seal has 192 random bits, from a generator that starts with the operating system's entropy in each process and
//! takes more of it at each operation ([`SecretRng::begin`]). Its state is not stored, so after a crash or a restart
//! nonces differ. A forked child is refused. Among `2^48` seals, two have one nonce with a probability of `2^-97`. A
//! caller that passes the same [`SecretRng::from_entropy`] each time, as tests do, repeats nonces. Someone who kept two
//! states of a slot then learns the difference of the two entries.
//!
//! # What is detected
//!
//! * The data file was replaced by an older state: its slots have old serial numbers and do not authenticate.
//! * The register was replaced, or a copy of it is used: it points to slots that are zero now, which do not
//!   authenticate. Entries that another register stored meanwhile may be lost; none is returned twice.
//! * The data file was copied, alone or with its register: file numbers differ ([`FileProblem::Copied`]), and elsewhere
//!   no register knows it ([`FileProblem::Unregistered`]).
//! * Several processes at once: the locks serialise them, which is allowed.
//!
//! # What cannot be detected
//!
//! A rollback of *both* files, including file numbers (the snapshot of a disk or of a virtual machine), restores the
//! old state, and nothing inside it shows this. Do not keep pool files on disks that are rolled back or cloned. Without
//! file numbers (outside Unix) a copy of both files goes unnoticed too. The locks are advisory and need a file system
//! that supports them.

mod data;
mod disk;
mod options;
mod register;
mod seal;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use keywright_ring::{Process, sampling::SecretRng};
use keywright_wire::{TemporaryFile, end_of, sweep};
use zeroize::Zeroizing;

use crate::error::require_owner;
use crate::{FileProblem, PoolError, Zero, ZeroKey};
use data::{Data, Header};
pub use options::{MAX_CAPACITY, PoolFileOptions};
use register::{Record, Register};
use seal::Sealer;

/// `$XDG_STATE_HOME/keywright/pools`, or `$HOME/.local/state/keywright/pools`.
///
/// # Errors
/// [`PoolError::Io`] if neither variable is set.
pub fn default_register() -> Result<PathBuf, PoolError> {
    let state = std::env::var_os("XDG_STATE_HOME").filter(|s| !s.is_empty()).map(PathBuf::from);
    let home = std::env::var_os("HOME").filter(|s| !s.is_empty()).map(PathBuf::from);
    let state =
        state.or_else(|| home.map(|home| home.join(".local/state"))).ok_or_else(|| PoolError::Io {
            path: PathBuf::from("register"),
            source: io::Error::other(
                "neither XDG_STATE_HOME nor HOME is set; name a folder for the register",
            ),
        })?;
    Ok(state.join("keywright/pools"))
}

/// Removes the register of a data file that a killed process has left, unless the file already had its name. It is the
/// only file of its identifier, which its header proves.
fn forget(left: &Path, file: &File, folder: &Path, key: &Zeroizing<[u8; 32]>, expected: &Header) {
    let Ok((metadata, file)) = file.metadata().and_then(|metadata| Ok((metadata, file.try_clone()?))) else {
        return;
    };
    if disk::names(&metadata) == 1
        && let Ok((data, _)) = Data::open(left, file, key, expected)
    {
        let _ = fs::remove_file(Register::path(folder, &data.header.id));
    }
}

/// An open pool file.
pub struct PoolFile {
    data: Data,
    register: Register,
    sealer: Sealer,
    rng: SecretRng,
    identity: [u8; 16],
    process: Process,
}

impl PoolFile {
    /// Opens the file of `options`, or creates it.
    ///
    /// # Errors
    /// [`PoolError::Io`]; [`PoolError::File`] for a file that is damaged, copied, or of another pool;
    /// [`PoolError::Range`] for a capacity of 0 or above [`MAX_CAPACITY`].
    pub fn open<K: ZeroKey>(
        options: &PoolFileOptions,
        key: &K,
        level: usize,
        mut rng: SecretRng,
    ) -> Result<Self, PoolError> {
        let folder = options.register.clone().map_or_else(default_register, Ok)?;
        let expected = Header::of(options, key, level, &mut rng)?;
        loop {
            // A link may lead to a file that does not exist yet.
            let path = end_of(&options.path).map_err(PoolError::io(&options.path))?;
            sweep(&path, |left, file| forget(left, file, &folder, &options.key, &expected));
            match File::options().read(true).write(true).open(&path) {
                Ok(file) => return Self::open_existing(options, &folder, expected, file, rng),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    // Another process may create it meanwhile, and then that file is used.
                    let header = expected.clone();
                    if let Some(file) = Self::create(&path, &options.key, &folder, header, rng.split()?)? {
                        return Ok(file);
                    }
                }
                Err(error) => return Err(PoolError::io(&path)(error)),
            }
        }
    }

    /// Creates both files; the data file appears under its name once the register exists. `None` if another process
    /// created it.
    fn create(
        path: &Path,
        key: &Zeroizing<[u8; 32]>,
        folder: &Path,
        header: Header,
        mut rng: SecretRng,
    ) -> Result<Option<Self>, PoolError> {
        let (sealer, identity) = (Sealer::new(key, &header.id), header.id);
        fs::create_dir_all(folder).map_err(PoolError::io(folder))?;
        let (temporary, file) = TemporaryFile::beside(path, true).map_err(PoolError::io(path))?;
        let data = Data::create(path, file, header, &sealer, &mut rng)?;
        let record = Record { sequence: 1, inode: data.inode, head: 0, tail: 0 };
        let register = Register::create(folder, &identity, &record, &sealer, &mut rng)?;
        // Unlike a rename, a link replaces nothing.
        if let Err(error) = fs::hard_link(temporary.path(), path) {
            fs::remove_file(Register::path(folder, &identity)).map_err(PoolError::io(folder))?;
            let exists = error.kind() == io::ErrorKind::AlreadyExists;
            return if exists { Ok(None) } else { Err(PoolError::io(path)(error)) };
        }
        drop(temporary);
        data.unlock();
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        disk::sync_folder(parent.unwrap_or(Path::new("."))).map_err(PoolError::io(path))?;
        Ok(Some(Self { data, register, sealer, rng, identity, process: Process::current() }))
    }

    fn open_existing(
        options: &PoolFileOptions,
        folder: &Path,
        expected: Header,
        file: File,
        rng: SecretRng,
    ) -> Result<Self, PoolError> {
        let (data, sealer) = Data::open(&options.path, file, &options.key, &expected)?;
        let identity = data.header.id;
        let register = Register::open(folder, &identity)?.ok_or_else(|| {
            let register = Register::path(folder, &identity);
            PoolError::file(&options.path, FileProblem::Unregistered { register })
        })?;
        let mut opened = Self { data, register, sealer, rng, identity, process: Process::current() };
        opened.locked(|_, _| Ok(()))?;
        Ok(opened)
    }

    /// Runs `work` with both files locked and the record checked against the data file. The register's lock alone does
    /// not suffice: a copy of the register is another lock for the same entries.
    fn locked<T>(
        &mut self,
        work: impl FnOnce(&mut Self, Record) -> Result<T, PoolError>,
    ) -> Result<T, PoolError> {
        // A forked child would share the lock.
        require_owner(self.process)?;
        // For the nonces of the seals.
        self.rng.begin()?;
        let _register = self.register.lock()?;
        // Always second, so there is no deadlock.
        let _data = self.data.lock()?;
        let record = self.checked_record()?;
        work(self, record)
    }

    fn checked_record(&mut self) -> Result<Record, PoolError> {
        let record = self.register.read(&self.identity, self.data.header.capacity, &self.sealer)?;
        if record.inode != self.data.inode {
            let problem = FileProblem::Copied { found: self.data.inode, registered: record.inode };
            return Err(PoolError::file(&self.data.path, problem));
        }
        Ok(record)
    }

    fn write(&mut self, record: Record) -> Result<(), PoolError> {
        self.register.write(&self.identity, &record, &self.sealer, &mut self.rng)
    }

    /// Slots.
    pub fn capacity(&self) -> u64 {
        self.data.header.capacity
    }

    /// Unused entries.
    ///
    /// # Errors
    /// [`PoolError::Io`], [`PoolError::File`].
    pub fn len(&mut self) -> Result<u64, PoolError> {
        self.locked(|_, record| Ok(record.tail - record.head))
    }

    /// Whether there are no unused entries.
    ///
    /// # Errors
    /// As [`Self::len`].
    pub fn is_empty(&mut self) -> Result<bool, PoolError> {
        Ok(self.len()? == 0)
    }

    /// Stores entries that no caller has seen, as many as there is room for, and returns their number.
    ///
    /// # Errors
    /// [`PoolError::Io`], [`PoolError::File`], [`PoolError::Wire`] for entries of other parameters.
    pub fn store<K: ZeroKey>(&mut self, key: &K, zeros: &[K::Zero]) -> Result<usize, PoolError> {
        self.locked(|file, record| {
            let room = (file.capacity() - (record.tail - record.head)) as usize;
            let zeros = zeros.get(..room).unwrap_or(zeros);
            for (serial, zero) in (record.tail..).zip(zeros) {
                let bytes = Zeroizing::new(zero.to_bytes(key.parameters())?);
                file.data.write_slot(serial, &bytes, &file.sealer, &mut file.rng)?;
            }
            file.data.sync()?;
            file.write(Record { tail: record.tail + zeros.len() as u64, ..record.next() })?;
            Ok(zeros.len())
        })
    }

    /// Takes up to `count` entries. They are erased from the disk when this returns or fails.
    ///
    /// # Errors
    /// [`PoolError::Io`], [`PoolError::File`].
    pub fn take<K: ZeroKey>(&mut self, key: &K, count: usize) -> Result<Vec<K::Zero>, PoolError> {
        let (first, sealed) = self.locked(|file, record| {
            let count = (record.tail - record.head).min(count as u64);
            if count == 0 {
                return Ok((record.head, Vec::new()));
            }
            file.write(Record { head: record.head + count, ..record.next() })?;
            let serials = record.head..record.head + count;
            let sealed =
                serials.clone().map(|serial| file.data.read_slot(serial)).collect::<Result<_, _>>()?;
            serials.clone().try_for_each(|serial| file.data.erase_slot(serial))?;
            file.data.sync()?;
            Ok((record.head, sealed))
        })?;
        let others = sealed.len().saturating_sub(1);
        let open = |(serial, slot): (u64, Vec<u8>)| {
            let bytes = self
                .data
                .open_slot(serial, slot, &self.sealer)
                .ok_or_else(|| PoolError::file(&self.data.path, FileProblem::Tampered { serial, others }))?;
            Ok(K::Zero::from_bytes(&bytes, key.parameters())?)
        };
        (first..).zip(sealed).map(open).collect()
    }
}

impl std::fmt::Debug for PoolFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PoolFile({}, {} slots)", self.data.path.display(), self.capacity())
    }
}
