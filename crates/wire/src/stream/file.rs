use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::WireError;

/// The number of files that this process is writing, for distinct names.
static COUNT: AtomicU32 = AtomicU32::new(0);

/// Ends of temporary names, with which the Python package marks them too.
const PARTIAL: &str = ".partial";

/// Characters of a temporary name between the name of its target and its end.
const MARK: usize = 8;

/// Bytes of a target's name that a temporary name holds, which would otherwise become too long.
const NAME_BYTES: usize = 200;

/// A file that appears under its name, whole, only when it is committed. It is written under a temporary name in the
/// same folder, synced to the disk, and renamed. If it is dropped without a commit, it leaves nothing. What a killed
/// process has left is removed by the next one that writes the same file; locks tell what is still being written.
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
        let start = temporary_start(name);
        sweep(target, &start);
        // Another process may have a file of the same name: in a container all processes have one number.
        let (file, temporary) = loop {
            let mark = process::id().rotate_left(16).wrapping_add(COUNT.fetch_add(1, Ordering::Relaxed));
            let temporary = target.with_file_name(format!("{start}{mark:0MARK$x}{PARTIAL}"));
            match options.open(&temporary) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                // Until it is locked, another process may take it for a leftover and remove it.
                Ok(file) if cfg!(unix) && file.lock().is_ok() && !temporary.exists() => {}
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
            let file = writer.into_inner().map_err(io::IntoInnerError::into_error)?;
            file.sync_all()?;
            // Without its lock, it would be a leftover.
            fs::rename(&self.temporary, &self.target)?;
        }
        self.temporary.clear();
        // The new name must survive a power failure too.
        #[cfg(unix)]
        File::open(folder_of(&self.target))?.sync_all()?;
        Ok(())
    }
}

/// What the temporary names of a target begin with.
fn temporary_start(name: &OsStr) -> String {
    let mut start = String::from(".");
    for c in name.to_string_lossy().chars().filter(|&c| c != char::REPLACEMENT_CHARACTER) {
        if start.len() + c.len_utf8() > NAME_BYTES + 1 {
            break;
        }
        start.push(c);
    }
    start.push('.');
    start
}

/// Removes files that killed processes have left for a target: those that nobody has locked.
fn sweep(target: &Path, start: &str) {
    let is_leftover = |name: &OsStr| {
        let mark = name.to_str().and_then(|name| name.strip_prefix(start)?.strip_suffix(PARTIAL));
        mark.is_some_and(|mark| {
            mark.len() == MARK && mark.bytes().all(|c| matches!(c, b'a'..=b'z' | b'0'..=b'9' | b'_'))
        })
    };
    if !cfg!(unix) {
        return;
    }
    for entry in fs::read_dir(folder_of(target)).into_iter().flatten().flatten() {
        if is_leftover(&entry.file_name()) && entry.file_type().is_ok_and(|kind| kind.is_file()) {
            // Opened to write, a pipe that has replaced it meanwhile blocks nobody. Others sweep here, too.
            let Ok(file) = OpenOptions::new().read(true).write(true).open(entry.path()) else { continue };
            // Locked until it is removed: a writer that has made it and waits for its lock then sees that it is gone.
            if file.try_lock().is_ok() {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

fn folder_of(target: &Path) -> &Path {
    target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
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

    fn folder_of_test(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("keywright-wire-{name}-{}", process::id()));
        fs::create_dir(&folder).unwrap();
        folder
    }

    fn write(path: &Path) {
        let mut file = AtomicFile::create(path).unwrap();
        file.write_all(b"whole").unwrap();
        file.commit().unwrap();
        assert_eq!(fs::read(path).unwrap(), b"whole");
    }

    #[cfg(unix)]
    #[test]
    fn what_killed_processes_have_left_is_removed() {
        let folder = folder_of_test("left");
        let written = AtomicFile::create(folder.join("keys")).unwrap();
        let others =
            [".keys.12345678", ".keys.1234567.partial", ".keys.x.12345678.partial", ".key.12345678.partial"];
        others.iter().for_each(|other| fs::write(folder.join(other), b"other").unwrap());
        fs::create_dir(folder.join(".keys.abcdefgh.partial")).unwrap();
        fs::write(folder.join(".keys.1234567_.partial"), b"left").unwrap();
        write(&folder.join("keys"));
        assert!(!folder.join(".keys.1234567_.partial").exists());
        assert!(others.iter().all(|other| folder.join(other).exists()));
        assert!(folder.join(".keys.abcdefgh.partial").exists());
        assert!(written.temporary.exists());
        written.commit().unwrap();
        fs::remove_dir_all(folder).unwrap();
    }

    /// A sweep removes no file whose writer waits for its lock.
    #[test]
    fn writers_of_one_file_do_not_disturb_each_other() {
        let folder = folder_of_test("together");
        let path = folder.join("keys");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..300).for_each(|_| AtomicFile::create(&path).unwrap().commit().unwrap()));
            }
        });
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(folder).unwrap();
    }

    /// Files of other writers under the next names stay untouched, and do not block new ones.
    #[test]
    fn names_that_are_taken_are_passed_over() {
        let folder = folder_of_test("names");
        let next = COUNT.load(Ordering::Relaxed);
        // Other tests count too.
        let taken: Vec<_> = (next..next + 64)
            .map(|count| {
                let mark = process::id().rotate_left(16).wrapping_add(count);
                let path = folder.join(format!(".keys.{mark:0MARK$x}{PARTIAL}"));
                let file = File::create_new(&path).unwrap();
                file.lock().unwrap();
                (path, file)
            })
            .collect();
        write(&folder.join("keys"));
        assert!(taken.iter().all(|(path, _)| fs::read(path).unwrap().is_empty()));
        fs::remove_dir_all(folder).unwrap();
    }
}
