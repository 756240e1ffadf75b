//! What is not the same on all systems.

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

/// A new file that its owner alone can read, where the system knows owners.
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
    /// Waits for it.
    pub(super) fn of(file: &File) -> io::Result<Self> {
        let file = file.try_clone()?;
        file.lock()?;
        Ok(Self(file))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // The duplicated descriptor shares its lock with the file's: closing it is not enough. A failure keeps the
        // lock, which blocks others and reuses nothing.
        let _ = self.0.unlock();
    }
}

/// What a copy of a file has another of: its number in its file system, and where the system knows it the time at which
/// it was made there. 0 where there are neither.
pub(super) fn number(metadata: &Metadata) -> u64 {
    #[cfg(unix)]
    let number = std::os::unix::fs::MetadataExt::ino(metadata);
    #[cfg(not(unix))]
    let number = 0;
    let made = metadata.created().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    number.rotate_left(32) ^ made.map_or(0, |since| since.as_nanos() as u64)
}

/// Brings the names in a folder to the disk, where the system can.
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
