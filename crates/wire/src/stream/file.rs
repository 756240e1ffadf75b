use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::WireError;

/// The number of files that this process is writing, for distinct names.
static COUNT: AtomicU64 = AtomicU64::new(0);

/// A file that appears under its name, whole, only when it is committed. It is written under a temporary name in the
/// same folder, synced to the disk, and renamed. If it is dropped without a commit, it leaves nothing.
///
/// A pipe, a device or a socket cannot be replaced by a file: it is written directly.
#[derive(Debug)]
pub struct AtomicFile {
    /// `None` only while it is committed.
    writer: Option<BufWriter<File>>,
    /// Empty for a target that is written directly, and after the commit.
    temporary: PathBuf,
    target: PathBuf,
}

impl AtomicFile {
    /// Starts a file that will replace `path`.
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn create(path: impl AsRef<Path>) -> io::Result<Self> {
        Self::open(path.as_ref(), false)
    }

    /// The same, readable only by its owner on systems that have owners.
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn create_private(path: impl AsRef<Path>) -> io::Result<Self> {
        Self::open(path.as_ref(), true)
    }

    fn open(target: &Path, private: bool) -> io::Result<Self> {
        let Some(name) = target.file_name() else {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{} names no file", target.display()),
            ));
        };
        if fs::metadata(target).is_ok_and(|existing| !existing.is_file() && !existing.is_dir()) {
            let file = OpenOptions::new().write(true).open(target)?;
            if private {
                require_own_pipe(&file)?;
            }
            let writer = Some(BufWriter::with_capacity(0, file));
            return Ok(Self { writer, temporary: PathBuf::new(), target: target.to_path_buf() });
        }
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        if private {
            use std::os::unix::fs::OpenOptionsExt;
            options.mode(0o600);
        }
        #[cfg(not(unix))]
        let _ = private;
        // A killed process with the same number may have left a file of the same name: in a container all processes
        // have one number.
        let (file, temporary) = loop {
            let mut temporary_name = OsString::from(".");
            temporary_name.push(name);
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            temporary_name.push(format!(".{}-{count}.partial", process::id()));
            let temporary = target.with_file_name(temporary_name);
            match options.open(&temporary) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                opened => break (opened?, temporary),
            }
        };
        // A secret must not linger in a buffer: it is written at once.
        let capacity = if private { 0 } else { 1 << 16 };
        let writer = Some(BufWriter::with_capacity(capacity, file));
        Ok(Self { writer, temporary, target: target.to_path_buf() })
    }

    /// Commits the file.
    ///
    /// # Errors
    /// The error of the operating system. The target is then unchanged, unless the rename succeeded and only syncing
    /// its directory failed.
    pub fn commit(mut self) -> io::Result<()> {
        if self.temporary.as_os_str().is_empty() {
            // Devices and pipes have nothing to sync.
            return self.flush();
        }
        if let Some(writer) = self.writer.take() {
            writer.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        }
        fs::rename(&self.temporary, &self.target)?;
        self.temporary.clear();
        // The new name must survive a power failure too.
        #[cfg(unix)]
        {
            let parent = self.target.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
            File::open(parent)?.sync_all()?;
        }
        Ok(())
    }
}

/// Refuses a pipe from which another user could read a secret: in a shared folder, anyone can make it first.
fn require_own_pipe(file: &File) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{FileTypeExt, MetadataExt};
        let pipe = file.metadata()?;
        // The owner of this process, where the system tells it by a file.
        let owner = fs::metadata("/proc/self").map_or(pipe.uid(), |process| process.uid());
        if pipe.file_type().is_fifo() && (pipe.mode() & 0o077 != 0 || pipe.uid() != owner) {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "this is a pipe that another user can read; make it with mkfifo -m 600",
            ));
        }
    }
    #[cfg(not(unix))]
    let _ = file;
    Ok(())
}

/// Opens a regular file. Anything else is refused before it is opened: opening a pipe may block for ever.
///
/// # Errors
/// [`WireError::NotAFile`]; the error of the operating system.
pub fn open_file(path: impl AsRef<Path>) -> Result<File, WireError> {
    let kind = fs::metadata(&path)?.file_type();
    if !kind.is_file() {
        return Err(WireError::NotAFile { found: kind_name(kind) });
    }
    Ok(File::open(path)?)
}

fn kind_name(kind: fs::FileType) -> &'static str {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        if kind.is_fifo() {
            return "a pipe";
        }
        if kind.is_socket() {
            return "a socket";
        }
    }
    if kind.is_dir() { "a folder" } else { "a device" }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer
            .as_mut()
            .map_or_else(|| Err(io::ErrorKind::BrokenPipe.into()), |writer| writer.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if !self.temporary.as_os_str().is_empty() {
            // Close first, for systems that do not remove open files. A failure leaves a file whose name marks it as
            // partial.
            drop(self.writer.take());
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_device_is_written_and_not_replaced() {
        use std::os::unix::fs::FileTypeExt;
        let mut file = AtomicFile::create("/dev/null").unwrap();
        file.write_all(b"a key").unwrap();
        file.commit().unwrap();
        assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    }

    /// Leftovers of a killed process under the next names stay untouched, and do not block new files.
    #[test]
    fn names_that_are_taken_are_passed_over() {
        let folder = std::env::temp_dir().join(format!("keywright-wire-names-{}", process::id()));
        fs::create_dir(&folder).unwrap();
        let next = COUNT.load(Ordering::Relaxed);
        let left = |count| folder.join(format!(".keys.{}-{count}.partial", process::id()));
        // Other tests count too.
        (next..next + 64).for_each(|count| fs::write(left(count), b"left").unwrap());
        let mut file = AtomicFile::create(folder.join("keys")).unwrap();
        file.write_all(b"whole").unwrap();
        file.commit().unwrap();
        assert_eq!(fs::read(folder.join("keys")).unwrap(), b"whole");
        assert!((next..next + 64).all(|count| fs::read(left(count)).unwrap() == b"left"));
        fs::remove_dir_all(folder).unwrap();
    }
}
