//! Stand-ins for [`SharedWords`] and its like on systems without sealed memory: none can be created.

use core::ops::Deref;
use std::io;
use std::vec::Vec;

/// Memory that is being written.
#[derive(Debug)]
pub enum SharedWriter {}

/// Memory that is complete and sealed.
#[derive(Debug)]
pub enum SharedFile {}

/// A part of shared memory, mapped for reading.
#[derive(Debug)]
pub enum SharedWords {}

/// A descriptor of shared memory.
#[derive(Debug)]
pub enum Descriptor {}

impl Descriptor {
    /// Unreachable.
    pub fn into_raw_fd(self) -> i32 {
        match self {}
    }
}

fn unsupported<T>() -> io::Result<T> {
    let message = "this system has no sealed shared memory; use Linux, or read the keys in every process";
    Err(io::Error::new(io::ErrorKind::Unsupported, message))
}

impl SharedWriter {
    /// Always fails.
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`].
    pub fn new() -> io::Result<Self> {
        unsupported()
    }

    /// Unreachable.
    ///
    /// # Errors
    /// None.
    pub fn append<'w>(&mut self, _: impl IntoIterator<Item = &'w [u64]>) -> io::Result<(usize, SharedWords)> {
        match *self {}
    }

    /// Unreachable.
    ///
    /// # Errors
    /// None.
    pub fn finish(self, _: &[u8]) -> io::Result<SharedFile> {
        match self {}
    }
}

impl SharedFile {
    /// Always fails.
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`].
    pub fn of_descriptor(_: i32) -> io::Result<Self> {
        unsupported()
    }

    /// Unreachable.
    ///
    /// # Errors
    /// None.
    pub fn tail(&self, _: u64) -> io::Result<Vec<u8>> {
        match *self {}
    }

    /// Unreachable.
    ///
    /// # Errors
    /// None.
    pub fn words(&self) -> io::Result<SharedWords> {
        match *self {}
    }

    /// Unreachable.
    ///
    /// # Errors
    /// None.
    pub fn try_clone(&self) -> io::Result<Self> {
        match *self {}
    }

    /// Unreachable.
    pub fn into_descriptor(self) -> Descriptor {
        match self {}
    }
}

impl Deref for SharedWords {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        match *self {}
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::string::ToString;

    use super::{SharedFile, SharedWriter};

    /// Callers get an error and read keys into their own memory.
    #[test]
    fn nothing_is_shared() {
        for error in [SharedWriter::new().err(), SharedFile::of_descriptor(0).err()] {
            assert!(error.is_some_and(|error| {
                error.kind() == ErrorKind::Unsupported
                    && error.to_string().contains("no sealed shared memory")
            }));
        }
    }
}
