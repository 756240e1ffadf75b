use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::temporary::{TemporaryFile, end_of, folder_of, sweep};
use crate::WireError;

/// A file that appears under its name, whole, only when it is committed. It is written under a temporary name in the
/// same folder, synced to the disk, and renamed ([`TemporaryFile`]). If it is dropped without a commit, it leaves
/// nothing. A link stays, and the file at its end is replaced.
///
/// A pipe or a character device cannot be replaced by a file: it is written directly.
#[derive(Debug)]
pub struct AtomicFile {
    /// `None` only while it is committed. It is closed before the temporary name is removed, for systems that do not
    /// remove open files.
    writer: Option<BufWriter<File>>,
    /// `None` for a target that is written directly, and while it is committed.
    temporary: Option<TemporaryFile>,
    /// At the end of links.
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
        if fs::metadata(target).is_ok_and(|existing| !existing.is_file() && !existing.is_dir()) {
            let file = OpenOptions::new().write(true).open(target)?;
            require_stream(&file, private)?;
            let writer = Some(BufWriter::with_capacity(0, file));
            return Ok(Self { writer, temporary: None, target: target.to_path_buf() });
        }
        let target = end_of(target)?;
        sweep(&target, |_, _| ());
        let (temporary, file) = TemporaryFile::beside(&target, private)?;
        // A secret must not linger in a buffer: it is written at once.
        let capacity = if private { 0 } else { 1 << 16 };
        let writer = Some(BufWriter::with_capacity(capacity, file));
        Ok(Self { writer, temporary: Some(temporary), target })
    }

    /// Commits the file.
    ///
    /// # Errors
    /// The error of the operating system. The target is then unchanged, unless the rename succeeded and only syncing
    /// its directory failed.
    pub fn commit(mut self) -> io::Result<()> {
        let Some(temporary) = self.temporary.take() else {
            // Devices and pipes have nothing to sync.
            return self.flush();
        };
        if let Some(writer) = self.writer.take() {
            let file = writer.into_inner().map_err(io::IntoInnerError::into_error)?;
            file.sync_all()?;
            // Without its lock, it would be a leftover.
            temporary.rename(&self.target)?;
        }
        // The new name must survive a power failure too.
        #[cfg(unix)]
        File::open(folder_of(&self.target))?.sync_all()?;
        Ok(())
    }
}

/// Refuses what has no stream, such as the disk behind a block device, and a pipe from which another user could read a
/// secret: in a shared folder, anyone can make it first.
fn require_stream(file: &File, private: bool) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{FileTypeExt, MetadataExt};
        let stream = file.metadata()?;
        let kind = stream.file_type();
        if !kind.is_fifo() && !kind.is_char_device() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "this is neither a file, a pipe nor a character device; name another path",
            ));
        }
        // The owner of this process, where the system tells it by a file.
        let owner = fs::metadata("/proc/self").map_or(stream.uid(), |process| process.uid());
        if private && kind.is_fifo() && (stream.mode() & 0o077 != 0 || stream.uid() != owner) {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "this is a pipe that another user can read; make it with mkfifo -m 600",
            ));
        }
    }
    #[cfg(not(unix))]
    let _ = (file, private);
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

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_written_and_not_replaced() {
        use std::os::unix::fs::FileTypeExt;
        let mut file = AtomicFile::create("/dev/null").unwrap();
        file.write_all(b"a key").unwrap();
        file.commit().unwrap();
        assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    }
}
