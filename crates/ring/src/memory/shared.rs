//! Words shared between processes: one process writes them once, then others read them in the same physical memory.
//!
//! The memory is an anonymous file (`memfd_create(2)`): it has no name, is on no disk, and disappears with its last
//! descriptor and mapping. Only the [`SharedWriter`] that owns its descriptor appends to it, and only written parts are
//! mapped. Other processes get a [`SharedFile`], whose seals (`F_ADD_SEALS`, `fcntl(2)`) forbid every process to write
//! to it or to change its length. A mapping therefore neither changes nor shrinks, which slices of it rely on.
//!
//! A file ends with its writer's description of it ([`SharedFile::tail`]), then the offset and the length of that
//! description, in bytes.

use core::ops::Deref;
use core::ptr::NonNull;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::vec::Vec;

/// Bytes of the two numbers at the end.
const TRAILER: u64 = 16;

/// Without these seals, mapped memory could change or shrink.
const SEALS: libc::c_int = libc::F_SEAL_WRITE | libc::F_SEAL_SHRINK | libc::F_SEAL_GROW;

/// Memory that is being written.
#[derive(Debug)]
pub struct SharedWriter {
    file: File,
    /// Bytes so far, a multiple of the length of a page.
    end: u64,
    page: u64,
}

/// Memory that is complete and sealed.
#[derive(Debug)]
pub struct SharedFile {
    file: File,
    /// The offset at which words end and the tail begins, and the tail's length.
    tail: u64,
    tail_bytes: u64,
}

/// A part of shared memory, mapped for reading.
///
/// # Invariant
/// `pointer` is the address of a private mapping, without the right to write, of `length` words that were written
/// before they were mapped and that nobody writes again. It is unmapped when this is dropped.
#[derive(Debug)]
pub struct SharedWords {
    pointer: NonNull<u64>,
    length: usize,
}

// SAFETY: by the invariant nobody writes to the memory, and it is mapped for as long as the value lives, whichever
// thread has it.
unsafe impl Send for SharedWords {}
// SAFETY: as above.
unsafe impl Sync for SharedWords {}

impl SharedWriter {
    /// Creates memory without words.
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn new() -> io::Result<Self> {
        // SAFETY: the name is a string of C; the call has no other effect than to make a descriptor.
        let descriptor =
            unsafe { libc::memfd_create(c"keywright".as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was made above, and nothing else owns it.
        let file = unsafe { File::from_raw_fd(descriptor) };
        // SAFETY: it asks for a number.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        Ok(Self { file, end: 0, page: u64::try_from(page).unwrap_or(1 << 16) })
    }

    /// Appends words and maps them. Returns their offset in words, and the mapping.
    ///
    /// # Errors
    /// The error of the operating system. The part that was written then stays in the file; the next append overwrites
    /// it.
    pub fn append<'w>(
        &mut self,
        parts: impl IntoIterator<Item = &'w [u64]>,
    ) -> io::Result<(usize, SharedWords)> {
        let (start, mut end) = (self.end, self.end);
        for part in parts {
            // SAFETY: words are bytes.
            let bytes = unsafe { core::slice::from_raw_parts(part.as_ptr().cast::<u8>(), size_of_val(part)) };
            self.file.write_all_at(bytes, end)?;
            end += bytes.len() as u64;
        }
        // SAFETY: what lies there was written above. The descriptor is this value's alone, which writes behind
        // `self.end` only.
        let words = unsafe { SharedWords::map(&self.file, start, end - start)? };
        self.end = end.next_multiple_of(self.page);
        Ok((start as usize / 8, words))
    }

    /// Appends the description and seals the memory: no process can change it any more.
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn finish(self, tail: &[u8]) -> io::Result<SharedFile> {
        let (end, bytes) = (self.end, tail.len() as u64);
        self.file.write_all_at(tail, end)?;
        self.file.write_all_at(&end.to_ne_bytes(), end + bytes)?;
        self.file.write_all_at(&bytes.to_ne_bytes(), end + bytes + 8)?;
        // SAFETY: it changes what can be done with the descriptor, not memory.
        if unsafe { libc::fcntl(self.file.as_raw_fd(), libc::F_ADD_SEALS, SEALS | libc::F_SEAL_SEAL) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(SharedFile { file: self.file, tail: end, tail_bytes: bytes })
    }
}

impl SharedFile {
    /// Opens the memory of a descriptor. The caller keeps the descriptor; this value duplicates it.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`] if no [`SharedWriter`] finished it; otherwise the error of the operating system.
    pub fn of_descriptor(descriptor: i32) -> io::Result<Self> {
        // SAFETY: it makes another descriptor, or fails if there is none of this number.
        let own = unsafe { libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, 0) };
        if own < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was made above, and nothing else owns it.
        let file = unsafe { File::from_raw_fd(own) };
        let refused = || {
            io::Error::new(
                io::ErrorKind::InvalidData,
                "the descriptor is not of sealed shared memory; pass one that a finished writer returned",
            )
        };
        // SAFETY: it asks for a number.
        let seals = unsafe { libc::fcntl(own, libc::F_GET_SEALS) };
        let length = file.metadata()?.len();
        if seals < 0 || seals & SEALS != SEALS || length < TRAILER {
            return Err(refused());
        }
        let number = |place| -> io::Result<u64> {
            let mut bytes = [0; 8];
            file.read_exact_at(&mut bytes, place)?;
            Ok(u64::from_ne_bytes(bytes))
        };
        let (tail, tail_bytes) = (number(length - TRAILER)?, number(length - TRAILER + 8)?);
        if tail % 8 != 0 || tail.checked_add(tail_bytes) != Some(length - TRAILER) {
            return Err(refused());
        }
        Ok(Self { file, tail, tail_bytes })
    }

    /// The writer's description, of at most `most` bytes.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`] if it is longer; otherwise the error of the operating system.
    pub fn tail(&self, most: u64) -> io::Result<Vec<u8>> {
        if self.tail_bytes > most {
            let message = std::format!(
                "the description of shared memory has {} bytes; at most {most} are allowed",
                self.tail_bytes
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        let mut out = std::vec![0; self.tail_bytes as usize];
        self.file.read_exact_at(&mut out, self.tail)?;
        Ok(out)
    }

    /// Maps all words. Each run lies at the offset that [`SharedWriter::append`] returned.
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn words(&self) -> io::Result<SharedWords> {
        // SAFETY: the seals forbid to write to the file and to shorten it, and the words end before the tail.
        unsafe { SharedWords::map(&self.file, 0, self.tail) }
    }

    /// Another handle to the same memory.
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { file: self.file.try_clone()?, ..*self })
    }

    /// The descriptor, for passing to another process.
    pub fn into_descriptor(self) -> OwnedFd {
        self.file.into()
    }
}

impl SharedWords {
    /// Maps a part of a file.
    ///
    /// # Safety
    /// The file has `bytes` bytes from `start` on. They are written, and nothing writes to them or cuts them off while
    /// the value lives.
    unsafe fn map(file: &File, start: u64, bytes: u64) -> io::Result<Self> {
        let refused = |_| io::Error::from(io::ErrorKind::OutOfMemory);
        let (start, bytes) =
            (libc::off_t::try_from(start).map_err(refused)?, usize::try_from(bytes).map_err(refused)?);
        if bytes == 0 {
            return Ok(Self { pointer: NonNull::dangling(), length: 0 });
        }
        let flags = libc::MAP_PRIVATE | libc::MAP_POPULATE;
        // SAFETY: the system chooses an address that is free.
        let address = unsafe {
            libc::mmap(core::ptr::null_mut(), bytes, libc::PROT_READ, flags, file.as_raw_fd(), start)
        };
        match NonNull::new(address.cast::<u64>()) {
            Some(pointer) if address != libc::MAP_FAILED => Ok(Self { pointer, length: bytes / 8 }),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Deref for SharedWords {
    type Target = [u64];
    #[inline(always)]
    fn deref(&self) -> &[u64] {
        // SAFETY: by the invariant; a mapping begins at a page, or is empty and aligned.
        unsafe { core::slice::from_raw_parts(self.pointer.as_ptr(), self.length) }
    }
}

impl Drop for SharedWords {
    fn drop(&mut self) {
        if self.length > 0 {
            // SAFETY: by the invariant; no slice of it outlives the value.
            unsafe { libc::munmap(self.pointer.as_ptr().cast(), self.length * 8) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::vec;

    fn written(parts: &[&[u64]], tail: &[u8]) -> (SharedFile, Vec<(usize, SharedWords)>) {
        let mut writer = SharedWriter::new().unwrap();
        let mapped = parts.iter().map(|part| writer.append([*part]).unwrap()).collect();
        (writer.finish(tail).unwrap(), mapped)
    }

    #[test]
    fn what_was_appended_is_read_in_every_mapping() {
        let parts = [vec![1u64; 700], vec![2; 1], vec![], vec![u64::MAX; 3 << 10]];
        let parts: Vec<&[u64]> = parts.iter().map(Vec::as_slice).collect();
        let (file, mapped) = written(&parts, b"tail");
        let again = SharedFile::of_descriptor(file.file.as_raw_fd()).unwrap();
        drop(file);
        let whole = again.words().unwrap();
        assert_eq!((again.tail(4).unwrap(), again.tail(3).is_err()), (b"tail".to_vec(), true));
        for ((start, words), part) in mapped.iter().zip(&parts) {
            assert_eq!(words as &[u64], *part);
            assert_eq!(&whole[*start..start + part.len()], *part);
            assert!(words.is_empty() || words.as_ptr().addr().is_multiple_of(64));
        }
        // Mappings outlive every descriptor.
        drop(again);
        assert_eq!(whole[0], 1);
        let shared = Arc::new(whole);
        let sums: Vec<u64> = (0..2)
            .map(|_| shared.clone())
            .map(|words| std::thread::spawn(move || words[..700].iter().sum()).join().unwrap())
            .collect();
        assert_eq!(sums, [700, 700]);
    }

    #[test]
    fn an_append_of_several_parts_is_one_run() {
        let mut writer = SharedWriter::new().unwrap();
        let (first, words) = writer.append([&[1, 2][..], &[3]]).unwrap();
        let (second, _) = writer.append([&[4][..]]).unwrap();
        assert_eq!((first, &words[..]), (0, &[1, 2, 3][..]));
        assert_eq!((second * 8) as u64, writer.page);
    }

    #[test]
    fn finished_memory_can_be_changed_by_nobody() {
        let (file, _) = written(&[&[7; 8]], b"");
        assert!(file.file.write_at(&[1], 0).is_err());
        assert!(file.file.set_len(0).is_err());
        assert!(file.file.set_len(1 << 20).is_err());
        // SAFETY: a mapping that is refused, or unused until the end of the process.
        let writable = unsafe {
            let (rights, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
            libc::mmap(core::ptr::null_mut(), 64, rights, flags, file.file.as_raw_fd(), 0)
        };
        assert_eq!(writable, libc::MAP_FAILED);
        assert_eq!(file.words().unwrap()[..8], [7; 8]);
    }

    #[test]
    fn what_is_not_sealed_or_not_whole_is_refused() {
        let refused = |file: &File| SharedFile::of_descriptor(file.as_raw_fd()).unwrap_err().kind();
        let mut writer = SharedWriter::new().unwrap();
        writer.append([&[1; 64][..]]).unwrap();
        assert_eq!(refused(&writer.file), io::ErrorKind::InvalidData);
        assert_eq!(refused(&File::open("/proc/self/exe").unwrap()), io::ErrorKind::InvalidData);
        assert!(SharedFile::of_descriptor(-1).is_err());
        let sealed = |bytes: &[u8]| {
            let SharedWriter { file, .. } = SharedWriter::new().unwrap();
            file.write_all_at(bytes, 0).unwrap();
            // SAFETY: it changes what can be done with the descriptor, not memory.
            assert_eq!(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, SEALS) }, 0);
            file
        };
        for bytes in [&[][..], &[0; 15], &[1; 16], &[0xFF; 64], &[9; 24]] {
            assert_eq!(refused(&sealed(bytes)), io::ErrorKind::InvalidData);
        }
        // Sixteen zeros: no words and no tail.
        assert_eq!(
            SharedFile::of_descriptor(sealed(&[0; 16]).as_raw_fd()).unwrap().words().unwrap().len(),
            0
        );
    }
}
