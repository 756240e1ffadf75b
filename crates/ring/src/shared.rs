//! Words that processes share: written once by one process, then read by others in the same physical memory.
//!
//! The memory is an anonymous file (`memfd_create(2)`): it has no name, is on no disk, and goes with its last
//! descriptor and mapping. It is only ever appended to, by the [`SharedWriter`] that owns its descriptor, and what is
//! mapped was written before. It is handed on as a [`SharedFile`], whose seals (`F_ADD_SEALS`, `fcntl(2)`) forbid every
//! process to write to it or to change its length: so a mapping neither changes nor ends before its end, which slices
//! of it rely on.
//!
//! A file ends with what its writer has to say of it ([`SharedFile::tail`]), then where that begins and its length, in
//! bytes.

use core::ops::Deref;
use core::ptr::NonNull;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::vec::Vec;

/// Bytes of the two numbers at the end.
const TRAILER: u64 = 16;

/// Without these, what is mapped could change or end.
const SEALS: libc::c_int = libc::F_SEAL_WRITE | libc::F_SEAL_SHRINK | libc::F_SEAL_GROW;

/// Memory that is being written.
#[derive(Debug)]
pub struct SharedWriter {
    file: File,
    /// Bytes so far, a multiple of the length of a page.
    end: u64,
    page: u64,
}

/// Memory that is whole and stays as it is.
#[derive(Debug)]
pub struct SharedFile {
    file: File,
    /// Where words end and the tail begins, and its length.
    tail: u64,
    tail_bytes: u64,
}

/// A part of shared memory, mapped to be read.
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
    /// Memory of no words.
    ///
    /// # Errors
    /// What the operating system says.
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

    /// Appends words, and maps them: where they begin, in words, and themselves.
    ///
    /// # Errors
    /// What the operating system says. What was written of them then stays in the file, and is overwritten by the next.
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

    /// Ends the memory with what is to be known of it, and lets nobody change it any more.
    ///
    /// # Errors
    /// What the operating system says.
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
    /// The memory of a descriptor, which stays the caller's: this has its own.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`] if it is no memory that was finished by a [`SharedWriter`]; what the operating
    /// system says.
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
                "the descriptor is not of shared memory that is whole and sealed",
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

    /// What the writer said of it, of at most so many bytes.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`] if it is longer; what the operating system says.
    pub fn tail(&self, most: u64) -> io::Result<Vec<u8>> {
        if self.tail_bytes > most {
            let message = std::format!(
                "the tail of shared memory has {} bytes, at most {most} can be",
                self.tail_bytes
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        let mut out = std::vec![0; self.tail_bytes as usize];
        self.file.read_exact_at(&mut out, self.tail)?;
        Ok(out)
    }

    /// All its words, mapped: every run where [`SharedWriter::append`] said.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn words(&self) -> io::Result<SharedWords> {
        // SAFETY: the seals forbid to write to the file and to shorten it, and the words end before the tail.
        unsafe { SharedWords::map(&self.file, 0, self.tail) }
    }

    /// Another value of the same memory.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { file: self.file.try_clone()?, ..*self })
    }

    /// The descriptor, to be handed on.
    pub fn into_descriptor(self) -> OwnedFd {
        self.file.into()
    }
}

impl SharedWords {
    /// Maps a part of a file.
    ///
    /// # Safety
    /// The file has `bytes` bytes from `start` on, which were written and which nobody writes or cuts off while the
    /// value lives.
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
        // SAFETY: a mapping that is refused, or unused and left to the end of the process.
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
