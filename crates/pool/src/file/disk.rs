//! System-dependent operations.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::UNIX_EPOCH;

pub(super) fn read_exact_at(mut file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    file.seek(SeekFrom::Start(offset))?;
    file.read_exact(bytes)
}

pub(super) fn write_all_at(mut file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    file.seek(SeekFrom::Start(offset))?;
    file.write_all(bytes)
}

/// Creates a file that only its owner can read, on systems that have owners.
pub(super) fn private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// The exclusive lock of a file.
pub(super) struct Lock(File);

impl Lock {
    /// Waits for the lock.
    pub(super) fn of(file: &File) -> io::Result<Self> {
        let file = file.try_clone()?;
        file.lock()?;
        Ok(Self(file))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // The duplicated descriptor shares its lock with the file's, so closing it is not enough. If unlocking fails,
        // the lock stays: it blocks others and reuses nothing.
        let _ = self.0.unlock();
    }
}

/// The number of a file, which differs in a copy: its inode number and, where available, its creation time. 0 if the
/// system has neither.
pub(super) fn number(metadata: &Metadata) -> u64 {
    #[cfg(unix)]
    let number = std::os::unix::fs::MetadataExt::ino(metadata);
    #[cfg(not(unix))]
    let number = 0_u64;
    let created = metadata.created().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    number.rotate_left(32) ^ created.map_or(0, |since| since.as_nanos() as u64)
}

/// Syncs the names in a folder to the disk, where the system can.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    #[cfg(unix)]
    File::open(folder)?.sync_all()?;
    #[cfg(not(unix))]
    let _ = folder;
    Ok(())
}

pub(super) fn hexadecimal(id: &[u8; 16]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}
