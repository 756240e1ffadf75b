//! System-dependent operations.

use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant, UNIX_EPOCH};

use crate::{FileProblem, PoolError};

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

/// How long the lock of a file is waited for: that of a process that was stopped within its work stays for ever.
pub(super) const LOCK_WAIT: Duration = Duration::from_secs(120);

/// The longest pause between attempts to get a lock.
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// The exclusive lock of a file.
pub(super) struct Lock(File);

impl Lock {
    /// Waits for the lock of the file at `path`, at most as long as stated. Nobody queues: each asks again after a
    /// pause, so a process that asks later may get it first, and `wait` may end although others got it meanwhile.
    pub(super) fn of(file: &File, path: &Path, wait: Duration) -> Result<Self, PoolError> {
        let file = file.try_clone().map_err(PoolError::io(path))?;
        let (begun, mut pause) = (Instant::now(), Duration::from_micros(50));
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self(file)),
                Err(TryLockError::WouldBlock) if begun.elapsed() < wait => {
                    thread::sleep(pause);
                    pause = LOCK_PAUSE.min(2 * pause);
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(PoolError::file(path, FileProblem::Locked { seconds: wait.as_secs() }));
                }
                Err(TryLockError::Error(error)) => return Err(PoolError::io(path)(error)),
            }
        }
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

/// How many names a file has; 1 where the system does not tell.
pub(super) fn names(metadata: &Metadata) -> u64 {
    #[cfg(unix)]
    let names = std::os::unix::fs::MetadataExt::nlink(metadata);
    #[cfg(not(unix))]
    let (names, _) = (1, metadata);
    names
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A stopped process kept every other one waiting for ever.
    #[test]
    fn the_lock_of_another_process_is_not_waited_for_without_end() {
        let path = std::env::temp_dir().join(format!("keywright-pool-lock-{}", std::process::id()));
        let (file, other) = (private(&path).unwrap(), File::open(&path).unwrap());
        other.lock().unwrap();
        let refusal = Lock::of(&file, &path, Duration::ZERO).map(drop).unwrap_err();
        assert!(matches!(refusal, PoolError::File { problem: FileProblem::Locked { seconds: 0 }, .. }));
        other.unlock().unwrap();
        Lock::of(&file, &path, Duration::ZERO).unwrap();
        std::fs::remove_file(path).unwrap();
    }
}
