use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use keywright_ring::sampling::SecretRng;

/// Ends of temporary names, with which the Python package marks them too.
const PARTIAL: &str = ".partial";

/// Characters of a temporary name between the name of its target and its end.
const MARK: usize = 8;

/// Bytes of a target's name that a temporary name holds, which would otherwise become too long.
const NAME_BYTES: usize = 200;

/// Names that are tried.
const ATTEMPTS: usize = 100;

/// Links that are followed to the end of a path, as many as Linux follows.
const MAX_LINKS: usize = 40;

/// The name of a file that is written beside its target. The name is removed when this is dropped, unless the file has
/// taken the target's ([`Self::rename`]). What a killed process has left is removed by the next one that writes the
/// same target ([`sweep`]): it has no lock.
#[derive(Debug)]
pub struct TemporaryFile(PathBuf);

impl TemporaryFile {
    /// Makes a file beside `target` and locks it. Nobody can guess its name, and a link of that name is not followed.
    ///
    /// # Arguments
    ///
    /// * `private`: whether its owner alone can read it, on systems that have owners.
    ///
    /// # Errors
    /// The error of the operating system; [`io::ErrorKind::ResourceBusy`] if others lock every file at once.
    pub fn beside(target: &Path, private: bool) -> io::Result<(Self, File)> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        #[cfg(unix)]
        if private {
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        }
        #[cfg(not(unix))]
        let _ = private;
        let start = start_of(target)?;
        for _ in 0..ATTEMPTS {
            // Forked processes draw different names, too.
            let mark = SecretRng::system().map_err(io::Error::other)?.next_word() as u32;
            let path = target.with_file_name(format!("{start}{mark:0MARK$x}{PARTIAL}"));
            let file = match options.open(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                opened => opened?,
            };
            let temporary = Self(path);
            // Until it is locked, another process may take it for a leftover and remove it; where there are no locks,
            // none does.
            let locked = if cfg!(unix) { file.try_lock() } else { Ok(()) };
            if !matches!(locked, Err(TryLockError::WouldBlock)) && is_named(&file, &temporary.0) {
                return Ok((temporary, file));
            }
        }
        let reason = format!("other processes lock every new file beside {}", target.display());
        Err(io::Error::new(io::ErrorKind::ResourceBusy, reason))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Gives the file the name `target`, and replaces what has it. The temporary name, which another process may use
    /// from then on, is not removed.
    ///
    /// # Errors
    /// The error of the operating system. The temporary name is then removed.
    pub fn rename(mut self, target: &Path) -> io::Result<()> {
        fs::rename(&self.0, target)?;
        // No file has an empty name.
        self.0 = PathBuf::new();
        Ok(())
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        // A failure leaves a file whose name marks it as partial.
        let _ = fs::remove_file(&self.0);
    }
}

/// What the temporary names of a target begin with.
fn start_of(target: &Path) -> io::Result<String> {
    let Some(name) = target.file_name() else {
        let reason = format!("{} names no file", target.display());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
    };
    let mut start = String::from(".");
    for c in name.to_string_lossy().chars().filter(|&c| c != char::REPLACEMENT_CHARACTER) {
        if start.len() + c.len_utf8() > NAME_BYTES + 1 {
            break;
        }
        start.push(c);
    }
    start.push('.');
    Ok(start)
}

/// Removes files that killed processes have left for a target: those that nobody has locked.
///
/// # Arguments
///
/// * `before`: called with the path of each and the file, before it is removed.
pub fn sweep(target: &Path, mut before: impl FnMut(&Path, &File)) {
    let Ok(start) = start_of(target) else { return };
    let is_leftover = |name: &OsStr| {
        let mark = name.to_str().and_then(|name| name.strip_prefix(&start)?.strip_suffix(PARTIAL));
        mark.is_some_and(|mark| {
            mark.len() == MARK && mark.bytes().all(|c| matches!(c, b'a'..=b'z' | b'0'..=b'9' | b'_'))
        })
    };
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    #[cfg(unix)]
    {
        // A link or a pipe that has replaced it meanwhile leads nowhere, and blocks nobody.
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    }
    // Without locks, nothing tells what is still being written.
    let entries = if cfg!(unix) { fs::read_dir(folder_of(target)).ok() } else { None };
    for entry in entries.into_iter().flatten().flatten() {
        if is_leftover(&entry.file_name()) && entry.file_type().is_ok_and(|kind| kind.is_file()) {
            // Others sweep here, too.
            if let Ok(file) = options.open(entry.path()) {
                remove_unlocked(&entry.path(), &file, &mut before);
            }
        }
    }
}

/// Removes a file that was opened under a temporary name, if nobody has locked it, and it still has the name: its
/// writer may have renamed and unlocked it meanwhile.
fn remove_unlocked(path: &Path, file: &File, mut before: impl FnMut(&Path, &File)) {
    // Locked until it is removed: a writer that has made it then sees that it is gone.
    if file.try_lock().is_ok() && is_named(file, path) {
        before(path, file);
        let _ = fs::remove_file(path);
    }
}

/// Whether a path names an open file itself, and no other file or link; whether it exists, where files have no numbers.
fn is_named(file: &File, path: &Path) -> bool {
    let (Ok(file), Ok(named)) = (file.metadata(), fs::symlink_metadata(path)) else { return false };
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        (file.dev(), file.ino()) == (named.dev(), named.ino())
    }
    #[cfg(not(unix))]
    {
        let _ = (file, named);
        true
    }
}

/// The path at the end of links, where there may be nothing yet.
///
/// # Errors
/// There are too many of them.
pub fn end_of(path: &Path) -> io::Result<PathBuf> {
    let mut end = path.to_path_buf();
    for _ in 0..=MAX_LINKS {
        match fs::read_link(&end) {
            Ok(to) => end = folder_of(&end).join(to),
            Err(_) => return Ok(end),
        }
    }
    let reason = format!("{} is a link that leads through more than {MAX_LINKS} others", path.display());
    Err(io::Error::new(io::ErrorKind::InvalidInput, reason))
}

pub(super) fn folder_of(target: &Path) -> &Path {
    target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use crate::AtomicFile;

    fn folder_of_test(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("keywright-wire-{name}-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        folder
    }

    #[test]
    fn what_killed_processes_have_left_is_removed() {
        let folder = folder_of_test("left");
        let (temporary, _file) = TemporaryFile::beside(&folder.join("keys"), false).unwrap();
        let others =
            [".keys.12345678", ".keys.1234567.partial", ".keys.x.12345678.partial", ".key.12345678.partial"];
        others.iter().for_each(|other| fs::write(folder.join(other), b"other").unwrap());
        fs::create_dir(folder.join(".keys.abcdefgh.partial")).unwrap();
        std::os::unix::fs::symlink("elsewhere", folder.join(".keys.12345678.partial")).unwrap();
        fs::write(folder.join(".keys.1234567_.partial"), b"left").unwrap();
        let mut left = Vec::new();
        sweep(&folder.join("keys"), |path, _| left.push(path.to_path_buf()));
        assert_eq!(left, [folder.join(".keys.1234567_.partial")]);
        assert!(!left[0].exists());
        assert!(others.iter().all(|other| folder.join(other).exists()));
        assert!(folder.join(".keys.abcdefgh.partial").exists());
        assert!(folder.join(".keys.12345678.partial").is_symlink());
        assert!(temporary.path().exists());
        fs::remove_dir_all(folder).unwrap();
    }

    /// A sweep that had opened a new pool's file under its temporary name took it for a leftover, and the register of
    /// the pool was removed.
    #[test]
    fn a_file_that_has_lost_its_temporary_name_is_no_leftover() {
        let folder = folder_of_test("lost");
        let (temporary, file) = TemporaryFile::beside(&folder.join("keys"), false).unwrap();
        let path = temporary.path().to_path_buf();
        let opened = File::open(&path).unwrap();
        let refused = |_: &Path, _: &File| panic!("it is no leftover");
        remove_unlocked(&path, &opened, refused);
        fs::hard_link(&path, folder.join("keys")).unwrap();
        drop(temporary);
        file.unlock().unwrap();
        remove_unlocked(&path, &opened, refused);
        // The name is another file's.
        fs::write(&path, b"other").unwrap();
        remove_unlocked(&path, &opened, refused);
        assert_eq!(fs::read(&path).unwrap(), b"other");
        fs::remove_dir_all(folder).unwrap();
    }

    /// Its writer removed it once its file had the name of the target.
    #[test]
    fn a_temporary_name_that_was_given_up_may_be_used_by_another() {
        let folder = folder_of_test("given");
        let target = folder.join("keys");
        let renamed = |before: &dyn Fn(&Path)| {
            let (temporary, _file) = TemporaryFile::beside(&target, false).unwrap();
            let path = temporary.path().to_path_buf();
            before(&path);
            let _ = temporary.rename(&target);
            path.exists()
        };
        assert!(!renamed(&|_| ()));
        fs::remove_file(&target).unwrap();
        // The rename of a file to another of its names changes nothing, as if another process had the old one at once.
        assert!(renamed(&|path| fs::hard_link(path, &target).unwrap()));
        fs::remove_file(&target).unwrap();
        assert!(!renamed(&|_| fs::create_dir(&target).unwrap()));
        fs::remove_dir_all(folder).unwrap();
    }

    /// Temporary names were numbers of the process, which anyone can count.
    #[test]
    fn nobody_can_guess_the_next_name() {
        let folder = folder_of_test("names");
        let marks: Vec<u32> = (0..64)
            .map(|_| {
                let (temporary, _) = TemporaryFile::beside(&folder.join("keys"), false).unwrap();
                let name = temporary.path().file_name().unwrap().to_str().unwrap();
                u32::from_str_radix(name.strip_prefix(".keys.").unwrap().strip_suffix(PARTIAL).unwrap(), 16)
                    .unwrap()
            })
            .collect();
        let changes: Vec<_> = marks.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])).collect();
        let distinct: std::collections::HashSet<_> = changes.iter().collect();
        assert!(distinct.len() > changes.len() / 2, "{marks:?}");
        fs::remove_dir_all(folder).unwrap();
    }

    /// A sweep removes no file whose writer is about to lock it.
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

    /// In a shared folder, others can rename what is being written, and put their own under its name.
    #[test]
    fn nothing_is_written_through_a_link_that_has_a_temporary_name() {
        use std::io::Write;
        let folder = folder_of_test("swapped");
        let (victim, moved) = (folder.join("victim"), folder.join("moved"));
        fs::write(&victim, b"theirs").unwrap();
        let (temporary, mut file) = TemporaryFile::beside(&folder.join("keys"), true).unwrap();
        fs::rename(temporary.path(), &moved).unwrap();
        std::os::unix::fs::symlink(&victim, temporary.path()).unwrap();
        file.write_all(b"secret").unwrap();
        drop(temporary);
        assert_eq!(fs::read(&victim).unwrap(), b"theirs");
        assert_eq!(fs::read(&moved).unwrap(), b"secret");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn links_end_where_they_lead() {
        use std::os::unix::fs::symlink;
        let folder = folder_of_test("links");
        fs::create_dir(folder.join("far")).unwrap();
        for (link, to) in [("first", "far/second"), ("far/second", "../last"), ("loop", "loop")] {
            symlink(to, folder.join(link)).unwrap();
        }
        assert_eq!(end_of(&folder.join("first")).unwrap(), folder.join("far/../last"));
        assert_eq!(end_of(&folder.join("plain")).unwrap(), folder.join("plain"));
        assert!(end_of(&folder.join("loop")).is_err());
        fs::remove_dir_all(folder).unwrap();
    }
}
